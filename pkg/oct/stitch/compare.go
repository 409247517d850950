package stitch

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/stitch/shading"
)

// TooFar is the reason not to use a pair that lies farther from its expected displacement than is allowed.
const TooFar = "too far from where it should be"

// Outlier is the reason not to use a pair that contradicts the others.
const Outlier = "contradicts the other pairs"

// noTexture is the reason not to use a pair that shows nothing that both tiles have.
const noTexture = "no texture in common"

// noOverlap and nothingThere are the reasons not to use a pair that does not overlap enough, or shows nothing there.
const noOverlap, nothingThere = "no overlap", "nothing to compare"

// measure is the result of comparing two neighbours.
type measure struct {
	pair
	d           [2]float64 // displacement of b from a
	correlation float64
	precision   consensus.Sym // of d, 1/px²
	contrast    float64       // of what was compared
	reason      string
	evidence    float64 // of the overviews, in standard deviations of chance
	sure        bool    // the pair says enough to be believed alone
	weak        bool    // it says too little to hold a tile alone along a direction
	emptyA      bool    // all of tile a is zero
	emptyB      bool
}

const (
	// leastOverlap is the minimum width in pixels of an overlap that is compared.
	leastOverlap = 6
	// leastCorrelation is the minimum correlation for a vote; without tissue, chance reaches it on small areas only.
	leastCorrelation = 0.2
	// chance is the number of standard deviations of an accidental correlation by which a correlation must exceed
	// zero.
	chance = 5
	// independent is the number of pixels of a smoothed projection that count as one independent pixel.
	independent = 12
	// unlike is the least part of the variance that two tiles do not share, due to light, optics and interpolation.
	unlike = 0.005
	// exactness is the smallest standard deviation in px assumed for a measurement, due to interpolation and the
	// parabola.
	exactness = 0.03
)

// compare measures the displacement of two neighbours within reach pixels of the expected one. It first searches
// their expected overlap, enlarged by more pixels on all sides, for the displacement to the pixel.
func compare(p *filter.Phase, light *shading.Shading, n neighbours, expects expectation, reach, more int) measure {
	expected := expects(n.pair)
	m := measure{pair: n.pair, d: expected}
	m.emptyA, m.emptyB = n.va.v == nil, n.vb.v == nil
	if m.emptyA || m.emptyB {
		m.reason = emptyTile
		return m
	}
	d := n.expected(expects) // between the views
	planes := func(more int) (s strips, fixed, moving []float32, ok bool) {
		if s, ok = displaced(n.va.n, n.vb.n, d, more, leastOverlap); ok {
			fixed, moving = n.va.box(light, s.a, s.ny, s.nx), n.vb.box(light, s.b, s.ny, s.nx)
		}
		return s, fixed, moving, ok
	}
	s, fixed, moving, ok := planes(more)
	if !ok {
		m.reason = noOverlap
		return m
	}
	if reach > 0 {
		w := p.MatchNear(fixed, moving, s.ny, s.nx, [2]int{d[0] - s.a[0] + s.b[0], d[1] - s.a[1] + s.b[1]}, reach)
		d = [2]int{w.DY + s.a[0] - s.b[0], w.DX + s.a[1] - s.b[1]}
	}
	var f filter.Fit
	for range 2*reach + 4 {
		if s, fixed, moving, ok = planes(0); !ok {
			m.reason = noOverlap
			return m
		}
		if f, ok = p.SubPixel(fixed, moving, s.ny, s.nx); !ok {
			m.reason = nothingThere
			return m
		}
		if f.Peak {
			break
		}
		d[0], d[1] = d[0]+int(f.DY), d[1]+int(f.DX)
	}
	if !f.Peak {
		m.reason = nothingThere
		return m
	}
	m.d = [2]float64{float64(d[0]+n.va.at[0]-n.vb.at[0]) + f.DY, float64(d[1]+n.va.at[1]-n.vb.at[1]) + f.DX}
	m.correlation, m.contrast = f.Correlation, f.Contrast
	area := float64(s.ny*s.nx) / independent
	if m.correlation < max(leastCorrelation, chance/math.Sqrt(area)) {
		m.reason = noTexture
		return m
	}
	// the likelihood of two noisy planes: its curvature is that of the correlation
	c := m.correlation
	m.precision = consensus.Sym{YY: f.YY, YX: f.YX, XX: f.XX}.Scaled(area * c / max(1-c*c, unlike))
	m.precision = m.precision.Inverse().Add(consensus.Diagonal(exactness * exactness)).Inverse()
	if e := math.Hypot(m.d[0]-expected[0], m.d[1]-expected[1]); e > float64(reach)+1.5 {
		m.reason = TooFar
	}
	return m
}

const (
	// faint is the contrast, relative to that of the mosaic's better pairs, below which a pair shows tissue only if
	// its correlation is at least faintCorrelation.
	faint, faintCorrelation = 0.1, 0.8
)

// silenceFaint excludes pairs that show only residual light and noise outside the tissue: smooth patterns correlate by
// accident.
func silenceFaint(all []measure) {
	var contrasts []float64
	for _, m := range all {
		if m.reason == "" {
			contrasts = append(contrasts, m.contrast)
		}
	}
	if len(contrasts) == 0 {
		return
	}
	slices.Sort(contrasts)
	least := faint * contrasts[len(contrasts)*3/4]
	for i := range all {
		if m := &all[i]; m.reason == "" && m.contrast < least && m.correlation < faintCorrelation {
			m.reason = noTexture
		}
	}
}

// compareAll compares all neighbours of a mosaic: see compare.
func (a *aligner) compareAll(ctx context.Context, expected expectation, reach func(pair) int, more int) ([]measure, error) {
	var out []measure
	err := eachPair(ctx, a, func(p *filter.Phase, n neighbours) measure {
		return compare(p, a.shading, n, expected, reach(n.pair), more)
	}, func(_ neighbours, m measure) { out = append(out, m) })
	silenceFaint(out)
	return out, err
}
