// Package normalize brings the intensities of a slice to a common scale: agarose to 0, bright tissue to about 1. It is
// the pipeline's normalize stage; [Run] does all of it.
package normalize

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/agarose"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/compute/correct"
	"strata/pkg/zarr/store"
)

// Options are the parameters of [Run].
type Options struct {
	PercentileMax  float64 // of the voxels of a plane: brighter ones are clipped; 0…100
	SpanPercentile float64 // over the planes, of what lies between background and ceiling: that becomes 1; 0…100
	Sigma          float64 // standard deviation in pixels of the Gaussian before agarose and tissue are told apart
}

// Passes is how often [Run] visits each voxel.
const Passes = 5

// Result holds what was found. Planes without finite voxels have the ceiling NaN and the background 0.
type Result struct {
	Shape      [3]int
	Agarose    *agarose.Mask
	Ceiling    []float32 // of each plane: the value at which it is clipped
	Background []float32 // of each plane: the median of the agarose, which becomes 0
	Divisor    float32   // of the volume; 0 if there is nothing to divide by
	OnGPU      bool      // a device changed the voxels
}

// Run normalises the image in. Each plane is clipped at a percentile, its background becomes 0, and all planes are
// divided by one number, a percentile of what lies between. The output is of float32. NaN is left out of the statistics
// and stays.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, o Options, layout oct.Layout, res oct.Resources) (*ngff.Image, *Result, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, nil, err
	}
	var r *Result
	s := correct.Stage{
		Need: agarose.Bytes(v) + 2*filter.RankSetsBytes(v.Shape[0], 1), Type: dtype.Float32, Work: "normalising blocks",
		Shared: mem.Pooled(8 * int64(v.Shape[0])),
		Measure: func(ctx context.Context, v *blocks.Volume, res oct.Resources) (err error) {
			r, err = measure(ctx, v, o, res)
			return err
		},
		Change: func(res *oct.Resources) (func(compute.Changer, compute.Part), func(), error) {
			limits, free, err := compute.Shared(res, r.limits())
			divisor := r.Divisor
			if !(divisor > 0) {
				divisor = 1
			}
			return func(w compute.Changer, p compute.Part) { w.ScalePlanes(p, limits, divisor) }, free, err
		},
	}
	image, err := s.Run(ctx, v, out, layout, res)
	if err != nil {
		return nil, nil, err
	}
	r.OnGPU = res.Device != nil
	return image, r, nil
}

// limits returns the background and the ceiling of each plane.
func (r *Result) limits() (all []float32) {
	for z, low := range r.Background {
		all = append(all, low, r.Ceiling[z])
	}
	return all
}

// measure finds the agarose, and the ceiling and the background of each plane.
func measure(ctx context.Context, v *blocks.Volume, o Options, res oct.Resources) (*Result, error) {
	r := &Result{Shape: v.Shape}
	if v.Held() != nil && heldWorkers(v, res) > 0 {
		return r, r.measureHeld(ctx, v, o, res)
	}
	all, background := filter.NewRankSets(v.Shape[0], o.PercentileMax), filter.NewRankSets(v.Shape[0], 50)
	all.Begin()
	count := func(b *blocks.Block) {
		area := b.Size[1] * b.Size[2]
		for k := range b.Size[0] {
			z := (k + b.Worker*7) % b.Size[0] // so that workers rarely wait for each other's plane
			all.Add(b.Origin()[0]+z, b.Voxels[z*area:][:area])
		}
	}
	means, err := agarose.Means(ctx, v, math.Inf(1), res, count)
	if err != nil {
		return nil, err
	}
	r.find(v, means, o, res)
	for {
		more, again := all.Begin(), background.Begin()
		if !more && !again {
			break
		}
		c, err := v.Cut(blocks.Plan{Size: v.Chunk, PerVoxel: 4, Shrink: true, Work: "counting blocks"}, res)
		if err != nil {
			return nil, err
		}
		selected := make([][]float32, max(1, res.Workers))
		err = c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
			if more {
				count(b)
			}
			for z := range b.Size[0] {
				s := r.Agarose.Select(selected[b.Worker][:0], v, b, z)
				background.Add(b.Origin()[0]+z, s)
				selected[b.Worker] = s
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	r.conclude(all, background, o.SpanPercentile)
	return r, nil
}

// find finds the agarose.
func (r *Result) find(v *blocks.Volume, means []float32, o Options, res oct.Resources) {
	r.Agarose = agarose.Find(means, v.Shape[1], v.Shape[2], o.Sigma)
	if r.Agarose.Few() {
		res.Warnf("%s: no threshold separates agarose from tissue: nothing is subtracted", v.Where)
	} else if r.Agarose.Count == 0 {
		res.Warnf("%s: no agarose found: nothing is subtracted", v.Where)
	}
}

const (
	heldShare = 32      // part of a plane's voxels that says where its percentiles lie
	heldLeast = 1 << 11 // of these, where there are as many
)

// heldWorkers returns how many workers can find percentiles of planes in memory at a time. Each may have to keep all
// voxels of a plane.
func heldWorkers(v *blocks.Volume, res oct.Resources) int {
	return int(min(int64(res.Workers), res.Mem/int64(mem.Product(10, v.Shape[1], v.Shape[2]))))
}

// measureHeld measures a volume in memory, which it looks through twice.
func (r *Result) measureHeld(ctx context.Context, v *blocks.Volume, o Options, res oct.Resources) error {
	means, err := agarose.Means(ctx, v, math.Inf(1), res, nil)
	if err != nil {
		return err
	}
	r.find(v, means, o, res)
	runs, area := r.Agarose.Runs(), v.Shape[1]*v.Shape[2]
	r.Ceiling, r.Background = make([]float32, v.Shape[0]), make([]float32, v.Shape[0])
	each := int64(mem.Product(10, area))
	crew := res.Crew(oct.Team{What: "finding percentiles of planes", Workers: heldWorkers(v, res), Pieces: v.Shape[0], Each: each, All: int64(res.Busy(v.Shape[0])) * each})
	workers := make([]ranker, crew.Workers)
	err = crew.Each(ctx, v.Shape[0], func(worker, z int) error {
		plane, w := v.Held()[z*area:][:area], &workers[worker]
		all := w.find(o.PercentileMax, area, func(f func(voxels []float32)) { f(plane) })
		background := w.find(50, r.Agarose.Count, func(f func(voxels []float32)) { w.buf = agarose.Parts(w.buf, plane, runs, f) })
		r.limit(z, all, background)
		res.Done((Passes - 2) * int64(area) * int64(v.DType.Size())) // as many as it takes elsewhere
		return nil
	})
	r.divide(o.SpanPercentile)
	return err
}

// ranker finds percentiles. It reuses its memory.
type ranker struct{ sample, found, buf []float32 }

// find finds a percentile of about n values, which visit visits as often as it is called.
func (w *ranker) find(percent float64, n int, visit func(func(voxels []float32))) ranks {
	w.sample = w.sample[:0]
	wanted := max(n/heldShare, heldLeast)
	visit(func(v []float32) { w.sample = filter.Every(w.sample, v, max(len(v)*wanted/max(n, 1), 1)) })
	window := filter.NewRankWindow(w.sample, percent)
	for {
		window = window.Fresh(w.found)
		visit(window.Add)
		w.found = window.Keep()
		if lo, hi, t, ok := window.Around(); ok {
			return ranks{lo, hi, t, window.Count()}
		}
		window = filter.AllRanks(percent)
	}
}

// ranks are the order statistics around a percentile of n values, with the weight of the upper one.
type ranks struct {
	lo, hi float32
	t      float64
	n      int64
}

// ranksOf returns those of a set.
func ranksOf(r *filter.RankSets, set int) ranks {
	lo, hi, t := r.Around(set, 0)
	return ranks{lo, hi, t, r.Count(set)}
}

// conclude computes the ceilings, the backgrounds and the divisor.
func (r *Result) conclude(all, background *filter.RankSets, span float64) {
	r.Ceiling, r.Background = make([]float32, r.Shape[0]), make([]float32, r.Shape[0])
	for z := range r.Shape[0] {
		r.limit(z, ranksOf(all, z), ranksOf(background, z))
	}
	r.divide(span)
}

// limit computes the ceiling and the background of a plane. Zeros have no sign.
func (r *Result) limit(z int, all, background ranks) {
	high, low := float32(filter.Interpolate(all.lo, all.hi, all.t)), float32(0)
	if background.n > 0 { // the median of what is clipped
		low = float32(filter.Interpolate(min(background.lo, high), min(background.hi, high), background.t))
	}
	r.Ceiling[z], r.Background[z] = high+0, low+0
}

// divide computes the divisor: a percentile of the spans of the planes, or the largest span where that is 0.
func (r *Result) divide(percent float64) {
	var spans []float32
	for z, high := range r.Ceiling {
		if span := high - r.Background[z]; span == span {
			spans = append(spans, span)
		}
	}
	if len(spans) == 0 {
		return
	}
	r.Divisor = float32(filter.Percentiles(spans, percent)[0])
	if !(r.Divisor > 0) {
		r.Divisor = float32(filter.Percentiles(spans, 100)[0])
	}
	r.Divisor = max(r.Divisor, 0)
}

// Step returns the metrics of a run with input and output of the given names. The spread of the background is judged
// relative to the divisor, because that is the size which it has in the output.
func (r *Result) Step(in, out string, o Options) *metrics.Step {
	s := metrics.New("normalize_intensities")
	s.Note("input_volume", in, "path of the input")
	s.Note("output_volume", out, "path of the output")
	s.Note("volume_shape", r.Shape[:], "voxels along z, y, x")
	s.Note("percentile_max", o.PercentileMax, "percentile of each plane at which it is clipped")
	s.Note("span_percentile", o.SpanPercentile, "percentile over the planes of what lies above the background, which becomes 1")
	s.Note("sigma", o.Sigma, "standard deviation in pixels of the Gaussian before the threshold")
	s.Note("use_gpu", r.OnGPU, "computed on a GPU")
	coverage, std := metrics.Limits["agarose_coverage"], metrics.Limits["std_background"]
	s.Judge("agarose_coverage", r.Agarose.Coverage(), "", "share of A-lines in agarose", &coverage)
	s.Judge("otsu_threshold", r.Agarose.Threshold, "", "mean intensity below which an A-line is agarose", nil)
	mean, spread := moments(r.Background)
	s.Judge("mean_background", mean, "", "mean over planes of the agarose's median", nil)
	s.Judge("divisor", float64(r.Divisor), "", "intensity above the background that becomes 1", nil)
	relative := spread
	if r.Divisor > 0 {
		relative /= float64(r.Divisor)
	}
	judged := metrics.New("")
	judged.Judge("std_background", relative, "", "", &std)
	m, _ := judged.Metric("std_background")
	s.Mark("std_background", spread, "", "standard deviation over planes of the agarose's median; judged relative to the divisor", m.Status)
	s.Warnings, s.Errors = append(s.Warnings, judged.Warnings...), append(s.Errors, judged.Errors...)
	return s
}

// moments returns the mean and the population standard deviation.
func moments(v []float32) (mean, std float64) {
	for _, f := range v {
		mean += float64(f)
	}
	mean /= float64(len(v))
	for _, f := range v {
		d := float64(f) - mean
		std += float64(d * d)
	}
	return mean, math.Sqrt(std / float64(len(v)))
}
