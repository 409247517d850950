package ngff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// How levels take the place of others, so that the image is whole after any step
// and a kill costs nothing but what lies around:
//
//  1. begin notes in a group of our own, buildPath, which arrays come and go.
//  2. The new levels are made, below buildPath where old ones have their names.
//  3. The image's metadata names them: one object is replaced. Until here a
//     reader has the old levels, from here on the new ones.
//  4. The old levels go. What was made below buildPath is copied to its proper
//     names, and the metadata is replaced once more.
//  5. settle removes what the note lists and the metadata does not name, and the
//     note. After a kill the next run begins with this.
//
// Consolidated metadata names the nodes of both pyramids from before step 3 until
// after step 5.

// buildPath is the group below the image's that holds the note, and levels that
// do not have their proper names yet.
const buildPath = "strata-pyramid"

// noteKey is the attribute of that group that lists the paths that may be removed.
const noteKey = "unnamed_levels"

// swap is the progress of an exchange of levels.
type swap struct {
	dir   string // where the new levels are made: "" or buildPath
	begun bool   // there is a note
	tried bool   // the metadata may name the new levels
}

// begin decides where the new levels are made and notes what may have to be removed.
func (r *rebuild) begin(ctx context.Context) error {
	named, _, err := r.named(ctx)
	if err != nil {
		return err
	}
	r.swap = swap{}
	levels := r.w.scale.Datasets[1:]
	note := []string{}
	for _, d := range r.ms.Datasets[1:] {
		a, err := zarr.OpenArray(ctx, r.st, store.Join(r.path, d.Path))
		if err == nil {
			err = r.nothingElse(ctx, a)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // what is no array is not ours to remove
		}
		note = append(note, d.Path)
	}
	for k, d := range levels {
		if i := slices.IndexFunc(named, func(p string) bool { return overlap(p, d.Path) }); i >= 0 {
			if !slices.ContainsFunc(r.ms.Datasets, func(old Dataset) bool { return old.Path == named[i] }) {
				return r.refuse("datasets", fmt.Errorf("level %d would be %q, which another multiscale names", k+1, d.Path))
			}
			r.swap.dir = buildPath
			continue
		}
		if err := r.vacant(ctx, d.Path, r.geo[k+1].shape); err != nil {
			return err
		}
		note = append(note, d.Path)
		for at := range above(d.Path) {
			if _, err := zarr.Open(ctx, r.st, store.Join(r.path, at)); errors.Is(err, fs.ErrNotExist) {
				note = append(note, at)
			}
		}
	}
	if len(note) == 0 && len(levels) == 0 {
		return nil
	}
	r.swap.begun = true
	if err := r.writeNote(ctx, note); err != nil {
		return err
	}
	return r.discard(ctx, note, named)
}

// nothingElse refuses an old level in whose folder something else lies, which would be removed with it.
func (r *rebuild) nothingElse(ctx context.Context, a *zarr.Array) error {
	return store.Each(ctx, r.st, a.Path(), func(key string) error {
		if rest := key[len(a.Path())+1:]; a.IsKey(rest, false) || store.Litter(path.Base(key)) {
			return nil
		}
		return &zarr.FormatError{Path: r.st.Location(key), Err: errors.New("is not part of the level that would be replaced: move it away, or give another output")}
	})
}

// writeNote writes the note, or replaces it where there are levels beside it that
// the image still needs.
func (r *rebuild) writeNote(ctx context.Context, note []string) error {
	path, attrs := store.Join(r.path, buildPath), map[string]any{noteKey: note}
	g, err := zarr.OpenGroup(ctx, r.st, path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := zarr.CreateGroup(ctx, r.st, path, r.base.Format(), attrs)
		return err
	}
	if err != nil {
		return err
	}
	return g.SetAttributes(ctx, attrs)
}

// vacant refuses the name of a new level if something that the metadata does not name lies there, unless it
// is evidently that level: one of an image whose metadata an interrupted program had not written yet.
func (r *rebuild) vacant(ctx context.Context, path string, shape []int) error {
	full := store.Join(r.path, path)
	a, err := zarr.OpenArray(ctx, r.st, full)
	if err == nil && slices.Equal(a.Shape(), shape) && a.DType() == r.base.DType() {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if empty, err := store.IsEmpty(ctx, r.st, full); err != nil || empty {
			return err
		}
	}
	return fmt.Errorf("%s: is in the way of a new level, and the image's metadata does not name it: remove it, or give another output", r.st.Location(full))
}

// replace makes the new levels those of the image, under their proper names.
func (r *rebuild) replace(ctx context.Context) error {
	datasets := slices.Clone(r.w.scale.Datasets)
	for k := range datasets[1:] {
		datasets[k+1].Path = store.Join(r.swap.dir, datasets[k+1].Path)
	}
	if err := r.name(ctx, datasets); err != nil || r.swap.dir == "" {
		return err
	}
	named, _, err := r.named(ctx)
	if err != nil {
		return err
	}
	var old []string
	for _, d := range r.ms.Datasets[1:] {
		old = append(old, d.Path)
	}
	if err := r.discard(ctx, old, named); err != nil {
		return err
	}
	for k, d := range r.w.scale.Datasets[1:] {
		if err := store.CopyAll(ctx, r.st, store.Join(r.path, datasets[k+1].Path), store.Join(r.path, d.Path)); err != nil {
			return err
		}
	}
	return r.name(ctx, r.w.scale.Datasets)
}

// name writes metadata that names these levels.
func (r *rebuild) name(ctx context.Context, datasets []Dataset) error {
	if err := r.consolidate(ctx); err != nil {
		return err
	}
	r.swap.tried = true
	g, err := zarr.OpenGroup(ctx, r.st, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		attrs, err := r.attributes(nil, datasets)
		if err == nil {
			_, err = zarr.CreateGroup(ctx, r.st, r.path, r.base.Format(), attrs)
		}
		return err
	}
	if err != nil {
		return err
	}
	attrs, err := r.attributes(g.Attributes(), datasets)
	if err != nil {
		return err
	}
	if err := g.SetAttributes(ctx, attrs); err != nil {
		return err
	}
	return r.consolidate(ctx)
}

// consolidate updates consolidated metadata if the image has it.
func (r *rebuild) consolidate(ctx context.Context) error {
	if r.group == nil || !r.group.Consolidated() {
		return nil
	}
	return zarr.Consolidate(ctx, r.st, r.path)
}

// recover removes what an interrupted run left behind.
func (r *rebuild) recover(ctx context.Context) error {
	if empty, err := store.IsEmpty(ctx, r.st, store.Join(r.path, buildPath)); err != nil || empty {
		return err
	}
	r.swap = swap{begun: true, tried: true} // who knows
	return r.settle(ctx)
}

// settle removes what the note lists and the metadata do not name, and then the note.
func (r *rebuild) settle(ctx context.Context) error {
	if !r.swap.begun {
		return nil
	}
	if r.swap.tried {
		// what reads the old levels by consolidated metadata alone must not lose them
		if err := r.consolidate(ctx); err != nil {
			return err
		}
	}
	named, note, err := r.named(ctx)
	if err != nil {
		return err
	}
	if err := r.discard(ctx, append(note, buildPath), named); err != nil {
		return err
	}
	return r.consolidate(ctx)
}

// discard removes paths that the metadata does not name.
func (r *rebuild) discard(ctx context.Context, paths, named []string) error {
	for _, p := range paths {
		if slices.ContainsFunc(named, func(n string) bool { return overlap(n, p) }) {
			continue
		}
		if err := store.RemoveAll(ctx, r.st, store.Join(r.path, p)); err != nil {
			return err
		}
	}
	return nil
}

// named returns the paths that the image's metadata names now, level 0 included, and those of the note that
// are within the image.
func (r *rebuild) named(ctx context.Context) (named, note []string, err error) {
	named = []string{r.ms.Datasets[0].Path}
	g, err := zarr.OpenGroup(ctx, r.st, r.path)
	if err == nil {
		var f findings
		m := parse(g.Attributes(), g.Format(), &f)
		if p := f.firstFatal(); p != nil {
			return nil, nil, r.refuse(p.Field, errors.New(p.Message))
		}
		for _, ms := range m.Multiscales {
			for _, d := range ms.Datasets {
				named = append(named, d.Path)
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	g, err = zarr.OpenGroup(ctx, r.st, store.Join(r.path, buildPath))
	if errors.Is(err, fs.ErrNotExist) {
		return named, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	note, err = noteOf(g)
	return named, note, err
}

// overlap reports whether one path is the other or lies below it.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// noteOf returns the paths that the note lists, of those within the image.
func noteOf(g *zarr.Group) (paths []string, err error) {
	if raw, ok := g.Attributes()[noteKey]; ok {
		if err := json.Unmarshal(raw, &paths); err != nil {
			return nil, &zarr.FormatError{Path: g.Location(), Field: noteKey, Err: err}
		}
	}
	return slices.DeleteFunc(paths, func(p string) bool { return checkInside(p) != nil }), nil
}

// Remains returns the paths below an image's group that a killed [RebuildPyramid] has left. They are not part
// of the image, may be incomplete, and are removed by the next run. children are the names below the group;
// it requests no others, since some servers refuse requests for missing objects.
func Remains(ctx context.Context, image *zarr.Group, children []string) ([]string, error) {
	if !slices.Contains(children, buildPath) {
		return nil, nil
	}
	g, err := image.Open(ctx, buildPath)
	group, ok := g.(*zarr.Group)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !ok:
		return nil, nil
	case err != nil:
		return nil, err
	}
	paths, err := noteOf(group)
	if err != nil {
		return nil, err
	}
	m, _ := ReadMetadata(image)
	return slices.DeleteFunc(append(paths, buildPath), func(p string) bool {
		return slices.ContainsFunc(m.Multiscales, func(ms Multiscale) bool {
			return slices.ContainsFunc(ms.Datasets, func(d Dataset) bool { return overlap(d.Path, p) })
		})
	}), nil
}
