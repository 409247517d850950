package benchtile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// image is the source of views: the levels of a pyramid, from the finest on.
type image struct {
	path   string
	levels []*zarr.Array
	down   []float64 // factors by which the levels are coarser
	names  []string  // of the axes
	files  func(context.Context) ([]string, error)
	close  func() error
}

// open opens what the user named: an image, or an array, which is one level. Errors count as bad input.
func open(ctx context.Context, r *cli.Run, path, array string) (*image, error) {
	path, err := r.Input(path)
	if err != nil {
		return nil, err
	}
	st, key, err := images.Open(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	r.ReadsFrom(st)
	im := &image{path: path, close: st.Close}
	if !strings.Contains(path, "://") {
		im.files = func(ctx context.Context) ([]string, error) { return benchkit.Files(ctx, path) }
	}
	if tiff, ok := st.(*tiffstore.Store); ok && array == "" && len(tiff.PageKeys(key)) > 0 {
		err = im.openPages(ctx, tiff, tiff.PageKeys(key))
	} else {
		err = im.openLevels(ctx, st, store.Join(key, array))
	}
	if err != nil {
		return nil, cli.BadInput(errors.Join(err, st.Close()))
	}
	return im, nil
}

// openPages opens the levels of a TIFF image in the layout of its pages, with the samples of a pixel together.
func (im *image) openPages(ctx context.Context, st *tiffstore.Store, keys []string) error {
	for _, key := range keys {
		a, err := zarr.OpenArray(ctx, st, key, zarr.Workers(1))
		if err != nil {
			return err
		}
		im.levels, im.names = append(im.levels, a), a.DimensionNames()
		y := slices.Index(im.names, "y")
		im.down = append(im.down, float64(im.levels[0].Shape()[y])/float64(a.Shape()[y]))
	}
	return nil
}

func (im *image) openLevels(ctx context.Context, st store.Store, key string) error {
	n, err := zarr.Open(ctx, st, key, zarr.Workers(1))
	if err != nil {
		return err
	}
	if a, ok := n.(*zarr.Array); ok {
		im.levels, im.down = []*zarr.Array{a}, []float64{1}
	} else {
		in, err := ngff.OpenPresent(ctx, st, key, zarr.Workers(1))
		if err != nil {
			return err
		}
		for _, x := range in.Axes {
			im.names = append(im.names, x.Name)
		}
		first := in.Levels[0].Array.Shape()
		for _, lv := range in.Levels {
			im.levels = append(im.levels, lv.Array)
			last := len(first) - 1
			im.down = append(im.down, float64(first[last])/float64(max(lv.Array.Shape()[last], 1)))
		}
	}
	for _, a := range im.levels {
		if slices.Contains(a.Shape(), 0) || len(a.Shape()) == 0 {
			return cli.BadInputf("%s: shape %v has no tiles", a.Location(), a.Shape())
		}
	}
	return nil
}

// newSource returns the source of views: all levels.
func (im *image) newSource(opts ...zarrsource.Option) (*zarrsource.Source, error) {
	if im.names != nil {
		opts = append(opts, zarrsource.Names(im.names...))
	}
	src, err := zarrsource.NewPyramid(im.levels, im.down, opts...)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	return src, nil
}
