package stack

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"strata/pkg/filter"
	"strata/pkg/oct/stack/tables"
)

// oracleSlice is a slice and what is known about it, as plain numbers.
type oracleSlice struct {
	id         int
	z, y, x    int
	v          []float64 // (z, y, x)
	auto       *oracleTransform
	manual     *oracleTransform
	configSkip bool
}

type oracleTransform struct {
	angle, tx, ty, cx, cy float64
	offsets               *[2]int
	metrics               bool
	status                string
	conf, mtx, mty        float64
	zcorr, rot            float64
}

func (s *oracleSlice) at(z, y, x int) float64 { return s.v[(z*s.y+y)*s.x+x] }

// oracleResult is a volume made the plain way: everything in memory, one loop
// per sentence of the specification.
type oracleResult struct {
	nz, ny, nx int
	v          []float64
	matches    []tables.Match
	decisions  []tables.Decision
	actions    map[int]string
	gains      map[int]float64
	refined    map[int][2]int
}

func oracleMedian(v []float64) float64 {
	v = slices.Clone(v)
	sort.Float64s(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

// oracleNCC correlates o planes of two slices from planes a and b on.
func oracleNCC(f, m *oracleSlice, a, b, o int) float64 {
	h, w := min(f.y, m.y), min(f.x, m.x)
	g := int(math.Floor(float64(min(h, w)) / 4))
	var p, q []float64
	for k := range o {
		for y := g; y < h-g; y++ {
			for x := g; x < w-g; x++ {
				p, q = append(p, f.at(a+k, y, x)), append(q, m.at(b+k, y, x))
			}
		}
	}
	stat := func(v []float64) (mean, std float64) {
		for _, x := range v {
			mean += x
		}
		mean /= float64(len(v))
		for _, x := range v {
			std += (x - mean) * (x - mean)
		}
		return mean, math.Sqrt(std / float64(len(v)))
	}
	pm, ps := stat(p)
	qm, qs := stat(q)
	sum := 0.0
	for i := range p {
		sum += (p[i] - pm) / (ps + 1e-8) * ((q[i] - qm) / (qs + 1e-8))
	}
	return sum / float64(len(p))
}

// oracleRotate resamples a plane.
func oracleRotate(p []float64, ny, nx int, angle, tx, ty, cx, cy float64) []float64 {
	var pos []float64
	for _, v := range p {
		if v > 0 {
			pos = append(pos, v)
		}
	}
	fill := 0.0
	if len(pos) > 0 {
		sort.Float64s(pos)
		at := float64(len(pos)-1) * 0.01
		lo := int(at)
		hi := min(lo+1, len(pos)-1)
		fill = pos[lo] + (pos[hi]-pos[lo])*(at-float64(lo))
	}
	out := make([]float64, len(p))
	get := func(y, x int) float64 { return p[min(max(y, 0), ny-1)*nx+min(max(x, 0), nx-1)] }
	for y := range ny {
		for x := range nx {
			dx, dy := float64(x)-cx, float64(y)-cy
			u := math.Cos(angle)*dx - math.Sin(angle)*dy + cx + tx
			v := math.Sin(angle)*dx + math.Cos(angle)*dy + cy + ty
			if u < -0.5 || v < -0.5 || u > float64(nx)-0.5 || v > float64(ny)-0.5 {
				out[y*nx+x] = fill
				continue
			}
			u0, v0 := int(math.Floor(u)), int(math.Floor(v))
			a, b := u-float64(u0), v-float64(v0)
			out[y*nx+x] = (1-b)*((1-a)*get(v0, u0)+a*get(v0, u0+1)) + b*((1-a)*get(v0+1, u0)+a*get(v0+1, u0+1))
		}
	}
	return out
}

func oracleStack(sl []*oracleSlice, shifts map[[2]int][2]float64, voxel [3]float64, o Options) *oracleResult {
	r := &oracleResult{actions: map[int]string{}, gains: map[int]float64{}, refined: map[int][2]int{}}
	toVoxels := func(mm float64) int { return int(math.Floor(mm*1000/voxel[0] + 1e-6)) }
	interval, reach := toVoxels(o.SlicingIntervalMM), toVoxels(o.SearchRangeMM)
	first := sl[0]
	n := len(sl)

	// which transforms count
	type use struct {
		oracleTransform
		manual bool
	}
	loaded := map[int]*use{}
	pairs := map[int][3]float64{}
	weight := map[int]float64{}
	entry := map[int]bool{}
	for _, s := range sl[1:] {
		weight[s.id] = 1
		if t := s.auto; t != nil {
			entry[s.id] = true
			good := !s.configSkip
			if t.metrics {
				if !s.configSkip {
					pairs[s.id] = [3]float64{t.mtx, t.mty, t.zcorr}
				}
				if o.LoadMinZCorr > 0 && o.LoadMaxRotation > 0 {
					good = good && t.zcorr >= o.LoadMinZCorr && math.Abs(t.rot) <= o.LoadMaxRotation
				} else {
					good = good && !(o.SkipErrorTransforms && t.status == "error") && !(o.SkipWarningTransforms && t.status == "warning")
				}
			}
			if good {
				loaded[s.id] = &use{*t, false}
				weight[s.id] = t.conf
			}
		}
		if t := s.manual; t != nil {
			u := &use{*t, true}
			if old := loaded[s.id]; t.offsets == nil && old != nil {
				u.offsets = old.offsets
			}
			loaded[s.id], entry[s.id], weight[s.id] = u, true, t.conf
			if t.metrics {
				pairs[s.id] = [3]float64{t.mtx, t.mty, t.zcorr}
			} else {
				pairs[s.id] = [3]float64{t.tx, t.ty, 1}
			}
		}
	}

	// positions
	px, py := make([]float64, n), make([]float64, n)
	moved := false
	if !o.NoXYShift {
		moved = true
		named := map[int]bool{}
		for k := range shifts {
			named[k[0]], named[k[1]] = true, true
		}
		var ids []int
		for id := range named {
			ids = append(ids, id)
		}
		sort.Ints(ids)
		x, y := 0.0, 0.0
		for i, id := range ids {
			if i > 0 {
				d := shifts[[2]int{ids[i-1], id}]
				x, y = x+d[0], y+d[1]
			}
			for k, s := range sl {
				if s.id == id {
					px[k], py[k] = x*1000/voxel[2], y*1000/voxel[1]
				}
			}
		}
	}
	if o.AccumulateTranslations && len(loaded)+len(pairs) > 0 {
		moved = true
		var sx, sy []float64
		x, y := 0.0, 0.0
		for _, s := range sl[1:] {
			if p, ok := pairs[s.id]; ok && (o.TranslationMinZCorr == 0 || p[2] >= o.TranslationMinZCorr) {
				if o.MaxPairwiseTranslation == 0 || math.Hypot(p[0], p[1]) < 0.95*o.MaxPairwiseTranslation {
					w := 1.0
					if o.ConfidenceWeightTranslations {
						w = weight[s.id]
					}
					x, y = x+w*p[0], y+w*p[1]
				}
			}
			sx, sy = append(sx, x), append(sy, y)
		}
		if sigma := o.TranslationSmoothSigma; sigma > 0 && len(sx) >= 3 {
			smooth := func(v []float64) []float64 {
				out := make([]float64, len(v))
				radius := int(4*sigma + 0.5)
				for i := range v {
					sum, norm := 0.0, 0.0
					for j := -radius; j <= radius; j++ {
						k := i + j
						for k < 0 || k >= len(v) {
							if k < 0 {
								k = -1 - k
							} else {
								k = 2*len(v) - 1 - k
							}
						}
						w := math.Exp(-float64(j*j) / (2 * sigma * sigma))
						sum, norm = sum+w*v[k], norm+w
					}
					out[i] = sum / norm
				}
				return out
			}
			sx, sy = smooth(sx), smooth(sy)
		}
		for i := range sx {
			if l := math.Hypot(sx[i], sy[i]); o.MaxCumulativeDriftPx > 0 && l > o.MaxCumulativeDriftPx {
				sx[i], sy[i] = sx[i]/l*o.MaxCumulativeDriftPx, sy[i]/l*o.MaxCumulativeDriftPx
			}
			px[i+1], py[i+1] = px[i+1]-sx[i], py[i+1]-sy[i]
		}
	}
	r.ny, r.nx = first.y, first.x
	if moved {
		x0, y0, x1, y1 := slices.Min(px), slices.Min(py), slices.Max(px), slices.Max(py)
		for i := range px {
			px[i], py[i] = px[i]-x0, py[i]-y0
		}
		r.nx, r.ny = int(math.Ceil(x1-x0+float64(first.x)-1e-9)), int(math.Ceil(y1-y0+float64(first.y)-1e-9))
	}

	// rotations
	limit := func(a float64) float64 {
		if o.MaxRotationDeg > 0 {
			return math.Copysign(math.Min(math.Abs(a), o.MaxRotationDeg*math.Pi/180), a)
		}
		return a
	}
	var angles []float64
	for _, s := range sl[1:] {
		if u := loaded[s.id]; u != nil {
			angles = append(angles, limit(u.angle))
		}
	}
	smoothed := slices.Clone(angles)
	if w := min(o.SmoothWindow, len(angles)); w >= 2 {
		for i := w / 2; i < len(angles)-w/2; i++ {
			smoothed[i] = 0
			for j := range w {
				smoothed[i] += angles[i-w/2+j] / float64(w)
			}
		}
	}
	angle := map[int]float64{}
	for _, s := range sl[1:] {
		if loaded[s.id] != nil {
			angle[s.id], smoothed = smoothed[0], smoothed[1:]
		}
	}

	// overlaps
	sources := []string{}
	for i, m := range sl[1:] {
		f := sl[i]
		t := loaded[m.id]
		match := tables.Match{FixedID: f.id, MovingID: m.id, MovingZStart: o.MovingZFirstIndex}
		expect := max(0, m.z-o.MovingZFirstIndex-interval)
		source := ""
		switch {
		case o.UseExpectedOverlap:
			source = "expected"
			match.Overlap, match.Blend = expect, expect
			allowed := !entry[m.id] || t != nil && t.conf >= o.BlendZRefineMinConfidence
			if o.BlendZRefineVox > 0 && expect > 0 && allowed {
				best := math.Inf(-1)
				for d := max(1, expect-o.BlendZRefineVox); d <= min(expect, f.z); d++ {
					if c := oracleNCC(f, m, f.z-d, o.MovingZFirstIndex, d); c > best {
						best, match.Blend = c, d
					}
				}
			}
		case t != nil && t.offsets != nil:
			source = "registration"
			match.MovingZStart = t.offsets[1]
			match.Overlap = max(0, f.z-t.offsets[0])
			match.Blend = match.Overlap
			if t.metrics {
				match.Correlation = t.zcorr
			}
		default:
			source = "correlation"
			d := min(f.z, m.z)
			e := d - interval
			found, corr := e, 0.0
			if lo, hi := max(1, e-reach), min(d, e+reach); lo < hi {
				corr = math.Inf(-1)
				for ov := lo; ov <= hi; ov++ {
					if c := oracleNCC(f, m, f.z-ov, 0, ov); c > corr {
						found, corr = ov, c
					}
				}
			}
			match.Correlation = corr
			if o.ZOverlapMinCorr > 0 && corr < o.ZOverlapMinCorr {
				match.Overlap, match.Fallback, source = expect, true, "correlation_fallback"
			} else {
				match.Overlap = max(0, found-o.MovingZFirstIndex)
			}
			match.Blend = match.Overlap
		}
		r.matches = append(r.matches, match)
		sources = append(sources, source)
	}

	// consistency
	final := slices.Clone(r.matches)
	if len(final) >= 3 {
		for _, field := range []func(*tables.Match) *int{func(m *tables.Match) *int { return &m.Overlap }, func(m *tables.Match) *int { return &m.Blend }} {
			var all []float64
			for i := range final {
				all = append(all, float64(*field(&final[i])))
			}
			med := oracleMedian(all)
			for i := range final {
				conf := 0.5
				if u := loaded[final[i].MovingID]; u != nil {
					conf = u.conf
				}
				v := field(&final[i])
				if conf < o.ConfidenceHigh && math.Abs(float64(*v)-med) > 0.3*math.Max(med, 1) {
					var near []float64
					if i > 0 {
						near = append(near, float64(*field(&final[i-1])))
					}
					if i+1 < len(final) {
						near = append(near, float64(*field(&final[i+1])))
					}
					*v = int(oracleMedian(near))
				}
			}
		}
	}
	r.nz = first.z
	for i, m := range final {
		r.nz += max(0, sl[i+1].z-m.MovingZStart-m.Overlap)
		d := tables.Decision{SliceID: m.MovingID, FixedID: m.FixedID, Source: sources[i], Overlap: m.Overlap, Blend: m.Blend, Correlation: m.Correlation}
		if u := loaded[m.MovingID]; u != nil {
			d.Loaded, d.Manual, d.Confidence = true, u.manual, u.conf
		}
		r.decisions = append(r.decisions, d)
	}

	// assembly
	r.v = make([]float64, r.nz*r.ny*r.nx)
	cell := func(z, y, x int) *float64 { return &r.v[(z*r.ny+y)*r.nx+x] }
	put := func(k int) (dy, dx, y0, y1, x0, x1 int) {
		dy, dx = int(math.RoundToEven(py[k])), int(math.RoundToEven(px[k]))
		return dy, dx, max(0, dy), min(r.ny, dy+sl[k].y), max(0, dx), min(r.nx, dx+sl[k].x)
	}
	dy, dx, y0, y1, x0, x1 := put(0)
	for z := range first.z {
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				*cell(z, y, x) = first.at(z, y-dy, x-dx)
			}
		}
	}
	cursor := first.z
	for i, match := range final {
		s := sl[i+1]
		depth := max(0, s.z-match.MovingZStart)
		planes := make([][]float64, depth)
		u := loaded[s.id]
		action := "none"
		tx, ty := 0.0, 0.0
		if u != nil {
			only := u.conf < o.ConfidenceHigh || o.RotationOnly || o.AccumulateTranslations
			if !only {
				tx, ty = u.tx, u.ty
			}
			switch {
			case u.conf < o.ConfidenceLow:
				action = "skip"
			case math.Abs(angle[s.id]) < 0.00175 && math.Abs(tx) < 1 && math.Abs(ty) < 1:
				action = "identity"
			case only:
				action = "rotation"
			default:
				action = "full"
			}
		}
		r.actions[s.id] = action
		for k := range planes {
			z := match.MovingZStart + k
			planes[k] = slices.Clone(s.v[z*s.y*s.x : (z+1)*s.y*s.x])
			if action == "rotation" || action == "full" {
				planes[k] = oracleRotate(planes[k], s.y, s.x, angle[s.id], tx, ty, u.cx, u.cy)
			}
			for j, v := range planes[k] { // slices are float32
				planes[k][j] = float64(float32(v))
			}
		}
		dy, dx, y0, y1, x0, x1 := put(i + 1)
		start := cursor - match.Overlap
		end := min(start+depth, r.nz)
		bl := min(match.Blend, match.Overlap)
		if o.Blend && bl > 0 && start < cursor {
			from, to := match.Overlap-bl, min(match.Overlap, end-start) // planes of the slice
			if y0 < y1 && x0 < x1 {
				from = max(from, -start)
				// brightness
				var p, q []float64
				for k := from; k < to; k++ {
					for y := y0; y < y1; y++ {
						for x := x0; x < x1; x++ {
							a, b := *cell(start+k, y, x), planes[k][(y-dy)*s.x+x-dx]
							if a > 0 && b > 0 {
								p, q = append(p, a), append(q, b)
							}
						}
					}
				}
				if len(p) > 1000 {
					mp, mq := oracleMedian(p), oracleMedian(q)
					if mp > 1e-6 && mq > 1e-6 {
						g := math.Min(math.Max(mp/mq, 0.5), 2)
						if math.Abs(g-1) > 0.01 {
							r.gains[s.id] = g
							for _, plane := range planes {
								for j := range plane {
									plane[j] *= g
								}
							}
						}
					}
				}
				// shift in the plane; the phase correlation has tests of its own
				sy, sx := 0, 0
				if o.BlendRefinementPx > 0 && from < to {
					h, w := y1-y0, x1-x0
					a, b := make([]float32, h*w), make([]float32, h*w)
					common := 0
					for y := range h {
						for x := range w {
							u, v := 0.0, 0.0
							for k := from; k < to; k++ {
								u += *cell(start+k, y0+y, x0+x)
								v += planes[k][(y0+y-dy)*s.x+x0+x-dx]
							}
							a[y*w+x], b[y*w+x] = float32(u/float64(to-from)), float32(v/float64(to-from))
							if u > 0 && v > 0 {
								common++
							}
						}
					}
					if common >= 1000 {
						sy, sx = filter.PhaseShift(a, b, h, w)
						if l := math.Hypot(float64(sy), float64(sx)); l < 0.1 || l > o.BlendRefinementPx {
							sy, sx = 0, 0
						} else {
							r.refined[s.id] = [2]int{sy, sx}
						}
					}
				}
				moving := func(k, y, x int) float64 { // moved content, edges repeated
					yy, xx := min(max(y-sy, y0), y1-1), min(max(x-sx, x0), x1-1)
					return planes[k][(yy-dy)*s.x+xx-dx]
				}
				for k := from; k < to; k++ {
					fixedMore, movingMore := 0, 0
					for y := y0; y < y1; y++ {
						for x := x0; x < x1; x++ {
							if *cell(start+k, y, x) > 0 {
								fixedMore++
							}
							if moving(k, y, x) > 0 {
								movingMore++
							}
						}
					}
					for y := y0; y < y1; y++ {
						for x := x0; x < x1; x++ {
							c, b := cell(start+k, y, x), moving(k, y, x)
							if bl == 1 {
								if movingMore >= fixedMore {
									*c = b
								}
								continue
							}
							w := 0.5 * (1 - math.Cos(math.Pi*float64(k-(match.Overlap-bl))/float64(bl-1)))
							switch {
							case *c > 0 && b > 0:
								*c = (1-w)**c + w*b
							case b > 0:
								*c = b
							case !(*c > 0):
								*c = 0
							}
						}
					}
				}
			}
			for k := max(match.Overlap, -start); k < end-start; k++ {
				for y := y0; y < y1; y++ {
					for x := x0; x < x1; x++ {
						*cell(start+k, y, x) = planes[k][(y-dy)*s.x+x-dx]
					}
				}
			}
		} else {
			for k := max(0, -start); k < end-start; k++ {
				for y := y0; y < y1; y++ {
					for x := x0; x < x1; x++ {
						*cell(start+k, y, x) = planes[k][(y-dy)*s.x+x-dx]
					}
				}
			}
		}
		cursor = end
	}
	return r
}

// oracleSpecimen makes slices of one textured block, with empty corners.
func oracleSpecimen(rng *rand.Rand, n int, vary bool) []*oracleSlice {
	ny, nx, step := 22+rng.IntN(14), 22+rng.IntN(14), 4+rng.IntN(5)
	depth := step + 2 + rng.IntN(8)
	bz, by, bx := step*n+depth+4, ny+16, nx+16
	block := make([]float64, bz*by*bx)
	for range 40 {
		z, y, x, s, a := rng.Float64()*float64(bz), rng.Float64()*float64(by), rng.Float64()*float64(bx), 2+rng.Float64()*3, rng.Float64()*200
		for k := range bz {
			for j := range by {
				for i := range bx {
					d := (float64(k)-z)*(float64(k)-z) + (float64(j)-y)*(float64(j)-y) + (float64(i)-x)*(float64(i)-x)
					if d < 9*s*s {
						block[(k*by+j)*bx+i] += a * math.Exp(-d/(2*s*s))
					}
				}
			}
		}
	}
	var out []*oracleSlice
	id := rng.IntN(4)
	for k := range n {
		s := &oracleSlice{id: id, z: depth, y: ny, x: nx}
		id += 1 + rng.IntN(3)/2
		if vary {
			s.z, s.y, s.x = max(2, s.z-rng.IntN(3)), s.y-3+rng.IntN(7), s.x-3+rng.IntN(7)
		}
		oy, ox, gain := 6+rng.IntN(3), 6+rng.IntN(3), 0.7+0.6*rng.Float64()
		for z := range s.z {
			for y := range s.y {
				for x := range s.x {
					v := (100 + block[((k*step+z)*by+min(y+oy, by-1))*bx+min(x+ox, bx-1)]) * gain
					if x+y < 4 || rng.IntN(200) == 0 {
						v = 0
					}
					s.v = append(s.v, math.Round(v))
				}
			}
		}
		out = append(out, s)
	}
	return out
}
