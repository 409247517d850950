package stitch

import (
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
)

// arrange places all tiles by the measures that vote, and marks those that contradict the others as [Outlier]. most is
// the maximum standard deviation of the expected positions in px. See [consensus.Arrange].
func arrange(g *consensus.Grid, measures []measure, held [][2]int, most float64) (*consensus.Arrangement, []consensus.Measured) {
	var links []consensus.Measured
	chain := min(g.Shape[0], g.Shape[1]) == 1 // where no pair can check another
	for _, m := range measures {
		if m.reason == "" {
			links = append(links, consensus.Measured{A: m.a, B: m.b, D: m.d, P: m.precision, Sure: m.sure && chain, Weak: m.weak})
		}
	}
	a := consensus.Arrange(g, links, held, most)
	k := 0
	for i := range measures {
		if m := &measures[i]; m.reason == "" {
			if a.Bad[k] {
				m.reason = Outlier
			}
			k++
		}
	}
	return a, links
}

// refinement limits the influence of measured pairs.
type refinement struct {
	farthest float64 // displacements further than this from the expected one do not vote, px
	most     float64 // upper limit of the expected places' standard deviation, px
	recorded bool    // expected places are recorded ones: tiles without a vote follow their neighbours
}

// refine places tiles near where they are expected, at g.Places.
func refine(g *consensus.Grid, all []measure, how refinement) *consensus.Arrangement {
	var held [][2]int
	for i := range all {
		m := &all[i]
		a, b := g.Places[m.a], g.Places[m.b]
		if m.reason == "" && far([2]float64{m.d[0] - b[0] + a[0], m.d[1] - b[1] + a[1]}) > how.farthest {
			m.reason = TooFar
		}
		if m.reason != "" && how.recorded {
			held = append(held, [2]int{m.a, m.b})
		}
	}
	a, _ := arrange(g, all, held, how.most)
	return a
}

// nominals returns the mosaic's tiles where the matrix puts them.
func (g *grid) nominals(m affine.Matrix, overlap float64) *consensus.Grid {
	out := &consensus.Grid{}
	out.Add(g.ny, g.nx)
	for t := range g.ny * g.nx {
		out.Places = append(out.Places, g.nominal(m, overlap, t/g.nx, t%g.nx))
	}
	return out
}

// rounded rounds to thousandths of a pixel.
func rounded(v [][2]float64) [][2]float64 {
	for t := range v {
		v[t] = [2]float64{milli(v[t][0]), milli(v[t][1])}
	}
	return v
}
