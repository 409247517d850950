package stack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
	"strata/tests/octtest"
)

// Each rule of the specification where it turns: on a limit and beside it.

// bare are slices without voxels, of z × y × x.
func bare(voxel [3]float64, ids []int, shapes ...[3]int) (out []*stackSlice) {
	for i, id := range ids {
		out = append(out, &stackSlice{id: id, path: fmt.Sprintf("slice %d", id), shape: shapes[min(i, len(shapes)-1)], chunk: [3]int{1, 1, 1}, voxel: voxel})
	}
	return out
}

// movers makes a plan of pairs between slices of a depth.
func movers(opt Options, depth int, transforms ...pairTransform) *stackPlan {
	var ids []int
	for i := range len(transforms) + 1 {
		ids = append(ids, i)
	}
	p := newPlan(opt, bare([3]float64{10, 10, 10}, ids, [3]int{depth, 40, 40}))
	for i, t := range transforms {
		p.moving[i].transform = t
	}
	return p
}

func shiftsOf(t *testing.T, rows string) *registration.Shifts {
	t.Helper()
	s, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"+rows), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStackVoxels(t *testing.T) {
	for _, c := range []struct {
		mm, um float64
		want   int
	}{{0.29, 10, 29}, {2.01, 10, 201}, {0.2899, 10, 28}, {0.2, 3.5, 57}, {0.57, 10, 57}, {0, 10, 0}, {0.0199, 10, 1}, {1e30, 1e-3, 1e9}} {
		if got := voxels(c.mm, c.um); got != c.want {
			t.Errorf("%v mm are %d voxels of %v µm, want %d", c.mm, got, c.um, c.want)
		}
	}
}

// Pixel columns are not read; x and y have their own voxel sizes; half a pixel
// goes to the even one; a slice that the file does not name lies at 0, which is
// not the origin here; the canvas is whole pixels, with the size of the first.
func TestStackPlaces(t *testing.T) {
	all := bare([3]float64{10, 31.25, 15.625}, []int{2, 3, 5, 7, 8}, [3]int{4, 8, 9}, [3]int{4, 8, 9}, [3]int{4, 12, 5})
	shifts := shiftsOf(t, "2,3,99,99,0.0078125,0.015625\n3,4,0,0,0.015625,0.046875\n4,5,0,0,0.015625,0.03125\n5,7,0,0,-0.0859375,-0.109375\n")
	var warnings []string
	p, err := planStack(t.Context(), Input{Shifts: shifts}, referenceOptions(), all, &oct.Resources{Warn: func(m string) { warnings = append(warnings, m) }})
	if err == nil {
		err = p.layOut(&oct.Resources{Warn: func(m string) { warnings = append(warnings, m) }})
	}
	if err != nil {
		t.Fatal(err)
	}
	// pixels before the origin: 2 (0, 0), 3 (0.5, 0.5), 5 (2.5, 3), 7 (−3, −0.5), 8 (0, 0)
	want := map[int][2]float64{2: {3, 0.5}, 3: {3.5, 1}, 5: {5.5, 3.5}, 7: {0, 0}, 8: {3, 0.5}}
	for id, at := range want {
		for d := range 2 {
			if math.Abs(p.position[id][d]-at[d]) > 1e-9 {
				t.Errorf("slice %d is at %v, want %v", id, p.position[id], at)
			}
		}
	}
	if p.canvas != [2]int{12, 15} { // 8 + 3.5 and 9 + 5.5, rounded up
		t.Errorf("canvas %v, want 12 × 15", p.canvas)
	}
	for i, want := range []struct {
		place  oct.Rectangle
		origin [2]int
	}{
		{oct.Rect(0, 8, 3, 12), [2]int{0, 3}}, {oct.Rect(1, 9, 4, 13), [2]int{1, 4}}, {oct.Rect(4, 12, 6, 11), [2]int{4, 6}},
		{oct.Rect(0, 12, 0, 5), [2]int{0, 0}}, {oct.Rect(0, 12, 3, 8), [2]int{0, 3}},
	} {
		if m := p.all()[i]; m.place != want.place || m.origin != want.origin {
			t.Errorf("slice %d covers %+v from %v on, want %+v", m.slice.id, m.place, m.origin, want)
		}
	}
	for _, want := range []string{
		"shifts.csv: slices [4] are missing", "shifts.csv: no shift for slices [8]",
		"slice 5: planes of 12 × 5 are larger than the 8 × 9 of slice 2: cropped to the canvas of 12 × 15",
	} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("warnings %q, want %q among them", warnings, want)
		}
	}
	// one frame: the canvas of the first slice, shifts or not
	opt := referenceOptions()
	opt.NoXYShift = true
	p, err = planStack(t.Context(), Input{Shifts: shifts}, opt, all, &oct.Resources{})
	if err == nil {
		err = p.layOut(&oct.Resources{})
	}
	if err != nil || p.canvas != [2]int{8, 9} || p.moving[1].place != oct.Rect(0, 8, 0, 5) || p.moving[1].origin != [2]int{} || p.position[5] != [2]float64{} {
		t.Errorf("one frame: canvas %v, %+v, %v", p.canvas, p.moving[1].place, err)
	}
}

func TestStackCanvasRefused(t *testing.T) {
	all := bare([3]float64{10, 10, 10}, []int{0, 1}, [3]int{100, 1000, 1000})
	huge := bare([3]float64{10, 10, 10}, []int{0}, [3]int{1000, 30000, 30000})
	far := pairTransform{entry: true, moves: true, tx: 1e300, zcorr: 1}
	for _, c := range []struct {
		slices     []*stackSlice
		x          float64 // shift, mm
		accumulate bool
		want       string // "": goes
	}{
		{all, 10, false, ""}, // twice the slices' width
		{all, 60000, false, "shifts.csv: shifts make a canvas of 1000 × 6001000 pixels for slices of 1000 × 1000: a volume of"},
		{huge, 0, false, ""}, // 3.6 TB of slices, not of shifts
		{all, 1e12, false, "shifts.csv: shifts spread the slices over 1e+14 pixels"},
		{all, 0, true, "shifts.csv: shifts and accumulated translations spread the slices over 1e+300 pixels"},
	} {
		opt := referenceOptions()
		opt.AccumulateTranslations = c.accumulate
		p := newPlan(opt, c.slices)
		for _, m := range p.moving {
			m.transform = far
		}
		p.place(Input{Shifts: shiftsOf(t, fmt.Sprintf("0,1,0,0,%v,0\n", c.x))}, &oct.Resources{})
		err := p.layOut(&oct.Resources{})
		if err == nil {
			p.settle(&oct.Resources{})
			err = p.checkCanvas()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("a shift of %v mm: %v, want %q", c.x, err, c.want)
		}
	}
}

// What counts of a registration, and what of it is gated.
func TestStackGates(t *testing.T) {
	rigid := &filter.Rigid{Angle: 0.5}
	pair := func(status string, zcorr, rot float64) *registration.Pair {
		return &registration.Pair{Transform: rigid, Offsets: &registration.Offsets{FixedZ: 3, MovingZ: 4},
			Metrics: &registration.Metrics{Status: status, Confidence: 0.7, TX: 1, TY: 2, ZCorrelation: zcorr, Rotation: rot}}
	}
	metric := Options{LoadMinZCorr: 0.5, LoadMaxRotation: 1, SkipErrorTransforms: true, SkipWarningTransforms: true}
	for name, c := range map[string]struct {
		opt           Options
		auto          *registration.Pair
		skip          bool
		loaded, moves bool
		trusted       float64
	}{
		"none":                           {},
		"plain":                          {auto: pair("ok", 0.1, 9), loaded: true, moves: true, trusted: 0.7},
		"no metrics":                     {opt: Options{SkipErrorTransforms: true}, auto: &registration.Pair{Transform: rigid}, loaded: true, trusted: 1},
		"error kept":                     {opt: Options{SkipWarningTransforms: true}, auto: pair("error", 1, 0), loaded: true, moves: true, trusted: 0.7},
		"error":                          {opt: Options{SkipErrorTransforms: true}, auto: pair("error", 1, 0), moves: true, trusted: 1},
		"warning kept":                   {opt: Options{SkipErrorTransforms: true}, auto: pair("warning", 1, 0), loaded: true, moves: true, trusted: 0.7},
		"warning":                        {opt: Options{SkipWarningTransforms: true}, auto: pair("warning", 1, 0), moves: true, trusted: 1},
		"metrics instead of status":      {opt: metric, auto: pair("error", 0.5, -1), loaded: true, moves: true, trusted: 0.7},
		"too little correlation":         {opt: metric, auto: pair("ok", 0.4999, 0), moves: true, trusted: 1},
		"too much rotation":              {opt: metric, auto: pair("ok", 1, -1.001), moves: true, trusted: 1},
		"one metric alone gates nothing": {opt: Options{LoadMinZCorr: 0.5}, auto: pair("ok", 0.1, 5), loaded: true, moves: true, trusted: 0.7},
		"other metric alone":             {opt: Options{LoadMaxRotation: 1, SkipErrorTransforms: true}, auto: pair("error", 1, 0), moves: true, trusted: 1},
		"configuration":                  {auto: pair("ok", 1, 0), skip: true, trusted: 1},
	} {
		got := c.opt.transform(c.auto, nil, c.skip)
		if got.loaded != c.loaded || got.moves != c.moves || c.auto != nil && got.trusted != c.trusted || got.entry != (c.auto != nil) || (got.offsets != nil) != (c.loaded && c.auto.Offsets != nil) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// a manual one goes before all gates; it keeps the offsets of an automated one that counts
	manual := &registration.Pair{Transform: &filter.Rigid{Angle: 0.25, TX: 5, TY: 6}}
	for name, c := range map[string]struct {
		opt     Options
		skip    bool
		offsets bool
	}{
		"kept": {offsets: true}, "gated": {opt: Options{SkipErrorTransforms: true}}, "configuration": {skip: true},
	} {
		got := c.opt.transform(pair("error", 1, 0), manual, c.skip)
		if !got.loaded || !got.manual || got.rigid.Angle != 0.25 || got.confidence != 1 || (got.offsets != nil) != c.offsets || got.tx != 5 || got.ty != 6 || got.zcorr != 1 {
			t.Errorf("manual, automated one %s: %+v", name, got)
		}
	}
}

func TestStackActions(t *testing.T) {
	deg := math.Pi / 180
	for _, c := range []struct {
		name          string
		set           func(o *Options)
		conf          float64
		angle, tx, ty float64
		action        string
		rigid         filter.Rigid
	}{
		{"under low", nil, 0.2999, 0.01, 9, 9, "skip", filter.Rigid{}},
		{"low", nil, 0.3, 0.01, 9, 9, "rotation", filter.Rigid{Angle: 0.01}},
		{"under high", nil, 0.5999, 0.01, 9, 9, "rotation", filter.Rigid{Angle: 0.01}},
		{"high", nil, 0.6, 0.01, 9, 8, "full", filter.Rigid{Angle: 0.01, TX: 9, TY: 8}},
		{"rotation only", func(o *Options) { o.RotationOnly = true }, 1, 0.01, 9, 8, "rotation", filter.Rigid{Angle: 0.01}},
		{"accumulated", func(o *Options) { o.AccumulateTranslations = true }, 1, 0.01, 9, 8, "rotation", filter.Rigid{Angle: 0.01}},
		{"clamped", nil, 1, 0.5, 0, 0, "full", filter.Rigid{Angle: deg}},
		{"clamped below", nil, 1, -0.5, 0, 0, "full", filter.Rigid{Angle: -deg}},
		{"another limit", func(o *Options) { o.MaxRotationDeg = 2 }, 1, 0.5, 0, 0, "full", filter.Rigid{Angle: 2 * deg}},
		{"no limit", func(o *Options) { o.MaxRotationDeg = 0 }, 1, 0.5, 0, 0, "full", filter.Rigid{Angle: 0.5}},
		{"small", nil, 1, 0.001749, 0.999, -0.999, "identity", filter.Rigid{Angle: 0.001749, TX: 0.999, TY: -0.999}},
		{"small angle", nil, 1, -0.00175, 0, 0, "full", filter.Rigid{Angle: -0.00175}},
		{"small x", nil, 1, 0, 1, 0, "full", filter.Rigid{TX: 1}},
		{"small y", nil, 1, 0, 0, -1, "full", filter.Rigid{TY: -1}},
		{"small but for what is not applied", nil, 0.5, 0.001, 50, 50, "identity", filter.Rigid{Angle: 0.001}},
	} {
		opt := referenceOptions()
		if c.set != nil {
			c.set(&opt)
		}
		p := movers(opt, 10, pairTransform{loaded: true, confidence: c.conf, rigid: filter.Rigid{Angle: c.angle, TX: c.tx, TY: c.ty}})
		p.rotate()
		if m := p.moving[0]; m.action != c.action || m.rigid != c.rigid {
			t.Errorf("%s: %s %+v, want %s %+v", c.name, m.action, m.rigid, c.action, c.rigid)
		}
	}
	// averaged are the clamped rotations of loaded transforms, also of those that are then skipped
	opt := referenceOptions()
	opt.SmoothWindow = 3
	at := func(angle, conf float64) pairTransform {
		return pairTransform{loaded: true, confidence: conf, rigid: filter.Rigid{Angle: angle * deg}}
	}
	p := movers(opt, 10, at(0.3, 1), pairTransform{rigid: filter.Rigid{Angle: 7}}, at(9, 0.1), at(-0.4, 1), at(0.8, 1))
	p.rotate()
	for i, want := range []float64{0.3, 0, 0, (1 - 0.4 + 0.8) / 3, 0.8} {
		if got := p.moving[i].rigid.Angle / deg; math.Abs(got-want) > 1e-12 {
			t.Errorf("rotation %d averaged is %v°, want %v°", i, got, want)
		}
	}
}

// Each transform lays a slice on the one before it, which the others have moved: a point of the volume goes through all
// of them.
func TestStackCompose(t *testing.T) {
	opt := DefaultStackOptions()
	opt.NoXYShift = true
	one := func(angle, tx, ty float64) pairTransform {
		return pairTransform{loaded: true, confidence: 1, rigid: filter.Rigid{Angle: angle, TX: tx, TY: ty, CX: 50, CY: 40}}
	}
	in := []pairTransform{one(0.01, 20, -3), {}, one(-0.015, 0.2, 0.1)}
	p := movers(opt, 10, in...)
	p.rotate()
	p.compose()
	x, y := 13.0, 71.0
	for i, m := range p.moving {
		x, y = in[i].rigid.Apply(x, y)
		gx, gy := m.laid.Apply(13, 71)
		if !m.resampled || math.Hypot(gx-x, gy-y) > 1e-9 {
			t.Errorf("slice %d: point at %v, %v, want %v, %v", i, gx, gy, x, y)
		}
	}
	for name, set := range map[string]func(o *Options){
		"off":           func(o *Options) { o.ComposeTransforms = false },
		"own frames":    func(o *Options) { o.NoXYShift = false },
		"running sum":   func(o *Options) { o.AccumulateTranslations = true },
		"as linumpy's ": func(o *Options) { *o = referenceOptions(); o.NoXYShift = true },
	} {
		o := opt
		set(&o)
		p := movers(o, 10, in...)
		p.rotate()
		p.compose()
		if m := p.moving[2]; m.laid != m.rigid || p.moving[1].resampled {
			t.Errorf("%s: transforms are composed", name)
		}
	}
}

func TestStackAccumulate(t *testing.T) {
	moves := func(tx, ty, zcorr, trusted float64) pairTransform {
		return pairTransform{moves: true, tx: tx, ty: ty, zcorr: zcorr, trusted: trusted}
	}
	for name, c := range map[string]struct {
		opt  Options
		in   []pairTransform
		want [][2]float64
	}{
		"sums":             {Options{}, []pairTransform{moves(1, 2, -1, 0.5), {}, moves(3, -4, 0, 1)}, [][2]float64{{1, 2}, {1, 2}, {4, -2}}},
		"correlation":      {Options{TranslationMinZCorr: 0.2}, []pairTransform{moves(1, 2, 0.2, 1), moves(8, 8, 0.199, 1)}, [][2]float64{{1, 2}, {1, 2}}},
		"too far counts 0": {Options{MaxPairwiseTranslation: 10}, []pairTransform{moves(9.499, 0, 1, 1), moves(0, 9.5, 1, 1), moves(7, 7, 1, 1)}, [][2]float64{{9.499, 0}, {9.499, 0}, {9.499, 0}}},
		"weighted":         {Options{ConfidenceWeightTranslations: true}, []pairTransform{moves(4, 8, 1, 0.5), moves(1, 1, 1, 1)}, [][2]float64{{2, 4}, {3, 5}}},
		"length clamped":   {Options{MaxCumulativeDriftPx: 5}, []pairTransform{moves(3, 4, 1, 1), moves(3, 4, 1, 1)}, [][2]float64{{3, 4}, {3, 4}}},
		"two not smoothed": {Options{TranslationSmoothSigma: 1}, []pairTransform{moves(1, 0, 1, 1), moves(1, 0, 1, 1)}, [][2]float64{{1, 0}, {2, 0}}},
	} {
		got := movers(c.opt, 10, c.in...).accumulate()
		for i, want := range c.want {
			if math.Hypot(got[i][0]-want[0], got[i][1]-want[1]) > 1e-12 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
	// three are: radius 2, the ends repeated; the clamp comes after
	e1, e2 := math.Exp(-1/(2*0.5*0.5)), math.Exp(-4/(2*0.5*0.5))
	k := 1 + 2*e1 + 2*e2
	sums := []float64{10, 10, 40} // reflected: 10 10 | 10 10 40 | 40 10
	o := Options{TranslationSmoothSigma: 0.5, MaxCumulativeDriftPx: 15}
	got := movers(o, 10, moves(10, 0, 1, 1), moves(0, 0, 1, 1), moves(30, 0, 1, 1)).accumulate()
	want := []float64{(sums[0]*(1+2*e1+e2) + 40*e2) / k, (10*(1+e1+e2) + 40*(e1+e2)) / k, 15}
	for i := range want {
		if math.Abs(got[i][0]-want[i]) > 1e-12 || got[i][1] != 0 {
			t.Errorf("smoothed: %v, want x of %v", got, want)
			break
		}
	}
}

func TestStackOverlapSources(t *testing.T) {
	off := func(fixed, moving int) *registration.Offsets {
		return &registration.Offsets{FixedZ: fixed, MovingZ: moving}
	}
	loaded := func(o *registration.Offsets, conf float64) pairTransform {
		return pairTransform{entry: true, loaded: true, offsets: o, confidence: conf, agreement: 0.75}
	}
	unmeasured := loaded(off(15, 7), 1)
	unmeasured.agreement = 0
	base := referenceOptions()
	base.SlicingIntervalMM, base.MovingZFirstIndex, base.SearchRangeMM = 0.1, 2, 0.02
	for name, c := range map[string]struct {
		set       func(o *Options)
		depth     int
		t         pairTransform
		want      tables.Match
		source    string
		searching [2]int // range; 0: nothing to search
	}{
		"expected":                 {func(o *Options) { o.UseExpectedOverlap = true }, 20, loaded(off(1, 7), 1), tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{}},
		"expected, thin":           {func(o *Options) { o.UseExpectedOverlap = true }, 5, pairTransform{}, tables.Match{MovingZStart: 2}, "expected", [2]int{}},
		"registration":             {nil, 20, loaded(off(15, 7), 0.1), tables.Match{Overlap: 5, Blend: 5, MovingZStart: 7, Correlation: 0.75}, "registration", [2]int{}},
		"registration, no metrics": {nil, 20, unmeasured, tables.Match{Overlap: 5, Blend: 5, MovingZStart: 7}, "registration", [2]int{}},
		"registration, beyond":     {nil, 20, loaded(off(25, 0), 1), tables.Match{Correlation: 0.75}, "registration", [2]int{}},
		"search":                   {nil, 20, loaded(nil, 1), tables.Match{MovingZStart: 2}, "", [2]int{8, 12}},
		"search, clipped":          {nil, 11, pairTransform{}, tables.Match{MovingZStart: 2}, "", [2]int{1, 3}},
		"search, one value":        {func(o *Options) { o.SearchRangeMM = 0; o.ZOverlapMinCorr = 0 }, 20, pairTransform{}, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "correlation", [2]int{}},
		"search, empty":            {func(o *Options) { o.ZOverlapMinCorr = 0 }, 5, pairTransform{}, tables.Match{MovingZStart: 2}, "correlation", [2]int{}},
		"search, one, gate":        {func(o *Options) { o.SearchRangeMM = 0 }, 20, pairTransform{}, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2, Fallback: true}, "correlation_fallback", [2]int{}},
		"refined":                  {func(o *Options) { o.UseExpectedOverlap, o.BlendZRefineVox = true, 3 }, 20, loaded(nil, 0.5), tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{5, 8}},
		"refined, from 1":          {func(o *Options) { o.UseExpectedOverlap, o.BlendZRefineVox = true, 9 }, 20, pairTransform{}, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{1, 8}},
		"refined, unsure":          {func(o *Options) { o.UseExpectedOverlap, o.BlendZRefineVox = true, 3 }, 20, loaded(nil, 0.499), tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{}},
		"refined, gated":           {func(o *Options) { o.UseExpectedOverlap, o.BlendZRefineVox = true, 3 }, 20, pairTransform{entry: true, confidence: 1}, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{}},
		"refined, any": {func(o *Options) {
			o.UseExpectedOverlap, o.BlendZRefineVox, o.BlendZRefineMinConfidence = true, 3, 0
		}, 20, pairTransform{entry: true}, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2}, "expected", [2]int{5, 8}},
	} {
		opt := base
		if c.set != nil {
			c.set(&opt)
		}
		p := movers(opt, c.depth, c.t)
		p.overlaps(&oct.Resources{})
		m := p.moving[0]
		var searching [2]int
		if m.search != nil {
			searching = [2]int{m.search.lo, m.search.hi}
		}
		if got := (tables.Match{Overlap: m.overlap, Blend: m.blend, MovingZStart: m.movingZ, Correlation: m.correlation, Fallback: m.fallback}); got != c.want || m.source != c.source || searching != c.searching {
			t.Errorf("%s: %+v from %q, searching %v, want %+v from %q, %v", name, got, m.source, searching, c.want, c.source, c.searching)
		}
	}
	// what a search finds
	for _, c := range []struct {
		found       int
		correlation float64
		gate        float64
		want        tables.Match
	}{
		{9, 0.5, 0.5, tables.Match{Overlap: 7, Blend: 7, MovingZStart: 2, Correlation: 0.5}},
		{9, 0.4999, 0.5, tables.Match{Overlap: 8, Blend: 8, MovingZStart: 2, Correlation: 0.4999, Fallback: true}},
		{9, -0.3, 0, tables.Match{Overlap: 7, Blend: 7, MovingZStart: 2, Correlation: -0.3}},
		{1, 0.9, 0.5, tables.Match{MovingZStart: 2, Correlation: 0.9}},
	} {
		opt := base
		opt.ZOverlapMinCorr = c.gate
		p := movers(opt, 20, pairTransform{})
		p.overlaps(&oct.Resources{})
		m := p.moving[0]
		m.search.take(c.found, c.correlation)
		if got := (tables.Match{Overlap: m.overlap, Blend: m.blend, MovingZStart: m.movingZ, Correlation: m.correlation, Fallback: m.fallback}); got != c.want {
			t.Errorf("%d planes of correlation %v: %+v, want %+v", c.found, c.correlation, got, c.want)
		}
	}
}

func TestStackConsistency(t *testing.T) {
	sure, unsure, unknown := pairTransform{loaded: true, confidence: 0.6}, pairTransform{loaded: true, confidence: 0.599}, pairTransform{}
	for name, c := range map[string]struct {
		t        []pairTransform
		overlaps []int
		want     []int
	}{
		"two pairs":                     {[]pairTransform{unknown, unknown}, []int{10, 90}, []int{10, 90}},
		"on the limit":                  {[]pairTransform{unknown, unknown, unknown}, []int{10, 13, 10}, []int{10, 13, 10}},
		"beyond it":                     {[]pairTransform{unknown, unknown, unknown}, []int{10, 14, 11}, []int{10, 14, 11}}, // median 11
		"beyond it, too":                {[]pairTransform{unknown, unknown, unknown}, []int{10, 15, 11}, []int{10, 10, 11}}, // 10.5, cut off
		"sure":                          {[]pairTransform{sure, sure, sure}, []int{10, 90, 10}, []int{10, 90, 10}},
		"unsure":                        {[]pairTransform{sure, unsure, sure}, []int{10, 90, 10}, []int{10, 10, 10}},
		"one neighbour":                 {[]pairTransform{unsure, sure, sure}, []int{90, 12, 12}, []int{12, 12, 12}},
		"in place":                      {[]pairTransform{sure, unsure, unsure, sure, sure}, []int{10, 50, 60, 10, 10}, []int{10, 35, 22, 10, 10}},
		"median 0":                      {[]pairTransform{unknown, unknown, unknown}, []int{0, 1, 0}, []int{0, 0, 0}},
		"half of an even number":        {[]pairTransform{sure, sure, unsure, sure}, []int{10, 20, 30, 20}, []int{10, 20, 20, 20}},
		"within a third of a small one": {[]pairTransform{unknown, unknown, unknown, unknown}, []int{1, 1, 1, 1}, []int{1, 1, 1, 1}},
	} {
		for _, blend := range []bool{false, true} { // each on its own
			p := movers(referenceOptions(), 100, c.t...)
			for i, m := range p.moving {
				m.overlap, m.blend = 7, 7
				if blend {
					m.blend = c.overlaps[i]
				} else {
					m.overlap = c.overlaps[i]
				}
			}
			p.settle(&oct.Resources{})
			depth := 100
			for i, m := range p.moving {
				got, other := m.overlap, m.blend
				if blend {
					got, other = m.blend, m.overlap
				}
				if got != c.want[i] || other != 7 {
					t.Errorf("%s, blend %v: pair %d has %d (and %d), want %d (and 7)", name, blend, i, got, other, c.want[i])
				}
				depth += 100 - m.overlap
				if was := p.matches()[i]; blend && was.Blend != c.overlaps[i] || !blend && was.Overlap != c.overlaps[i] {
					t.Errorf("%s: the match of pair %d says %+v, want what was found, %d", name, i, was, c.overlaps[i])
				}
			}
			if p.depth != depth {
				t.Errorf("%s: depth %d, want %d", name, p.depth, depth)
			}
		}
	}
}

// The gain is a ratio of medians: not of few voxels, not of darkness, not a
// small one, within limits.
func TestStackGain(t *testing.T) {
	const n = 40
	plane := func(v float32, voxels int) []volume.Plane {
		p := make([]float32, n*n)
		for i := range voxels {
			p[i] = v
		}
		return volume.Planes(p, 1, n, n)
	}
	for _, c := range []struct {
		here, there float32
		voxels      int
		want        float32
	}{
		{12, 10, 1001, 1.2}, {12, 10, 1000, 1}, {12, 10, 0, 1}, {1.00999, 1, 1600, 1}, {1.02, 1, 1600, 1.02}, {0.985, 1, 1600, 0.985},
		{30, 10, 1600, 2}, {3, 10, 1600, 0.5}, {2e-6, 1e-6, 1600, 1}, {1e-6, 3e-6, 1600, 1}, {4e-6, 3e-6, 1600, float32(float64(float32(4e-6)) / float64(float32(3e-6)))},
	} {
		res := octtest.Small()
		a := &assembly{mem: &place{Memory: volume.OpenHost(t.Context(), nil, &res), res: &res}}
		got := a.gain(oct.Rect(0, n, 0, n), 1, func(f func(at int, fixed, moving []volume.Plane)) {
			f(0, plane(c.here, n*n), plane(c.there, c.voxels))
		})
		if err := a.mem.Err(); err != nil || got != c.want {
			t.Errorf("%v over %v on %d voxels: gain %v (%v), want %v", c.here, c.there, c.voxels, got, err, c.want)
		}
	}
}

// A shift in the plane needs 1000 pixels that both have, and a pixel is enough.
func TestStackRefineLimits(t *testing.T) {
	const n = 40
	fixed, moving := make([]float32, n*n), make([]float32, n*n)
	at := func(y, x int) float32 {
		return float32(300 + 100*math.Sin(float64(x*x+3*y)/9) + 50*math.Cos(float64(y*y-x)/7))
	}
	for y := range n * 1000 / (n * n) { // 1000 pixels; the rest is empty
		for x := range n {
			fixed[y*n+x], moving[y*n+x] = at(y, x), at(y, x-1)
		}
	}
	res := octtest.Small()
	a := &assembly{plan: &stackPlan{opt: Options{BlendRefinementPx: 1}}, res: &res, mem: &place{Memory: volume.OpenHost(t.Context(), nil, &res), res: &res}}
	refine := func() (int, int) {
		dy, dx := a.refine(oct.Rect(0, n, 0, n), func(f func(at int, fixed, moving []volume.Plane)) {
			f(0, volume.Planes(fixed, 1, n, n), volume.Planes(moving, 1, n, n))
		}, 1)
		if err := a.mem.Err(); err != nil {
			t.Fatal(err)
		}
		return dy, dx
	}
	if dy, dx := refine(); dy != 0 || dx != -1 {
		t.Errorf("moved by (%d, %d), want (0, −1)", dy, dx)
	}
	fixed[5*n+5] = 0
	if dy, dx := refine(); dy != 0 || dx != 0 {
		t.Errorf("999 pixels: moved by (%d, %d), want not at all", dy, dx)
	}
}

// Of equal correlations the first counts: the smallest overlap, or blend depth.
func TestStackTies(t *testing.T) {
	sl := []*oracleSlice{{id: 0, z: 20, y: 32, x: 32}, {id: 1, z: 20, y: 32, x: 32}}
	for _, s := range sl {
		s.v = slices.Repeat([]float64{300}, s.z*s.y*s.x)
	}
	opt := referenceOptions()
	opt.Blend, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM, opt.ZOverlapMinCorr = true, 2, 0.1, 0.03, 0
	got, _, err := stackOf(t, sl, opt, octtest.Small())
	if want := (tables.Match{MovingID: 1, Overlap: 5, Blend: 5, MovingZStart: 2}); err != nil || got.Matches[0] != want { // 7 of 7…13, less 2
		t.Errorf("%+v (%v), want %+v", got.Matches[0], err, want)
	}
	opt.UseExpectedOverlap, opt.BlendZRefineVox = true, 3
	got, _, err = stackOf(t, sl, opt, octtest.Small())
	if want := (tables.Match{MovingID: 1, Overlap: 8, Blend: 5, MovingZStart: 2}); err != nil || got.Matches[0] != want {
		t.Errorf("refined: %+v (%v), want %+v", got.Matches[0], err, want)
	}
}

// Which planes of a slice are blended, and which overwrite.
func TestStackPlanes(t *testing.T) {
	for name, c := range map[string]struct {
		blend      bool
		m          movingSlice // the z cursor stood at 20
		mixed, put [2]int
		touches    int
	}{
		"overwritten":        {false, movingSlice{overlap: 6, mix: 6, start: 14, end: 30}, [2]int{}, [2]int{0, 16}, 14},
		"blended":            {true, movingSlice{overlap: 6, mix: 6, start: 14, end: 30}, [2]int{0, 6}, [2]int{6, 16}, 14},
		"less blended":       {true, movingSlice{overlap: 6, mix: 4, start: 14, end: 30}, [2]int{2, 6}, [2]int{6, 16}, 16},
		"blend depth 0":      {true, movingSlice{overlap: 6, mix: 0, start: 14, end: 30}, [2]int{}, [2]int{0, 16}, 14},
		"no overlap":         {true, movingSlice{overlap: 0, mix: 0, start: 20, end: 30}, [2]int{}, [2]int{0, 10}, 20},
		"all of it":          {true, movingSlice{overlap: 16, mix: 16, start: 4, end: 20}, [2]int{0, 16}, [2]int{16, 16}, 4},
		"before the volume":  {true, movingSlice{overlap: 25, mix: 25, start: -5, end: 25}, [2]int{5, 25}, [2]int{25, 30}, 0},
		"larger than itself": {true, movingSlice{overlap: 12, mix: 12, start: 8, end: 18}, [2]int{0, 10}, [2]int{10, 10}, 8},
	} {
		p := &stackPlan{opt: Options{Blend: c.blend}}
		m := c.m
		m.from = 20
		if mixed, put := p.planes(&m); mixed != c.mixed || put != c.put || p.touches(&m) != c.touches {
			t.Errorf("%s: %v blended, %v put, from %d on, want %v, %v, %d", name, mixed, put, p.touches(&m), c.mixed, c.put, c.touches)
		}
	}
}
