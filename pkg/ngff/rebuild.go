package ngff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// PyramidOptions set how [RebuildPyramid] works. Zero values have the meaning that they have in [ImageSpec].
type PyramidOptions struct {
	Levels  int // below level 0
	Workers int
	Budget  int64
	Meter   *meter.Meter
	Missing *zarr.Missing // records the chunks of level 0 that are not stored; may be nil
}

// RebuildPyramid rebuilds the levels below level 0 of the image at path: Levels of them, from the stored
// level 0, with its chunks, codecs and attributes. It removes the previous levels and keeps other metadata
// (axes, display settings, labels).
//
// The image is valid at any time: it has its old levels until the new ones are complete. Levels whose names are taken
// are first built below the group "strata-pyramid". The next run removes what an interrupted run leaves behind; no
// metadata refer to it. The caller makes sure that only one run at a time works on an image. It also returns warnings.
func RebuildPyramid(ctx context.Context, st store.Writer, path string, o PyramidOptions) ([]string, error) {
	im, err := describe(ctx, st, path, []zarr.Option{zarr.Workers(1), zarr.Meter(o.Meter), zarr.NoteMissing(o.Missing)})
	if err != nil {
		return nil, err
	}
	ms := &im.Metadata.Multiscales[0]
	if !ms.ExplicitScale {
		return nil, im.refuse(im.prefix()+"version", fmt.Errorf("NGFF %s cannot state voxel sizes (0.4 and 0.5 can be written)", im.Version))
	}
	base, err := im.array(ctx, ms.Datasets[0].Path)
	switch field := im.prefix() + "datasets[0].path"; {
	case errors.Is(err, fs.ErrNotExist):
		return nil, im.refuse(field, err)
	case err != nil:
		return nil, im.unopened(field, err)
	}
	r := rebuild{st: st, path: path, options: o, ms: ms, field: im.prefix(), base: base, group: im.Group, attributes: im.withDatasets, label: im.ImageLabel}
	warnings, err := r.run(ctx)
	return append(im.Warnings, warnings...), err
}

// rebuild is one run of RebuildPyramid or Adopt.
type rebuild struct {
	st      store.Writer
	path    string // of the image's group
	options PyramidOptions
	ms      *Multiscale // as it is now
	field   string      // of the multiscale, for messages
	base    *zarr.Array // level 0
	group   *zarr.Group // of the image; nil: there is none yet
	label   *ImageLabel // nil: the image has no labels

	// attributes returns the group's attributes with other datasets; current is nil if there is no group.
	attributes func(current map[string]json.RawMessage, datasets []Dataset) (map[string]any, error)

	spec ImageSpec
	geo  []geometry
	w    *Writer
	swap swap
}

// run makes the levels and swaps them for the old ones.
func (r *rebuild) run(ctx context.Context) (warnings []string, err error) {
	if err := r.recover(ctx); err != nil {
		return nil, err
	}
	if err := r.plan(); err != nil {
		return nil, err
	}
	defer r.w.Abort()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer func() {
		left := r.settle(context.WithoutCancel(ctx))
		switch {
		case left == nil:
		case err == nil:
			warnings = append(warnings, fmt.Sprintf("the levels are made, but what they replace could not be removed: %v", left))
		default:
			err = errors.Join(err, left)
		}
	}()
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	if err := stream(ctx, r.base, r.w, true, r.options); err != nil {
		return nil, err
	}
	if err := r.w.end(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.where(), err)
	}
	return r.w.warnings, r.replace(ctx)
}

// where returns the image for messages.
func (r *rebuild) where() string { return r.st.Location(r.path) }

func (r *rebuild) refuse(field string, err error) error {
	return &zarr.FormatError{Path: r.where(), Field: r.field + field, Err: err}
}

// plan determines the work and checks that it is possible.
func (r *rebuild) plan() (err error) {
	if r.options.Levels < 0 {
		return fmt.Errorf("%s: %d levels (must not be negative)", r.where(), r.options.Levels)
	}
	axes, first := r.ms.Axes, r.ms.Datasets[0]
	if n := len(r.base.Shape()); n != len(axes) {
		return r.refuse("datasets[0]", fmt.Errorf("array %q has %d dimensions for %d axes", first.Path, n, len(axes)))
	}
	r.spec = likeArray(r.base)
	r.spec.Axes, r.spec.Scale, r.spec.Translation = axes, first.Transform.Scale, first.Transform.Translation
	r.spec.Levels, r.spec.Label, r.spec.Meter = r.options.Levels, r.label, r.options.Meter
	if err := r.spec.check(); err != nil {
		return fmt.Errorf("%s: %w", r.where(), err)
	}
	if err := r.spec.Codecs.ReadOnly(); err != nil {
		return fmt.Errorf("%s: %w", r.base.Location(), err)
	}
	w := &Writer{where: r.where(), scale: Multiscale{Axes: axes, Datasets: []Dataset{first}}}
	shapes := LevelShapes(r.spec.Shape, axes, r.options.Levels)
	w.capped(len(shapes)-1, r.options.Levels)
	r.geo = []geometry{{r.spec.Shape, r.spec.Chunks, nil}}
	for k, shape := range shapes[1:] {
		g := geometry{shape: shape}
		g.chunk, g.shard = levelChunks(shape, r.spec.Chunks, r.spec.Shard)
		r.geo = append(r.geo, g)
		name, err := levelPath(r.ms, k+1)
		if err != nil {
			return r.refuse("datasets", err)
		}
		w.scale.Datasets = append(w.scale.Datasets, Dataset{name, levelTransform(first.Transform, r.spec.Shape, shape)})
	}
	if err := w.scale.readable(); err != nil {
		return fmt.Errorf("%s: %w", r.where(), err)
	}
	budget := r.options.Budget
	if budget > 0 {
		budget -= int64(readers(r.base, r.options) * chunkBytes(r.base))
		budget = max(budget, 1)
	}
	if w.pyramid, err = newPyramid(&r.spec, r.geo, budget); err != nil {
		return fmt.Errorf("%s: %w", r.where(), err)
	}
	w.pyramid.levels[0].array = r.base
	w.prepare(1) // stream brings its own workers
	r.w = w
	return nil
}

// likeArray returns a spec of level 0 with the layout and codecs of an array.
func likeArray(a *zarr.Array) ImageSpec {
	return ImageSpec{
		Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(),
		Codecs: a.Codecs(), Fill: a.Fill(),
	}
}

// levelPath returns the path of level k: the one in the previous metadata, or level 0's with its last number,
// if that is 0, replaced.
func levelPath(ms *Multiscale, k int) (string, error) {
	first := ms.Datasets[0].Path
	name := strconv.Itoa(k)
	if k < len(ms.Datasets) {
		name = strings.TrimPrefix(ms.Datasets[k].Path, buildPath+"/")
	} else if i := strings.LastIndexByte(first, '0'); i >= 0 && (i+1 == len(first) || first[i+1] < '0' || first[i+1] > '9') && (i == 0 || first[i-1] < '0' || first[i-1] > '9') {
		name = first[:i] + name + first[i+1:]
	}
	for j, d := range ms.Datasets {
		if j != k && overlap(name, d.Path) {
			return "", fmt.Errorf("level %d would be %q, which level %d is (%q)", k, name, j, d.Path)
		}
	}
	return name, nil
}

// create makes the arrays of the levels below level 0.
func (r *rebuild) create(ctx context.Context) error {
	for k, l := range r.w.pyramid.levels {
		if k == 0 {
			continue
		}
		a := arraySpec(&r.spec, r.geo[k])
		a.Separator, a.Order, a.BigEndian, a.DimensionNames = r.base.Separator(), r.base.Order(), r.base.BigEndian(), r.base.DimensionNames()
		path := store.Join(r.swap.dir, r.w.scale.Datasets[k].Path)
		if err := r.folders(ctx, path); err != nil {
			return err
		}
		var err error
		if l.array, err = zarr.CreateArray(ctx, r.st, store.Join(r.path, path), a, r.w.pyramid.options()...); err != nil {
			return err
		}
	}
	return nil
}

// folders makes groups of the path's segments above the array, where there are none.
func (r *rebuild) folders(ctx context.Context, path string) error {
	for at := range above(path) {
		at = store.Join(r.path, at)
		if _, err := zarr.Open(ctx, r.st, at); errors.Is(err, fs.ErrNotExist) {
			if _, err := zarr.CreateGroup(ctx, r.st, at, r.base.Format(), nil); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// above yields the paths of the groups that a path goes through.
func above(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, c := range path {
			if c == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

// withDatasets returns the attributes of an image with other datasets in its first multiscale, and everything
// unknown unchanged.
func (im *Image) withDatasets(current map[string]json.RawMessage, datasets []Dataset) (map[string]any, error) {
	attrs := rawAttributes(current)
	into := attrs
	if raw, ok := current["ome"]; ok {
		var err error
		if into, err = members(raw); err != nil {
			return nil, im.refuse("ome", err)
		}
		attrs["ome"] = into
	}
	var all []json.RawMessage
	if raw, ok := into["multiscales"].(json.RawMessage); !ok {
		return nil, im.refuse("multiscales", errors.New("has gone meanwhile"))
	} else if err := json.Unmarshal(raw, &all); err != nil || len(all) == 0 {
		return nil, im.refuse("multiscales", cmp.Or(err, errors.New("has become empty meanwhile")))
	}
	ms, err := members(all[0])
	if err != nil {
		return nil, im.refuse("multiscales[0]", err)
	}
	j := (&Multiscale{Datasets: datasets}).encode(im.Group.Format())
	ms["datasets"] = j.Datasets
	delete(ms, "type") // how the levels were made that are gone
	delete(ms, "metadata")
	if len(datasets) > 1 {
		ms["type"] = method(im.ImageLabel != nil)
	}
	list := []any{ms}
	for _, m := range all[1:] {
		list = append(list, m)
	}
	into["multiscales"] = list
	return attrs, nil
}

// members takes a JSON object apart.
func members(raw json.RawMessage) (map[string]any, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	return rawAttributes(m), nil
}

// chunkBytes returns the memory that reading one chunk of an array takes.
func chunkBytes(a *zarr.Array) int {
	n := a.DType().Size()
	shape := a.Shape()
	for d, c := range a.Chunks() {
		n *= min(c, max(shape[d], 1))
	}
	return pages(n)
}

// readers returns the number of goroutines that stream reads with: no more than half of the budget has room
// for.
func readers(a *zarr.Array, o PyramidOptions) int {
	n := workersOr(o.Workers)
	if o.Budget > 0 {
		n = int(min(int64(n), o.Budget/2/int64(chunkBytes(a))))
	}
	return max(n, 1)
}

// stream passes an array, chunk by chunk, to a writer: as level 0, or, if it is stored there already, as the
// source of the levels below.
func stream(ctx context.Context, a *zarr.Array, w *Writer, stored bool, o PyramidOptions) error {
	g, gctx := work.WithContext(ctx)
	starts := make(chan []int)
	shape, chunks := a.Shape(), a.Chunks()
	for range readers(a, o) {
		g.Go(func() error { return streamChunks(gctx, a, w, stored, starts) })
	}
	for s := range TileOrder(shape, chunks, w.scale.Axes) {
		select {
		case starts <- s:
			continue
		case <-gctx.Done():
		}
		break
	}
	close(starts)
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// streamChunks returns one worker of stream.
func streamChunks(ctx context.Context, a *zarr.Array, w *Writer, stored bool, starts <-chan []int) error {
	buf, err := mem.Alloc(chunkBytes(a))
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	full, chunks := a.Shape(), a.Chunks()
	for start := range starts {
		shape, n := make([]int, len(start)), a.DType().Size()
		for d := range shape {
			shape[d] = min(chunks[d], full[d]-start[d])
			n *= shape[d]
		}
		if err := a.Read(ctx, zarr.Region{Start: start, Shape: shape}, buf[:n]); err != nil {
			return err
		}
		if err := w.tile(ctx, start, shape, buf[:n], stored); err != nil {
			return err
		}
	}
	return nil
}
