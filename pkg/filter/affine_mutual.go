package filter

import "math"

// mutualBins is the number of bins of the joint histogram along each axis.
const mutualBins = 32

// search lowers minus the mutual information by steps along each parameter, which begin at two pixels' distance on this
// level and are halved when none helps.
func (p *affineFit) search(a Affine, iterations int) (Affine, bool) {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, v := range [][]float32{p.fixed, p.moving} {
		for _, f := range v {
			lo[i], hi[i] = min(lo[i], float64(f)), max(hi[i], float64(f))
		}
	}
	if !(hi[0] > lo[0] && hi[1] > lo[1]) {
		return a, false
	}
	best, ok := p.mutual(a, lo, hi)
	if !ok {
		return a, false
	}
	half := float64(max(p.nx, p.ny)) / 2
	step := 2 * float64(p.step)
	for range iterations {
		moved := false
		for k := range 6 {
			for _, sign := range []float64{1, -1} {
				var s [8]float64
				if s[k] = sign * step; k < 4 {
					s[k] /= half
				}
				next := a.plus(s, 1)
				if v, ok := p.mutual(next, lo, hi); ok && v > best {
					a, best, moved = next, v, true
					break
				}
			}
		}
		if !moved {
			if step /= 2; step < 0.01 {
				break
			}
		}
	}
	return a, true
}

// mutual returns the mutual information of the planes. Each value is divided between its two nearest bins.
func (p *affineFit) mutual(a Affine, lo, hi [2]float64) (float64, bool) {
	var joint [mutualBins][mutualBins]float64
	scale := [2]float64{(mutualBins - 1) / (hi[0] - lo[0]), (mutualBins - 1) / (hi[1] - lo[1])}
	n := 0.0
	all := p.rows(a, func(r *affineRow) {
		n += float64(len(r.v))
		for k, v := range r.v {
			u, w := (v-lo[0])*scale[0], (r.m[k]-lo[1])*scale[1]
			i, j := min(max(int(u), 0), mutualBins-2), min(max(int(w), 0), mutualBins-2)
			u, w = u-float64(i), w-float64(j)
			joint[i][j] += (1 - u) * (1 - w)
			joint[i][j+1] += (1 - u) * w
			joint[i+1][j] += u * (1 - w)
			joint[i+1][j+1] += u * w
		}
	})
	if n < max(16, minInside*float64(all)) {
		return 0, false
	}
	var rows, columns [mutualBins]float64
	for i := range joint {
		for j, v := range joint[i] {
			rows[i], columns[j] = rows[i]+v, columns[j]+v
		}
	}
	sum := 0.0
	for i := range joint {
		for j, v := range joint[i] {
			if v > 0 {
				sum += v / n * math.Log(v*n/(rows[i]*columns[j]))
			}
		}
	}
	return sum, true
}
