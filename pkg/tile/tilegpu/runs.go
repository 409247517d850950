package tilegpu

import (
	"strata/pkg/gpu/kernels"
	"strata/pkg/tile"
)

// run is a stretch of an axis of a view: n positions from to on show the pixels of a tile
// from the pixel from of the image on, forwards (1), backwards (-1), the same one (0), or none.
type run struct{ to, from, n, step, tile int }

// none is the step of a run that shows no pixels of the image.
const none = 2

// runs is an axis of the view around tile i of it.
func (l *Loader) runs(axis, i int) (all []run) {
	first := i*l.tile[axis] - l.radius[axis]
	for p := range l.tile[axis] + 2*l.radius[axis] {
		r := run{p, l.options.Border.Source(first+p, l.shape[axis]), 1, 1, 0}
		if r.from < 0 {
			r.step = none
		} else {
			r.tile = r.from / l.tile[axis]
		}
		if n := len(all); n > 0 && all[n-1].takes(r) {
			continue
		}
		all = append(all, r)
	}
	return all
}

// takes makes a position the next one of a run, if it goes on there.
func (r *run) takes(next run) bool {
	if (r.step == none) != (next.step == none) || r.tile != next.tile {
		return false
	}
	if r.step != none {
		step := next.from - (r.from + (r.n-1)*r.step)
		if r.n == 1 && step >= -1 && step <= 1 {
			r.step = step
		} else if step != r.step || r.n == 1 {
			return false
		}
	}
	r.n++
	return true
}

// each calls f for every combination of a run of each axis.
func each(axes [][]run, f func(pick []run)) {
	pick := make([]run, len(axes))
	var down func(d int)
	down = func(d int) {
		if d == len(axes) {
			f(pick)
			return
		}
		for _, r := range axes[d] {
			pick[d] = r
			down(d + 1)
		}
	}
	down(0)
}

// number is the tile that a box shows; -1: none.
func (l *Loader) number(pick []run) int {
	n := 0
	for d, r := range pick {
		if r.step == none {
			return -1
		}
		n = n*l.grid[d] + r.tile
	}
	return n
}

// tilesOf are the tiles of a view, each once.
func (l *Loader) tilesOf(axes [][]run) (numbers []int) {
	seen := map[int]bool{}
	each(axes, func(pick []run) {
		if n := l.number(pick); n >= 0 && !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	})
	return numbers
}

// parts are the boxes of a view: those whose rows lie in tiles as they do in the view, or
// are filled, and those whose rows are turned round or of one pixel, element by element.
func (l *Loader) parts(axes [][]run, held map[int]*cached, shape []int) (plain, turned []kernels.Part) {
	last := len(shape) - 1
	to := l.strides(shape)
	each(axes, func(pick []run) {
		b := kernels.Part{Src: -1, To: to}
		for d, r := range pick {
			b.Shape = append(b.Shape, r.n)
			b.Dst += int64(r.to) * to[d]
		}
		number := l.number(pick)
		if number < 0 {
			if l.options.Border != tile.Undefined {
				plain = append(plain, b)
			}
			return
		}
		t := held[number]
		b.Src, b.From = t.at, l.strides(t.region.Shape)
		for d, r := range pick {
			b.Src += int64(r.from-t.region.Start[d]) * b.From[d]
			b.From[d] *= int64(r.step)
		}
		if pick[last].step == 1 || pick[last].n == 1 {
			plain = append(plain, b)
			return
		}
		b.Shape, b.From, b.To = append(b.Shape, 1), append(b.From, 0), append(append([]int64{}, to...), 0)
		turned = append(turned, b)
	})
	return plain, turned
}

// strides are the bytes between neighbours in a volume in C order.
func (l *Loader) strides(shape []int) []int64 {
	s := make([]int64, len(shape))
	n := int64(len(l.options.Fill))
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = n
		n *= int64(shape[d])
	}
	return s
}
