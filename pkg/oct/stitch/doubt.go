package stitch

import (
	"fmt"
	"strings"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/consensus"
)

// doubt takes the vote from a measure whose evidence in the overviews is less than so many standard deviations of
// chance: what agrees there is shading. One that they support well counts wherever it lies.
func (a *aligner) doubt(m *measure, least float64) {
	unit := a.units[m.pair]
	if m.reason != "" && m.reason != TooFar || !(unit > 0) {
		return
	}
	evidence := a.overview.EvidenceAt(m.a, m.b, m.d) / unit
	m.sure = evidence > a.chance[m.axis].Most
	switch {
	case m.sure:
		m.reason = ""
	case evidence < least:
		m.reason = noTexture
	}
}

// leastEvidence is the evidence, in standard deviations of chance, that the overviews must have for a measure, and
// leastEvidenceAgain for one that was looked for twice.
const leastEvidence, leastEvidenceAgain = 2.5, 3.5

// warn says which tiles of a mosaic are not where their neighbours show them to be; otherwise names what places them
// then.
func (g *grid) warn(f *consensus.Fit, measures []measure, otherwise, where string, res oct.Resources) {
	empty := make([]bool, g.ny*g.nx)
	for _, m := range measures {
		empty[m.a], empty[m.b] = empty[m.a] || m.emptyA, empty[m.b] || m.emptyB
	}
	alone, apart, doubtful, tiles := 0, 0, 0, 0
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
	} {
		if p.n > 0 && tiles > 1 {
			parts = append(parts, fmt.Sprintf(p.text, p.n))
		}
	}
	if parts != nil {
		res.Warnf("%s: of %d tiles, %s", where, tiles, strings.Join(parts, "; "))
	}
}
