package register

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"

	"strata/pkg/filter"
)

const (
	// longest is the length of a panel in pixels, at most.
	longest = 800
	// fields is the number of fields of the checkerboard along the longer side.
	fields = 8
	// gap is the width of the strip between the panels.
	gap = 8
)

// Picture writes a PNG with two checkerboards of the fixed and the moving plane: the left one without, the right one
// with the transform. Where structures continue across fields, the planes are aligned.
func (r *Result) Picture(w io.Writer) error {
	out := image.NewGray(image.Rect(0, 0, 1, 1))
	if f, m := r.planes[0], r.planes[1]; f != nil && m != nil && f.ny > 0 && f.nx > 0 {
		k := 1
		for max(f.ny, f.nx)/k > longest {
			k++
		}
		full := float64(r.shrunk)
		t := r.Transform
		o := (full - 1) / 2
		t = filter.Rigid{Angle: t.Angle, TX: t.TX / full, TY: t.TY / full, CX: (t.CX - o) / full, CY: (t.CY - o) / full}
		moved := &plane{ny: m.ny, nx: m.nx, v: make([]float32, len(m.v))}
		if r.Elastic != nil {
			r.Elastic.Reduced([2]float64{full, full}).Resample(moved.v, m.v, m.ny, m.nx, t, 0, 0, 0)
		} else {
			t.Resample(moved.v, m.v, m.ny, m.nx, 0, m.ny, 0)
		}
		fixed, before, after := f.smaller(k), m.smaller(k), moved.smaller(k)
		out = image.NewGray(image.Rect(0, 0, 2*fixed.nx+gap, fixed.ny))
		for i := range out.Pix {
			out.Pix[i] = 255
		}
		window := [2][2]float32{grey(fixed), grey(before)}
		checker(out, 0, fixed, before, window)
		checker(out, fixed.nx+gap, fixed, after, window)
	}
	return png.Encode(w, out)
}

// grey returns the brightness that becomes black and white.
func grey(o *plane) [2]float32 {
	q := filter.Percentiles(slices.Clone(o.v), 1, 99)
	return [2]float32{float32(q[0]), float32(q[1])}
}

// checker draws a panel at x0.
func checker(out *image.Gray, x0 int, fixed, moving *plane, window [2][2]float32) {
	size := max(1, (max(fixed.ny, fixed.nx)+fields-1)/fields)
	for y := range fixed.ny {
		for x := range fixed.nx {
			k, o := 0, fixed
			if (y/size+x/size)%2 == 1 {
				k, o = 1, moving
			}
			v, lo, hi := o.v[y*o.nx+x], window[k][0], window[k][1]
			level := uint8(0)
			if hi > lo && v > lo {
				level = uint8(255 * min((v-lo)/(hi-lo), 1))
			}
			out.SetGray(x0+x, y, color.Gray{Y: level})
		}
	}
}
