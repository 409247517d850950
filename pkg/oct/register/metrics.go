package register

import (
	"fmt"
	"io"
	"math"

	"strata/pkg/metrics"
	"strata/pkg/registration"
)

// MetricsName is the name of the file of metrics that stack and the reports read.
const MetricsName = registration.MetricsName

// Metrics returns the metrics of the pair in the form of linumpy's.
func (r *Result) Metrics() *metrics.Step {
	s := r.parameters()
	correlation, confidence := metrics.Limits["correlation"], metrics.Limits["registration_confidence"]
	const zText = "Z-matching cross-correlation score (0-1; higher = more reliable)"
	if r.Refused == "" && r.Options.ZSearch == ZAligned && r.ZCorrelation < correlation.Error {
		// planes that were registered in spite of it had only been apart
		s.Mark("z_correlation", r.ZCorrelation, "", zText, metrics.Warning)
		s.Warnings = append(s.Warnings, fmt.Sprintf("z_correlation: %.3g before the planes are laid on each other", r.ZCorrelation))
	} else {
		s.Judge("z_correlation", r.ZCorrelation, "", zText, &correlation)
	}
	s.Note("z_deviation", r.Drift, "Parameter: z_deviation")
	s.Note("fixed_is_interpolated", r.Fixed.interpolated(), "Parameter: fixed_is_interpolated")
	s.Note("moving_is_interpolated", r.Moving.interpolated(), "Parameter: moving_is_interpolated")
	r.transform(s)
	r.deformation(s)
	s.Mark("z_drift", r.Drift, "voxels", "Deviation from expected z-index", metrics.OK)
	s.Note("correlation_before", r.Before, "Correlation of the planes before registration (-1 to 1)")
	s.Note("registration_correlation", r.After, "Correlation of the planes under the transform that was found (-1 to 1)")
	s.Note("registration_peak", r.Peak, "Phase correlation at the transform that was found, in standard deviations of that at other displacements (chance reaches 5)")
	s.Note("overlap", r.Overlap, "Share of the smaller plane that overlaps")
	if r.Fixed.interpolated() || r.Moving.interpolated() {
		s.Mark("registration_confidence", 0.0, "", confidenceText, metrics.Error)
		s.Errors = append(s.Errors, "One or both inputs are an interpolated slice; transform is synthetic.")
	} else {
		s.Judge("registration_confidence", r.Confidence, "", confidenceText, &confidence)
	}
	s.Warnings = append(s.Warnings, r.Warnings...)
	return s
}

const confidenceText = "Overall transform reliability score (0=unreliable, 1=reliable)"

// parameters returns the metrics that say what was asked for.
func (r *Result) parameters() *metrics.Step {
	s := metrics.New("pairwise_registration")
	s.Note("fixed_volume", r.Fixed.Path, "Path to fixed volume")
	s.Note("moving_volume", r.Moving.Path, "Path to moving volume")
	s.Note("best_z_offset", r.Offsets.FixedZ, "Best matching z-index in fixed volume")
	o := r.Options
	s.Note("slicing_interval_mm", o.SlicingIntervalMM, "Parameter: slicing_interval_mm")
	s.Note("slices_apart", o.apart(r.Fixed, r.Moving), "Cuts between the two slices")
	s.Note("search_range_mm", o.SearchRangeMM, "Parameter: search_range_mm")
	s.Note("enable_rotation", o.Rotation, "Parameter: enable_rotation")
	s.Note("max_rotation_deg", o.MaxRotationDeg, "Parameter: max_rotation_deg")
	s.Note("max_translation_px", o.MaxTranslationPx, "Parameter: max_translation_px")
	return s
}

// transform adds the metrics of the transform.
func (r *Result) transform(s *metrics.Step) {
	// The limits of the reference's registration_error, 0.05 and 0.15, would refuse every pair with speckle; whether
	// the planes are registered is judged by their peak.
	status := metrics.OK
	if r.Refused != "" {
		status = metrics.Error
		s.Errors = append(s.Errors, "not registered: "+r.Refused)
	}
	s.Mark("registration_error", max(0, 1-float64(r.After*r.After)), "", "Registration error (lower is better)", status)
	s.Judge("translation_x", r.Transform.TX, "pixels", "Translation in X direction", nil)
	s.Judge("translation_y", r.Transform.TY, "pixels", "Translation in Y direction", nil)
	magnitude := metrics.Limits["translation_magnitude"]
	s.Judge("translation_magnitude", r.shift(), "pixels", "Total translation magnitude", &magnitude)
	turned := metrics.OK // no error: a rotation that is wrong is refused
	if limit := metrics.Limits["rotation"].Warning; r.Degrees() > limit {
		turned = metrics.Warning
		s.Warnings = append(s.Warnings, fmt.Sprintf("rotation: %.3g is more than %g degrees", degrees(r.Transform.Angle), limit))
	}
	s.Mark("rotation", degrees(r.Transform.Angle), "degrees", "Rotation angle", turned)
}

// failed returns the result of a pair that could not be read: the identity with confidence 0 and without offsets, which
// adds nothing to a stack.
func failed(fixed, moving Slice, o Options, reason error) *Result {
	none := math.NaN()
	return &Result{Fixed: fixed, Moving: moving, Options: o, Unread: true, Refused: reason.Error(), ZCorrelation: none, Before: none, After: none, Overlap: none, Peak: none}
}

// Files returns the files of the pair's folder in the order in which they should appear there: the transform, the
// displacements if there are any, the offsets, unless the pair could not be read, then others, and the metrics.
func (r *Result) Files(transform, offsets string, others ...File) ([]File, error) {
	files := []File{{Name: transform, Fill: func(w io.Writer) error { return registration.WriteTransform(w, r.Transform) }}}
	if r.Elastic != nil {
		files = append(files, File{Name: registration.ElasticName, Fill: func(w io.Writer) error { return registration.WriteElastic(w, r.Elastic) }})
	}
	if !r.Unread {
		files = append(files, File{Name: offsets, Fill: r.Offsets.Write})
	}
	return withMetrics(r.Metrics(), append(files, others...))
}
