package interpolate

import (
	"context"
	"image"
	"image/color"
	"image/png"
	"io"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
)

// separator is the width between the pictures of a preview, in pixels.
const separator = 4

// Preview writes a PNG of three planes side by side: the last plane before the gap, plane z of the filled volume (−1:
// its middle plane), and the first plane after the gap. Percentiles 1 and 99 of their positive pixels become black and
// white.
func (p *Plan) Preview(ctx context.Context, dst io.Writer, filled *ngff.Image, z int, res oct.Resources) error {
	nz, ny, nx := p.Shape[0], p.Shape[1], p.Shape[2]
	if z < 0 {
		z = nz / 2
	}
	if z >= nz {
		return oct.LayoutErrorf("--preview_slice %d: the volume has %d planes, counted from 0", z, nz)
	}
	if need := int64(mem.Product(ny, nx, 5*4+8)); need > res.Mem {
		return res.TooLittle(need, "a preview of planes of %d × %d pixels", ny, nx)
	}
	v, err := blocks.Open(filled)
	if err != nil {
		return err
	}
	var panels [3][]float32
	for i, from := range []struct {
		v *blocks.Volume
		z int
	}{{p.before, p.before.Shape[0] - 1}, {v, z}, {p.after, 0}} {
		planes, err := planesOf(ctx, from.v, from.z, from.z+1, ny, nx, res)
		if err != nil {
			return err
		}
		panels[i] = planes[0]
	}
	limits := filter.Percentiles(append(positive(panels[0]), positive(panels[2])...), 1, 99)
	scale := 255 / max(limits[1]-limits[0], 1e-30)
	picture := image.NewGray(image.Rect(0, 0, 3*nx+2*separator, ny))
	for i := range picture.Pix {
		picture.Pix[i] = 255
	}
	for i, panel := range panels {
		for k, f := range panel {
			grey := 0.0
			if g := (float64(f) - limits[0]) * scale; g > 0 {
				grey = min(g, 255)
			}
			picture.SetGray(i*(nx+separator)+k%nx, k/nx, color.Gray{Y: uint8(grey + 0.5)})
		}
	}
	return png.Encode(dst, picture)
}
