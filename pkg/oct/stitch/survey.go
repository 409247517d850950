package stitch

import (
	"context"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch/overview"
)

// surveyed lets the aligners collect overviews of their tiles, and the pattern that all tiles share. The mosaics must
// have been acquired with the same settings.
func surveyed(all []*aligner) {
	tiles := 0
	for _, a := range all {
		tiles += len(a.kept)
	}
	var common *overview.Pattern
	if first := all[0]; overview.PatternPlanes*first.plane() <= first.res.Assured()/4 {
		common = overview.NewPattern(first.grid.tile)
	}
	for _, a := range all {
		a.overview, a.common = overview.New(a.grid.tile, len(a.kept), tiles), common
	}
}

// overviews computes the overviews of all tiles in one pass over their projections.
func overviews(ctx context.Context, all []*aligner, res oct.Resources) error {
	surveyed(all)
	for _, a := range all {
		for first := 0; first < len(a.kept); first += a.batch {
			if _, err := a.planes(ctx, first, min(a.batch, len(a.kept)-first), func(int) bool { return true }); err != nil {
				return err
			}
		}
		a.in = nil
	}
	return prepare(ctx, all, res.Workers)
}

// prepare completes the overviews before neighbours are searched, and computes the pattern that all tiles share.
func prepare(ctx context.Context, all []*aligner, workers int) error {
	var views []*overview.Overview
	for _, a := range all {
		views = append(views, a.overview)
		if a.common != nil {
			a.pattern = a.common.Inverse()
		}
	}
	return overview.Prepare(ctx, views, workers)
}
