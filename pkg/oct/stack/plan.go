package stack

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/registration"
)

// stackPlan is where everything goes: pure arithmetic on what the files beside
// the voxels say, and on the correlations that are measured in between.
type stackPlan struct {
	opt      Options
	slices   []*stackSlice
	moving   []*movingSlice // all slices but the first
	position map[int][2]float64
	canvas   [2]int // (y, x)
	depth    int    // of the volume; after settle
	shifts   string // name of the shifts file
	centred  bool   // positions are shifts, of which the smallest becomes the origin
	first    rect   // where the first slice is

	corrections []Correction
	shifted     []Shift
	firstGains  planeGains // of the first slice
}

// movingSlice is a slice against the one before it.
type movingSlice struct {
	slice, fixed *stackSlice
	transform    pairTransform
	action       string       // "none", "skip", "identity", "rotation" or "full"
	rigid        filter.Rigid // what is applied for "rotation" and "full"

	movingZ        int
	overlap, blend int // voxels
	correlation    float64
	fallback       bool
	source         string
	search         *overlapSearch // nil: nothing to measure
	expected       int            // overlap by the slicing interval
	measured       Match          // before the consistency step

	place rect
	start int // z of the slice's plane movingZ on the canvas
	end   int // where the z cursor stands after it
	from  int // z of the cursor before it: the overlap ends there
	mix   int // planes that are blended: the last of the overlap

	displaced displacement
	tiles     []stackTile // in which it is compared with the fixed one
	exact     float64     // the overlap as it was measured; 0: it was not, or not to a fraction
	gains     planeGains

	fixedEnd, movingEnd *planeEnd // how bright the planes are that overlap, or may

	counted int // planes, from the first used one on, in which NaN were counted
}

// pairTransform is what counts of the registration of a pair.
type pairTransform struct {
	entry      bool // there is one, gated or not
	loaded     bool
	manual     bool
	rigid      filter.Rigid
	confidence float64
	offsets    *registration.Offsets

	moves   bool // tx, ty and z correlation are known
	tx, ty  float64
	zcorr   float64
	trusted float64 // confidence that weights the translation
}

// overlapSearch is a range of overlaps, o planes at the end of the fixed slice
// against those of the moving slice from plane first on, and what came out.
type overlapSearch struct {
	lo, hi  int
	first   int
	aligned bool // slices are moved to where they lie
	// more is how the best one is used
	take func(best int, correlation float64)
	best int // where no correlation is a number
}

// rect is the part of the canvas that a slice covers, and the offset of the
// slice's origin.
type rect struct {
	y0, y1, x0, x1 int // on the canvas, half open
	dy, dx         int
}

func (r rect) empty() bool { return r.y0 >= r.y1 || r.x0 >= r.x1 }

// voxels turns millimetres into whole voxels, rounded down; a millionth of a
// voxel less than a whole number is that number.
func voxels(mm, voxelUM float64) int {
	return int(math.Floor(min(mm*1000/voxelUM+1e-6, 1e9)))
}

func planStack(ctx context.Context, in Input, opt Options, all []*stackSlice, res *oct.Resources) (*stackPlan, error) {
	p := &stackPlan{opt: opt, slices: all, position: map[int][2]float64{}}
	for i, s := range all[1:] {
		p.moving = append(p.moving, &movingSlice{slice: s, fixed: all[i]})
	}
	if err := p.loadTransforms(ctx, in, res); err != nil {
		return nil, err
	}
	p.place(in, res)
	p.rotate()
	p.overlaps(res)
	return p, nil
}

// find finds all that the voxels say of where slices lie and how bright they are, and
// settles it. centres measures the overlaps that are searched for at the planes' centres.
func (p *stackPlan) find(ctx context.Context, res *oct.Resources, centres func(ctx context.Context) error) error {
	o := &p.opt
	aligned := o.OverlapSearch == SearchAligned && slices.ContainsFunc(p.moving, func(m *movingSlice) bool { return m.search != nil && m.search.aligned })
	matched := o.Blend && (o.BlendMatch == MatchWhole || o.BlendMatch == MatchDepth)
	pictures := aligned || matched || o.RepairShifts == RepairWarn || o.RepairShifts == RepairFix
	s := &surveyor{plan: p, crew: newCrew(res.Workers), res: res}
	defer s.close()
	if pictures {
		if err := s.compare(ctx); err != nil {
			return err
		}
		p.repair(res)
	}
	if err := p.layOut(res); err != nil {
		return err
	}
	if err := centres(ctx); err != nil {
		return err
	}
	if aligned || matched {
		if err := s.measureTiles(ctx); err != nil {
			return err
		}
	}
	p.settle(res)
	if matched {
		p.brighten()
	}
	return nil
}

// loadTransforms reads the registrations of all pairs and decides which count.
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
		manual, err := read(in.Manual)
		if err != nil {
			return err
		}
		if auto == nil && in.Transforms != nil {
			none = append(none, id)
		}
		c, known := in.Config[id]
		m.transform = p.opt.transform(auto, manual, known && c.Skip())
	}
	if len(none) > 0 {
		res.Warnf("no transform for slices %v: placed by the motors alone", none)
	}
	return nil
}

// transform is what counts of the automated and the manual registration of a
// slice; nil: there is none.
func (o *Options) transform(auto, manual *registration.Pair, skip bool) (t pairTransform) {
	if auto != nil && auto.Transform == nil && auto.Metrics == nil {
		auto = nil
	}
	if auto != nil {
		t.entry = auto.Transform != nil
		t.confidence, t.trusted = auto.Confidence(), 1
		if m := auto.Metrics; m != nil && !skip {
			t.moves, t.tx, t.ty, t.zcorr = true, m.TX, m.TY, m.ZCorrelation
		}
		if t.loaded = auto.Transform != nil && !skip && o.admits(auto.Metrics); t.loaded {
			t.rigid, t.offsets, t.trusted = *auto.Transform, auto.Offsets, t.confidence
		}
	}
	if manual != nil && manual.Transform != nil {
		t.entry, t.loaded, t.manual = true, true, true
		t.rigid, t.confidence, t.trusted = *manual.Transform, manual.Confidence(), manual.Confidence()
		if manual.Offsets != nil {
			t.offsets = manual.Offsets
		}
		t.moves, t.tx, t.ty, t.zcorr = true, t.rigid.TX, t.rigid.TY, 1
		if m := manual.Metrics; m != nil {
			t.tx, t.ty, t.zcorr = m.TX, m.TY, m.ZCorrelation
		}
	}
	return t
}

// admits is the gate for transforms, by what the registration says of itself.
func (o *Options) admits(m *registration.Metrics) bool {
	switch {
	case m == nil:
		return true
	case o.LoadMinZCorr > 0 && o.LoadMaxRotation > 0:
		return m.ZCorrelation >= o.LoadMinZCorr && math.Abs(m.Rotation) <= o.LoadMaxRotation
	}
	return !(m.Status == "error" && o.SkipErrorTransforms || m.Status == "warning" && o.SkipWarningTransforms)
}

// place finds the positions of the slices in the plane, by what is recorded.
func (p *stackPlan) place(in Input, res *oct.Resources) {
	first := p.slices[0]
	ids := p.ids()
	for _, id := range ids {
		p.position[id] = [2]float64{}
	}
	if in.Shifts != nil {
		p.shifts = in.Shifts.Name
	}
	if !p.opt.NoXYShift && in.Shifts != nil {
		between, outside := in.Shifts.Absent(ids)
		if len(between) > 0 {
			res.Warnf("%s: slices %v are not there: those beside them are taken for neighbours along z, too", p.shifts, between)
		}
		outside = slices.DeleteFunc(outside, func(id int) bool { return slices.Contains(in.LeftOut, id) })
		if len(outside) > 0 {
			res.Warnf("%s: slices %v are not there: the volume begins or ends without them", p.shifts, outside)
		}
		at, warnings := in.Shifts.Positions(ids)
		for _, w := range warnings {
			res.Warnf("%s", w)
		}
		for id, mm := range at {
			p.position[id] = [2]float64{mm[0] * 1000 / first.voxel[2], mm[1] * 1000 / first.voxel[1]}
		}
		if !p.opt.IgnoreOrigins {
			for _, s := range p.slices {
				at := p.position[s.id]
				p.position[s.id] = [2]float64{at[0] + s.origin[1], at[1] + s.origin[0]}
			}
		}
		p.centred = true
	}
	if p.opt.AccumulateTranslations && slices.ContainsFunc(p.moving, func(m *movingSlice) bool { return m.transform.loaded || m.transform.moves }) {
		for i, d := range p.accumulate() {
			id := p.moving[i].slice.id
			at := p.position[id]
			p.position[id] = [2]float64{at[0] - d[0], at[1] - d[1]}
		}
		p.centred = true
	}
}

func (p *stackPlan) ids() (ids []int) {
	for _, s := range p.slices {
		ids = append(ids, s.id)
	}
	return ids
}

// firstSlice is the first slice as one that is put on an empty canvas. Call it after settle.
func (p *stackPlan) firstSlice() *movingSlice {
	s := p.slices[0]
	return &movingSlice{slice: s, place: p.first, action: "none", end: min(s.shape[0], p.depth), gains: p.firstGains}
}

// layOut finds the canvas that holds all slices, and where they are on it.
func (p *stackPlan) layOut(res *oct.Resources) error {
	first := p.slices[0]
	p.canvas = [2]int{first.shape[1], first.shape[2]}
	if p.centred {
		if err := p.centre(p.ids()); err != nil {
			return err
		}
	}
	for i, s := range p.slices {
		at := p.position[s.id]
		r := rect{dx: int(math.RoundToEven(at[0])), dy: int(math.RoundToEven(at[1]))}
		r.y0, r.y1 = max(0, r.dy), min(p.canvas[0], r.dy+s.shape[1])
		r.x0, r.x1 = max(0, r.dx), min(p.canvas[1], r.dx+s.shape[2])
		if i > 0 {
			p.moving[i-1].place = r
		} else {
			p.first = r
		}
		if r.y0 > r.dy || r.x0 > r.dx || r.y1 < r.dy+s.shape[1] || r.x1 < r.dx+s.shape[2] {
			res.Warnf("%s: planes of %d × %d are larger than the %d × %d of %s: cropped to the canvas of %d × %d",
				s.path, s.shape[1], s.shape[2], first.shape[1], first.shape[2], first.path, p.canvas[0], p.canvas[1])
		}
	}
	return nil
}

// centre moves the origin to the smallest position and finds the canvas.
func (p *stackPlan) centre(ids []int) error {
	mid := p.position[ids[len(ids)/2]]
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, id := range ids {
		at := p.position[id]
		for d := range 2 {
			at[d] -= mid[d]
			lo[d], hi[d] = min(lo[d], at[d]), max(hi[d], at[d])
		}
		p.position[id] = at
	}
	for _, id := range ids {
		at := p.position[id]
		p.position[id] = [2]float64{at[0] - lo[0], at[1] - lo[1]}
	}
	for d := range 2 { // (x, y) to (y, x)
		n := math.Ceil(hi[d] + float64(p.slices[0].shape[2-d]) - lo[d])
		if !(n < 1<<40) {
			what := "shifts"
			if p.opt.AccumulateTranslations {
				what = "shifts and accumulated translations"
			}
			return oct.BadInput("%s: %s spread the slices over %.3g pixels", cmp.Or(p.shifts, p.slices[0].path), what, n)
		}
		p.canvas[1-d] = int(n)
	}
	return nil
}

// accumulate is the running sum of the pairs' translations (x, y), as it is
// taken off the positions of the moving slices.
func (p *stackPlan) accumulate() [][2]float64 {
	o := &p.opt
	var sum [2]float64
	acc := make([][2]float64, len(p.moving))
	for i, m := range p.moving {
		t := m.transform
		if t.moves && !(o.TranslationMinZCorr > 0 && t.zcorr < o.TranslationMinZCorr) {
			tx, ty := t.tx, t.ty
			if o.MaxPairwiseTranslation > 0 && math.Hypot(tx, ty) >= 0.95*o.MaxPairwiseTranslation {
				tx, ty = 0, 0
			}
			if o.ConfidenceWeightTranslations {
				tx, ty = tx*t.trusted, ty*t.trusted
			}
			sum = [2]float64{sum[0] + tx, sum[1] + ty}
		}
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

// smallRotation and smallTranslation are what is not worth resampling for.
const (
	smallRotation    = 0.00175 // radians
	smallTranslation = 1       // pixels
)

// rotate decides what is applied of the transforms.
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
	angles := movingAverage(raw, o.SmoothWindow)
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

// movingAverage averages over a window of min(w, n) values, of which, for an
// even window, one more lies before than behind; the first and last ⌊w/2⌋ stay
// as they are. A window of 0 or 1 changes nothing.
func movingAverage(raw []float64, w int) []float64 {
	w = min(w, len(raw))
	out := slices.Clone(raw)
	if w < 2 {
		return out
	}
	for i := w / 2; i < len(raw)-w/2; i++ {
		sum := 0.0
		for _, v := range raw[i-w/2 : i-w/2+w] {
			sum += v
		}
		out[i] = sum / float64(w)
	}
	return out
}

// overlaps says how far the pairs overlap, or what has to be measured for that.
func (p *stackPlan) overlaps(res *oct.Resources) {
	o := &p.opt
	z := p.slices[0].voxel[0]
	interval, reach := voxels(o.SlicingIntervalMM, z), voxels(o.SearchRangeMM, z)
	for _, m := range p.moving {
		m.expected = max(0, m.slice.shape[0]-o.MovingZFirstIndex-interval)
		m.movingZ = o.MovingZFirstIndex
		switch {
		case o.UseExpectedOverlap:
			m.overlap, m.blend, m.source = m.expected, m.expected, "expected"
			m.planRefine(o)
		case m.transform.loaded && m.transform.offsets != nil:
			m.movingZ = m.transform.offsets.MovingZ
			m.overlap = max(0, m.fixed.shape[0]-m.transform.offsets.FixedZ)
			m.blend, m.correlation, m.source = m.overlap, 1, "registration"
		default:
			m.planSearch(o, interval, reach, res)
		}
	}
}

// planRefine asks for the best-correlated blend depth within an expected overlap.
func (m *movingSlice) planRefine(o *Options) {
	t := m.transform
	confident := !t.entry
	if t.entry {
		c := 0.0
		if t.loaded {
			c = t.confidence
		}
		confident = c >= o.BlendZRefineMinConfidence
	}
	if o.BlendZRefineVox <= 0 || m.overlap <= 0 || !confident {
		return
	}
	lo := max(1, m.overlap-o.BlendZRefineVox)
	hi := min(m.overlap, m.fixed.shape[0], m.slice.shape[0]-m.movingZ)
	if lo > hi {
		return
	}
	m.search = &overlapSearch{lo: lo, hi: hi, first: m.movingZ, best: m.overlap, take: func(best int, _ float64) { m.blend = best }}
}

// planSearch asks for the best-correlated overlap.
func (m *movingSlice) planSearch(o *Options, interval, reach int, res *oct.Resources) {
	depth := min(m.fixed.shape[0], m.slice.shape[0])
	e := depth - interval
	aligned := o.OverlapSearch == SearchAligned
	take := func(found int, correlation float64) {
		m.correlation = correlation
		if aligned {
			found += m.movingZ
		}
		if o.ZOverlapMinCorr > 0 && correlation < o.ZOverlapMinCorr {
			m.overlap, m.fallback, m.source = m.expected, true, "correlation_fallback"
			res.Warnf("slices %d and %d: the best overlap of %d planes correlates by %.3f, under %v: the expected overlap of %d is used",
				m.fixed.id, m.slice.id, found, correlation, o.ZOverlapMinCorr, m.expected)
		} else {
			// the search counts from plane 0, the slice starts at moving_z
			m.overlap, m.source = max(0, found-m.movingZ), "correlation"
		}
		m.blend = m.overlap
	}
	first := 0
	if aligned { // of the planes that are used: those above may be no tissue
		first = m.movingZ
		e, depth = e-first, min(m.fixed.shape[0], m.slice.shape[0]-first)
	}
	lo, hi := max(1, e-reach), min(depth, e+reach)
	if lo >= hi {
		take(e, 0)
		return
	}
	m.search = &overlapSearch{lo: lo, hi: hi, first: first, best: e, aligned: aligned, take: take}
}

// settle makes overlaps consistent and finds where the slices are along z.
func (p *stackPlan) settle(res *oct.Resources) {
	p.wholePlanes()
	for _, m := range p.moving {
		m.measured = Match{m.fixed.id, m.slice.id, m.overlap, m.blend, m.movingZ, m.correlation, m.fallback}
	}
	p.consistency(res)
	cursor := p.slices[0].shape[0]
	p.depth = cursor
	for _, m := range p.moving {
		p.depth += max(0, m.slice.shape[0]-m.movingZ-m.overlap)
	}
	for _, m := range p.moving {
		planes := max(0, m.slice.shape[0]-m.movingZ)
		switch {
		case planes == 0:
			res.Warnf("%s: has %d planes, of which the first %d are left out: nothing of it is used", m.slice.path, m.slice.shape[0], m.movingZ)
		case m.overlap > planes:
			res.Warnf("%s: the overlap of %d planes is larger than the slice, which has %d from plane %d on", m.slice.path, m.overlap, planes, m.movingZ)
		case m.overlap > m.fixed.shape[0]:
			res.Warnf("%s: the overlap of %d planes is larger than slice %d, which has %d", m.slice.path, m.overlap, m.fixed.id, m.fixed.shape[0])
		}
		m.from = cursor
		m.start = cursor - m.overlap
		m.end = min(m.start+planes, p.depth)
		m.mix = min(m.blend, m.overlap)
		cursor = m.end
	}
}

// consistency replaces overlaps that are far from the median of all, on slices
// that nothing speaks for, by those of their neighbours.
func (p *stackPlan) consistency(res *oct.Resources) {
	if len(p.moving) < 3 {
		return
	}
	for _, key := range []string{"overlap_voxels", "blend_overlap_voxels"} {
		field := func(m *movingSlice) *int {
			if key == "overlap_voxels" {
				return &m.overlap
			}
			return &m.blend
		}
		var all []float64
		for _, m := range p.moving {
			all = append(all, float64(*field(m)))
		}
		med := filter.MedianOf(all)
		for i, m := range p.moving {
			confidence := 0.5
			if m.transform.loaded {
				confidence = m.transform.confidence
			}
			v := field(m)
			if confidence >= p.opt.ConfidenceHigh || math.Abs(float64(*v)-med) <= 0.3*max(med, 1) {
				continue
			}
			var near []float64
			for _, j := range []int{i - 1, i + 1} {
				if j >= 0 && j < len(p.moving) {
					near = append(near, float64(*field(p.moving[j])))
				}
			}
			to := int(filter.MedianOf(near))
			p.corrections = append(p.corrections, Correction{m.slice.id, key, *v, to})
			if key == "overlap_voxels" && *v != to {
				res.Warnf("slices %d and %d: an overlap of %d planes is far from the median of %v: %d planes, as its neighbours, are used", m.fixed.id, m.slice.id, *v, med, to)
			}
			*v = to
		}
	}
}

// maxVolume is the size, in bytes, from which a volume that is far larger than
// its slices is taken for a mistake in the shifts.
const maxVolume = 1 << 40

// checkCanvas refuses volumes that only wrong shifts can make.
func (p *stackPlan) checkCanvas() error {
	first := p.slices[0]
	area := float64(p.canvas[0]) * float64(p.canvas[1])
	bytes := area * float64(p.depth) * 4
	spread := area > 4*float64(first.shape[1])*float64(first.shape[2])
	if spread && bytes >= maxVolume || bytes >= math.MaxInt64/4 {
		return oct.BadInput("%s: shifts make a canvas of %d × %d pixels for slices of %d × %d: a volume of %d planes and %s", cmp.Or(p.shifts, first.path),
			p.canvas[0], p.canvas[1], first.shape[1], first.shape[2], p.depth, terabytes(bytes))
	}
	return nil
}

func terabytes(n float64) string { return fmt.Sprintf("%.1f TB", n/1e12) }
