// Package n4 estimates the smooth multiplicative field of a volume by the algorithm N4 (Tustison et al., "N4ITK:
// improved N3 bias correction", IEEE Transactions on Medical Imaging 29, 2010). [Fit] takes logarithms of intensities
// and returns the logarithm of the field as a [bspline.Lattice], which can be evaluated anywhere.
//
// Each round sharpens the histogram of the corrected intensities, takes the difference between these and the sharpened
// ones as what is left of the field, and approximates it by a cubic B-spline; the rounds of a level end when the field
// hardly changes, and the next level has twice as many spans along each axis. Voxels are kept as float32, all sums as
// float64 in an order that does not depend on the workers.
package n4

import (
	"fmt"
	"math"

	"strata/pkg/filter/bspline"
)

// Options are the parameters of [Fit].
type Options struct {
	Control    [3]int  // control points of the first level along (z, y, x), each at least 4
	Iterations []int   // maximum number of rounds of each level
	Bins       int     // of the histogram; 0: 200
	FWHM       float64 // of the blur that is removed from the histogram, of log intensities; 0: 0.15
	Noise      float64 // of Wiener's deconvolution; 0: 0.01
	// Converged ends a level when the standard deviation of a round's change of the log field is below it; 0: 0.001. To
	// first order this is the coefficient of variation of the change of the field.
	Converged float64
	// Each calls f for 0 to n−1, possibly at the same time. nil: one after the other.
	Each func(n int, f func(i int) error) error
}

func (o Options) withDefaults() Options {
	or := func(v *float64, other float64) {
		if *v == 0 {
			*v = other
		}
	}
	if o.Bins == 0 {
		o.Bins = 200
	}
	or(&o.FWHM, 0.15)
	or(&o.Noise, 0.01)
	or(&o.Converged, 0.001)
	if o.Each == nil {
		o.Each = func(n int, f func(i int) error) error {
			for i := range n {
				if err := f(i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return o
}

// Bytes returns the memory that [Fit] needs beside the planes.
func Bytes(samples [3]int, o Options) int64 {
	c := o.Control
	for range len(o.Iterations) - 1 {
		for d := range c {
			c[d] = 2*(c[d]-3) + 3
		}
	}
	plane := float64(c[1]) * float64(c[2])
	n := 8*(float64(samples[0])*plane+4*plane*float64(c[0])) + 72*float64(samples[0]+samples[1]+samples[2]) +
		8*float64(samples[0])*float64(max(200, o.Bins)) + 64*float64(samples[2]+c[2])
	return int64(min(n, math.MaxInt64/2))
}

// fit is the state of [Fit].
type fit struct {
	Options
	planes  [][]float32
	samples [3]int
	field   *bspline.Lattice
	sums    *approximation
}

// Fit estimates the field of the log intensities in planes of ny × nx voxels, NaN where a voxel does not count. It
// returns the logarithm of the field and leaves the corrected log intensities in planes. The mean of the field is what
// the method makes it: the sharpening keeps the mean of the intensities about as it is. Voxels of one intensity, or
// none, have a field of zeros. An error is one of Each.
func Fit(planes [][]float32, ny, nx int, o Options) (*bspline.Lattice, error) {
	for _, c := range o.Control {
		if c < 4 {
			panic(fmt.Sprintf("n4: %v control points, want 4 or more along each axis", o.Control))
		}
	}
	f := &fit{Options: o.withDefaults(), planes: planes, samples: [3]int{len(planes), ny, nx}}
	f.field = bspline.New(f.samples, o.Control)
	low, high, _, err := f.correct(nil)
	if err != nil {
		return nil, err
	}
	sharp := newSharpener(f.Bins, f.FWHM, f.Noise)
	for level, rounds := range o.Iterations {
		if level > 0 {
			f.field = f.field.Refine()
		}
		if !(high > low) || rounds < 1 {
			continue
		}
		if err := f.cover(); err != nil {
			return nil, err
		}
		for range rounds {
			h, err := f.histogram(low, high)
			if err != nil {
				return nil, err
			}
			step, err := f.approximate(h, sharp.expectation(h))
			if err != nil {
				return nil, err
			}
			f.field.Add(step)
			var change float64
			if low, high, change, err = f.correct(step); err != nil {
				return nil, err
			}
			if !(high > low) || change < f.Converged {
				break
			}
		}
	}
	return f.field, nil
}

// correct subtracts a field from the planes. It returns the range of what is left and the standard deviation of the
// field over the voxels that count; a field of nil is zero.
func (f *fit) correct(field *bspline.Lattice) (low, high, change float64, err error) {
	type part struct {
		low, high     float32
		n             int
		first, second float64 // sums
	}
	parts := make([]part, len(f.planes))
	var taps [3][]bspline.Tap
	if field != nil {
		for d, n := range f.samples {
			taps[d] = field.Taps(d, n, 0, 1)
		}
	}
	err = f.Each(len(f.planes), func(z int) error {
		p := part{low: float32(math.Inf(1)), high: float32(math.Inf(-1))}
		plane := f.planes[z]
		var control, row []float64
		if field != nil {
			control, row = make([]float64, field.Control[1]*field.Control[2]), make([]float64, field.Control[2])
			field.Plane(control, taps[0][z])
		}
		for y := range f.samples[1] {
			line := plane[y*f.samples[2]:][:f.samples[2]]
			if field != nil {
				bspline.Row(row, control, taps[1][y])
				for x, v := range line {
					if v == v {
						d := bspline.At(row, &taps[2][x])
						line[x] = float32(float64(v) - d)
						p.first += d
						p.second += float64(d * d)
						p.n++
					}
				}
			}
			for _, v := range line {
				if v < p.low {
					p.low = v
				}
				if v > p.high {
					p.high = v
				}
			}
		}
		parts[z] = p
		return nil
	})
	all := part{low: float32(math.Inf(1)), high: float32(math.Inf(-1))}
	for _, p := range parts {
		all.low, all.high = min(all.low, p.low), max(all.high, p.high)
		all.first, all.second, all.n = all.first+p.first, all.second+p.second, all.n+p.n
	}
	if n := float64(all.n); n > 0 {
		mean := all.first / n
		change = math.Sqrt(max(0, all.second/n-float64(mean*mean)))
	}
	return float64(all.low), float64(all.high), change, err
}

// cover computes how much the voxels weigh on each control point of the level.
func (f *fit) cover() error {
	f.sums = newApproximation(f.samples, f.field.Control)
	err := f.rows(true, func(v float64) float64 { return 1 })
	f.sums.cover = f.sums.volume(true)
	return err
}

// rows sums a function of the voxels that count over the planes.
func (f *fit) rows(squared bool, value func(v float64) float64) error {
	return f.Each(len(f.planes), func(z int) error {
		line, sums := make([]float64, f.samples[2]), make([]float64, f.field.Control[2])
		f.sums.plane(z, line, sums, squared, func(y int, line []float64) {
			for x, v := range f.planes[z][y*len(line):][:len(line)] {
				if line[x] = float64(v); v == v {
					line[x] = value(line[x])
				}
			}
		})
		return nil
	})
}

// histogram counts the voxels.
func (f *fit) histogram(low, high float64) (*histogram, error) {
	parts := make([]*histogram, len(f.planes))
	err := f.Each(len(f.planes), func(z int) error {
		h := newHistogram(low, high, f.Bins)
		for _, v := range f.planes[z] {
			if v == v {
				i, t := h.place(float64(v))
				h.counts[i] += 1 - t
				h.counts[i+1] += t
			}
		}
		parts[z] = h
		return nil
	})
	all := newHistogram(low, high, f.Bins)
	for _, p := range parts {
		for i := range all.counts {
			if p != nil {
				all.counts[i] += p.counts[i]
			}
		}
	}
	return all, err
}

// approximate returns the field by which the voxels differ from what is expected of them.
func (f *fit) approximate(h *histogram, expected []float64) (*bspline.Lattice, error) {
	err := f.rows(false, func(v float64) float64 {
		i, t := h.place(v)
		return v - expected[i] - float64((expected[i+1]-expected[i])*t)
	})
	return f.sums.lattice(), err
}
