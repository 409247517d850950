package commonspace

import "strata/pkg/metrics"

// MetricsFile is the name of the metrics in the folder of the slices.
const MetricsFile = "common_space_alignment_metrics.json"

// Metrics returns the metrics of the step; dir is the folder of the slices.
func (p *Plan) Metrics(dir string) *metrics.Step {
	m := metrics.New("common_space_alignment")
	used, sum, most := 0, 0.0, 0.0
	for _, r := range p.Refined {
		if r.Used {
			used++
		}
		sum, most = sum+r.Discrepancy, max(most, r.Discrepancy)
	}
	m.Note("output_dir", dir, "Folder of the aligned slices")
	m.Note("n_selected_slices", len(p.slices), "Slices that were aligned")
	m.Note("n_excluded_slices", p.Excluded, "Slices excluded by the slice configuration")
	m.Note("n_unreliable", p.Unreliable, "Shifts marked as unreliable")
	m.Note("n_refined_image_based", used, "Unreliable shifts replaced by those that pictures show")
	m.Note("n_refined_rejected", len(p.Refined)-used, "Shifts of pictures that were not used")
	if n := len(p.Refined); n > 0 {
		m.Judge("mean_refine_discrepancy_px", sum/float64(n), "px", "Mean distance between recorded shifts and those of pictures", nil)
		m.Note("max_refine_discrepancy_px", most, "Largest distance between recorded shifts and those of pictures (px)")
	}
	return m
}
