package ngff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// PyramidOptions say how [RebuildPyramid] works. Zero values are those of
// [ImageSpec].
type PyramidOptions struct {
	Levels  int // below level 0
	Workers int
	Budget  int64
	Meter   *meter.Meter
}

// RebuildPyramid makes the levels below level 0 of the image at path again:
// Levels of them, from level 0 as stored, with its chunks, codecs and
// attributes. Levels that the metadata named before are removed. Other metadata
// (axes, display settings, labels) stays.
//
// The image is whole at any time: while the levels are made it has only level 0.
// What comes back are warnings.
func RebuildPyramid(ctx context.Context, st store.Writer, path string, o PyramidOptions) ([]string, error) {
	im, err := describe(ctx, st, path, []zarr.Option{zarr.Workers(1), zarr.Meter(o.Meter)})
	if err != nil {
		return nil, err
	}
	r := rebuild{im: im, st: st, path: path, options: o}
	if err := r.plan(ctx); err != nil {
		return nil, err
	}
	defer r.w.Abort()
	if err := r.clear(ctx); err != nil {
		return nil, err
	}
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	if err := stream(ctx, r.base, r.w, true, o); err != nil {
		return nil, err
	}
	if err := r.w.end(); err != nil {
		return nil, fmt.Errorf("%s: %w", im.Group.Location(), err)
	}
	return append(im.Warnings, r.w.warnings...), r.describe(ctx, r.w.scale.Datasets)
}

// rebuild is one run of RebuildPyramid.
type rebuild struct {
	im      *Image
	st      store.Writer
	path    string
	options PyramidOptions
	base    *zarr.Array // level 0
	spec    ImageSpec
	geo     []geometry
	w       *Writer
}

// plan finds out what there is to do, and whether it can be done.
func (r *rebuild) plan(ctx context.Context) (err error) {
	ms := &r.im.Metadata.Multiscales[0]
	if r.options.Levels < 0 {
		return fmt.Errorf("%s: %d levels (must not be negative)", r.im.Group.Location(), r.options.Levels)
	}
	if !ms.ExplicitScale {
		return r.im.refuse(r.im.prefix()+"version", fmt.Errorf("NGFF %s cannot state voxel sizes (0.4 and 0.5 can be written)", r.im.Version))
	}
	first := ms.Datasets[0]
	if r.base, err = r.im.array(ctx, first.Path); err != nil {
		return r.im.refuse(r.im.prefix()+"datasets[0].path", err)
	}
	if n := len(r.base.Shape()); n != len(ms.Axes) {
		return r.im.refuse(r.im.prefix()+"datasets[0]", fmt.Errorf("array %q has %d dimensions for %d axes", first.Path, n, len(ms.Axes)))
	}
	r.spec = likeArray(r.base)
	r.spec.Axes, r.spec.Scale, r.spec.Translation = ms.Axes, first.Transform.Scale, first.Transform.Translation
	r.spec.Levels = r.options.Levels
	if err := r.spec.check(); err != nil {
		return fmt.Errorf("%s: %w", r.im.Group.Location(), err)
	}
	if err := r.spec.Codecs.ReadOnly(); err != nil {
		return fmt.Errorf("%s: %w", r.base.Location(), err)
	}
	w := &Writer{group: r.im.Group, format: r.im.Group.Format(), scale: Multiscale{Axes: ms.Axes, Datasets: []Dataset{first}}}
	shapes := LevelShapes(r.spec.Shape, ms.Axes, r.options.Levels)
	w.capped(len(shapes)-1, r.options.Levels)
	r.geo = []geometry{{r.spec.Shape, r.spec.Chunks, nil}}
	base := first.Transform
	for k, shape := range shapes[1:] {
		g := geometry{shape: shape}
		g.chunk, g.shard = levelChunks(shape, r.spec.Chunks, r.spec.Shard)
		r.geo = append(r.geo, g)
		name, err := levelPath(ms, k+1)
		if err != nil {
			return r.im.refuse(r.im.prefix()+"datasets", err)
		}
		w.scale.Datasets = append(w.scale.Datasets, Dataset{name, levelTransform(base, ms.Axes, k+1)})
	}
	budget := r.options.Budget
	if budget > 0 {
		budget -= int64(readers(r.base, r.options) * chunkBytes(r.base))
		budget = max(budget, 1)
	}
	if w.pyramid, err = newPyramid(r.spec.DType, ms.Axes, r.geo, budget, r.options.Meter); err != nil {
		return fmt.Errorf("%s: %w", r.im.Group.Location(), err)
	}
	w.pyramid.levels[0].array = r.base
	w.prepare(1) // stream brings its own workers
	r.w = w
	return nil
}

// likeArray is a spec of level 0 with the layout and codecs of an array.
func likeArray(a *zarr.Array) ImageSpec {
	return ImageSpec{
		Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(),
		Codecs: a.Codecs(), Fill: a.Fill(),
	}
}

// levelPath is the path of level k: what the metadata said, or level 0's with
// its last number, if that is 0, replaced.
func levelPath(ms *Multiscale, k int) (string, error) {
	first := ms.Datasets[0].Path
	name := strconv.Itoa(k)
	if k < len(ms.Datasets) {
		name = ms.Datasets[k].Path
	} else if i := strings.LastIndexByte(first, '0'); i >= 0 && (i+1 == len(first) || first[i+1] < '0' || first[i+1] > '9') && (i == 0 || first[i-1] < '0' || first[i-1] > '9') {
		name = first[:i] + name + first[i+1:]
	}
	for j, d := range ms.Datasets {
		if j != k && (name == d.Path || strings.HasPrefix(name, d.Path+"/") || strings.HasPrefix(d.Path, name+"/")) {
			return "", fmt.Errorf("level %d would be %q, which level %d is (%q)", k, name, j, d.Path)
		}
	}
	return name, nil
}

// clear makes level 0 the only one, and removes the arrays of the others.
func (r *rebuild) clear(ctx context.Context) error {
	ms := &r.im.Metadata.Multiscales[0]
	if err := r.describe(ctx, ms.Datasets[:1]); err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, d := range ms.Datasets[1:] {
		gone[d.Path] = true
	}
	for _, d := range r.w.scale.Datasets[1:] {
		gone[d.Path] = true // an earlier run may have been interrupted
	}
	for p := range gone {
		if _, err := zarr.OpenArray(ctx, r.st, store.Join(r.path, p)); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err // what is no array is not ours to remove
		}
		if err := remove(ctx, r.st, store.Join(r.path, p)); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes all objects below a path, metadata first.
func remove(ctx context.Context, st store.Writer, path string) error {
	entries, err := st.List(ctx, path)
	if err != nil {
		return err
	}
	for _, dirs := range []bool{false, true} {
		for _, e := range entries {
			if e.Dir != dirs {
				continue
			}
			key := store.Join(path, e.Name)
			if dirs {
				err = remove(ctx, st, key)
			} else {
				err = st.Delete(ctx, key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// create makes the arrays of the levels below level 0.
func (r *rebuild) create(ctx context.Context) error {
	for k, l := range r.w.pyramid.levels {
		if k == 0 {
			continue
		}
		a := arraySpec(&r.spec, r.geo[k])
		a.Separator, a.Order, a.BigEndian, a.DimensionNames = r.base.Separator(), r.base.Order(), r.base.BigEndian(), r.base.DimensionNames()
		if err := r.folders(ctx, r.w.scale.Datasets[k].Path); err != nil {
			return err
		}
		var err error
		if l.array, err = zarr.CreateArray(ctx, r.st, store.Join(r.path, r.w.scale.Datasets[k].Path), a, r.w.pyramid.options()...); err != nil {
			return err
		}
	}
	return nil
}

// folders makes groups of the path's segments above the array, where there are none.
func (r *rebuild) folders(ctx context.Context, path string) error {
	for i, c := range path {
		if c != '/' {
			continue
		}
		at := store.Join(r.path, path[:i])
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

// describe writes the group's metadata with these levels. All that it does not
// know is kept as it is.
func (r *rebuild) describe(ctx context.Context, datasets []Dataset) error {
	attrs := rawAttributes(r.im.Group.Attributes())
	into := attrs
	_, v5 := attrs["ome"]
	if v5 {
		var err error
		if into, err = members(attrs["ome"].(json.RawMessage)); err != nil {
			return r.im.refuse("ome", err)
		}
		attrs["ome"] = into
	}
	var all []json.RawMessage
	if err := json.Unmarshal(into["multiscales"].(json.RawMessage), &all); err != nil {
		return r.im.refuse("multiscales", err)
	}
	ms, err := members(all[0])
	if err != nil {
		return r.im.refuse("multiscales[0]", err)
	}
	j := (&Multiscale{Datasets: datasets}).encode(r.im.Group.Format())
	ms["datasets"] = j.Datasets
	delete(ms, "type") // how the levels were made that are gone
	delete(ms, "metadata")
	if len(datasets) > 1 {
		ms["type"] = method
	}
	list := []any{ms}
	for _, m := range all[1:] {
		list = append(list, m)
	}
	into["multiscales"] = list
	if err := r.im.Group.SetAttributes(ctx, attrs); err != nil {
		return err
	}
	if r.im.Group.Consolidated() {
		return zarr.Consolidate(ctx, r.st, r.path)
	}
	return nil
}

// members takes a JSON object apart.
func members(raw json.RawMessage) (map[string]any, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	return rawAttributes(m), nil
}

// chunkBytes is the memory that reading one chunk of an array takes.
func chunkBytes(a *zarr.Array) int {
	n := a.DType().Size()
	shape := a.Shape()
	for d, c := range a.Chunks() {
		n *= min(c, max(shape[d], 1))
	}
	return pages(n)
}

// readers is the number of goroutines that stream reads with: no more than
// half of the budget has room for.
func readers(a *zarr.Array, o PyramidOptions) int {
	n := workersOr(o.Workers)
	if o.Budget > 0 {
		n = int(min(int64(n), o.Budget/2/int64(chunkBytes(a))))
	}
	return max(n, 1)
}

// stream hands an array, chunk by chunk, to a writer: as level 0, or, when it
// is stored there already, as what the levels below are made from.
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

// streamChunks is one worker of stream.
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
