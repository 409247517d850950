package sliceconfig

import (
	"cmp"
	"fmt"
	"math"

	"strata/pkg/filter"
	"strata/pkg/metrics"
	"strata/pkg/registration"
)

// DecideOptions are the options of [Decide].
type DecideOptions struct {
	MinQuality       float64 // exclude slices of a lower quality; 0: none
	ExcludeFirst     int     // number of slices at the beginning that are not used
	CalibrationRatio float64 // exclude the first slices that are this many times as deep as the median; 0: none
	Faults           []Fault
	KeepFaulty       bool // faults exclude no slice
}

// Reasons for an exclusion.
const (
	lowQuality = "low_quality"
	noData     = "no_data" // where no quality is asked for
	firstSlice = "first_slice_excluded"
	previously = "previously_excluded"
)

// calibrationSlices is the number of slices at the beginning among which calibration slices are looked for.
const calibrationSlices = 3

// A Verdict says why a slice is not used: "" if it is used.
type Verdict struct {
	Score
	Reason string
	Fault  string // "" if nothing is wrong with the slice
}

// Decide excludes slices in a table: calibration slices, slices with a fault, slices of low quality, the first ones,
// and those that the table excluded already. It writes the quality and the fault of every slice, and keeps what else
// the table says.
func Decide(t *registration.SliceTable, scores []Score, o DecideOptions) []Verdict {
	var depths []float64
	for _, s := range scores {
		depths = append(depths, float64(s.Depth))
	}
	faults := map[int]Fault{}
	for _, f := range o.Faults {
		faults[f.Slice] = f
	}
	var out []Verdict
	for i, s := range scores {
		known := t.Row(s.ID) != nil
		row := t.Add(s.ID)
		fault := faults[s.ID]
		v := Verdict{Score: s, Fault: fault.Name}
		switch {
		case o.CalibrationRatio > 0 && i < calibrationSlices && float64(s.Depth) > float64(o.CalibrationRatio*filter.MedianOf(depths)):
			v.Reason = calibration
		case fault.Name != "" && !fault.Lasting && !o.KeepFaulty:
			v.Reason = fault.Name
		case o.MinQuality > 0 && s.Quality < o.MinQuality && (s.Judged || !s.HasData):
			v.Reason = lowQuality
		case i < o.ExcludeFirst:
			v.Reason = firstSlice
		case !s.HasData:
			v.Reason = noData
		case known && !row.Bool(registration.Use):
			v.Reason = cmp.Or(row.Text(registration.ExcludeReason), row.Text(registration.Notes), previously)
		}
		row.SetBool(registration.Use, v.Reason == "")
		row.Set(registration.ExcludeReason, v.Reason)
		row.Set(registration.Fault, fault.Name)
		row.Set(registration.FaultReason, fault.Text)
		quality := ""
		if s.Judged || !s.HasData {
			quality = fmt.Sprintf("%.3f", s.Quality)
		}
		row.Set(registration.QualityScore, quality)
		out = append(out, v)
	}
	return out
}

// AssessMetrics returns the metrics of the step. output is the path of the table. Slices without data count only as
// slices.
func AssessMetrics(output string, verdicts []Verdict, o DecideOptions) *metrics.Step {
	excluded := []int{}
	below, n := 0, 0
	mean, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range verdicts {
		if v.Reason != "" {
			excluded = append(excluded, v.ID)
		}
		if !v.Judged {
			continue
		}
		n++
		mean += v.Quality
		least, most = min(least, v.Quality), max(most, v.Quality)
		if v.Quality < o.MinQuality {
			below++
		}
	}
	s := metrics.New("slice_quality_assessment")
	s.Note("output_file", output, "Slice configuration with the quality of slices")
	s.Note("min_quality_threshold", o.MinQuality, "Quality below which slices are excluded")
	s.Note("num_slices", len(verdicts), "Slices assessed")
	s.Note("num_excluded", len(excluded), "Slices that are not used")
	s.Note("excluded_slice_ids", excluded, "Numbers of these slices")
	s.Judge("mean_quality", mean/float64(n), "", "Mean quality of the slices", nil)
	s.Judge("min_quality", least, "", "Lowest quality of a slice", nil)
	s.Note("max_quality", most, "Highest quality of a slice")
	s.Note("n_below_threshold", below, "Slices of a quality below the threshold")
	if o.Faults != nil {
		faulty := []int{}
		for _, f := range o.Faults {
			faulty = append(faulty, f.Slice)
		}
		s.Note("num_faulty", len(faulty), "Slices with a fault")
		s.Note("faulty_slice_ids", faulty, "Numbers of these slices")
	}
	return s
}
