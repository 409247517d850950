package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// rawFlags are what goes wrong in all acquisitions of raw tiles; tissue is even.
const rawFlags = "--raw --anatomy 0 --glitch 0 --galvo_shift 7 --rotation 1 --slice_rotation 0.5 --focus_range 300 --jitter 0.5"

// raws are acquisitions that begin with raw tiles.
var raws = []phantomCase{
	{"raw small", "what CI checks", rawFlags + " --slices 3 --tiles 4,4 --tile 120,128,128 --seed 16", "260"},
	{"raw", "a stage turned by 1° that loses its home, slices turned by 0.5°", rawFlags + " --slices 5 --tiles 5,5 --tile 120,160,160 --rehome 0.3 --seed 25", "260"},
}

// tryRaws processes raw tiles by the full chain, and measures the volumes.
func tryRaws(ctx context.Context, o options) (out []result, err error) {
	for _, c := range raws {
		if !o.wants(c.name) {
			continue
		}
		t, input, chain, err := prepare(ctx, o, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		r := result{Phantom: c.name, Way: "strata"}
		err = r.aligned(ctx, o, t, chain, filepath.Join(chain, "slices"), filepath.Join(chain, "transforms"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		out = append(out, r)
		if o.linumpy != "" {
			results, err := o.linumpys(ctx, t, c.name, input, filepath.Join(o.dir, c.name, linumpyRow))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			out = append(out, results...)
		}
	}
	return out, nil
}

// aligned stacks the slices of a common space by their transforms, and measures the volume.
func (r *result) aligned(ctx context.Context, o options, t *truth, chain, slices, transforms string) error {
	plain, blended, err := stack(ctx, o, filepath.Join(o.dir, r.Phantom, strings.ReplaceAll(r.Way, " ", "_")), slices, filepath.Join(chain, "volume", "shifts_xy_clean.csv"),
		[]string{"--no_xy_shift", "--transforms_dir", transforms, "--blend_match", "none"})
	if err != nil {
		return err
	}
	return errors.Join(r.tiles(t, filepath.Join(chain, "stitch")), r.geometry(ctx, t, plain), r.evenness(ctx, t, blended))
}

// Limits for a volume made from raw tiles by strata's programs. A small phantom has few tiles to find its illumination
// in.
const (
	mostAway         = 0.5 // voxels, root mean square along an axis
	mostStep         = 1.0 // percent
	mostPlanes       = 1.1
	mostShading      = 1.5 // percent
	mostSmallStep    = 1.5
	mostSmallShading = 2.0
	mostSmallDepth   = 0.75 // percent; whole planes place three slices to within 0.6, and a plane is 1.25
)

// checkRaws returns an error that names the measures over their limits.
func checkRaws(results []result) error {
	var bad limits
	for _, r := range results {
		if strings.HasPrefix(r.Way, linumpyRow) {
			continue
		}
		step, shading, depth := mostStep, mostShading, mostDepth
		if strings.HasSuffix(r.Phantom, "small") {
			step, shading, depth = mostSmallStep, mostSmallShading, mostSmallDepth
		}
		bad.check(r.Phantom, "xy of slices", r.XYRMS/r.Voxel, mostAway, "voxels")
		bad.check(r.Phantom, "z of slices", r.ZRMS/r.Voxel, mostAway, "voxels")
		bad.check(r.Phantom, "depth", r.Depth, depth, "%")
		bad.check(r.Phantom, "largest step between planes", r.Step, step, "%")
		bad.check(r.Phantom, "max/min of plane means", r.Planes, mostPlanes, "")
		bad.check(r.Phantom, "shading", r.Shading, shading, "%")
	}
	return bad.err()
}

// rawTable returns the results as Markdown.
func rawTable(results []result) string {
	var b strings.Builder
	b.WriteString("| phantom | programs | tiles, µm | xy, voxels | z, voxels | depth | largest step | plane means | shading |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		tiles := ""
		if r.TilesRMS == r.TilesRMS { // known
			tiles = fmt.Sprintf("%.2f", r.TilesRMS)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.1f %% | %.2f | %.1f %% |\n", r.Phantom, r.Way, tiles, orLost("%.2f", r.XYRMS/r.Voxel), orLost("%.2f", r.ZRMS/r.Voxel),
			orLost("%+.2f %%", r.Depth), r.Step, r.Planes, r.Shading)
	}
	return b.String()
}
