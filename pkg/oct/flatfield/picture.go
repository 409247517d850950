package flatfield

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// Pictures shows a plane of the mosaic before and after the correction, reduced to a few pixels for each tile.
type Pictures struct {
	Height, Width int // of both
	Before, After []float32

	tall, wide int // of a tile
}

// mostPicture is the maximum height and width of pictures in pixels. A mosaic with more tiles than that along an axis
// gets one pixel per tile.
const mostPicture = 1024

func (f *fitting) newPictures() Pictures {
	most := max(1, min(64, mostPicture/max(f.ny, f.nx)))
	p := Pictures{tall: min(most, f.height), wide: min(most, f.width)}
	p.Height, p.Width = p.tall*f.ny, p.wide*f.nx
	p.Before, p.After = make([]float32, p.Height*p.Width), make([]float32, p.Height*p.Width)
	return p
}

func (p *Pictures) bytes() int64 { return 8 * int64(p.Height) * int64(p.Width) }

// add draws a tile of plane z: means over the pixels that lie in a pixel of the picture.
func (p *Pictures) add(f *fitting, tile, z int, voxels []float32) {
	top, left := tile/f.nx*p.tall, tile%f.nx*p.wide
	sums := make([]float64, 2*p.wide)
	row := make([]float32, f.width)
	for k := range p.tall {
		clear(sums)
		y0, y1 := k*f.height/p.tall, (k+1)*f.height/p.tall
		for y := y0; y < y1; y++ {
			copy(row, voxels[y*f.width:])
			f.correct(row, z, y*f.width)
			for x, v := range row {
				sums[x*p.wide/f.width] += float64(voxels[y*f.width+x])
				sums[p.wide+x*p.wide/f.width] += float64(v)
			}
		}
		for i := range p.wide {
			x0, x1 := (i*f.width+p.wide-1)/p.wide, ((i+1)*f.width+p.wide-1)/p.wide
			n := float64((y1 - y0) * (x1 - x0))
			p.Before[(top+k)*p.Width+left+i] = float32(sums[i] / n)
			p.After[(top+k)*p.Width+left+i] = float32(sums[p.wide+i] / n)
		}
	}
}

// WritePNG writes a picture as 16-bit grey PNG: the flat-field, the plane before and the plane after the correction,
// side by side. The flat-field spans black to white from its smallest value to its largest; both planes share the
// limits of the one before, percentiles 0.1 and 99.9.
func (r *Result) WritePNG(w io.Writer) error {
	const gap = 8
	p := r.Pictures
	limits := filter.Percentiles(slices.Clone(p.Before), oct.PNGPercentiles[:]...)
	field := r.Fields[len(r.Fields)/2]
	height, width := r.Tile[0], r.Tile[1]
	if field == nil {
		field, height, width = []float32{1}, 1, 1
	}
	// the flat-field is enlarged by a whole number, to at most the planes' height
	times := max(1, min(p.Height/height, mostPicture/width))
	high, wide := height*times, width*times
	im := image.NewGray16(image.Rect(0, 0, wide+2*(gap+p.Width), max(p.Height, high)))
	low, top := float64(slices.Min(field)), float64(slices.Max(field))
	draw(im, 0, high, wide, low, top, func(y, x int) float32 { return field[y/times*width+x/times] })
	draw(im, wide+gap, p.Height, p.Width, limits[0], limits[1], func(y, x int) float32 { return p.Before[y*p.Width+x] })
	draw(im, wide+p.Width+2*gap, p.Height, p.Width, limits[0], limits[1], func(y, x int) float32 { return p.After[y*p.Width+x] })
	return png.Encode(w, im)
}

// draw puts values into a picture, from a column on.
func draw(im *image.Gray16, left, height, width int, low, high float64, value func(y, x int) float32) {
	span := max(high-low, 1e-30)
	for y := range height {
		for x := range width {
			v := (float64(value(y, x)) - low) / span
			im.SetGray16(left+x, y, color.Gray16{Y: uint16(math.RoundToEven(65535 * max(0, min(1, v))))})
		}
	}
}
