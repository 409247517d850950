package stack

import (
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/stack/tables"
)

// overlaps sets the overlaps of all pairs, or the searches that will measure them.
func (p *stackPlan) overlaps(res *oct.Resources) {
	o := &p.opt
	z := p.slices[0].voxel[0]
	interval, reach := voxels(o.SlicingIntervalMM, z), voxels(o.SearchRangeMM, z)
	for _, m := range p.moving {
		m.expected = max(0, m.slice.shape[0]-o.MovingZFirstIndex-interval)
		m.movingZ = o.MovingZFirstIndex
		switch {
		case o.OverlapPlanes != nil:
			m.overlap, m.blend, m.source = *o.OverlapPlanes, *o.OverlapPlanes, "given"
		case m.cuts != 1 && !(m.transform.loaded && m.transform.offsets != nil):
			m.placeByCuts(voxels(float64(m.cuts)*o.SlicingIntervalMM, z))
		case m.made && !o.UseExpectedOverlap:
			m.overlap, m.blend, m.source, m.placed = m.expected, m.expected, "interpolated", true
		case o.UseExpectedOverlap:
			m.overlap, m.blend, m.source = m.expected, m.expected, "expected"
			m.planRefine(o)
		case m.transform.loaded && m.transform.offsets != nil:
			m.movingZ = m.transform.offsets.MovingZ
			m.overlap = max(0, m.fixed.shape[0]-m.transform.offsets.FixedZ)
			m.blend, m.correlation, m.source = m.overlap, m.transform.agreement, "registration"
		default:
			m.planSearch(o, interval, reach, res)
		}
	}
}

// placeByCuts places a slice below the preceding one by the thickness that the blade cut off between them, in voxels.
// If the preceding slice is shallower than that, the planes between them stay empty.
func (m *movingSlice) placeByCuts(below int) {
	overlap := m.fixed.shape[0] - m.movingZ - below
	m.overlap, m.gap = max(0, overlap), max(0, -overlap)
	m.expected, m.blend, m.source, m.placed = m.overlap, m.overlap, "left_out", true
}

// planRefine requests a search for the best-correlated blend depth within an expected overlap.
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

// planSearch requests a search for the best-correlated overlap.
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

// settle makes the overlaps consistent and determines the positions of the slices along z.
func (p *stackPlan) settle(res *oct.Resources) {
	p.wholePlanes()
	for _, m := range p.moving {
		m.measured = tables.Match{FixedID: m.fixed.id, MovingID: m.slice.id, Overlap: m.overlap, Blend: m.blend, MovingZStart: m.movingZ, Correlation: m.correlation, Fallback: m.fallback}
	}
	p.consistency(res)
	cursor := p.slices[0].shape[0]
	p.depth = cursor
	for _, m := range p.moving {
		p.depth += max(0, m.slice.shape[0]-m.movingZ-m.overlap) + m.gap
	}
	p.base.end = min(p.slices[0].shape[0], p.depth)
	for _, m := range p.moving {
		planes := max(0, m.slice.shape[0]-m.movingZ)
		switch {
		case planes == 0:
			res.Warnf("%s: has %d planes, of which the first %d are left out: none is used", m.slice.path, m.slice.shape[0], m.movingZ)
		case m.gap > 0:
			res.Warnf("slices %d and %d: no slice shows the %d planes between them: they stay empty", m.fixed.id, m.slice.id, m.gap)
		case m.overlap > planes:
			res.Warnf("%s: the overlap of %d planes is larger than the slice, which has %d from plane %d on", m.slice.path, m.overlap, planes, m.movingZ)
		case m.overlap > m.fixed.shape[0]:
			res.Warnf("%s: the overlap of %d planes is larger than slice %d, which has %d", m.slice.path, m.overlap, m.fixed.id, m.fixed.shape[0])
		}
		m.from = cursor
		m.start = cursor - m.overlap + m.gap
		m.end = min(m.start+planes, p.depth)
		m.mix = min(m.blend, m.overlap)
		cursor = m.end
	}
}

// consistency replaces overlaps that are far from the median by those of their neighbours, for slices whose
// registration has no high confidence. Slices that the slicing interval places stay, and say nothing of others.
func (p *stackPlan) consistency(res *oct.Resources) {
	var moving []*movingSlice
	for _, m := range p.moving {
		if !m.placed {
			moving = append(moving, m)
		}
	}
	if len(moving) < 3 {
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
		for _, m := range moving {
			all = append(all, float64(*field(m)))
		}
		med := filter.MedianOf(all)
		for i, m := range moving {
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
				if j >= 0 && j < len(moving) {
					near = append(near, float64(*field(moving[j])))
				}
			}
			to := int(filter.MedianOf(near))
			p.corrections = append(p.corrections, tables.Correction{MovingID: m.slice.id, Field: key, From: *v, To: to})
			if key == "overlap_voxels" && *v != to {
				res.Warnf("slices %d and %d: an overlap of %d planes is far from the median of %v: %d planes, as its neighbours, are used", m.fixed.id, m.slice.id, *v, med, to)
			}
			*v = to
		}
	}
}
