// Package reference estimates how far tiles lie apart by linumpy's rules: every pair of neighbours says one
// displacement, and all of them count alike. Nothing tells right pairs from wrong ones, as package consensus does.
package reference

import (
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/consensus"
)

// MostEmpty is the maximum part of empty pixels, which are zero or not finite, of a tile that is compared.
const MostEmpty = 0.9

// Empty reports whether too much of a tile's plane is empty to compare it, or all of it is missing.
func Empty(plane []float32) bool {
	n := 0
	for _, v := range plane {
		if v == 0 || v-v != 0 {
			n++
		}
	}
	return len(plane) == 0 || float64(n) > MostEmpty*float64(len(plane))
}

// steps is the number of steps to a pixel at which the highest peak is located.
const steps = 20

// Shift finds by how many pixels (y, x), up to half a plane, the content of b has to be moved to lie on that of a: the
// highest peak of their phase correlation (see [filter.Phase.Register]), with the normalised cross-correlation of the
// pixels that both have there. a and b are planes of ny × nx pixels. ok is false if one of them shows nothing.
func Shift(p *filter.Phase, a, b []float32, ny, nx int) (d [2]float64, correlation float64, ok bool) {
	if d[0], d[1], ok = p.Register(a, b, ny, nx, steps); !ok {
		return d, 0, false
	}
	return d, filter.Overlap(a, b, ny, nx, int(math.RoundToEven(d[0])), int(math.RoundToEven(d[1]))), true
}

// Pair is the displacement (y, x) in px that was measured for two neighbours along an axis of the grid.
type Pair struct {
	Axis int
	D    [2]float64
}

// Pool returns the displacements along the axes that fit all pairs best by least squares, the number of pairs of each
// axis, and the standard deviation of the pairs from them in px, along y or x. The displacement along an axis without
// pairs is zero.
func Pool(all []Pair) (mean consensus.Steps, count [2]int, spread float64) {
	for _, p := range all {
		count[p.Axis]++
	}
	for _, p := range all {
		for k, v := range p.D {
			mean[p.Axis][k] += v / float64(count[p.Axis])
		}
	}
	sum := 0.0
	for _, p := range all {
		y, x := p.D[0]-mean[p.Axis][0], p.D[1]-mean[p.Axis][1]
		sum += y*y + x*x
	}
	if len(all) > 0 {
		spread = math.Sqrt(sum / float64(2*len(all)))
	}
	return mean, count, spread
}
