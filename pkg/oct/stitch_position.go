package oct

import "context"

// position finds where the tiles go, and notes it.
func position(ctx context.Context, m *mosaic, g grid, opt StitchOptions, s *Stitching, res Resources) ([][2]float64, error) {
	positions := make([][2]float64, g.ny*g.nx)
	for t := range positions {
		i, j := t/g.nx, t%g.nx
		positions[t] = g.nominal(s.Transform.Matrix, opt.Overlap, i, j)
		s.Tiles = append(s.Tiles, TilePlan{Tile: [2]int{i, j}, Position: positions[t]})
	}
	return positions, nil
}
