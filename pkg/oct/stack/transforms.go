package stack

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/registration"
)

// loadTransforms reads the registrations of all pairs and decides which to use.
func (p *stackPlan) loadTransforms(ctx context.Context, in Input, res *oct.Resources) error {
	var none []int
	for _, m := range p.moving {
		id := m.slice.id
		read := func(f *registration.Folder) (*registration.Pair, error) {
			if f == nil {
				return nil, nil
			}
			pair, warnings, err := f.Pair(ctx, id)
			for _, w := range warnings {
				res.Warnf("%s", w)
			}
			if err != nil {
				return nil, oct.InputFault(err)
			}
			return pair, nil
		}
		auto, err := read(in.Transforms)
		if err != nil {
			return err
		}
		if m.apart { // it lays the slice on one that is left out
			auto = nil
		}
		manual, err := read(in.Manual)
		if err != nil {
			return err
		}
		if auto == nil && in.Transforms != nil && !m.apart {
			none = append(none, id)
		}
		c, known := in.Config[id]
		m.transform = p.opt.transform(auto, manual, known && c.Skip())
	}
	if len(none) > 0 {
		res.Warnf("no transform for slices %v: placed by the motor shifts alone", none)
	}
	return nil
}

// transform combines the automatic and the manual registration of a slice; nil means that there is none.
func (o *Options) transform(auto, manual *registration.Pair, skip bool) (t pairTransform) {
	if auto != nil && auto.Transform == nil && auto.Metrics == nil {
		auto = nil
	}
	if auto != nil {
		t.entry = auto.Transform != nil
		t.confidence, t.trusted = auto.Confidence(), 1
		if m := auto.Metrics; m != nil && !skip {
			t.moves, t.tx, t.ty, t.zcorr, t.from = true, m.TX, m.TY, m.ZCorrelation, auto.Folder
		}
		if t.loaded = auto.Transform != nil && !skip && o.admits(auto.Metrics); t.loaded {
			t.rigid, t.elastic, t.offsets, t.trusted, t.file = *auto.Transform, auto.Elastic, auto.Offsets, t.confidence, auto.File
			t.agreement = auto.Agreement()
		}
	}
	if manual != nil && manual.Transform != nil {
		t.entry, t.loaded, t.manual = true, true, true
		t.rigid, t.elastic, t.confidence, t.trusted = *manual.Transform, manual.Elastic, manual.Confidence(), manual.Confidence()
		if manual.Offsets != nil {
			t.offsets = manual.Offsets
		}
		t.file, t.from, t.agreement = manual.File, manual.Folder, manual.Agreement()
		t.moves, t.tx, t.ty, t.zcorr = true, t.rigid.TX, t.rigid.TY, 1
		if m := manual.Metrics; m != nil {
			t.tx, t.ty, t.zcorr = m.TX, m.TY, m.ZCorrelation
		}
	}
	return t
}

// admits reports whether a transform passes the quality limits, judged by the registration's own metrics.
func (o *Options) admits(m *registration.Metrics) bool {
	switch {
	case m == nil:
		return true
	case o.LoadMinZCorr > 0 && o.LoadMaxRotation > 0:
		return m.ZCorrelation >= o.LoadMinZCorr && math.Abs(m.Rotation) <= o.LoadMaxRotation
	}
	return !(m.Status == "error" && o.SkipErrorTransforms || m.Status == "warning" && o.SkipWarningTransforms)
}

// counted returns the translation that is counted in the sums.
func (t *pairTransform) counted(o *Options) (tx, ty float64) {
	if tx, ty = t.tx, t.ty; !t.moves || o.TranslationMinZCorr > 0 && t.zcorr < o.TranslationMinZCorr ||
		o.MaxPairwiseTranslation > 0 && math.Hypot(tx, ty) >= 0.95*o.MaxPairwiseTranslation {
		return 0, 0
	}
	if o.ConfidenceWeightTranslations {
		tx, ty = tx*t.trusted, ty*t.trusted
	}
	return tx, ty
}

// accumulate returns the running sums of the pairs' translations (x, y), to be subtracted from the positions of
// the moving slices.
func (p *stackPlan) accumulate() [][2]float64 {
	o := &p.opt
	var sum [2]float64
	acc := make([][2]float64, len(p.moving))
	for i, m := range p.moving {
		tx, ty := m.transform.counted(o)
		sum = [2]float64{sum[0] + tx, sum[1] + ty}
		acc[i] = sum
	}
	if o.TranslationSmoothSigma > 0 && len(acc) >= 3 {
		kernel := filter.GaussianKernel(o.TranslationSmoothSigma, 0)
		raw := slices.Clone(acc)
		for i := range acc {
			acc[i] = [2]float64{}
			for j, w := range kernel {
				v := raw[filter.Reflect.Index(i+j-len(kernel)/2, len(raw))]
				for d := range 2 {
					acc[i][d] += float64(w * v[d])
				}
			}
		}
	}
	if limit := o.MaxCumulativeDriftPx; limit > 0 {
		for i, v := range acc {
			if r := math.Hypot(v[0], v[1]); r > limit {
				acc[i] = [2]float64{v[0] * (limit / r), v[1] * (limit / r)}
			}
		}
	}
	return acc
}

// Smallest rotation and translation worth resampling.
const (
	smallRotation    = 0.00175 // radians
	smallTranslation = 1       // pixels
)

// rotate decides how each transform is applied.
func (p *stackPlan) rotate() {
	o := &p.opt
	clamp := func(angle float64) float64 {
		if limit := o.MaxRotationDeg * math.Pi / 180; limit > 0 {
			return min(max(angle, -limit), limit)
		}
		return angle
	}
	var loaded []*movingSlice
	var raw []float64
	for _, m := range p.moving {
		if m.transform.loaded {
			loaded = append(loaded, m)
			raw = append(raw, clamp(m.transform.rigid.Angle))
		}
	}
	angles := filter.MovingAverage(raw, o.SmoothWindow)
	for _, m := range p.moving {
		m.action = "none"
	}
	for i, m := range loaded {
		t := m.transform
		if t.confidence < o.ConfidenceLow {
			m.action = "skip"
			continue
		}
		m.rigid = t.rigid
		m.rigid.Angle = angles[i]
		rotationOnly := t.confidence < o.ConfidenceHigh || o.RotationOnly || o.AccumulateTranslations
		if rotationOnly {
			m.rigid.TX, m.rigid.TY = 0, 0
		}
		switch {
		case math.Abs(m.rigid.Angle) < smallRotation && math.Abs(m.rigid.TX) < smallTranslation && math.Abs(m.rigid.TY) < smallTranslation:
			m.action = "identity"
		case rotationOnly:
			m.action = "rotation"
		default:
			m.action = "full"
		}
	}
}

// compose decides how each slice is resampled in the volume. A transform lays a slice on the preceding slice as imaged.
// In a common frame the transform of the preceding slice moves that one too, and so on up to the first, so that all
// these transforms together move the slice.
func (p *stackPlan) compose() {
	together := p.opt.ComposeTransforms && p.opt.NoXYShift && !p.opt.AccumulateTranslations
	var sum filter.Rigid
	for _, m := range p.moving {
		m.laid, m.resampled = m.rigid, m.turned()
		if together {
			sum = sum.Followed(m.rigid)
			m.laid, m.resampled = sum, sum.Angle != 0 || sum.TX != 0 || sum.TY != 0
		}
	}
}
