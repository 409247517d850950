package tile

import (
	"fmt"

	"strata/pkg/dtype"
)

// BorderMode names a rule for the pixels of a view that lie outside the image:
// the halo of tiles at the image's edges and the unused part of the last tiles.
type BorderMode uint8

// The border modes, shown for a row a b c d of an image.
const (
	Zero      BorderMode = iota // 0 0 0 | a b c d | 0 0 0
	Undefined                   // whatever the recycled buffer holds: costs nothing
	Replicate                   // a a a | a b c d | d d d
	Mirror                      // d c b | a b c d | c b a (the edge pixel once)
	Reflect                     // c b a | a b c d | d c b (the edge pixel twice)
	Wrap                        // b c d | a b c d | a b c
	borderModes
)

// BorderCreator fills the border of views in a way of the caller's own. Its methods are called concurrently.
type BorderCreator[T dtype.Element] interface {
	// Copies returns parts of the image to copy into the border, or nil. Tiles that the view does not
	// otherwise need are loaded for it.
	Copies(g Geometry) []Copy
	// Fill is called once for each view that has a border, after all pixels of
	// the image and all copies are in place and before the view is delivered.
	Fill(v *View[T])
}

// Copy is a box of the image to copy into the border of a view.
type Copy struct {
	From     []int  // first pixel of the box in the image
	Shape    []int  // its extent
	To       []int  // first position of the box in the view
	Reversed []bool // axes along which the box is turned round; nil for none
}

// check returns an error that explains what is wrong with a caller's copy.
func (c Copy) check(g Geometry) error {
	n := len(g.Image)
	if len(c.From) != n || len(c.Shape) != n || len(c.To) != n || (c.Reversed != nil && len(c.Reversed) != n) {
		return fmt.Errorf("border copy %+v does not have %d axes", c, n)
	}
	for a := range n {
		if c.Shape[a] < 0 || c.From[a] < 0 || c.From[a] > g.Image[a]-c.Shape[a] {
			return fmt.Errorf("border copy of %v pixels from %v is outside the image of %v", c.Shape, c.From, g.Image)
		}
		if c.To[a] < 0 || c.To[a] > g.ViewShape[a]-c.Shape[a] {
			return fmt.Errorf("border copy of %v pixels to %v is outside the view of %v", c.Shape, c.To, g.ViewShape)
		}
	}
	return nil
}

// newBorder makes the creator that a configuration names; nil leaves borders
// undefined.
func newBorder[T dtype.Element](setting any) (BorderCreator[T], error) {
	switch b := setting.(type) {
	case BorderMode:
		switch b {
		case Zero:
			return constant[T]{}, nil
		case Undefined:
			return nil, nil
		}
		return mapped[T]{b}, nil
	case BorderCreator[T]: // constant[T] as well
		return b, nil
	}
	return nil, fmt.Errorf("the border is %T (must be made for pixels of type %s, as the loader is)", setting, dtype.Of[T]())
}

// borrows reports whether a border may ask for copies from tiles.
func borrows[T dtype.Element](b BorderCreator[T]) bool {
	switch b := b.(type) {
	case nil, constant[T]:
		return false
	case mapped[T]:
		return b.mode != Replicate
	}
	return true
}

// constant fills the border with one value.
type constant[T dtype.Element] struct{ value T }

func (constant[T]) Copies(Geometry) []Copy { return nil }

func (c constant[T]) Fill(v *View[T]) {
	// axis by axis, the boxes before and after the part that earlier axes left
	n := len(v.ViewShape)
	start, shape := make([]int, n), append([]int{}, v.ViewShape...)
	strides := v.Strides()
	for a := range n {
		at := func(pos, length int) {
			start[a], shape[a] = pos, length
			off := 0
			for k, s := range strides {
				off += start[k] * s
			}
			fillBox(v.buf.data, off, strides, shape, c.value)
		}
		at(0, v.Front[a])
		at(v.Front[a]+v.ViewReal[a], v.Back[a])
		start[a], shape[a] = v.Front[a], v.ViewReal[a]
	}
}

// mapped fills the border with pixels of the image: each axis maps positions
// outside to positions inside.
type mapped[T dtype.Element] struct{ mode BorderMode }

// Source returns the pixel that position p of an axis of n pixels shows; p may lie outside. It returns -1 if
// the position shows none.
func (m BorderMode) Source(p, n int) int {
	switch m {
	case Zero, Undefined:
		if p < 0 || p >= n {
			return -1
		}
		return p
	case Wrap:
		return modulo(p, n)
	case Mirror:
		if n == 1 {
			return 0
		}
		if p = modulo(p, 2*n-2); p >= n {
			p = 2*n - 2 - p
		}
		return p
	case Reflect:
		if p = modulo(p, 2*n); p >= n {
			p = 2*n - 1 - p
		}
		return p
	}
	return min(max(p, 0), n-1)
}

func modulo(p, n int) int {
	if p %= n; p < 0 {
		p += n
	}
	return p
}

// run is a stretch of an axis: n view positions, beginning with to, show the image's pixels from, from+step, …; step is
// +1, −1 or, if a pixel is repeated, 0.
type run struct{ to, from, n, step int }

// runs splits the border of one axis into runs whose pixels the view itself shows (near) and runs that lie
// elsewhere in the image (far).
func (m mapped[T]) runs(g Geometry, a int) (near, far []run) {
	add := func(lo, hi int) {
		var last *run
		for pos := lo; pos < hi; pos++ {
			from := m.mode.Source(g.MinPos[a]-g.Front[a]+pos, g.Image[a])
			list := &far
			if from >= g.MinPos[a] && from < g.MaxPos[a] {
				list = &near
			}
			if last != nil && len(*list) > 0 && last == &(*list)[len(*list)-1] {
				step := from - (last.from + (last.n-1)*last.step)
				if step >= -1 && step <= 1 && (last.n == 1 || step == last.step) && (step != 0 || list == &near) {
					last.step = step
					last.n++
					continue
				}
			}
			*list = append(*list, run{pos, from, 1, 1})
			last = &(*list)[len(*list)-1]
		}
	}
	add(0, g.Front[a])
	add(g.Front[a]+g.ViewReal[a], g.ViewShape[a])
	return near, far
}

func (m mapped[T]) Copies(g Geometry) []Copy {
	n := len(g.Image)
	choices := make([][]run, n)
	found := false
	for a := range n {
		_, far := m.runs(g, a)
		found = found || len(far) > 0
		choices[a] = append([]run{{g.Front[a], g.MinPos[a], g.ViewReal[a], 1}}, far...)
	}
	if !found {
		return nil
	}
	// all combinations but the first, which is the part the view shows anyway
	var out []Copy
	pick, zero, counts := make([]int, n), make([]int, n), make([]int, n)
	for a := range n {
		counts[a] = len(choices[a])
	}
	for next(pick, zero, counts) {
		c := Copy{make([]int, n), make([]int, n), make([]int, n), make([]bool, n)}
		for a, k := range pick {
			r := choices[a][k]
			c.From[a], c.Shape[a], c.To[a] = r.from, r.n, r.to
			if r.step < 0 {
				c.From[a], c.Reversed[a] = r.from-r.n+1, true
			}
		}
		out = append(out, c)
	}
	return out
}

func (m mapped[T]) Fill(v *View[T]) {
	// the last axis first: what it fills is copied along with the pixels when
	// the axes before it are filled
	n := len(v.ViewShape)
	strides := v.Strides()
	for a := n - 1; a >= 0; a-- {
		near, _ := m.runs(v.Geometry, a)
		shape := append([]int{}, v.ViewShape...)
		from := append([]int{}, strides...)
		for _, r := range near {
			shape[a], from[a] = r.n, r.step*strides[a]
			copyBox(v.buf.data, r.to*strides[a], strides,
				v.buf.data, (v.Front[a]+r.from-v.MinPos[a])*strides[a], from, shape)
		}
	}
}
