// Package annotate draws what stands in and around pictures besides their pixels: text, and scale bars with their
// length in µm or mm.
package annotate

import (
	"image"
	"math"
	"strconv"
)

// ScaleBar is a bar and the length that it stands for.
type ScaleBar struct {
	Box    image.Rectangle
	Length float64 // µm
}

// NewScaleBar places a bar of at most so many pixels, each pixel µm wide, with its left end and its top at a point;
// false where there is no such length.
func NewScaleBar(at image.Point, most, height int, pixel float64) (ScaleBar, bool) {
	length := BarLength(float64(max(1, most)) * pixel)
	if length == 0 {
		return ScaleBar{}, false
	}
	width := max(1, int(math.Round(length/pixel)))
	return ScaleBar{image.Rect(at.X, at.Y, at.X+width, at.Y+height), length}, true
}

// Label returns the length as it stands beside the bar, such as "200 µm" or "1 mm".
func (b ScaleBar) Label() string {
	if b.Length >= 1000 {
		return strconv.FormatFloat(b.Length/1000, 'f', -1, 64) + " mm"
	}
	return Micrometres(b.Length)
}

// BarLength returns the length that a scale bar stands for: the largest of 1, 2, 5 ×
// 10ⁿ µm that takes at most the given length; 0 where there is none.
func BarLength(most float64) float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return 0
	}
	n := math.Floor(math.Log10(most))
	for _, m := range []float64{5, 2, 1} {
		if l := m * math.Pow(10, n); l <= most*(1+1e-12) {
			return l
		}
	}
	return math.Pow(10, n) // a power of ten that the logarithm rounded up to
}

// Micrometres writes a length with at most three digits that matter.
func Micrometres(um float64) string {
	if a := math.Abs(um); a >= 1000 {
		return strconv.FormatFloat(math.Round(um), 'f', -1, 64) + " µm"
	}
	return strconv.FormatFloat(um, 'g', 3, 64) + " µm"
}
