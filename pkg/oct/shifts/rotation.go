package shifts

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/register/motions"
	"strata/pkg/registration"
	"strata/pkg/units"
)

// RotationOptions are the options of [AnalyzeRotation].
type RotationOptions struct {
	Resolution float64  // µm of a pixel of registered slices
	Expected   *float64 // direction of the shifts in degrees, if it is known; nil: it is not
	Window     int      // slices over which changes of direction are averaged
}

// DefaultRotationOptions returns the defaults of the flags.
func DefaultRotationOptions() RotationOptions { return RotationOptions{Resolution: 10, Window: 5} }

// Rotation tells whether slices were imaged turned against the axes of the motor, by the directions of their shifts and
// by registrations. Angles are in degrees, from x to y.
type Rotation struct {
	Shifts    int            `json:"n_shifts"`
	Direction Direction      `json:"direction"`
	Length    motions.Spread `json:"length_mm"`
	Drift     Turning        `json:"cumulative_rotation"`
	Found     *AgainstMotor  `json:"registration,omitempty"` // nil without registrations
	Expected  *float64       `json:"expected_angle,omitempty"`
	Off       *float64       `json:"mean_deviation_from_expected,omitempty"`
	Verdict   string         `json:"verdict"` // "ok", "rotated" or "unclear"
	Findings  []string       `json:"findings"`

	rows     []registration.ShiftRow
	angles   []float64 // of the shifts
	changes  []float64 // of the angles from row to row, averaged over the window; row 0: 0
	running  []float64 // sums of the changes as they are
	turns    []motions.Motion
	residual [][2]float64 // shifts as registered, mm; NaN: none
}

// Direction describes the directions of shifts as a circular distribution, longer shifts counting more.
type Direction struct {
	Mean   float64 `json:"mean_deg"`
	Unity  float64 `json:"resultant_length"` // 0: all directions, 1: one
	Std    float64 `json:"std_deg"`          // circular
	Axis   float64 `json:"axis_deg"`         // of the line along which most shifts lie, −90 to 90
	Strong float64 `json:"axis_strength"`    // 0: shifts have no axis, 1: all lie on it
}

// Turning describes how the direction changes from slice to slice.
type Turning struct {
	Total float64 `json:"total"`
	Most  float64 `json:"max_absolute"`
	Rate  float64 `json:"per_slice"` // slope of a line through the running sum
	Jumps []int   `json:"jumps"`     // slices whose shift has another direction, by more than a right angle, than those before and after
}

// AgainstMotor compares the shifts with the translations that registrations add to them: the axes of the image are
// turned by Angle against those of the motor if a shift s really was Scale · R(Angle) · s.
type AgainstMotor struct {
	Pairs    int      `json:"pairs"`
	LeftOut  []int    `json:"left_out_slices"` // whose registration is far from the fit
	Angle    float64  `json:"motor_angle_deg"`
	Error    float64  `json:"motor_angle_error_deg"` // standard error
	Scale    float64  `json:"motor_scale"`
	Residual float64  `json:"residual_rms_um"` // of the registered shifts from the turned ones
	Turned   float64  `json:"rotation_total_deg"`
	Alike    *float64 `json:"rotation_correlation"` // of the running sums of shifts' directions and of registered rotations; nil: not defined
}

// AnalyzeRotation describes the rotation of an acquisition by its shifts, which it sorts, and registrations, which may
// be nil.
func AnalyzeRotation(t *registration.ShiftTable, found []motions.Motion, o RotationOptions) (*Rotation, error) {
	if len(t.Rows) == 0 {
		return nil, errors.New("no shifts in the table")
	}
	t.Sort()
	a := &Rotation{Shifts: len(t.Rows), rows: t.Rows, turns: found, Expected: o.Expected, Findings: []string{}}
	var lengths []float64
	for _, r := range a.rows {
		a.angles = append(a.angles, math.Atan2(r.Y, r.X)*degrees)
		lengths = append(lengths, length(r.X, r.Y))
	}
	a.Length = motions.SpreadOf(lengths)
	a.direct()
	a.turn(o.Window)
	if o.Expected != nil {
		off := oct.Digits(wrapped(a.Direction.Mean - *o.Expected))
		a.Off = &off
	}
	if found != nil {
		a.compare(o.Resolution)
	}
	a.judge()
	return a, nil
}

const degrees = 180 / math.Pi

// wrapped returns an angle as one from −180 to 180 degrees.
func wrapped(angle float64) float64 { return math.Remainder(angle, 360) }

// direct describes the directions.
func (a *Rotation) direct() {
	var sum, c, s, c2, s2, squares float64
	for _, r := range a.rows {
		sum, c, s = sum+length(r.X, r.Y), c+r.X, s+r.Y
		c2, s2, squares = c2+float64(r.X*r.X)-float64(r.Y*r.Y), s2+float64(2*r.X*r.Y), squares+float64(r.X*r.X)+float64(r.Y*r.Y)
	}
	if sum == 0 {
		return
	}
	unity := math.Hypot(c, s) / sum
	a.Direction = Direction{Mean: oct.Digits(math.Atan2(s, c) * degrees), Unity: oct.Digits(unity), Std: oct.Digits(math.Sqrt(-2*math.Log(max(unity, 1e-9))) * degrees),
		Axis: oct.Digits(math.Atan2(s2, c2) / 2 * degrees), Strong: oct.Digits(math.Hypot(c2, s2) / squares)}
}

// turn follows the direction from slice to slice; shifts of no length have the direction before them.
func (a *Rotation) turn(window int) {
	n := len(a.rows)
	changes := make([]float64, n)
	last := math.NaN()
	for i, r := range a.rows {
		if length(r.X, r.Y) == 0 {
			continue
		}
		if last == last {
			changes[i] = wrapped(a.angles[i] - last)
		}
		last = a.angles[i]
	}
	a.running, a.changes = make([]float64, n), make([]float64, n)
	var total, sx, sy, sxx, sxy float64
	for i, d := range changes {
		total += d
		a.running[i] = total
		a.Drift.Most = max(a.Drift.Most, math.Abs(total))
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+total, sxx+float64(x*x), sxy+float64(x*total)
		var sum float64
		from, to := max(0, i-window/2), min(n, i-window/2+window)
		for _, v := range changes[from:to] {
			sum += v
		}
		a.changes[i] = sum / float64(max(1, to-from))
		if i > 0 && i < n-1 && math.Abs(changes[i]) > 90 && math.Abs(changes[i+1]) > 90 {
			a.Drift.Jumps = append(a.Drift.Jumps, a.rows[i].Moving)
		}
	}
	if a.Drift.Jumps == nil {
		a.Drift.Jumps = []int{}
	}
	a.Drift.Total, a.Drift.Most = oct.Digits(total), oct.Digits(a.Drift.Most)
	if d := float64(n)*sxx - float64(sx*sx); d > 0 {
		a.Drift.Rate = oct.Digits((float64(n)*sxy - float64(sx*sy)) / d)
	}
}

// compare fits the turn and the scale that the registrations add to the shifts.
func (a *Rotation) compare(resolution float64) {
	by := map[int]*motions.Motion{}
	for i := range a.turns {
		if a.turns[i].Status != "error" {
			by[a.turns[i].Slice] = &a.turns[i]
		}
	}
	m := &AgainstMotor{LeftOut: []int{}}
	a.residual = make([][2]float64, len(a.rows))
	used := make([]bool, len(a.rows))
	var turned float64
	var sums [2][]float64
	for i, r := range a.rows {
		t := by[r.Moving]
		if t == nil {
			a.residual[i] = [2]float64{math.NaN(), math.NaN()}
			continue
		}
		// a transform that samples at +t moves the content by −t
		a.residual[i], used[i] = [2]float64{r.X - t.TX*resolution/1000, r.Y - t.TY*resolution/1000}, true
		m.Pairs++
		turned += t.Rotation
		sums[0], sums[1] = append(sums[0], a.running[i]), append(sums[1], turned)
	}
	a.Found = m
	m.Turned, m.Alike = oct.Digits(turned), motions.Pearson(sums[0], sums[1])
	for range len(a.rows) { // registrations that are far from the fit are left out, and it is made again
		far := a.fit(m, used)
		if len(far) == 0 || m.Pairs-len(far) < fewPairs {
			break
		}
		for _, i := range far {
			used[i] = false
			m.LeftOut = append(m.LeftOut, a.rows[i].Moving)
		}
		m.Pairs -= len(far)
	}
	slices.Sort(m.LeftOut)
}

// farFit is how many times the median distance from the fit a registration is left out.
const farFit = 6

// fit fits the turn and the scale of the rows that are used, and returns those that lie far from it.
func (a *Rotation) fit(m *AgainstMotor, used []bool) (far []int) {
	var cross, dot, squares float64
	for i, r := range a.rows {
		if x, y := a.residual[i][0], a.residual[i][1]; used[i] {
			cross, dot, squares = cross+float64(r.X*y)-float64(r.Y*x), dot+float64(r.X*x)+float64(r.Y*y), squares+float64(r.X*r.X)+float64(r.Y*r.Y)
		}
	}
	if squares == 0 {
		return nil
	}
	angle, scale := math.Atan2(cross, dot), math.Hypot(cross, dot)/squares
	s, c := math.Sincos(angle)
	var rest float64
	var off []float64
	distance := make([]float64, len(a.rows))
	for i, r := range a.rows {
		if at := a.residual[i]; used[i] {
			distance[i] = length(at[0]-scale*(float64(c*r.X)-float64(s*r.Y)), at[1]-scale*(float64(s*r.X)+float64(c*r.Y)))
			rest, off = rest+float64(distance[i]*distance[i]), append(off, distance[i])
		}
	}
	m.Angle, m.Scale, m.Residual = oct.Digits(angle*degrees), oct.Digits(scale), oct.Digits(math.Sqrt(rest/float64(m.Pairs))*1000)
	if m.Error = 0; m.Pairs > 1 { // two numbers a pair, two of which are fitted
		m.Error = oct.Digits(math.Sqrt(rest/float64(2*m.Pairs-2)/squares) / max(scale, 1e-9) * degrees)
	}
	limit := farFit * max(leastSpread, filter.MedianOf(off))
	for i, d := range distance {
		if d > limit {
			far = append(far, i)
		}
	}
	return far
}

const (
	// sure is how many standard errors an angle must be from 0, and leastAngle how many degrees, to be one.
	sure, leastAngle = 4, 0.2
	// mostError is the maximum standard error, in degrees, at which an angle near 0 is reported as 0.
	mostError = 0.5
	// fewPairs is the number of pairs below which no angle is believed.
	fewPairs = 4
)

// judge sets the verdict, and describes the measured numbers in sentences.
func (a *Rotation) judge() {
	say := func(format string, args ...any) { a.Findings = append(a.Findings, fmt.Sprintf(format, args...)) }
	a.Verdict = "unclear"
	switch d := a.Direction; {
	case a.Length.Max == 0:
		say("All shifts are 0: they have no direction.")
	case d.Unity > 0.86: // a circular standard deviation of 30°
		say("Shifts have one direction, %.1f°: the stage drifts, or its steps between slices are meant.", d.Mean)
	case d.Strong > 0.86:
		say("Shifts lie along one line, at %.1f°, to both sides: the stage goes to and fro.", d.Axis)
	default:
		say("Shifts have no common direction: they alone say nothing of a rotation.")
	}
	if a.Off != nil && math.Abs(*a.Off) > 5 {
		say("Their direction is %.1f° from the expected %g°.", *a.Off, *a.Expected)
	}
	m := a.Found
	switch {
	case m == nil:
		say("Without registrations (--registration_dir) a rotation against the motor cannot be told from the way of the stage.")
	case m.Pairs < fewPairs:
		say("%s with a shift and a registration: too few to tell an angle against the motor.", units.Count(m.Pairs, "slice"))
	case m.Scale == 0 || m.Error > mostError && math.Abs(m.Angle) <= sure*m.Error:
		say("Registrations of %d slices say too little: shifts are short against what registrations add to them, so the angle is known to ± %.2g° only.", m.Pairs, m.Error)
	case math.Abs(m.Angle) > max(sure*m.Error, leastAngle):
		a.Verdict = "rotated"
		say("The image is turned by %.2f° ± %.2f° against the axes of the motor: registrations turn each shift by as much. Rotate the shifts, or leave it to the registration.", m.Angle, m.Error)
	default:
		a.Verdict = "ok"
		say("Image and motor have the same axes: %.2f° ± %.2f°.", m.Angle, m.Error)
	}
	if m != nil && len(m.LeftOut) > 0 {
		say("Registrations far from the others do not count: slices %s.", strings.Trim(fmt.Sprint(m.LeftOut), "[]"))
	}
	if m != nil && m.Pairs >= fewPairs && m.Error > 0 && m.Error <= mostError && math.Abs(m.Scale-1) > max(sure*m.Error/degrees, 0.01) {
		say("Registered shifts are %.3f times as long as the recorded ones: the voxel size, or the motor's step, is wrong by as much.", m.Scale)
	}
	if m != nil && math.Abs(m.Turned) > 5 {
		say("Registrations turn the last slice by %.2f° against the first.", m.Turned)
	}
}

// Text returns the report.
func (a *Rotation) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	section := func(title string) { line("\n%s\n%s", title, strings.Repeat("-", len(title))) }
	line("Rotation of the acquisition, by %d shifts (angles from x to y)", a.Shifts)
	d := a.Direction
	section("Directions of the shifts")
	line("mean %.4g°, circular standard deviation %.4g°, resultant length %.3f", d.Mean, d.Std, d.Unity)
	line("axis %.4g°, strength %.3f", d.Axis, d.Strong)
	line("length: mean %.4g mm, from %.4g mm to %.4g mm", a.Length.Mean, a.Length.Min, a.Length.Max)
	section("Change of direction")
	line("added up: %.4g°, at most %.4g°; %.4g° a slice", a.Drift.Total, a.Drift.Most, a.Drift.Rate)
	if len(a.Drift.Jumps) > 0 {
		line("slices whose shift runs against those before and after: %s", strings.Trim(fmt.Sprint(a.Drift.Jumps), "[]"))
	}
	if m := a.Found; m != nil {
		section("Against the registrations")
		line("%d pairs: turned by %.4g° ± %.2g° against the motor, scale %.5g, rest %.4g µm", m.Pairs, m.Angle, m.Error, m.Scale, m.Residual)
		line("registered rotations add up to %.4g°", m.Turned)
		if m.Alike != nil {
			line("correlation of the running sums of directions and of registered rotations: %.3f", *m.Alike)
		}
	}
	section("Verdict: " + a.Verdict)
	for _, f := range a.Findings {
		line("- %s", f)
	}
	return b.String()
}
