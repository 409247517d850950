package mosaic

import (
	"context"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/zarr/store"
)

// A Product is an image that is made of the tiles of a mosaic while they are in memory, as packages aip and resample
// make it of the written mosaic: with the same bytes.
type Product struct {
	Out store.Writer
	// Feed begins the image in out. in describes the mosaic, and has no voxels.
	Feed func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error)
}

// begin begins the products of a mosaic that spec and layout describe. With trial nothing is stored of them.
func (w *writing) begin(ctx context.Context, spec ngff.ImageSpec, layout oct.Layout, products []Product, trial bool) error {
	if len(products) == 0 {
		return nil
	}
	in, err := oct.Describe(ctx, layout, spec, w.Tile[:])
	if err != nil {
		return err
	}
	res := w.res
	if trial {
		res.Warn = nil // once is enough
	}
	for _, p := range products {
		out := p.Out
		if trial {
			out = store.Memory()
		}
		f, err := p.Feed(ctx, in, out, res)
		if err != nil {
			return err
		}
		w.feeds = append(w.feeds, f)
	}
	return nil
}

// end completes the products.
func (w *writing) end(ctx context.Context) (made []*ngff.Image, err error) {
	for _, f := range w.feeds {
		im, err := f.End(ctx)
		if err != nil {
			return nil, err
		}
		made = append(made, im)
	}
	return made, nil
}

// abort gives up the products that are not complete.
func (w *writing) abort() {
	for _, f := range w.feeds {
		f.Abort()
	}
}
