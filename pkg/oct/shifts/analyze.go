package shifts

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/registration"
)

// AnalyzeOptions are the options of [Analyze].
type AnalyzeOptions struct {
	Resolution    float64 // voxel size in µm, for drifts in pixels
	IQRMultiplier float64 // how many interquartile ranges above the third quartile an outlier begins
}

// DefaultAnalyzeOptions returns the defaults.
func DefaultAnalyzeOptions() AnalyzeOptions {
	return AnalyzeOptions{Resolution: 10, IQRMultiplier: 1.5}
}

// Analysis describes the shifts of a table.
type Analysis struct {
	Rows, Filtered []registration.ShiftRow // as they are, and with outliers replaced
	Outliers       []int                   // rows
	Q1, Q3, Bound  float64                 // of the lengths, in mm
	options        AnalyzeOptions
}

// Analyze finds the rows of a table, which it sorts, that are longer than most. In Filtered an outlier is replaced by
// the medians of the other rows up to two away; without any it stays.
func Analyze(t *registration.ShiftTable, o AnalyzeOptions) (*Analysis, error) {
	if len(t.Rows) == 0 {
		return nil, errors.New("no shifts in the table")
	}
	t.Sort()
	a := &Analysis{Rows: slices.Clone(t.Rows), options: o}
	var size []float64
	for _, r := range a.Rows {
		size = append(size, length(r.X, r.Y))
	}
	sorted := slices.Sorted(slices.Values(size))
	a.Q1, a.Q3 = quantile(sorted, 25), quantile(sorted, 75)
	a.Bound = a.Q3 + float64(o.IQRMultiplier*(a.Q3-a.Q1))
	a.Filtered = slices.Clone(a.Rows)
	for i := range a.Rows {
		if !(size[i] > a.Bound) {
			continue
		}
		a.Outliers = append(a.Outliers, i)
		var near []registration.ShiftRow
		for k := max(0, i-2); k <= min(i+2, len(a.Rows)-1); k++ {
			if !(size[k] > a.Bound) {
				near = append(near, a.Rows[k])
			}
		}
		if len(near) > 0 {
			fill := medianRow(near)
			a.Filtered[i].X, a.Filtered[i].Y = fill.X, fill.Y
		}
	}
	return a, nil
}

// quantile returns a percentile of sorted values, interpolated between neighbours.
func quantile(sorted []float64, percent float64) float64 {
	lo, hi, t := filter.Ranks(int64(len(sorted)), percent)
	return sorted[lo] + float64((sorted[hi]-sorted[lo])*t)
}

// track returns where the slices lie, (x, y) in mm, if the shifts of rows are added up: one place per row, without the
// first slice at (0, 0).
func track(rows []registration.ShiftRow) (at [][2]float64) {
	var x, y float64
	for _, r := range rows {
		x, y = x+r.X, y+r.Y
		at = append(at, [2]float64{x, y})
	}
	return at
}

// centred returns places relative to that of the middle row.
func centred(at [][2]float64) [][2]float64 {
	out := slices.Clone(at)
	for i := range out {
		out[i][0] -= at[len(at)/2][0]
		out[i][1] -= at[len(at)/2][1]
	}
	return out
}

// spread returns the mean and the standard deviation (n − 1) of a component; of a single row the latter is NaN.
func spread(rows []registration.ShiftRow, of func(registration.ShiftRow) float64) (mean, std float64) {
	for _, r := range rows {
		mean += of(r)
	}
	mean /= float64(len(rows))
	for _, r := range rows {
		d := of(r) - mean
		std += float64(d * d)
	}
	return mean, math.Sqrt(std / float64(len(rows)-1))
}

// Text returns the report, in the words of linumpy's.
func (a *Analysis) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	section := func(title string) { line("\n%s\n%s", title, strings.Repeat("-", 40)) }
	rule := strings.Repeat("=", 60)
	line("%s\nSHIFTS ANALYSIS REPORT\n%s", rule, rule)
	resolution := registration.Float(a.options.Resolution)
	section("OVERVIEW")
	line("Total shift pairs: %d\nResolution: %s µm/pixel", len(a.Rows), resolution)

	section("PAIRWISE SHIFT STATISTICS")
	mean, std := spread(a.Rows, func(r registration.ShiftRow) float64 { return r.X })
	line("X shift (mm): Mean=%s, Std=%s", decimals(mean), decimals(std))
	mean, std = spread(a.Rows, func(r registration.ShiftRow) float64 { return r.Y })
	line("Y shift (mm): Mean=%s, Std=%s", decimals(mean), decimals(std))

	section("OUTLIER DETECTION (IQR Method)")
	line("Q1=%.4f, Q3=%.4f, IQR=%.4f\nUpper bound: %.4f mm\nOutliers detected: %d", a.Q1, a.Q3, a.Q3-a.Q1, a.Bound, len(a.Outliers))
	if len(a.Outliers) > 0 {
		line("\nOutlier shifts:")
	}
	for _, i := range a.Outliers {
		r := a.Rows[i]
		line("  %d->%d: (%.3f, %.3f) mm, mag=%.3f mm", r.Fixed, r.Moving, r.X, r.Y, length(r.X, r.Y))
	}

	section("CUMULATIVE DRIFT")
	before, after := track(a.Rows), track(a.Filtered)
	first, last := before[len(before)-1], after[len(after)-1]
	line("Before filtering: X=%.3f mm, Y=%.3f mm\nAfter filtering:  X=%.3f mm, Y=%.3f mm", first[0], first[1], last[0], last[1])
	line("\nIn pixels (at %s µm/pixel):\n  Before: X=%s px, Y=%s px\n  After:  X=%s px, Y=%s px", resolution,
		a.pixels(first[0]), a.pixels(first[1]), a.pixels(last[0]), a.pixels(last[1]))

	section(fmt.Sprintf("CENTERED DRIFT (around slice %d)", len(a.Rows)/2))
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, p := range centred(after) {
		for d := range p {
			low[d], high[d] = min(low[d], p[d]), max(high[d], p[d])
		}
	}
	line("X range: %s to %s px\nY range: %s to %s px\n\n%s", a.pixels(low[0]), a.pixels(high[0]), a.pixels(low[1]), a.pixels(high[1]), rule)
	return strings.TrimSuffix(b.String(), "\n")
}

// decimals prints a number with four decimals, and NaN as "nan" like Python.
func decimals(v float64) string {
	if math.IsNaN(v) {
		return "nan"
	}
	return fmt.Sprintf("%.4f", v)
}

// pixels returns the text of a length in mm as a whole number of pixels.
func (a *Analysis) pixels(mm float64) string {
	return fmt.Sprintf("%.0f", math.RoundToEven(mm*1000/a.options.Resolution)+0)
}
