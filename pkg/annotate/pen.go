package annotate

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

// A Font parses a typeface, once.
type Font func() (*opentype.Font, error)

// The typefaces of our pictures.
var (
	Regular Font = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })
	Bold    Font = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(gobold.TTF) })
)

// Pen writes text of one size and weight.
type Pen struct{ face font.Face }

// NewPen returns a pen of a size in px.
func NewPen(f Font, size float64) (Pen, error) {
	parsed, err := f()
	if err != nil {
		return Pen{}, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	return Pen{face}, err
}

// Width returns the width of a text, px.
func (p Pen) Width(text string) int { return font.MeasureString(p.face, text).Ceil() }

// Write puts text with its left end and its middle (of digits) at a point, and returns
// where it ends.
func (p Pen) Write(dst draw.Image, at image.Point, text string, c color.Color) int {
	m := p.face.Metrics()
	base := fixed.I(at.Y) + m.CapHeight/2
	d := font.Drawer{Dst: dst, Src: image.NewUniform(c), Face: p.face, Dot: fixed.Point26_6{X: fixed.I(at.X), Y: base}}
	d.DrawString(text)
	return d.Dot.X.Ceil()
}

// Fit shortens a text to a width, with an ellipsis in the middle: names differ at
// their ends.
func (p Pen) Fit(text string, width int) string {
	if p.Width(text) <= width {
		return text
	}
	r := []rune(text)
	for n := len(r) - 1; n > 1; n-- {
		s := string(r[:(n+1)/2]) + "…" + string(r[len(r)-n/2:])
		if p.Width(s) <= width {
			return s
		}
	}
	return ""
}
