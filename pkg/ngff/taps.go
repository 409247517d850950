package ngff

import "strata/pkg/filter"

// rank is the number of dimensions that the pyramid code works on: images of
// fewer are padded in front with axes of length 1. The last three may be
// halved, the first two (time, channel) never are.
const rank = 5

// Axes of padded coordinates.
const (
	axisZ = rank - 3
	axisY = rank - 2
	axisX = rank - 1
)

// point is an index or a size along each padded axis.
type point [rank]int

func (p point) volume() int {
	n := 1
	for _, v := range p {
		n *= v
	}
	return n
}

// padded puts one number per dimension at the end of a point.
func padded(v []int, fill int) point {
	var p point
	for d := range p {
		p[d] = fill
	}
	copy(p[rank-len(v):], v)
	return p
}

// taps are the [filter.Taps] of one axis, with their weights rounded to float32 too. An axis
// that is not halved has none and is copied.
type taps struct {
	filter.Taps
	in, out int
	halved  bool
	f0, f1  []float32
}

// tapBytes is the memory of taps for an output sample.
const tapBytes = 2*4 + 2*8 + 2*4

// axisTaps returns the taps that halve an axis of n samples, or copy it.
func axisTaps(n int, halve bool) *taps {
	if !halve {
		return &taps{in: n, out: n}
	}
	t := &taps{Taps: filter.HalvingTaps(n), in: n, out: n / 2, halved: true}
	t.f0, t.f1 = make([]float32, t.out), make([]float32, t.out)
	for i := range t.out {
		t.f0[i], t.f1[i] = float32(t.W0[i]), float32(t.W1[i])
	}
	return t
}

// inputs returns the input samples that outputs [o0, o1) need, half open.
func (t *taps) inputs(o0, o1 int) (first, end int) {
	if !t.halved {
		return o0, o1
	}
	return int(t.Lo[o0]), int(t.Hi[o1-1]) + 1
}

// segment is a run of output samples along one axis that come from the same
// input tiles and go to the same output unit.
type segment struct {
	out0, out1 int  // output samples, half open
	in0, in1   int  // input samples that they need, half open
	tile       int  // input tile, counted along the axis
	seam       bool // the samples lie in this tile and the next
	unit       int  // output unit, counted along the axis
}

// span is a half-open range of segments.
type span struct{ first, end int }

// cutting divides the outputs of one axis into segments.
type cutting struct {
	segments []segment
	tiles    []span // segments that input tile i takes part in; empty when nothing of it is needed
	units    []span // segments of output unit i
	parts    []int  // number of (segment, tile) pairs of output unit i
	longest  int    // most input samples of a segment
}

// cut divides the outputs of t, for input tiles of length tile and output units
// of length unit. Both lie on a grid that starts at 0.
func cut(t *taps, tile, unit int) *cutting {
	c := &cutting{
		tiles: make([]span, (t.in+tile-1)/tile),
		units: make([]span, (t.out+unit-1)/unit),
		parts: make([]int, (t.out+unit-1)/unit),
	}
	for o := 0; o < t.out; o++ {
		first, end := t.inputs(o, o+1)
		s := segment{out0: o, out1: o + 1, in0: first, in1: end, tile: first / tile, seam: (end-1)/tile != first/tile, unit: o / unit}
		if n := len(c.segments); n > 0 {
			if p := &c.segments[n-1]; !p.seam && !s.seam && p.tile == s.tile && p.unit == s.unit {
				p.out1, p.in1 = s.out1, s.in1
				continue
			}
		}
		c.segments = append(c.segments, s)
	}
	for i, s := range c.segments {
		last := s.tile
		if s.seam {
			last++
		}
		for j := s.tile; j <= last; j++ {
			if c.tiles[j].end == 0 {
				c.tiles[j].first = i
			}
			c.tiles[j].end = i + 1
		}
		if c.units[s.unit].end == 0 {
			c.units[s.unit].first = i
		}
		c.units[s.unit].end = i + 1
		c.parts[s.unit] += last - s.tile + 1
		c.longest = max(c.longest, s.in1-s.in0)
	}
	return c
}
