package n4

import (
	"math"

	"strata/pkg/filter/bspline"
)

// approximation computes lattices that approximate scattered data on a grid, by the algorithm of Lee, Wolberg and Shin,
// "Scattered data interpolation with multilevel B-splines", IEEE Transactions on Visualization and Computer Graphics 3,
// 1997: a sample p of value v asks control point c for φ = w_c·v / Σ w², where w are the weights of its taps, and a
// control point takes the mean of what is asked, weighted by w_c². A weight is a product over the axes, so that sums
// over samples are formed along x, then y, then z.
type approximation struct {
	samples, control [3]int
	taps             [3][]cubes
	cover            []float64   // Σ w² of each control point
	planes           [][]float64 // sums of each plane of samples
}

// cubes holds the powers of a tap's weights for sums.
type cubes struct {
	first         int
	square, cubed [4]float64 // w², and w³ / Σ w²
}

func newApproximation(samples, control [3]int) *approximation {
	a := &approximation{samples: samples, control: control, planes: make([][]float64, samples[0])}
	for z := range a.planes {
		a.planes[z] = make([]float64, control[1]*control[2])
	}
	for d, n := range samples {
		a.taps[d] = make([]cubes, n)
		for i := range a.taps[d] {
			t := bspline.TapAt(float64(i), n, control[d])
			c, sum := cubes{first: t.First}, 0.0
			for k, w := range t.Weight {
				c.square[k] = w * w
				sum += c.square[k]
			}
			for k, w := range t.Weight {
				c.cubed[k] = w * w * w / sum
			}
			a.taps[d][i] = c
		}
	}
	return a
}

// plane sums over plane z of the samples, from rows that fill makes: values, NaN where there is no sample.
// line is scratch for a row of samples, sums for one of control points.
func (a *approximation) plane(z int, line, sums []float64, squared bool, fill func(y int, line []float64)) {
	out := a.planes[z]
	clear(out)
	for y := range a.samples[1] {
		fill(y, line)
		clear(sums)
		for x, v := range line {
			if v != v {
				continue
			}
			t := &a.taps[2][x]
			s, w := sums[t.first:t.first+4:t.first+4], &t.cubed
			if squared {
				w = &t.square
			}
			s[0] += float64(w[0] * v)
			s[1] += float64(w[1] * v)
			s[2] += float64(w[2] * v)
			s[3] += float64(w[3] * v)
		}
		t := a.taps[1][y]
		spread(out[t.first*len(sums):], sums, t.weights(squared))
	}
}

func (c *cubes) weights(squared bool) [4]float64 {
	if squared {
		return c.square
	}
	return c.cubed
}

// spread adds a row of sums to four rows of control points.
func spread(rows, sums []float64, w [4]float64) {
	n := len(sums)
	for k, w := range w {
		r := rows[k*n:][:n]
		for i, v := range sums {
			r[i] += float64(w * v)
		}
	}
}

// volume adds the sums of all planes, in their order.
func (a *approximation) volume(squared bool) []float64 {
	out := make([]float64, a.control[0]*a.control[1]*a.control[2])
	for z, sums := range a.planes {
		t := a.taps[0][z]
		spread(out[t.first*len(sums):], sums, t.weights(squared))
	}
	return out
}

// lattice returns the approximation once the sums of all planes are there.
func (a *approximation) lattice() *bspline.Lattice {
	l := &bspline.Lattice{Samples: a.samples, Control: a.control, Values: a.volume(false)}
	for i, c := range a.cover {
		if l.Values[i] /= c; c == 0 || math.IsNaN(l.Values[i]) {
			l.Values[i] = 0
		}
	}
	return l
}
