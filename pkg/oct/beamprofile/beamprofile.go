// Package beamprofile divides the A-lines of a slice by the axial profile of the beam, as the agarose around the tissue
// shows it. It is the pipeline's beam-profile stage; [Run] does all of it.
package beamprofile

import (
	"context"
	"math"
	"sync"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/agarose"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/compute/correct"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// Options are the parameters of [Run].
type Options struct {
	PercentileMax float64 // of all voxels: brighter ones are clipped for the estimate; 100: none
	FitGaussian   bool    // replaces the profile by a Gaussian through its peak
	Below         int     // first plane of the estimate; planes above it are not corrected
	// Subtract takes the signal of the water above the surface, which is the detector's and not the beam's, from slice
	// and profile. Without it tissue darkens with depth relative to agarose, of whose faint signal the detector's is
	// the larger part.
	Subtract bool
}

// Passes returns how often [Run] visits each voxel.
func (o *Options) Passes() int64 {
	if o.PercentileMax < 100 {
		return 5
	}
	return 3
}

// Result holds what was found.
type Result struct {
	Agarose *agarose.Mask
	// Profile is the mean of the agarose in each plane, with the smallest positive value in place of lower ones; nil:
	// none was found.
	Profile []float64
	// PSF is the profile above its smallest value, relative to that; a plane is divided by 1 + PSF.
	PSF  []float64
	Peak int // plane of the largest PSF
	// Floor is the detector's signal, which was subtracted; then Divisors are relative to the brightest plane, and else
	// 1 + PSF.
	Floor    float64
	Divisors []float64
}

// Run corrects the image in. The output has its type; integers are rounded half to even. It computes in float32, with
// the mean profile in float64. NaN is left out of the estimate and stays.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, o Options, layout oct.Layout, res oct.Resources) (*ngff.Image, *Result, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, nil, err
	}
	if o.Below < 0 || o.Below >= v.Shape[0] {
		return nil, nil, oct.LayoutErrorf("--below %d: %s has planes 0 to %d", o.Below, v.Where, v.Shape[0]-1)
	}
	var r *Result
	s := correct.Stage{
		Need: agarose.Bytes(v) + int64(v.Shape[0])*sumBytes*int64(res.Workers) + filter.QuantileBytes, Type: v.DType, Work: "correcting blocks",
		Shared: 2 * mem.Pooled(8*int64(v.Shape[0])),
		Measure: func(ctx context.Context, v *blocks.Volume, res oct.Resources) (err error) {
			r, err = measure(ctx, v, o, res)
			return err
		},
		Change: func(res *oct.Resources) (func(compute.Changer, compute.Part), func(), error) {
			divisors, free, err := compute.Shared(res, r.Divisors)
			if err != nil || r.Floor == 0 {
				return func(w compute.Changer, p compute.Part) { w.DividePlanes(p, divisors) }, free, err
			}
			limits, freeLimits, err := compute.Shared(res, r.limits())
			return func(w compute.Changer, p compute.Part) {
				if n := max(o.Below-p.Start[0], 0); n < p.Shape[0] {
					w.ScalePlanes(p.Planes(n, p.Shape[0]), limits, 1)
				}
				w.DividePlanes(p, divisors)
			}, func() { freeLimits(); free() }, err
		},
	}
	image, err := s.Run(ctx, v, out, layout, res)
	return image, r, err
}

// sumBytes is the size of a [filter.ExactSum].
const sumBytes = 257 * 8

// measure finds the agarose and its profile.
func measure(ctx context.Context, v *blocks.Volume, o Options, res oct.Resources) (*Result, error) {
	clip, err := ceiling(ctx, v, o.PercentileMax, res)
	if err != nil {
		return nil, err
	}
	means, err := agarose.Means(ctx, v, clip, res, nil)
	if err != nil {
		return nil, err
	}
	r := &Result{Agarose: agarose.Find(means, v.Shape[1], v.Shape[2], 0), PSF: make([]float64, v.Shape[0]), Divisors: make([]float64, v.Shape[0])}
	for z := range r.Divisors {
		r.Divisors[z] = 1
	}
	sums, err := r.sum(ctx, v, float32(clip), res)
	if err != nil {
		return nil, err
	}
	if !r.conclude(sums, o) {
		res.Warnf("%s: no agarose with a signal found: nothing is corrected", v.Where)
	} else if o.Subtract && !r.subtract(o.Below) {
		res.Warnf("%s: no dark water above the surface: no background is subtracted", v.Where)
	}
	return r, nil
}

// sum returns the sum of the agarose of each plane, voxels above clip counted as clip.
func (r *Result) sum(ctx context.Context, v *blocks.Volume, clip float32, res oct.Resources) ([]filter.ExactSum, error) {
	all := make([]filter.ExactSum, v.Shape[0])
	if held := v.Held(); held != nil {
		runs, area := r.Agarose.Runs(), v.Shape[1]*v.Shape[2]
		bufs := make([][]float32, max(1, res.Workers))
		return all, work.Each(ctx, res.Workers, len(all), func(worker, z int) error {
			bufs[worker] = agarose.Parts(bufs[worker], held[z*area:][:area], runs, func(some []float32) { all[z].AddAll(some, clip) })
			res.Done(int64(area) * int64(v.DType.Size()))
			return nil
		})
	}
	sums := make([][]filter.ExactSum, max(1, res.Workers))
	c, err := v.Cut(blocks.Plan{Size: v.Chunk, PerVoxel: 4, Shrink: true, Work: "averaging planes"}, res)
	if err != nil {
		return nil, err
	}
	selected := make([][]float32, len(sums))
	err = c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		if sums[b.Worker] == nil {
			sums[b.Worker] = make([]filter.ExactSum, v.Shape[0])
		}
		for z := range b.Size[0] {
			s := r.Agarose.Select(selected[b.Worker][:0], v, b, z)
			sums[b.Worker][b.Origin()[0]+z].AddAll(s, clip)
			selected[b.Worker] = s
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, of := range sums {
		for z := range of {
			all[z].Merge(&of[z])
		}
	}
	return all, nil
}

// The faintest plane shows water if it lies above the brightest and has at most this share of its signal.
const mostWater = 0.5

// leastSignal is the smallest divisor below the surface, of deep planes that show next to nothing.
const leastSignal = 0.05

// subtract finds the floor and the divisors without it; ok is false if there is no water. Planes are divided as the
// surface is, from where the signal is half of its largest, up to the first.
func (r *Result) subtract(from int) (ok bool) {
	water := from
	for z := from; z < len(r.Profile); z++ {
		if r.Profile[z] < r.Profile[water] {
			water = z
		}
	}
	top := r.Profile[r.Peak]
	if water >= r.Peak || r.Profile[water] > mostWater*top {
		return false
	}
	r.Floor = float64(float32(r.Profile[water]))
	surface := water
	for r.Profile[surface]-r.Floor < (top-r.Floor)/2 {
		surface++
	}
	for z := from; z < len(r.Profile); z++ {
		r.Divisors[z] = max((r.Profile[max(z, surface)]-r.Floor)/(top-r.Floor), leastSignal)
	}
	return true
}

// limits returns the floor and a ceiling that is none for each plane.
func (r *Result) limits() (all []float32) {
	for range r.Divisors {
		all = append(all, float32(r.Floor), float32(math.Inf(1)))
	}
	return all
}

// ceiling returns the percentile of all finite voxels, rounded to float32, or +Inf if nothing is clipped.
func ceiling(ctx context.Context, v *blocks.Volume, percent float64, res oct.Resources) (float64, error) {
	if percent >= 100 {
		return math.Inf(1), nil
	}
	if clip, ok, err := heldCeiling(ctx, v, percent, res); ok || err != nil {
		return clip, err
	}
	q := filter.NewQuantiles(percent)
	c, err := v.Cut(blocks.Plan{Size: v.Chunk, Shrink: true, Work: "counting blocks"}, res)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	found := false
	for pass := range 2 {
		if pass > 0 {
			q.Refine()
		}
		err := c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
			n := 0
			for _, f := range b.Voxels {
				if f-f == 0 {
					b.Voxels[n] = f
					n++
				}
			}
			q.Add(b.Voxels[:n])
			mu.Lock()
			found = found || n > 0
			mu.Unlock()
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if !found {
		return math.Inf(1), nil
	}
	return float64(float32(q.Value(0))) + 0, nil
}

const (
	heldPart   = 1 << 16 // voxels that are looked at at a time
	heldSample = 1 << 16 // voxels that say where the percentile lies
	heldMost   = 16      // part of the voxels that may be kept
)

// heldCeiling is ceiling of a volume in memory, which it looks through once. ok is false where that is not possible.
func heldCeiling(ctx context.Context, v *blocks.Volume, percent float64, res oct.Resources) (clip float64, ok bool, err error) {
	all := v.Held()
	if all == nil {
		return 0, false, nil
	}
	w := filter.NewRankWindow(filter.Every(nil, all, heldSample), percent)
	workers := make([]*filter.RankWindow, max(1, res.Workers))
	for i := range workers {
		workers[i] = w.Fresh(nil)
	}
	err = work.Each(ctx, res.Workers, (len(all)+heldPart-1)/heldPart, func(worker, i int) error {
		if mine := workers[worker]; mine.Kept() <= max(heldPart, len(all)/heldMost/len(workers)) {
			mine.Add(all[i*heldPart : min((i+1)*heldPart, len(all))])
		} else {
			mine.Spoil()
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	for _, of := range workers {
		w.Merge(of)
	}
	lo, hi, t, ok := w.Around()
	if !ok {
		return 0, false, nil
	}
	res.Done(2 * v.Bytes()) // as many as it takes elsewhere
	if w.Count() == 0 {
		return math.Inf(1), true, nil
	}
	return float64(float32(filter.Interpolate(lo, hi, t))), true, nil
}

// conclude computes the profile of the planes from o.Below on. It returns false if there is none.
func (r *Result) conclude(sums []filter.ExactSum, o Options) bool {
	profile := make([]float64, len(sums))
	least, background := math.Inf(1), math.Inf(1)
	for z := range sums {
		profile[z] = sums[z].Mean()
		if z >= o.Below && profile[z] > 0 {
			least = min(least, profile[z])
		}
	}
	if math.IsInf(least, 1) {
		return false
	}
	for z, p := range profile {
		if !(p > least) {
			profile[z] = least
		}
		if z >= o.Below {
			background = min(background, profile[z])
		}
	}
	r.Profile, r.Peak = profile, o.Below
	for z := o.Below; z < len(profile); z++ {
		r.PSF[z] = (profile[z] - background) / background
		if r.PSF[z] > r.PSF[r.Peak] {
			r.Peak = z
		}
	}
	if o.FitGaussian {
		r.fit(o.Below)
	}
	for z, f := range r.PSF {
		r.Divisors[z] = 1 + f
	}
	return true
}

// fit replaces the PSF by a Gaussian with its peak and its width on the far side, unless it does not fall to half of
// the peak there.
func (r *Result) fit(from int) {
	m, right := r.Peak, r.Peak
	top := r.PSF[m]
	for right < len(r.PSF) && !(r.PSF[right] < top/2) {
		right++
	}
	if right == m || right == len(r.PSF) {
		return
	}
	sigma := float64(right-m) / math.Sqrt(2*math.Ln2)
	for z := from; z < len(r.PSF); z++ {
		d := float64(z-m) / sigma
		r.PSF[z] = top * filter.Exp(-d*d/2)
	}
}

// quality is a judgement of the profile.
func (r *Result) quality() string {
	switch {
	case r.PSF[r.Peak] < metrics.Limits["psf_max"].Error:
		return "poor"
	case r.Peak < 5 || float64(r.Peak) > 0.8*float64(len(r.PSF)):
		return "warning"
	}
	return "good"
}

// Step returns the metrics of a run with input and output of the given names.
func (r *Result) Step(in, out string, o Options) *metrics.Step {
	s := metrics.New("psf_compensation")
	s.Note("input_volume", in, "path of the input")
	s.Note("output_volume", out, "path of the output")
	s.Note("fit_gaussian", o.FitGaussian, "the profile is a Gaussian")
	top, coverage := metrics.Limits["psf_max"], metrics.Limits["agarose_coverage"]
	s.Judge("psf_max", r.PSF[r.Peak], "", "largest value of the profile above its smallest, relative to that", &top)
	s.Mark("psf_peak_depth", r.Peak, "voxels", "plane of the largest value", metrics.OK)
	s.Judge("agarose_coverage", r.Agarose.Coverage(), "", "share of A-lines in agarose", &coverage)
	s.Mark("profile_quality", r.quality(), "", "poor: hardly any profile; warning: the peak lies near the first or the last plane", metrics.OK)
	s.Note("background", r.Floor, "signal of water, which was subtracted")
	s.Note("profile", r.Profile, "mean of the agarose in each plane")
	return s
}
