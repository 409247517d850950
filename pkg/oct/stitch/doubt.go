package stitch

import (
	"fmt"
	"strings"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/consensus"
)

// doubt excludes a measure from the vote if its evidence in the overviews is below least, in standard deviations of
// chance: such tiles have only their shading in common. A measure with strong evidence votes even if it lies far from
// the expected place.
func (a *aligner) doubt(m *measure, least float64) {
	unit := a.units[m.pair]
	if m.reason != "" && m.reason != TooFar || !(unit > 0) {
		return
	}
	evidence := a.overview.EvidenceAt(m.a, m.b, m.d) / unit
	m.evidence = evidence
	m.sure, m.weak = evidence > a.chance[m.axis].Most, evidence < leastEvidenceAgain
	switch {
	case m.sure:
		m.reason = ""
	case evidence < least:
		m.reason = noTexture
	}
}

// leastEvidence is the evidence in the overviews, in standard deviations of chance, that a measure needs in order to
// vote. leastEvidenceAgain applies to a measure from the second search, and to one that alone fixes a tile along a
// direction. In 146 mosaics of pictures (make quality QUALITY=tiles), a threshold of 2.0 leaves one more tile wrong
// without a warning; without leastEvidenceAgain, three of 948 scans have such a tile.
const leastEvidence, leastEvidenceAgain = 2.5, 3.5

// warn says which tiles of a mosaic are not where their neighbours show them to be; otherwise names what places them
// then.
func (g *grid) warn(f *consensus.Fit, measures []measure, otherwise, where string, res oct.Resources) {
	empty := make([]bool, g.ny*g.nx)
	for _, m := range measures {
		empty[m.a], empty[m.b] = empty[m.a] || m.emptyA, empty[m.b] || m.emptyB
	}
	alone, apart, doubtful, sliding, tiles := 0, 0, 0, 0, 0
	main := f.Largest()
	for t := range empty {
		if !g.has(t) || empty[t] {
			continue
		}
		tiles++
		switch {
		case f.Connected(t) == 1:
			alone++
		case !f.SameGroup(t, main):
			apart++
		case f.Doubtful[t]:
			doubtful++
		case f.Sliding[t]:
			sliding++
		}
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{
		{alone, "%d show nothing that places them and lie where " + otherwise},
		{apart, "%d fit their neighbours, but nothing joins them to the rest"},
		{doubtful, "%d hang on one overlap that nothing checks"},
		{sliding, "%d are held by their neighbours along one direction only, and lie along the other where " + otherwise},
	} {
		if p.n > 0 && tiles > 1 {
			parts = append(parts, fmt.Sprintf(p.text, p.n))
		}
	}
	if parts != nil {
		res.Warnf("%s: of %d tiles, %s", where, tiles, strings.Join(parts, "; "))
	}
}

// certainTiles is the part of the tiles that show something for sure which must be held for certain, so that their
// consensus is better than the stage, where they are leastCertain and half of all tiles or more. A smooth brain in
// fully developed speckle, which is placed worse than by the stage, stays below in most scans; all full slices whose
// tiles are found reach more.
const certainTiles, leastCertain = 0.25, 9

// weak reports whether most tiles hang on overlaps that nothing checks.
func (e *estimator) weak(f *consensus.Fit, measures []measure) bool {
	show := map[int]bool{}
	for _, m := range measures {
		if m.sure && m.reason == "" {
			show[m.a], show[m.b] = true, true
		}
	}
	certain := 0
	for t, main := range e.main(f) {
		if main && f.Connected(t) > 1 && !f.Doubtful[t] {
			certain++
		}
	}
	return len(show) >= max(leastCertain, len(f.R)/2) && float64(certain) < certainTiles*float64(len(show))
}
