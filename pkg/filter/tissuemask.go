package filter

import (
	"math"
	"slices"
)

// PlaneMask turns a thresholded plane into a mask of tissue: it fills holes and closes gaps. It owns scratch memory and serves one goroutine.
// Masks hold 1 for tissue and 0 for the rest, ny rows of nx pixels.
type PlaneMask struct {
	ny, nx int
	stack  []int32
	grown  []uint8 // a plane
	wide   []uint8 // a row that is grown along x
}

// closingRadius is the radius of the disk of [PlaneMask.Close] in pixels.
const closingRadius = 3

// closingReach is how far the disk reaches along x at each distance along y: 29 pixels.
var closingReach = [closingRadius + 1]int{3, 2, 2, 0}

// NewPlaneMask returns a PlaneMask of planes of ny × nx pixels.
func NewPlaneMask(ny, nx int) *PlaneMask {
	return &PlaneMask{ny: ny, nx: nx, grown: make([]uint8, ny*nx), wide: make([]uint8, nx)}
}

// PlaneMaskBytes returns the memory of a PlaneMask.
func PlaneMaskBytes(ny, nx int) int64 { return 5*int64(ny)*int64(nx) + int64(nx) }

// Fill fills the holes of a mask: pixels from which no path over neighbours along y and x leads out of the tissue to the plane's border.
func (p *PlaneMask) Fill(mask []uint8) {
	const outside = 2
	stack := slices.Grow(p.stack[:0], p.ny*p.nx)
	visit := func(i int) {
		if mask[i] == 0 {
			mask[i] = outside
			stack = append(stack, int32(i))
		}
	}
	for x := range p.nx {
		visit(x)
		visit((p.ny-1)*p.nx + x)
	}
	for y := range p.ny {
		visit(y * p.nx)
		visit(y*p.nx + p.nx - 1)
	}
	for len(stack) > 0 {
		i := int(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		if i >= p.nx {
			visit(i - p.nx)
		}
		if i+p.nx < len(mask) {
			visit(i + p.nx)
		}
		if x := i % p.nx; x > 0 {
			visit(i - 1)
		}
		if x := i % p.nx; x < p.nx-1 {
			visit(i + 1)
		}
	}
	for i, v := range mask {
		mask[i] = 1
		if v == outside {
			mask[i] = 0
		}
	}
	p.stack = stack
}

// Close closes gaps of a mask with a disk of radius 3, 29 pixels: it grows the tissue by the disk and shrinks it again. What lies outside the
// plane is not tissue, so that none is left within 3 pixels of the border.
func (p *PlaneMask) Close(mask []uint8) {
	p.grow(p.grown, mask, 1, 0)
	p.grow(mask, p.grown, 0, 1)
}

// grow grows the pixels of a value by the disk; outside says whether there are such pixels beyond the border.
func (p *PlaneMask) grow(dst, src []uint8, value, outside uint8) {
	other := 1 - value
	for i := range dst {
		dst[i] = other
	}
	for y := range p.ny {
		row := src[y*p.nx:][:p.nx]
		for _, reach := range [...]int{0, 2, 3} {
			p.widen(row, reach, value, outside)
			for dy, r := range closingReach {
				if r == reach {
					p.stamp(dst, y-dy, value)
					p.stamp(dst, y+dy, value)
				}
			}
		}
	}
	if outside == 0 {
		return
	}
	for y := range p.ny { // rows that the disk reaches from beyond the border
		if row := dst[y*p.nx:][:p.nx]; y < closingRadius || y >= p.ny-closingRadius {
			for x := range row {
				row[x] = value
			}
		}
	}
}

// widen marks the pixels that have one of the value within reach along the row.
func (p *PlaneMask) widen(row []uint8, reach int, value, outside uint8) {
	last := -reach - 1 // the last such pixel up to x + reach
	if outside != 0 {
		last = -1
	}
	for x := range min(reach, p.nx) {
		if row[x] == value {
			last = x
		}
	}
	for x := range p.wide {
		if next := x + reach; next < p.nx && row[next] == value || next >= p.nx && outside != 0 {
			last = next
		}
		p.wide[x] = 0
		if x-last <= reach {
			p.wide[x] = 1
		}
	}
}

// stamp gives the marked pixels of row y the value.
func (p *PlaneMask) stamp(dst []uint8, y int, value uint8) {
	if y < 0 || y >= p.ny {
		return
	}
	to := dst[y*p.nx:][:p.nx]
	for x, w := range p.wide {
		if w != 0 {
			to[x] = value
		}
	}
}

// OtsuSketch finds Otsu's threshold of positive numbers in one pass, without their range: it counts by the upper bits of the numbers, about
// one part in two thousand, and divides these counts among the bins when all have come. It is not safe for concurrent use; counts merge.
type OtsuSketch struct {
	low, high float32
	n         int64
	counts    []int64
}

// sketchShift is the number of lower bits of a float32 that the sketch does not see.
const sketchShift = 12

// OtsuSketchBytes is the memory of a sketch.
const OtsuSketchBytes = 8 << (31 - sketchShift)

// NewOtsuSketch returns a sketch of no numbers.
func NewOtsuSketch() *OtsuSketch {
	return &OtsuSketch{low: float32(math.Inf(1)), high: float32(math.Inf(-1)), counts: make([]int64, OtsuSketchBytes/8)}
}

// Add counts the finite numbers above 0.
func (s *OtsuSketch) Add(v []float32) {
	low, high, n := PositiveRange(v)
	s.low, s.high, s.n = min(s.low, low), max(s.high, high), s.n+n
	for _, f := range v {
		if f > 0 && f <= math.MaxFloat32 {
			s.counts[math.Float32bits(f)>>sketchShift]++
		}
	}
}

// Merge adds the counts of another sketch.
func (s *OtsuSketch) Merge(o *OtsuSketch) {
	s.low, s.high, s.n = min(s.low, o.low), max(s.high, o.high), s.n+o.n
	for i, c := range o.counts {
		s.counts[i] += c
	}
}

// Count returns the number of numbers.
func (s *OtsuSketch) Count() int64 { return s.n }

// Threshold returns the threshold as [OtsuHistogram] does, with 256 bins between the smallest and the largest number. ok is false if these
// do not differ.
func (s *OtsuSketch) Threshold() (t float64, ok bool) {
	h := NewOtsuHistogram(float64(s.low), float64(s.high))
	scale := otsuBins / (h.high - h.low)
	if s.n == 0 || !(scale > 0) || math.IsInf(scale, 0) {
		return 0, false
	}
	for k, c := range s.counts {
		if c == 0 {
			continue
		}
		centre := math.Float32frombits(uint32(k)<<sketchShift | 1<<(sketchShift-1))
		v := min(max(float64(centre), h.low), h.high)
		h.counts[min(otsuBins-1, int((v-h.low)*scale))] += c
	}
	return h.Threshold()
}
