package mosaic

import (
	"context"
	"errors"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/zarr/store"
)

// A Product is an image that is made of the tiles of a mosaic while they are in memory, as packages aip and resample make it of the
// written mosaic: with the same bytes.
type Product struct {
	Out store.Writer
	// Feed begins the image in out. in describes the mosaic, and has no voxels.
	Feed func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*machine.Feed, error)
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

// product makes one product of tiles in hand, for one worker. The tiles of a product are the chunks of the mosaic, of which a
// microscope's tile may have several.
type product struct {
	*writing
	feed  *machine.Feed
	parts []*machine.Fed
}

// product returns the part of a worker that makes a product.
func (w *writing) product(ctx context.Context, f *machine.Feed) (*product, error) {
	p := &product{writing: w, feed: f}
	for range w.parts(f, oct.Rect(0, w.Tile[1], 0, w.Tile[2])) {
		x, err := f.Worker(ctx)
		if p.parts = append(p.parts, x); err != nil {
			return p, err
		}
	}
	return p, nil
}

// parts returns the rectangles of the product's tiles in a microscope's tile.
func (w *writing) parts(f *machine.Feed, tile oct.Rectangle) (parts []oct.Rectangle) {
	chunk := f.Chunk()
	for y := tile.Y0; y < tile.Y1; y += chunk[0] {
		for x := tile.X0; x < tile.X1; x += chunk[1] {
			parts = append(parts, oct.Rect(y, y+chunk[0], x, x+chunk[1]))
		}
	}
	return parts
}

// begin begins a tile.
func (p *product) begin(tile oct.Rectangle) error {
	for i, part := range p.writing.parts(p.feed, tile) {
		if err := p.parts[i].Begin(part); err != nil {
			return err
		}
	}
	return nil
}

// add goes on with the next planes of the tile.
func (p *product) add(planes []float32, tile oct.Rectangle) error {
	for _, x := range p.parts {
		if err := x.Add(planes, tile); err != nil {
			return err
		}
	}
	return nil
}

func (p *product) close() error {
	var all []error
	for _, x := range p.parts {
		all = append(all, x.End())
	}
	return errors.Join(all...)
}
