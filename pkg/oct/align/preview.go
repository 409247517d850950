package align

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"strata/pkg/filter"
	"strata/pkg/filter/mattes"
)

const (
	// longest is the length in pixels of the box's longest side in a preview, at most.
	longest = 400
	// fields is the number of fields of the checkerboard along that side, gap the width of the strips between panels.
	fields, gap = 8, 6
	// sampled is the number of voxels, about, from which the brightness of an image is found.
	sampled = 1 << 20
)

// WritePreview writes the picture that [Options.Preview] asked for as PNG.
func (r *Result) WritePreview(w io.Writer) error { return png.Encode(w, r.preview) }

// WriteStartPreview writes the picture that [Options.StartPreview] or [Start] asked for as PNG.
func (r *Result) WriteStartPreview(w io.Writer) error { return png.Encode(w, r.startPreview) }

// draw draws three sections through the middle of the template's box, across z, y and x, in columns: the template, the
// volume laid on it, and a checkerboard of both.
func draw(template, volume *mattes.Volume, e *mattes.Euler) *image.Gray {
	matrix, offset := e.Affine()
	var size, middle mattes.Vec // of the box, in mm
	pixel, most := math.Inf(1), 0.0
	for d := range 3 {
		n := template.Shape[2-d]
		size[d] = float64(n) * template.Spacing[d]
		middle[d] = template.Origin[d] + float64((n-1)/2)*template.Spacing[d]
		pixel, most = min(pixel, template.Spacing[d]), max(most, size[d])
	}
	pixel = max(pixel, most/longest)
	pixels := func(d int) int { return max(1, int(math.Round(size[d]/pixel))) }
	sections := [3][2]int{{0, 1}, {0, 2}, {1, 2}} // axes to the right and upwards
	width, height := 2*gap, 0
	for _, s := range sections {
		width, height = width+pixels(s[0]), max(height, pixels(s[1]))
	}
	out := image.NewGray(image.Rect(0, 0, width, 3*height+2*gap))
	for i := range out.Pix {
		out.Pix[i] = 255
	}
	grey := [2]func(f float64) uint8{shade(template), shade(volume)}
	field := max(1, int(most/pixel)/fields)
	left := 0
	for _, s := range sections {
		nx, ny := pixels(s[0]), pixels(s[1])
		for y := range ny {
			for x := range nx {
				p := middle
				p[s[0]] = template.Origin[s[0]] + (float64(x)+0.5)*pixel - template.Spacing[s[0]]/2
				p[s[1]] = template.Origin[s[1]] + (float64(ny-1-y)+0.5)*pixel - template.Spacing[s[1]]/2
				q := matrix.Apply(p)
				for d := range q {
					q[d] += offset[d]
				}
				both := [2]uint8{grey[0](linear(template, p)), grey[1](linear(volume, q))}
				for row, level := range [3]uint8{both[0], both[1], both[(x/field+y/field)%2]} {
					out.SetGray(left+x, row*(height+gap)+y, color.Gray{Y: level})
				}
			}
		}
		left += nx + gap
	}
	return out
}

// shade returns the brightness of values of an image: black is 0 or less, white the percentile 99.5 of its positive
// values.
func shade(v *mattes.Volume) func(f float64) uint8 {
	var some []float32
	for i, step := 0, max(1, len(v.Voxels)/sampled); i < len(v.Voxels); i += step {
		if f := v.Voxels[i]; f > 0 {
			some = append(some, f)
		}
	}
	white := 0.0
	if len(some) > 0 {
		white = filter.Percentiles(some, 99.5)[0]
	}
	return func(f float64) uint8 {
		if !(f > 0 && white > 0) {
			return 0
		}
		return uint8(math.Round(255 * min(f/white, 1)))
	}
}

// linear samples an image at a place in mm, 0 outside of it.
func linear(v *mattes.Volume, p mattes.Vec) float64 {
	var first [3]int // x, y, z
	var share [3]float64
	for d := range 3 {
		n := v.Shape[2-d]
		u := (p[d] - v.Origin[d]) / v.Spacing[d]
		if !(u >= -0.5 && u <= float64(n)-0.5) {
			return 0
		}
		u = min(max(u, 0), float64(n-1))
		first[d] = min(int(u), max(n-2, 0))
		share[d] = u - float64(first[d])
	}
	sum := 0.0
	for k := range 8 {
		at, weight := [3]int{}, 1.0
		for d := range 3 {
			if at[d] = first[d]; k>>d&1 == 1 {
				at[d], weight = min(at[d]+1, v.Shape[2-d]-1), weight*share[d]
			} else {
				weight *= 1 - share[d]
			}
		}
		if weight > 0 {
			sum += float64(weight * float64(v.Voxels[(at[2]*v.Shape[1]+at[1])*v.Shape[2]+at[0]]))
		}
	}
	return sum
}
