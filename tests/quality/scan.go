package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/oct/stitch"
)

// scanCase is a slide scan: the parameters of the phantom, and the search range in µm around the recorded
// positions of tiles.
type scanCase struct{ name, flags, tolerance string }

// scanFlags generate tiles of one plane that overlap by 10 % and deviate up to 3 % of a tile from an even grid.
const scanFlags = "--anatomy 0 --tile 1,512,512 --dtype uint16 --gain 12000 --voxel 3.5,0.65,0.65 --overlap 0.1 --jitter 8 --water 0 --relief 0 --curvature 0 --shift 0 --vignette 0.05"

var scans = []scanCase{
	{"small", "--tiles 3,3 --speckle 0.005 --fill_tissue --stage_error 3 --seed 2", "20"},
	{"tissue", "--tiles 6,8 --speckle 0.005 --fill_tissue --stage_error 4", "20"},
	{"worse stage", "--tiles 6,8 --speckle 0.005 --fill_tissue --stage_error 8", "50"},
	{"little tissue", "--tiles 6,8 --speckle 0.05 --agarose 0.1 --stage_error 4", "20"},
	{"noise", "--tiles 6,8 --speckle 0.2 --fill_tissue --stage_error 4", "20"},
}

// scanWays lists ways to stitch them; "found" uses --position_tolerance.
var scanWays = []way{{"as recorded", nil}, {"found", nil}, {"found, interpolated", []string{"--interpolate"}}}

// scanResult is the deviation of a scan's tiles from the truth.
type scanResult struct {
	scan, way  string
	rms, worst float64 // px: along an axis; of any tile along either
	seams      float64 // mean difference at the seams, in per cent of the brightness there
	used, all  int     // pairs
}

// tryScans generates and stitches scans.
func tryScans(ctx context.Context, o options) (out []scanResult, err error) {
	for _, c := range scans {
		if !o.wants(c.name) {
			continue
		}
		dir := filepath.Join(o.dir, "scan "+c.name)
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		args := append([]string{dir, "--quiet"}, strings.Fields(scanFlags+" "+c.flags)...)
		if err := command(ctx, nil, filepath.Join(o.bin, "phantom"), args...); err != nil {
			return nil, err
		}
		t, err := readTruth(dir)
		if err != nil {
			return nil, err
		}
		for k, w := range scanWays {
			tolerance := c.tolerance
			if k == 0 {
				tolerance = "0"
			}
			report := filepath.Join(dir, fmt.Sprintf("stitched%d.json", k))
			args := append([]string{filepath.Join(dir, "mosaic_grid_3d_z00.ome.zarr"), filepath.Join(dir, fmt.Sprintf("stitched%d.ome.zarr", k)), "--positions", filepath.Join(dir, "positions_z00.json"),
				"--position_tolerance", tolerance, "--save_positions", report, "--quiet", "--no-use_gpu"}, w.flags...)
			if err := command(ctx, nil, filepath.Join(o.bin, "stitch"), args...); err != nil {
				return nil, err
			}
			r := scanResult{scan: c.name, way: w.name}
			if err := r.measure(t, report); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// measure compares the positions of tiles with their true ones, apart from a common shift.
func (r *scanResult) measure(t *truth, report string) error {
	b, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	var s stitch.Result
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	var all []float64
	for d := range 2 {
		var off []float64
		for i, p := range s.Tiles {
			off = append(off, p.Position[d]-t.positions[2*i+d])
		}
		centre(off)
		for _, e := range off {
			r.worst = max(r.worst, math.Abs(e))
		}
		all = append(all, off...)
	}
	r.rms = rms(all)
	voxels := 0.0
	for _, e := range s.Seams {
		r.seams += 100 * e.Relative * float64(e.Voxels)
		voxels += float64(e.Voxels)
	}
	r.seams /= voxels
	r.all = len(s.Pairs)
	for _, p := range s.Pairs {
		if p.Used {
			r.used++
		}
	}
	return nil
}

// scanTable returns the results as Markdown.
func scanTable(results []scanResult) string {
	var b strings.Builder
	b.WriteString("| scan | tiles | position error, px | largest | difference at seams | pairs used |\n|---|---|---:|---:|---:|---:|\n")
	for _, r := range results {
		pairs := ""
		if r.all > 0 {
			pairs = fmt.Sprintf("%d of %d", r.used, r.all)
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %.2f %% | %s |\n", r.scan, r.way, r.rms, r.worst, r.seams, pairs)
	}
	return b.String()
}

// What a scan must reach, of what it was as recorded, where tissue is everywhere.
const (
	mostScanRMS   = 0.3 // px
	mostScanSeams = 0.3 // of the difference as recorded
)

// checkScans returns an error that names the measures over their limits.
func checkScans(results []scanResult) (err error) {
	var recorded scanResult
	for _, r := range results {
		over := func(what string, v, most float64) {
			if !(v <= most) {
				err = errors.Join(err, fmt.Errorf("scan %s, %s: %s is %.2f, must be at most %.2f", r.scan, r.way, what, v, most))
			}
		}
		if r.way == scanWays[0].name {
			recorded = r
			continue
		}
		over("position error", r.rms, recorded.rms)
		if r.scan != "noise" && r.scan != "little tissue" {
			over("position error", r.rms, mostScanRMS)
			over("difference at seams", r.seams, mostScanSeams*recorded.seams)
		}
	}
	return err
}
