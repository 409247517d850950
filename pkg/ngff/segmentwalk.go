package ngff

// segmentWalk goes through all boxes that are products of segments, one span of
// segments for each axis.
type segmentWalk struct {
	cut   *[rank]*cutting
	spans [rank]span
	begun bool

	at      point // the segments' indices
	out, in box   // output voxels and the input samples they need
	unit    point // output unit
	tiles   int   // input tiles that take part: 1, or 2 for each seam
}

func newSegmentWalk(c *[rank]*cutting, spans [rank]span) *segmentWalk {
	return &segmentWalk{cut: c, spans: spans}
}

func (w *segmentWalk) next() bool {
	if !w.begun {
		w.begun = true
		for d := range rank {
			w.at[d] = w.spans[d].first
		}
	} else {
		d := rank - 1
		for ; d >= 0; d-- {
			if w.at[d]++; w.at[d] < w.spans[d].end {
				break
			}
			w.at[d] = w.spans[d].first
		}
		if d < 0 {
			return false
		}
	}
	w.tiles = 1
	for d := range rank {
		s := &w.cut[d].segments[w.at[d]]
		w.out.lo[d], w.out.hi[d] = s.out0, s.out1
		w.in.lo[d], w.in.hi[d] = s.in0, s.in1
		w.unit[d] = s.unit
		if s.seam {
			w.tiles *= 2
		}
	}
	return true
}
