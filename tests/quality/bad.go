package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/registration"
)

// badName is the name of the case of bad slices.
const badName = "bad slices"

// scannedSlice is a slice of the series: of which phantom and which of its slices it is, and what is wrong with it.
type scannedSlice struct {
	of    string
	index int
	fault string
}

// badSeries is a series whose slices are those of the phantom "good", but for some: at the depth of its slice 2 the
// grid of tiles is another, at those of 4 and 6 there is noise, and too much light; slice 7 is scanned twice, and the
// specimen ends after slice 8.
var badSeries = []scannedSlice{
	{"good", 0, ""}, {"good", 1, ""}, {"grid", 2, "grid"}, {"good", 3, ""}, {"noise", 4, "noise"}, {"good", 5, ""}, {"saturated", 6, "saturated"},
	{"good", 7, ""}, {"twice", 9, "duplicate"}, {"good", 8, ""}, {"end", 9, "no_tissue"},
}

// badPhantoms are the flags of the phantoms beside "good". Slice 9 of "twice" lies as deep as slice 7 of "good": 9 ×
// 155.6 = 7 × 200 µm; its speckle, its surface and the errors of its tiles are its own.
var badPhantoms = map[string]string{
	"good":      "--slices 9 --tiles 3,3 --anatomy 0.6 --truth_slices",
	"grid":      "--slices 9 --tiles 3,4 --anatomy 0.6 --only_slices 2",
	"noise":     "--slices 9 --tiles 3,3 --noise --only_slices 4",
	"saturated": "--slices 9 --tiles 3,3 --anatomy 0.6 --dtype uint16 --gain 200000 --only_slices 6",
	"twice":     "--slices 10 --tiles 3,3 --anatomy 0.6 --interval 155.5555556 --only_slices 9",
	"end":       "--slices 10 --tiles 3,3 --anatomy 0 --texture 0 --fill_tissue --gain 120 --floor 0.167 --only_slices 9",
}

// Limits of the places of good slices in a volume without the bad ones. The slicing interval alone places those behind
// a gap: what the surface of such a slice, which crop finds, is off adds to it.
const (
	mostBadZ  = 2.0 // planes, of every slice
	mostBadXY = 1.0 // voxels, root mean square along an axis
)

// badResult tells what was found in the series, and where the good slices lie.
type badResult struct {
	named  map[int]string // faults by slice
	z      []float64      // planes, by which each good slice is off
	xy     float64        // voxels, root mean square
	depth  int            // planes of the volume
	wanted int
}

// tryBad makes the series, processes it by all stages, has its slices assessed, and stacks it without those that are
// excluded.
func tryBad(ctx context.Context, o options) (*badResult, error) {
	if !o.wants(badName) {
		return nil, nil
	}
	dir := filepath.Join(o.dir, "bad_slices")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	for name, flags := range badPhantoms {
		args := append([]string{filepath.Join(dir, name), "--tile", "100,128,128", "--seed", "7", "--glitch", "0", "--quiet"}, strings.Fields(flags)...)
		if err := command(ctx, nil, filepath.Join(o.bin, "phantom"), args...); err != nil {
			return nil, err
		}
	}
	t, err := readTruth(filepath.Join(dir, "good"))
	if err != nil {
		return nil, err
	}
	mosaics, results := filepath.Join(dir, "series"), filepath.Join(dir, "results")
	if err := writeSeries(t, mosaics); err != nil {
		return nil, err
	}
	if err := command(ctx, []string{"DEPTH=260"}, "scripts/steps.sh", "none", mosaics, results); err != nil {
		return nil, err
	}
	slices, table := filepath.Join(results, "slices"), filepath.Join(results, "slice_config", "slice_config.csv")
	if err := command(ctx, nil, filepath.Join(o.bin, "slices"), "assess", slices, table, "--mosaics", mosaics, "--exclude_first", "0",
		"--report", filepath.Join(results, "reports", "slices.assess.json")); err != nil {
		return nil, err
	}
	r := &badResult{named: map[int]string{}}
	if err := r.read(table); err != nil {
		return nil, err
	}
	volume := filepath.Join(results, "volume", "volume.ome.zarr")
	args := append([]string{slices, filepath.Join(mosaics, "shifts_xy.csv"), volume, "--moving_z_first_index", "2", "--pyramid_resolutions", "1", "--no-use_gpu",
		"--slice_config", table, "--leave_out_excluded", "--overwrite",
		"--output_z_matches", filepath.Join(results, "volume", "z_matches.csv"), "--output_stacking_decisions", filepath.Join(results, "volume", "stacking_decisions.csv"),
		"--report", filepath.Join(results, "reports", "volume.stack.json")}, ways[0].flags...)
	if err := command(ctx, nil, filepath.Join(o.bin, "stack"), args...); err != nil {
		return nil, err
	}
	if err := command(ctx, nil, filepath.Join(o.bin, "qc-report"), filepath.Join(results, "qc-report.html"), "--run", results, "--overwrite"); err != nil {
		return nil, err
	}
	return r, r.geometry(ctx, t, volume)
}

// writeSeries links the mosaics of the series into a folder, and writes the shifts between its slices.
func writeSeries(t *truth, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	shifts := "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"
	last := 0 // of the good slices
	for id, s := range badSeries {
		target, err := filepath.Abs(filepath.Join(filepath.Dir(dir), s.of, fmt.Sprintf("mosaic_grid_3d_z%02d.ome.zarr", s.index)))
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(dir, fmt.Sprintf("mosaic_grid_3d_z%02d.ome.zarr", id))); err != nil {
			return err
		}
		if id == 0 {
			continue
		}
		index := min(s.index, len(t.Positions)-1)
		if s.fault == "duplicate" {
			index = last
		}
		y, x := t.Positions[index][0]-t.Positions[last][0], t.Positions[index][1]-t.Positions[last][1]
		shifts += fmt.Sprintf("%d,%d,%g,%g,%g,%g\n", id-1, id, x, y, x*t.Config.Voxel[2]/1000, y*t.Config.Voxel[1]/1000)
		last = index
	}
	return os.WriteFile(filepath.Join(dir, "shifts_xy.csv"), []byte(shifts), 0o666)
}

// read reads which faults the table names.
func (r *badResult) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	table, err := registration.ReadSliceTable(f, name)
	if err != nil {
		return err
	}
	for _, id := range table.IDs() {
		if fault := table.Row(id).Text(registration.Fault); fault != "" {
			r.named[id] = fault
		}
	}
	return nil
}

// geometry determines where the good slices lie in a volume, relative to the first: by the planes that show only them.
func (r *badResult) geometry(ctx context.Context, t *truth, path string) error {
	v, err := readVolume(ctx, path)
	if err != nil {
		return err
	}
	r.depth = v.n[0]
	looks, phase, c := v.contrast(), filter.NewPhase(), &t.Config
	var first rigid
	var xy []float64
	for _, s := range badSeries {
		if s.fault != "" {
			continue
		}
		r.wanted++
		truth, err := t.slice(ctx, s.index)
		if err != nil {
			return err
		}
		other := truth.regridded(v.voxel).contrast()
		var found []patchPlace
		for depth := 30.0; depth+slab*v.voxel[0] < c.Cut-20; depth += slab * v.voxel[0] {
			z := int((float64(s.index)*c.Cut + depth) / v.voxel[0])
			if z+slab > v.n[0] {
				break
			}
			if near := find(phase, looks, other, z, int((depth+c.Water)/v.voxel[0]), 26); near.correlation >= 0.1 {
				found = append(found, patches(looks, other, z, near)...)
			}
		}
		p := placed(found, false)
		if s.index == 0 {
			first = p
		}
		r.z = append(r.z, (p.off[0]-first.off[0])/v.voxel[0])
		for d := 1; d < 3; d++ {
			xy = append(xy, (p.off[d]-first.off[d])/v.voxel[d])
		}
	}
	r.xy = rms(xy)
	return nil
}

// badTable returns a row for the series, as Markdown.
func badTable(r *badResult) string {
	var named, z []string
	bad := 0
	for id, s := range badSeries {
		if s.fault == "" {
			continue
		}
		bad++
		if fault := r.named[id]; fault == s.fault {
			named = append(named, fmt.Sprintf("%d %s", id, fault))
		}
	}
	for _, v := range r.z {
		z = append(z, orLost("%+.1f", v))
	}
	return fmt.Sprintf("| slices | bad | named | z of good slices, planes | xy of good slices, voxels |\n|---:|---:|---|---|---:|\n| %d | %d | %s | %s | %.2f |\n", len(badSeries), bad, strings.Join(named, ", "), strings.Join(z, ", "), r.xy)
}

// checkBad returns an error that names the slices that were judged wrongly or lie in a wrong place.
func checkBad(r *badResult) error {
	if r == nil {
		return nil
	}
	var wrong []error
	for id, s := range badSeries {
		if got := r.named[id]; got != s.fault {
			wrong = append(wrong, fmt.Errorf("%s: slice %d is %q, want %q", badName, id, got, s.fault))
		}
	}
	var bad limits
	for i, z := range r.z {
		bad.check(badName, fmt.Sprintf("z of good slice %d", i), z, mostBadZ, "planes")
	}
	bad.check(badName, "xy of slices", r.xy, mostBadXY, "voxels")
	return errors.Join(append(wrong, bad.err())...)
}
