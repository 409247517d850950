package overview

import (
	"math"

	"strata/pkg/filter"
)

// Pattern collects what all tiles show alike at the same pixels, finer than shading: columns of the detector, dust. It
// is the mean of the tiles, each relative to its brightness, in which tiles without texture count most.
type Pattern struct {
	n      [2]int // (y, x) of a tile
	half   [2][]float32
	weight [2]float64
	next   int

	known  bool
	result []float32
}

// NewPattern returns a pattern of tiles of a size (y, x), without any.
func NewPattern(tile [2]int) *Pattern { return &Pattern{n: tile} }

// PatternPlanes is the number of planes of a tile that a pattern needs memory for.
const PatternPlanes = 6

// patternFloor is the contrast of tiles below which they do not count for more.
const patternFloor = 0.01

// Add adds the plane of a tile; reduced is its overview, of a size (y, x).
func (p *Pattern) Add(plane, reduced []float32, size [2]int) {
	mean := 0.0
	for _, f := range reduced {
		mean += float64(f) / float64(len(reduced))
	}
	if !(mean > 0) {
		return
	}
	flat := make([]float32, len(reduced))
	for i, f := range reduced {
		flat[i] = f / float32(mean)
	}
	filter.RemovePolynomial(flat, size[0], size[1], degree)
	w := 1 / (meanSquare(flat) + patternFloor*patternFloor)
	if w-w != 0 {
		return
	}
	to := p.half[p.next]
	if to == nil {
		to = make([]float32, len(plane))
		p.half[p.next] = to
	}
	scale := float32(w / mean)
	for i, f := range plane {
		if v := float32(f * scale); v-v == 0 { // converted: else v-v may be computed from the exact product
			to[i] += v
		}
	}
	p.weight[p.next] += w
	p.next = 1 - p.next
}

// Inverse returns one over the pattern, as far as two halves of the tiles agree on it (Spearman and Brown's formula);
// nil if they do not.
func (p *Pattern) Inverse() []float32 {
	if !p.known {
		p.known, p.result = true, p.compute()
	}
	return p.result
}

func (p *Pattern) compute() []float32 {
	if p.half[0] == nil || p.half[1] == nil {
		return nil
	}
	total := make([]float32, len(p.half[0]))
	for i := range total {
		total[i] = float32((float64(p.half[0][i]) + float64(p.half[1][i])) / (p.weight[0] + p.weight[1]))
	}
	p.sharpen(total)
	for k, h := range p.half {
		for i := range h {
			h[i] /= float32(p.weight[k])
		}
		p.sharpen(h)
	}
	var aa, bb, ab float64
	for i, f := range p.half[0] {
		a, b := float64(f), float64(p.half[1][i])
		aa, bb, ab = aa+float64(a*a), bb+float64(b*b), ab+float64(a*b)
	}
	if !(aa > 0 && bb > 0 && ab > 0) {
		return nil
	}
	common := ab / math.Sqrt(aa*bb)
	common = 2 * common / (1 + common)
	for i, f := range total {
		total[i] = float32(1 / (1 + min(max(common*float64(f), -0.9), 9)))
	}
	return total
}

// sharpen makes a plane its contrast to the local mean.
func (p *Pattern) sharpen(v []float32) {
	r := [2]int{max(1, int(blurShare*float64(p.n[0]))), max(1, int(blurShare*float64(p.n[1])))}
	mean := BoxMean(BoxMean(v, p.n, r), p.n, r)
	for i, m := range mean {
		if m > 0 {
			v[i] = v[i]/m - 1
		} else {
			v[i] = 0
		}
	}
}
