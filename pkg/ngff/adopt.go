package ngff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Adoption is the NGFF metadata for an array that has none.
type Adoption struct {
	Name        string
	Axes        []Axis      // nil: AxesOf
	Scale       []float64   // voxel size in the unit of the axes
	Translation []float64   // nil: not stated
	Omero       *Omero      // nil: none
	Label       *ImageLabel // nil: no labels
}

// AxesOf guesses the axes of an array: from its dimension names if each is one of t, c, z, y, x, otherwise
// yx, zyx, czyx or tczyx by their number. unit is the unit of the space axes. It returns nil if neither
// works.
func AxesOf(a *zarr.Array, unit string) []Axis {
	names := strings.Join(a.DimensionNames(), "")
	n := len(a.Shape())
	if len(names) == n && n >= 2 && !strings.ContainsFunc(names, func(r rune) bool { return !strings.ContainsRune("tczyx", r) }) {
		return SpaceAxes(names, unit)
	}
	if n < 2 || n > rank {
		return nil
	}
	return SpaceAxes("tczyx"[rank-n:], unit)
}

// Adopt makes an image of the array name below path: it creates the levels below it, then gives the group at
// path, which it creates if necessary, the metadata of an image with these levels. Readers see no change
// until that last step. If the group is an image already, the error wraps fs.ErrExist. It also returns
// warnings.
func Adopt(ctx context.Context, st store.Writer, path, name string, ad Adoption, o PyramidOptions) ([]string, error) {
	if err := checkInside(name); err != nil {
		return nil, fmt.Errorf("%s: %w", st.Location(path), err)
	}
	a, err := zarr.OpenArray(ctx, st, store.Join(path, name), zarr.Workers(1), zarr.Meter(o.Meter), zarr.NoteMissing(o.Missing))
	if err != nil {
		return nil, err
	}
	defer a.Close()
	spec, err := ad.spec(a)
	if err != nil {
		return nil, err
	}
	ms := Multiscale{Name: spec.Name, Axes: spec.Axes, Datasets: []Dataset{{name, Transform{spec.Scale, spec.Translation}}}}
	r := rebuild{st: st, path: path, options: o, ms: &ms, base: a, label: spec.Label}
	r.attributes = func(current map[string]json.RawMessage, datasets []Dataset) (map[string]any, error) {
		m := ms
		if m.Datasets = datasets; len(datasets) > 1 {
			m.Type = method(spec.Label != nil)
		}
		return m.attributes(a.Format(), spec.Omero, spec.Label, rawAttributes(current)), nil
	}
	if r.group, err = adopting(ctx, st, path, a.Format()); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// adopting returns the group at path, or nil if there is none. A group that cannot become an image is an error.
func adopting(ctx context.Context, st store.Store, path string, format int) (*zarr.Group, error) {
	n, err := zarr.Open(ctx, st, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g, ok := n.(*zarr.Group)
	if !ok {
		return nil, &zarr.FormatError{Path: n.Location(), Err: errors.New("an array (must be a group that holds arrays)")}
	}
	if g.Format() != format {
		return nil, &zarr.FormatError{Path: g.Location(), Err: fmt.Errorf("a group of Zarr v%d around an array of v%d (must be equal)", g.Format(), format)}
	}
	if m, _ := ReadMetadata(g); m.Multiscales != nil || m.Plate != nil || m.Well != nil {
		return nil, fmt.Errorf("%s: OME-Zarr metadata: %w", g.Location(), fs.ErrExist)
	}
	return g, nil
}

// spec returns an image like an array, with the metadata of the adoption.
func (ad *Adoption) spec(a *zarr.Array) (ImageSpec, error) {
	s := likeArray(a)
	s.Name, s.Axes, s.Scale, s.Translation, s.Omero, s.Label = ad.Name, ad.Axes, ad.Scale, ad.Translation, ad.Omero, ad.Label
	if s.Axes == nil {
		if s.Axes = AxesOf(a, ""); s.Axes == nil {
			return s, &zarr.FormatError{Path: a.Location(), Field: "shape", Err: fmt.Errorf("%v has %d dimensions (an image has 2 to 5)", a.Shape(), len(a.Shape()))}
		}
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%s: %w", a.Location(), err)
	}
	return s, nil
}
