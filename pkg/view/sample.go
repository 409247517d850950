package view

import (
	"context"
	"math"
	"slices"

	"strata/pkg/dtype"
)

// sampleVoxels is about how many voxels the percentiles and the histogram are taken from.
const sampleVoxels = 1 << 19

// sampleBoxes is the largest number of boxes that they are read in.
const sampleBoxes = 64

// Statistics describe the values of an image, of a coarse level or of a sample of it.
type Statistics struct {
	Level     int       `json:"level"`
	Voxels    int       `json:"voxels"`    // numbers that were looked at
	Quantiles []float64 `json:"quantiles"` // the percentiles 0, 0.1, 0.2 … 100
	From      float64   `json:"from"`      // range of the histogram
	To        float64   `json:"to"`
	Histogram []int     `json:"histogram"`
}

// histogramBins is the number of bins of the histogram.
const histogramBins = 128

// statistics reads the finest level that is small enough, or a sample of the coarsest one.
func (s *source) statistics(ctx context.Context, others []int) (*Statistics, error) {
	if err := s.checkOthers(others); err != nil {
		return nil, err
	}
	k := s.sampled()
	var values []float64
	elem := s.stored.Size()
	for _, b := range s.sampleOf(k) {
		b.others = others
		raw := make([]byte, b.shape[0]*b.shape[1]*b.shape[2]*elem)
		if err := s.read(ctx, b, raw, [3]int{b.shape[1] * b.shape[2] * elem, b.shape[2] * elem, elem}); err != nil {
			return nil, err
		}
		dtype.Each(raw, s.stored, func(v float64) {
			if v-v == 0 { // neither NaN nor infinite
				values = append(values, v)
			}
		})
	}
	st := &Statistics{Level: k, Voxels: len(values), Histogram: make([]int, histogramBins), Quantiles: []float64{}}
	if len(values) == 0 {
		return st, nil
	}
	slices.Sort(values)
	for i := range 1001 {
		st.Quantiles = append(st.Quantiles, values[int(math.Round(float64(i)/1000*float64(len(values)-1)))])
	}
	st.count(values)
	return st, nil
}

// count fills the histogram, whose range reaches a little beyond the percentiles 0.1 and 99.9.
func (st *Statistics) count(sorted []float64) {
	lo, hi := st.Quantiles[1], st.Quantiles[999]
	margin := (hi - lo) / 4
	st.From, st.To = max(sorted[0], lo-margin), min(sorted[len(sorted)-1], hi+margin)
	if st.To <= st.From {
		st.From, st.To = sorted[0], sorted[len(sorted)-1]
	}
	width := (st.To - st.From) / histogramBins
	for _, v := range sorted {
		i := 0
		if width > 0 {
			i = int(min(max((v-st.From)/width, 0), histogramBins-1))
		}
		st.Histogram[i]++
	}
}

// sampled returns the finest level of at most sampleVoxels voxels; the coarsest one if all have more.
func (s *source) sampled() int {
	for k := range s.levels {
		if n := s.levels[k].Shape; float64(n[0])*float64(n[1])*float64(n[2]) <= sampleVoxels {
			return k
		}
	}
	return len(s.levels) - 1
}

// sampleOf returns boxes spread evenly over a level: all of a small one. Each lies in one chunk.
func (s *source) sampleOf(level int) (list []box) {
	l := &s.levels[level]
	var n [3]int
	for d := range n {
		n[d] = (l.Shape[d] + l.Chunk[d] - 1) / l.Chunk[d]
	}
	if float64(l.Shape[0])*float64(l.Shape[1])*float64(l.Shape[2]) <= sampleVoxels {
		return []box{{level: level, shape: l.Shape}}
	}
	take := [3]int{}
	for d := range n { // as many chunks along each axis, where there are
		take[d] = min(n[d], int(math.Cbrt(sampleBoxes)+0.5))
	}
	voxels := sampleVoxels / (take[0] * take[1] * take[2])
	for i := range take[0] * take[1] * take[2] {
		at := [3]int{i / take[2] / take[1], i / take[2] % take[1], i % take[2]}
		b := box{level: level}
		for d := range 3 {
			chunk := (2*at[d] + 1) * n[d] / (2 * take[d])
			b.start[d] = chunk * l.Chunk[d]
			b.shape[d] = min(l.Chunk[d], l.Shape[d]-b.start[d])
		}
		for b.shape[0]*b.shape[1]*b.shape[2] > voxels { // the middle of a large chunk
			d := 0
			for k := range 3 {
				if b.shape[k] > b.shape[d] {
					d = k
				}
			}
			half := (b.shape[d] + 1) / 2
			b.start[d] += (b.shape[d] - half) / 2
			b.shape[d] = half
		}
		list = append(list, b)
	}
	return list
}
