package stitch

import (
	"context"
	"math"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
)

// position determines the positions of the tiles, and records them in s.
func position(ctx context.Context, m *oct.Mosaic, g grid, opt Options, s *Result, res oct.Resources) ([][2]float64, error) {
	residuals := make([][2]float64, g.ny*g.nx)
	var measures []measure
	if opt.Positions != nil {
		if opt.Measures() {
			var err error
			if measures, residuals, err = measureRecorded(ctx, m, opt, res); err != nil {
				return nil, err
			}
		}
	} else if opt.Measures() {
		var err error
		if measures, residuals, err = measureNominal(ctx, m, g, opt, s, res); err != nil {
			return nil, err
		}
	}
	if opt.Check && opt.Positions == nil && !opt.Measures() {
		// what fails here fails again, or does not matter, when the tiles are put together
		var err error
		if s.alike, err = checkOverlap(ctx, m, opt, res); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	if opt.Positions == nil {
		limit(residuals, opt.MaxRefinement, m.Where, res)
	}
	positions := make([][2]float64, g.ny*g.nx)
	for t := range positions {
		i, j := t/g.nx, t%g.nx
		positions[t] = g.nominal(s.Transform.Matrix, opt.Overlap, i, j)
		for k := range 2 {
			positions[t][k] += residuals[t][k]
			if math.Abs(positions[t][k]) > 1e15 {
				return nil, oct.BadInput("%s: tile (%d, %d) would lie at %g px along %c", m.Where, i, j, positions[t][k], "yx"[k])
			}
		}
		s.Tiles = append(s.Tiles, TilePlan{Tile: [2]int{i, j}, Position: positions[t], Residual: residuals[t]})
	}
	s.vote(measures)
	return positions, nil
}

// measureNominal determines, from what tiles on a nominal grid show, the matrix if it is to be estimated, and the
// deviation of each tile from the position given by it.
func measureNominal(ctx context.Context, m *oct.Mosaic, g grid, opt Options, s *Result, res oct.Resources) ([]measure, [][2]float64, error) {
	all, err := newAligners([]*oct.Mosaic{m}, opt.Overlap, res)
	if err != nil {
		return nil, nil, err
	}
	if !opt.Estimate {
		return measureResiduals(ctx, all, opt, s)
	}
	e, err := estimate(ctx, all, opt, res)
	if err != nil {
		return nil, nil, err
	}
	s.Transform = e.transform
	switch {
	case e.failed != nil:
		res.Warnf("%s: %v: the tiles stay where the matrix %v puts them; --transform FILE sets another", m.Where, e.failed, opt.Transform)
	case opt.Rules == affine.RulesConsensus:
		g.warn(e.arrangement.Fit, e.measures, "the matrix puts them", m.Where, res)
	}
	if opt.Rules == affine.RulesConsensus || opt.MaxRefinement == 0 {
		return e.measures, rounded(e.arrangement.Residuals(g.nominals(e.transform.Matrix, opt.Overlap))), nil
	}
	counted := all[0].counted // tiles come again, and count once
	if all, err = newAligners([]*oct.Mosaic{m}, opt.Overlap, res); err != nil {
		return nil, nil, err
	}
	all[0].counted = counted
	return measureResiduals(ctx, all, opt, s)
}

// measureResiduals determines the deviation of each tile from the position given by the matrix.
func measureResiduals(ctx context.Context, all []*aligner, opt Options, s *Result) ([]measure, [][2]float64, error) {
	g := &all[0].grid
	expected := byAxis([2][2]float64{g.expected(s.Transform.Matrix, opt.Overlap, 0), g.expected(s.Transform.Matrix, opt.Overlap, 1)})
	if err := findShading(ctx, all, []expectation{expected}); err != nil {
		return nil, nil, err
	}
	reach := min(int(math.Ceil(2*opt.MaxRefinement)), max(g.tile[0], g.tile[1]))
	measures, err := all[0].compareAll(ctx, expected, func(pair) int { return reach }, 0)
	if err != nil {
		return nil, nil, err
	}
	at := g.nominals(s.Transform.Matrix, opt.Overlap)
	f := refine(at, measures, refinement{farthest: 2*opt.MaxRefinement + 1, most: opt.MaxRefinement})
	return measures, rounded(f.Residuals(at)), nil
}

// limit shortens the residuals that exceed a limit in px, with a warning.
func limit(residuals [][2]float64, most float64, where string, res oct.Resources) {
	n, farthest := 0, 0.0
	for t, r := range residuals {
		if l := far(r); l > most {
			n, farthest = n+1, max(farthest, l)
			residuals[t] = [2]float64{milli(r[0] * most / l), milli(r[1] * most / l)}
		}
	}
	if n > 0 && most > 0 {
		res.Warnf("%s: %d of %d tiles fit their neighbours up to %.1f px from where the matrix puts them, but were moved by %g px: leave out --max_refinement_px, or allow more",
			where, n, len(residuals), farthest, most)
	}
}

// vote records the results of comparing pairs of tiles.
func (s *Result) vote(measures []measure) {
	count := make([]int, len(s.Tiles))
	for _, m := range measures {
		s.Pairs = append(s.Pairs, TilePair{Tiles: [2][2]int{s.Tiles[m.a].Tile, s.Tiles[m.b].Tile},
			Measured: [2]float64{milli(m.d[0]), milli(m.d[1])}, Correlation: oct.Digits(m.correlation),
			Residual: m.residual(s.Tiles[m.a].Position, s.Tiles[m.b].Position), Used: m.reason == "", Reason: m.reason})
		if m.reason != "" {
			continue
		}
		for _, t := range []int{m.a, m.b} {
			s.Tiles[t].Used = true
			s.Tiles[t].Correlation += m.correlation
			count[t]++
		}
	}
	for t, n := range count {
		if n > 0 {
			s.Tiles[t].Correlation = oct.Digits(s.Tiles[t].Correlation / float64(n))
		}
	}
}

// milli rounds to a thousandth of a pixel, to hide the last bits of a Fourier transform.
func milli(v float64) float64 { return math.Round(v*1000) / 1000 }
