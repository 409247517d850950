package motions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// Options are the options of [Analyze].
type Options struct {
	Resolution          float64 // µm of a pixel
	RotationThreshold   float64 // degrees from which on the rotation of a slice is large
	CumulativeThreshold float64 // degrees from which on the sum of rotations is large
}

// Defaults returns the defaults of the flags.
func Defaults() Options { return Options{Resolution: 10, RotationThreshold: 2, CumulativeThreshold: 5} }

// Spread describes numbers.
type Spread struct {
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"` // of a sample; 0 of one number
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Median float64 `json:"median"`
}

// Sum holds what numbers add up to.
type Sum struct {
	Total float64 `json:"total"`
	Most  float64 `json:"max_absolute"` // of the running sum
}

// Analysis describes the motions of a folder.
type Analysis struct {
	Slices      int     `json:"n_slices"`
	Resolution  float64 `json:"resolution_um"`
	Rotation    Spread  `json:"rotation_deg"`
	Turned      Sum     `json:"cumulative_rotation_deg"`
	Length      Spread  `json:"translation_px"` // lengths
	LengthUM    Spread  `json:"translation_um"`
	MovedX      Sum     `json:"cumulative_x_um"`
	MovedY      Sum     `json:"cumulative_y_um"`
	Large       []int   `json:"large_rotation_slices"`
	Outliers    []int   `json:"outlier_slices"`        // whose rotation or translation is far from that of the others
	Doubted     []int   `json:"not_registered_slices"` // status error
	Correlation *Spread `json:"correlation,omitempty"` // of the planes under the transforms
	// Together is the correlation of the rotations' sizes with the translations' lengths; nil for fewer than 5 slices.
	Together *float64 `json:"rotation_translation_correlation,omitempty"`
	Drifts   []string `json:"drifts"`  // "rotation", "x", "y": means that chance does not explain
	Verdict  string   `json:"verdict"` // "ok" or "look"
	Findings []string `json:"findings"`

	motions []Motion
	options Options
}

const (
	// farOut begins outliers, in robust standard deviations from the median.
	farOut = 5
	// leastTurn and leastMove are the smallest robust standard deviations, in degrees and px: registrations err by as
	// much.
	leastTurn, leastMove = 0.05, 0.5
	// bias is the mean rotation in degrees that is one for linumpy, too.
	bias = 0.5
	// surely makes a mean a drift, in standard errors from 0, and fewest is the number of slices that it takes.
	surely, fewest = 4, 5
	// together is the least correlation of rotations and translations that is worth a look.
	together = 0.5
)

// Analyze describes motions.
func Analyze(all []Motion, o Options) (*Analysis, error) {
	if len(all) == 0 {
		return nil, errors.New("no registration of a slice")
	}
	a := &Analysis{Slices: len(all), Resolution: o.Resolution, motions: all, options: o, Large: []int{}, Outliers: []int{}, Doubted: []int{}, Drifts: []string{}, Findings: []string{}}
	turns, xs, ys, lengths := a.columns()
	a.Rotation, a.Turned = spreadOf(turns, 1), sumOf(turns, 1)
	a.Length, a.LengthUM = spreadOf(lengths, 1), spreadOf(lengths, o.Resolution)
	a.MovedX, a.MovedY = sumOf(xs, o.Resolution), sumOf(ys, o.Resolution)
	var correlations []float64
	turned, movedX, movedY := outside(turns, leastTurn), outside(xs, leastMove), outside(ys, leastMove)
	for i, m := range all {
		if math.Abs(m.Rotation) > o.RotationThreshold {
			a.Large = append(a.Large, m.Slice)
		}
		if turned[i] || movedX[i] || movedY[i] {
			a.Outliers = append(a.Outliers, m.Slice)
		}
		if m.Status == "error" {
			a.Doubted = append(a.Doubted, m.Slice)
		}
		if m.Correlation != nil {
			correlations = append(correlations, *m.Correlation)
		}
	}
	if correlations != nil {
		s := spreadOf(correlations, 1)
		a.Correlation = &s
	}
	if len(all) >= 5 {
		var sizes []float64
		for _, v := range turns {
			sizes = append(sizes, math.Abs(v))
		}
		a.Together = Pearson(sizes, lengths)
	}
	for name, v := range map[string][]float64{"rotation": turns, "x": xs, "y": ys} {
		if drifts(v) {
			a.Drifts = append(a.Drifts, name)
		}
	}
	slices.Sort(a.Drifts)
	a.judge()
	return a, nil
}

// columns returns the rotations, the two components of translations and their lengths.
func (a *Analysis) columns() (turns, xs, ys, lengths []float64) {
	for i := range a.motions {
		m := &a.motions[i]
		turns, xs, ys, lengths = append(turns, m.Rotation), append(xs, m.TX), append(ys, m.TY), append(lengths, m.length())
	}
	return turns, xs, ys, lengths
}

// judge says in sentences what is worth a look.
func (a *Analysis) judge() {
	say := func(format string, args ...any) { a.Findings = append(a.Findings, fmt.Sprintf(format, args...)) }
	o := a.options
	if n := len(a.Doubted); n > 0 {
		say("%d of %d slices could not be registered, %s. A slice without registration keeps the place of the motor.", n, a.Slices, named(a.Doubted))
	}
	if len(a.Large) > 0 {
		say("More than %g° turn %s. Tissue does not turn by itself: either the registration is wrong there, or the block moved.", o.RotationThreshold, named(a.Large))
	}
	if math.Abs(a.Turned.Total) > o.CumulativeThreshold {
		say("Rotations add up to %.2f°. If transforms are composed, the last slice is turned by as much against the first; if the block did not turn, restrict the rotation (--max_rotation_deg) or switch it off.", a.Turned.Total)
	}
	if slices.Contains(a.Drifts, "rotation") || math.Abs(a.Rotation.Mean) > bias {
		say("The rotations have a mean of %.3f° and not 0: each slice is turned the same way against the one before it.", a.Rotation.Mean)
	}
	for _, d := range []struct {
		axis string
		sum  Sum
	}{{"x", a.MovedX}, {"y", a.MovedY}} {
		if slices.Contains(a.Drifts, d.axis) {
			say("Translations along %s add up to %.0f µm, all in one direction: the motor's shifts are wrong by a constant, or an oblique structure pulls the registration along.", d.axis, d.sum.Total)
		}
	}
	if len(a.Outliers) > 0 {
		say("The motion of most slices is far from that of %s: look at the shift and the planes, and exclude the slice or correct it by hand (manual export).", named(a.Outliers))
	}
	if t := a.Together; t != nil && *t > together {
		say("Slices that are turned more are also moved more (correlation %.2f): they may be rotated about a point outside of the tissue, or be dilated.", *t)
	}
	a.Verdict = "look"
	if len(a.Findings) == 0 {
		a.Verdict = "ok"
		say("Nothing stands out.")
	}
}

// named names slices, the first ones of many.
func named(ids []int) string {
	var names []string
	for _, id := range ids[:min(len(ids), 12)] {
		names = append(names, fmt.Sprint(id))
	}
	if more := len(ids) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(ids) == 1 {
		return "slice " + names[0]
	}
	return "slices " + strings.Join(names, ", ")
}

// SpreadOf describes numbers, at least one.
func SpreadOf(v []float64) Spread { return spreadOf(v, 1) }

// spreadOf describes numbers times a factor.
func spreadOf(v []float64, by float64) (s Spread) {
	n := float64(len(v))
	for _, x := range v {
		s.Mean += x / n
	}
	for _, x := range v {
		s.Std += float64((x - s.Mean) * (x - s.Mean))
	}
	s.Std = math.Sqrt(s.Std / max(1, n-1))
	return Spread{oct.Digits(s.Mean * by), oct.Digits(s.Std * by), oct.Digits(slices.Min(v) * by), oct.Digits(slices.Max(v) * by), oct.Digits(filter.MedianOf(slices.Clone(v)) * by)}
}

// sumOf adds numbers up.
func sumOf(v []float64, by float64) (s Sum) {
	for _, x := range v {
		s.Total += x
		s.Most = max(s.Most, math.Abs(s.Total))
	}
	return Sum{oct.Digits(s.Total * by), oct.Digits(s.Most * by)}
}

// outside tells which numbers are far from the median; least is the smallest standard deviation that is assumed.
func outside(v []float64, least float64) []bool {
	median := filter.MedianOf(slices.Clone(v))
	var off []float64
	for _, x := range v {
		off = append(off, math.Abs(x-median))
	}
	limit := farOut * max(least, 1.4826*filter.MedianOf(slices.Clone(off)))
	out := make([]bool, len(v))
	for i, d := range off {
		out[i] = d > limit
	}
	return out
}

// drifts reports whether the mean of numbers is not 0. Outliers, which would hide it, count as the median of all.
func drifts(v []float64) bool {
	if len(v) < fewest {
		return false
	}
	v, far := slices.Clone(v), outside(v, 0)
	median := filter.MedianOf(slices.Clone(v))
	for i := range v {
		if far[i] {
			v[i] = median
		}
	}
	s := spreadOf(v, 1)
	return math.Abs(s.Mean) > surely*s.Std/math.Sqrt(float64(len(v)))
}

// Pearson returns the correlation of two lists of equal length; nil if one is constant or empty.
func Pearson(a, b []float64) *float64 {
	if len(a) == 0 {
		return nil
	}
	sa, sb := spreadOf(a, 1), spreadOf(b, 1)
	if sa.Std == 0 || sb.Std == 0 {
		return nil
	}
	var sum float64
	for i := range a {
		sum += float64((a[i] - sa.Mean) * (b[i] - sb.Mean))
	}
	r := oct.Digits(max(-1, min(1, sum/float64(len(a)-1)/(sa.Std*sb.Std))))
	return &r
}
