package interpolate

import (
	"encoding/json"
	"math"
)

// Paths are the names that diagnostics give.
type Paths struct {
	SliceID               string
	Before, After, Output string // Output is not named if the gap stays
}

// diagnosis is the form of the diagnostics.
type diagnosis struct {
	Method   Method  `json:"method"`
	Used     *Method `json:"method_used"`
	Fallback *string `json:"fallback_reason"`
	*morphology
	*choice
	SliceID *string `json:"slice_id"`
	Before  string  `json:"slice_before_path"`
	After   string  `json:"slice_after_path"`
	Output  *string `json:"output_path"`
	Failed  bool    `json:"interpolation_failed"`
}

// morphology holds the fields that only ZMorph writes.
type morphology struct {
	Planes         int      `json:"nz_out"`
	SearchWindow   int      `json:"overlap_search_window"`
	SlabSize       int      `json:"reference_slab_size"`
	MinForeground  float64  `json:"min_foreground_fraction"`
	MinCorrelation float64  `json:"min_overlap_correlation"`
	MinImprovement float64  `json:"min_ncc_improvement"`
	Blend          Blend    `json:"blend_method"`
	Metric         string   `json:"registration_metric"`
	MaxIterations  int      `json:"max_iterations"`
	RefBefore      *int     `json:"ref_before"`
	RefAfter       *int     `json:"ref_after"`
	PlaneNCC       *float64 `json:"pre_reg_ncc"`
	IdentityNCC    *float64 `json:"identity_ncc"`
	RegisteredNCC  *float64 `json:"post_reg_ncc"`
	Improvement    *float64 `json:"ncc_improvement"`
	Registered     bool     `json:"registration_used"`
	*mapping
}

// mapping describes the affine map that was found, whether it was used or refused.
type mapping struct {
	Matrix      [2][2]float64 `json:"affine_matrix"`
	Translation [2]float64    `json:"affine_translation"`
	Centre      [2]float64    `json:"affine_center"`
	Determinant float64       `json:"affine_determinant"`
}

// choice describes the quality of a map that was used.
type choice struct {
	Imaginary float64 `json:"fractional_power_max_imag"`
	Top       float64 `json:"top_boundary_residual_mean"`
	Bottom    float64 `json:"bottom_boundary_residual_mean"`
}

// Diagnostics returns the decisions and their reasons as JSON.
func (p *Plan) Diagnostics(n Paths) ([]byte, error) {
	d := diagnosis{Method: p.Method, Before: n.Before, After: n.After, Failed: p.Skipped != ""}
	if n.SliceID != "" {
		d.SliceID = &n.SliceID
	}
	if d.Failed {
		d.Fallback = &p.Skipped
	} else {
		d.Used, d.Output = &p.Method, &n.Output
	}
	if f := p.Found; f != nil {
		d.morphology = &morphology{Planes: p.Shape[0], SearchWindow: p.SearchWindow, SlabSize: p.SlabSize, MinForeground: p.MinForeground,
			MinCorrelation: p.MinCorrelation, MinImprovement: p.MinNCCImprovement, Blend: p.Blend, Metric: string(p.Metric), MaxIterations: p.MaxIterations,
			PlaneNCC: known(f.PlaneNCC), IdentityNCC: known(f.IdentityNCC), RegisteredNCC: known(f.RegisteredNCC),
			Improvement: known(f.RegisteredNCC - f.IdentityNCC), Registered: f.Registered}
		if f.RefBefore >= 0 {
			d.RefBefore, d.RefAfter = &f.RefBefore, &f.RefAfter
		}
		if a := f.Map; a != nil {
			d.mapping = &mapping{a.M, a.T, a.C, a.Determinant()}
			if !d.Failed {
				d.choice = &choice{f.Imaginary, f.Residual[0], f.Residual[1]}
			}
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// known returns nil for NaN and infinity, which JSON cannot express.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
