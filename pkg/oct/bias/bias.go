// Package bias removes the smooth multiplicative field of a stacked volume. It is the pipeline's bias-field stage;
// [Run] does all of it.
package bias

import (
	"context"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Mode selects the voxels to which a field is fitted.
type Mode string

// Modes.
const (
	PerSection Mode = "per_section" // each section by itself
	Global     Mode = "global"      // the whole volume
	TwoPass    Mode = "two_pass"    // each section, then the whole volume
)

// Modes lists the modes.
var Modes = []string{string(PerSection), string(Global), string(TwoPass)}

// mostSamples is the maximum number of voxels to which fields are fitted if Options do not set Shrink. Fields vary over
// millimetres, and the fit keeps all of its voxels in memory. The number depends on the volume only, so that memory
// does not change the result.
const mostSamples = 12e6

// Options are the parameters of [Run].
type Options struct {
	Mode       Mode
	Strength   float64 // of the correction, 0 to 1
	Sections   int     // of equal depth that the volume consists of
	Shrink     int     // every n-th voxel along each axis is used to fit; 0: 4, or more in a volume of more than mostSamples·4³ voxels
	Iterations []int   // maximum number of rounds of each level
	// SplineMM is the distance of the field's control points at the first level in mm; 0: 2 for sections, 10 for the
	// volume.
	SplineMM  float64
	MaskSigma float64 // of the Gaussian along y and x before Otsu's threshold, in voxels

	Match        bool // the histograms of sections to that of the volume
	MatchPlanes  bool // of planes, in place of sections
	Bins         int
	Threshold    float64 // values above it are tissue for histograms and the profile along z
	ProfileSigma float64 // planes; 0: the profile is not smoothed
	ZeroOutside  bool    // set what lies outside the mask to 0
	oct.Analysis         // the pyramid
	SavedField   store.Writer
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{Mode: TwoPass, Strength: 1, Sections: 1, Iterations: []int{50, 50, 50, 50}, MaskSigma: 2, Match: true, Bins: 512,
		ZeroOutside: true, Analysis: oct.DefaultAnalysis()}
}

// Result is the output of [Run].
type Result struct {
	Image *ngff.Image
	Field *ngff.Image // the saved field; nil: none

	Coverage               float64 // share of voxels in the mask
	CVBefore, CVAfter      float64 // coefficient of variation in the mask
	SmallestGain, MostGain float64 // factors by which the field corrects voxels of the mask
	Control                [3]int  // control points of the volume's field at its last level; 0: it has none
}

// Metrics returns the metrics of the step.
func (r *Result) Metrics(in, out string, o Options) *metrics.Step {
	s := metrics.New("correct_bias_field")
	s.Note("input_volume", in, "input volume")
	s.Note("output_volume", out, "output volume")
	s.Note("mode", string(o.Mode), "what a field was fitted to")
	s.Note("strength", o.Strength, "strength of the correction")
	s.Note("n_serial_slices", o.Sections, "number of sections")
	s.Note("mask_coverage", r.Coverage, "share of the volume that is tissue")
	s.Note("min_gain", r.SmallestGain, "smallest factor of the field's correction in tissue")
	s.Note("max_gain", r.MostGain, "largest factor of the field's correction in tissue")
	s.Judge("cv_before", r.CVBefore, "", "coefficient of variation in tissue before the correction", nil)
	s.Judge("cv_after", r.CVAfter, "", "coefficient of variation in tissue after the correction", nil)
	return s
}

// plan holds the state of a run.
type plan struct {
	*blocks.Volume
	opt      Options
	granted  oct.Resources
	res      oct.Resources // what is left of it
	area     int
	sections [][2]int // first plane, and the one after the last
	workers  int      // that compute on planes
	layer    int      // planes that are read at a time before the output

	thresholds []float64 // of each section's smoothed planes
	high       float32   // largest value
	mask       tissueMask
	histograms []profile // by plane
	tables     tables
	samples    samples
	fields     fields
}

// Run corrects a volume and writes it with its pyramid. It reads the volume three times, in whole planes: for the
// thresholds of the mask, for the mask with histograms and the voxels that fields are fitted to, and for the output. A
// volume that fits into half of the memory is read once.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, opt Options, layout oct.Layout, res oct.Resources) (*Result, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, err
	}
	p := &plan{Volume: v, opt: opt, granted: res, res: res, area: v.Shape[1] * v.Shape[2]}
	if err := p.check(); err != nil {
		return nil, err
	}
	w, err := p.create(ctx, out, layout)
	if err != nil {
		return nil, err
	}
	defer w.abort()
	if err := p.planMemory(w); err != nil {
		return nil, err
	}
	h, err := v.Reserve(p.res)
	if err != nil {
		return nil, err
	}
	defer h.Release()
	if err := h.Load(ctx); err != nil {
		return nil, err
	}
	p.Volume, p.res = h.Volume, h.Left
	if err := p.survey(ctx); err != nil {
		return nil, err
	}
	if err := p.fit(ctx); err != nil {
		return nil, err
	}
	result, err := p.write(ctx, w)
	if err != nil {
		return nil, err
	}
	if result.Image, err = ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter)); err == nil && opt.SavedField != nil {
		result.Field, err = ngff.Open(ctx, opt.SavedField, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	}
	return result, err
}

// check refuses options that the volume cannot have, and divides it into sections.
func (p *plan) check() error {
	o := &p.opt
	if float64(p.Shape[1])*float64(p.Shape[2]) > math.MaxInt32 {
		return oct.BadInput("%s: planes of %d × %d voxels: want at most %d voxels in a plane", p.Where, p.Shape[1], p.Shape[2], math.MaxInt32)
	}
	if o.Sections < 1 || o.Sections > p.Shape[0] {
		return oct.LayoutErrorf("--n_serial_slices %d: %s has %d planes", o.Sections, p.Where, p.Shape[0])
	}
	if o.Shrink == 0 {
		o.Shrink = 4
		for voxels := float64(p.Shape[0]) * float64(p.area); voxels/float64(o.Shrink*o.Shrink*o.Shrink) > mostSamples; {
			o.Shrink++
		}
	}
	if o.Shrink < 1 || len(o.Iterations) < 1 || len(o.Iterations) > mostLevels || o.Bins < 2 || o.Bins > mostBins || !(o.Strength >= 0 && o.Strength <= 1) {
		return oct.LayoutErrorf("shrink factor %d, %d levels, %d bins, strength %v: want at least 1, 1 to %d, 2 to %d, and 0 to 1",
			o.Shrink, len(o.Iterations), o.Bins, o.Strength, mostLevels, mostBins)
	}
	if !(o.MaskSigma >= 0 && o.MaskSigma <= 1000) || !(o.ProfileSigma >= 0 && o.ProfileSigma <= 1000) {
		return oct.LayoutErrorf("Gaussians of %v voxels and %v planes: want 0 to 1000", o.MaskSigma, o.ProfileSigma)
	}
	for i := range o.Sections {
		at := func(k int) int { return int(math.RoundToEven(float64(k) * float64(p.Shape[0]) / float64(o.Sections))) }
		p.sections = append(p.sections, [2]int{at(i), at(i + 1)})
	}
	p.sections = slices.DeleteFunc(p.sections, func(s [2]int) bool { return s[0] == s[1] })
	return nil
}

const (
	mostLevels = 12
	mostBins   = 1 << 16
)

// spec returns the specification of an output.
func (p *plan) spec(name string) ngff.ImageSpec {
	s := p.Spec(dtype.Float32)
	s.Name = name
	s.Chunks = slices.Clone(s.Chunks)
	s.Chunks[0] = min(s.Chunks[0], oct.AnalysisChunk[0])
	return s
}
