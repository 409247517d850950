package flatfield

import (
	"fmt"

	"strata/pkg/metrics"
)

// Step returns the metrics of the step, which linumpy's report reads too. in and out name the mosaics.
func (r *Result) Step(in, out string, c Options) *metrics.Step {
	s := metrics.New("fix_illumination_basic")
	s.Note("input_volume", in, "Input mosaic")
	s.Note("output_volume", out, "Corrected mosaic")
	s.Note("input_shape", r.Image.Levels[0].Array.Shape(), "Shape of the mosaic (z, y, x)")
	s.Note("mosaic_grid", fmt.Sprintf("%dx%d", r.Tiles[0], r.Tiles[1]), "Whole tiles along y and x")
	s.Note("tile_shape", []int{r.Tile[0], r.Tile[1]}, "Height and width of a tile, px")
	s.Note("n_planes_fit", len(r.Planes), "Planes that the flat-field was estimated from")
	mode := "global"
	if c.PerZ {
		mode = "per-z"
	}
	s.Note("field_mode", mode, "One flat-field for all planes, or one for each")
	s.Note("use_darkfield", c.DarkField, "Whether a dark-field was subtracted")
	s.Note("solver", map[Solver]string{LinumBasic: "linum-basic", BasicPy: "basicpy"}[c.Solver], "Solver of the flat-field")
	if n := len(r.Skipped); n > 0 {
		s.Note("n_planes_copied", n, "Planes with too few tiles for a flat-field, copied")
	}
	limit := func(name string) *metrics.Limit { l := metrics.Limits[name]; return &l }
	if r.After.Pairs > 0 {
		s.Note("seam_l1_before", r.Before.L1, "Mean difference of neighbouring tiles in their overlap before the correction, relative to their mean")
		s.Note("seam_pearson_before", r.Before.Pearson, "Mean correlation of neighbouring tiles in their overlap before the correction")
		s.Judge("seam_l1", r.After.L1, "", "Mean difference of neighbouring tiles in their overlap, relative to their mean", limit("seam_l1"))
		s.Judge("seam_pearson", r.After.Pearson, "", "Mean correlation of neighbouring tiles in their overlap", limit("seam_pearson"))
	}
	s.Judge("seam_curvature", r.Curvature, "", "Distance of the flat-field's profile from a Gaussian in the overlaps, relative to its mean", limit("seam_curvature"))
	return s
}
