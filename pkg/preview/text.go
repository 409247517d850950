package preview

import (
	"image"
	"image/color"
	"image/draw"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// parsed fonts, read once.
var (
	regular = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })
	bold    = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gobold.TTF) })
)

// pen writes text of one size and weight.
type pen struct{ face font.Face }

func newPen(f func() (*opentype.Font, error), size float64) (pen, error) {
	parsed, err := f()
	if err != nil {
		return pen{}, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	return pen{face}, err
}

// width of a text, px.
func (p pen) width(text string) int { return font.MeasureString(p.face, text).Ceil() }

// write puts text with its left end and its middle (of digits) at a point, and returns
// where it ends.
func (p pen) write(dst draw.Image, at image.Point, text string, c color.Color) int {
	m := p.face.Metrics()
	base := fixed.I(at.Y) + m.CapHeight/2
	d := font.Drawer{Dst: dst, Src: image.NewUniform(c), Face: p.face, Dot: fixed.Point26_6{X: fixed.I(at.X), Y: base}}
	d.DrawString(text)
	return d.Dot.X.Ceil()
}

// fit shortens a text to a width, with an ellipsis in the middle: names differ at
// their ends.
func (p pen) fit(text string, width int) string {
	if p.width(text) <= width {
		return text
	}
	r := []rune(text)
	for n := len(r) - 1; n > 1; n-- {
		s := string(r[:(n+1)/2]) + "…" + string(r[len(r)-n/2:])
		if p.width(s) <= width {
			return s
		}
	}
	return ""
}
