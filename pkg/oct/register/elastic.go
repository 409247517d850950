package register

import (
	"context"
	"fmt"
	"time"

	"strata/pkg/filter/pairwise"
	"strata/pkg/meter"
	"strata/pkg/metrics"
)

// mostControl is the number of control points along an axis, at most, and closest their least distance in pixels of
// planes.
const (
	mostControl = 100
	closest     = 8
)

// deform finds the displacements that are left under the transform. Slices that were made from others have none of
// their own.
func (p *pairPlan) deform(ctx context.Context) error {
	if !p.o.Elastic || p.found.Refused != "" || p.fixed.interpolated() || p.moving.interpolated() {
		return nil
	}
	fixed, err := p.plane(ctx, p.best)
	if err != nil {
		return err
	}
	start := time.Now()
	defer func() { p.res.Meter.Since(meter.Compute, start) }()
	k := float64(p.shrink)
	spacing := max(p.o.ElasticSpacingUM/p.m.Voxel[2]/k, float64(max(fixed.ny, fixed.nx))/(mostControl-3), closest)
	p.planes = map[int]*plane{p.best: fixed}
	found, err := pairwise.Elastic(p.image(fixed), p.image(p.target), p.found.Transform, pairwise.ElasticOptions{
		Spacing: spacing, Largest: p.o.ElasticMaxPx / k, Each: p.options(ctx, false).Each,
	})
	if err != nil {
		return err
	}
	p.deformed = &found
	return nil
}

// elastic adds the result of searching for displacements.
func (p *pairPlan) elastic(r *Result) {
	if p.deformed == nil {
		return
	}
	d, k := *p.deformed, float64(p.shrink)
	if d.Displacement *= k; d.Warp != nil {
		d.Warp = d.Warp.Enlarged([2]float64{k, k})
		r.Elastic = d.Warp
	} else {
		r.Warnings = append(r.Warnings, "no displacements are written: "+d.Refused)
	}
	r.Deformed = &d
}

// deformation adds the metrics of the displacements.
func (r *Result) deformation(s *metrics.Step) {
	if !r.Options.Elastic {
		return
	}
	s.Note("elastic_spacing_um", r.Options.ElasticSpacingUM, "Parameter: elastic_spacing_um")
	s.Note("elastic_max_px", r.Options.ElasticMaxPx, "Parameter: elastic_max_px")
	s.Note("elastic_applied", r.Elastic != nil, "Whether displacements were found besides the transform")
	d := r.Deformed
	if d == nil {
		return
	}
	s.Note("elastic_displacement", d.Displacement, "Largest displacement that was found, in pixels")
	s.Note("elastic_correlation_before", d.Before, "Correlation of the planes' detail under the transform alone (-1 to 1)")
	s.Note("elastic_correlation", d.After, "Correlation of the planes' detail with displacements (-1 to 1)")
	s.Note("elastic_held_out_before", d.HeldOutBefore, "The same under the transform alone, in pixels to which displacements were not fitted")
	s.Note("elastic_held_out", d.HeldOutAfter, "The same with displacements, in pixels to which they were not fitted")
}

// ElasticSummary describes the result of searching for displacements in a few words, or returns "" if none were
// searched for.
func (r *Result) ElasticSummary() string {
	switch {
	case r.Deformed == nil:
		return ""
	case r.Elastic == nil:
		return ", no displacements"
	}
	return fmt.Sprintf(", displaced by up to %.2f px", r.Deformed.Displacement)
}
