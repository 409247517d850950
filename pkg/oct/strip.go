package oct

import (
	"image"
	"image/color"
	"math"

	"strata/pkg/annotate"
)

// roomForBar is the minimum width in px of a picture with a scale bar.
const roomForBar = 96

// strip is the area below a picture: a scale bar with its length in µm beside it. A nil strip has no rows.
type strip struct {
	rows  int
	bar   annotate.ScaleBar
	label *image.Gray16
}

// newStrip returns the strip for a picture of the given width, or nil if there is no room or the size of a pixel
// is unknown. Its text grows with the picture, so that it stays legible when a large one is scaled down.
func newStrip(width int, pixel float64) (*strip, error) {
	if width < roomForBar {
		return nil, nil
	}
	font := math.Round(min(200, max(13, float64(width)/36)))
	margin := int(font / 2)
	s := &strip{rows: int(2 * font)}
	thick := max(3, int(font/4))
	var ok bool
	if s.bar, ok = annotate.NewScaleBar(image.Pt(margin, (s.rows-thick)/2), width*2/5, thick, pixel); !ok {
		return nil, nil
	}
	pen, err := annotate.NewPen(annotate.Regular, font)
	if err != nil {
		return nil, err
	}
	left := s.bar.Box.Max.X + margin
	s.label = image.NewGray16(image.Rect(left, 0, min(width, left+pen.Width(s.bar.Label())), s.rows))
	pen.Write(s.label, image.Pt(left, s.rows/2), s.bar.Label(), color.White)
	return s, nil
}

func (s *strip) height() int {
	if s == nil {
		return 0
	}
	return s.rows
}

func (s *strip) at(x, y int) color.Gray16 {
	if (image.Point{X: x, Y: y}).In(s.bar.Box) {
		return color.Gray16{Y: math.MaxUint16}
	}
	return s.label.Gray16At(x, y)
}
