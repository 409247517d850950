package view

import (
	"context"
	"slices"

	"strata/pkg/ngff/display"
)

// sampleVoxels is the approximate number of voxels from which the percentiles and the histogram are computed.
const sampleVoxels = 1 << 19

// sampleBytes is the maximum size of the chunks decoded for them.
const sampleBytes = 64 << 20

// Statistics describes the values of an image, based on a coarse level or on a sample of it.
type Statistics struct {
	Level     int       `json:"level"`
	Voxels    int       `json:"voxels"`    // number of values used
	Quantiles []float64 `json:"quantiles"` // the percentiles 0, 0.1, 0.2 … 100
	From      float64   `json:"from"`      // range of the histogram
	To        float64   `json:"to"`
	Histogram []int     `json:"histogram"`
}

// histogramBins is the number of bins of the histogram.
const histogramBins = 128

// statistics computes the statistics of the finest level that is small enough, or of a sample of the coarsest one.
func (s *source) statistics(ctx context.Context, others []int) (*Statistics, error) {
	if err := s.checkOthers(others); err != nil {
		return nil, err
	}
	k, boxes := display.Sample(s.levels, sampleVoxels, sampleBytes)
	var values []float64
	elem := s.stored.Size()
	for _, from := range boxes {
		b := box{level: k, start: from.Start, shape: from.Shape, others: others}
		raw := make([]byte, b.shape[0]*b.shape[1]*b.shape[2]*elem)
		if err := s.read(ctx, b, raw, [3]int{b.shape[1] * b.shape[2] * elem, b.shape[2] * elem, elem}); err != nil {
			return nil, err
		}
		values = display.AppendFinite(values, raw, s.stored)
	}
	st := &Statistics{Level: k, Voxels: len(values), Histogram: make([]int, histogramBins), Quantiles: []float64{}}
	if len(values) == 0 {
		return st, nil
	}
	slices.Sort(values)
	for i := range 1001 {
		st.Quantiles = append(st.Quantiles, display.Quantile(values, float64(i)/1000))
	}
	st.count(values)
	return st, nil
}

// count fills the histogram, whose range extends a little beyond the percentiles 0.1 and 99.9.
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
