package survey

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// canvas is the maximum length of a preview in pixels, and mostShown the maximum number of tiles along a side.
const (
	canvas    = 2048
	mostShown = 20
)

// Image returns the path of an image that shows the finding. It returns "" if there is none; Preview can then make one
// if Previewed returns true.
func (f *Finding) Image() string { return f.image }

// Previewed reports whether there are tiles to make a preview of.
func (f *Finding) Previewed() bool { return f.mosaic != nil && f.Grid != nil }

// Preview puts the middle planes of the tiles, reduced, to where the grid and the overlap place them, and returns the
// image in memory, with the number of tiles shown. Of a larger grid it shows 20 × 20 tiles in the middle.
func (f *Finding) Preview(ctx context.Context) (*ngff.Image, int, error) {
	m := f.mosaic
	m.limit = len(m.seen) + mostPictures
	var from, n [2]int
	for d := range 2 {
		n[d] = min(m.grid[d], mostShown)
		from[d] = (m.grid[d] - n[d]) / 2
	}
	var c *mosaicCanvas
	shown := 0
	for i := range n[0] {
		for j := range n[1] {
			k, ok := m.at[[2]int{from[0] + i, from[1] + j}]
			if !ok {
				continue
			}
			p, err := m.picture(ctx, k)
			if err != nil && !errors.Is(err, errEnough) {
				return nil, 0, err
			}
			if p == nil {
				continue
			}
			if c == nil {
				c = newCanvas(p, n, m.overlap)
			}
			c.put(p, i, j)
			shown++
		}
	}
	if c == nil {
		return nil, 0, errors.Join(m.faults...)
	}
	im, err := c.image(ctx, f)
	return im, shown, err
}

// mosaicCanvas is the picture of a preview.
type mosaicCanvas struct {
	bin    int
	step   [2]float64
	ny, nx int
	tile   [2]int // of a picture, before it is reduced again
	pix    []float32
}

func newCanvas(p *picture, n [2]int, overlap [2]float64) *mosaicCanvas {
	c := &mosaicCanvas{bin: 1, tile: [2]int{p.ny, p.nx}}
	for {
		c.step = [2]float64{float64((1 - overlap[0]) * float64(p.ny/c.bin)), float64((1 - overlap[1]) * float64(p.nx/c.bin))}
		c.ny = int(float64(float64(n[0]-1)*c.step[0])) + p.ny/c.bin + 1
		c.nx = int(float64(float64(n[1]-1)*c.step[1])) + p.nx/c.bin + 1
		if max(c.ny, c.nx) <= canvas || c.bin >= min(p.ny, p.nx) {
			break
		}
		c.bin++
	}
	c.pix = make([]float32, c.ny*c.nx)
	return c
}

// put draws the picture of a tile.
func (c *mosaicCanvas) put(p *picture, i, j int) {
	ny, nx := p.ny/c.bin, p.nx/c.bin
	if [2]int{p.ny, p.nx} != c.tile {
		return // tiles of a mosaic are alike; mosaic --pattern names those that are not
	}
	pix := p.pix
	if c.bin > 1 {
		pix = filter.Binned(nil, filter.Crop(pix, p.nx, [2]int{}, ny*c.bin, nx*c.bin), ny*c.bin, nx*c.bin, [2]int{c.bin, c.bin})
	}
	y, x := int(float64(float64(i)*c.step[0])), int(float64(float64(j)*c.step[1]))
	for r := range ny {
		copy(c.pix[(y+r)*c.nx+x:][:nx], pix[r*nx:][:nx])
	}
}

// image returns the canvas as an image in memory.
func (c *mosaicCanvas) image(ctx context.Context, f *Finding) (*ngff.Image, error) {
	data := make([]byte, 4*len(c.pix))
	for k, v := range c.pix {
		binary.NativeEndian.PutUint32(data[4*k:], math.Float32bits(v))
	}
	scale := []float64{1, 1}
	if f.Voxel != nil && len(f.Shape) > 2 {
		for d := range 2 {
			tile := f.Shape[len(f.Shape)-2+d]
			if f.Kind == Mosaics {
				tile /= f.Grid[d]
			}
			scale[d] = float64(f.Voxel[1+d]*float64(tile)) / float64(c.tile[d]/c.bin)
		}
	}
	st := store.Memory()
	w, err := ngff.Create(ctx, st, "", ngff.ImageSpec{Format: 3, Name: "preview", Shape: []int{c.ny, c.nx}, Chunks: []int{512, 512}, DType: dtype.Float32,
		Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: scale, Levels: 3})
	if err != nil {
		return nil, err
	}
	if err := w.WriteTile(ctx, []int{0, 0}, []int{c.ny, c.nx}, data); err != nil {
		w.Abort()
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, st, "")
}
