package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// links makes links to the built binaries by the names of the programs whose
// place they can take, and returns the folder.
func links(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("../../scripts/links.sh", bin, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("links.sh: %v\n%s", err, out)
	}
	return dir
}

// shell runs a command line as a workflow's task does: by a shell, with the
// links at the front of PATH.
func shell(t *testing.T, dir, links, line string) string {
	t.Helper()
	c := exec.Command("bash", "-euo", "pipefail", "-c", line)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+links+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", line, err, out)
	}
	return string(out)
}

func openImage(t *testing.T, path string) *ngff.Image {
	t.Helper()
	im, err := ngff.Open(t.Context(), store.Folder(path), "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// voxels reads an array, or its leading part, as float64.
func voxels(t *testing.T, a *zarr.Array, r zarr.Region) []float64 {
	t.Helper()
	n := 1
	for _, s := range r.Shape {
		n *= s
	}
	b := make([]byte, n*a.DType().Size())
	if err := a.Read(t.Context(), r, b); err != nil {
		t.Fatal(err)
	}
	return numbers(t, a.DType(), b)
}

func numbers(t *testing.T, typ dtype.Type, b []byte) []float64 {
	t.Helper()
	switch typ {
	case dtype.Uint8:
		return floats[uint8](b)
	case dtype.Int16:
		return floats[int16](b)
	case dtype.Uint16:
		return floats[uint16](b)
	case dtype.Float32:
		return floats[float32](b)
	case dtype.Float64:
		return floats[float64](b)
	}
	t.Fatalf("no numbers of %v", typ)
	return nil
}

func floats[T uint8 | int16 | uint16 | float32 | float64](b []byte) []float64 {
	v := dtype.Slice[T](b)
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// tolerance is how far a number may be from the golden one, and how many may be further.
type tolerance struct {
	Rel, Abs float64
	Off      float64 `json:"max_fraction_off"`
}

// near fails the test unless got is want within the tolerance.
func near(t *testing.T, what string, got, want []float64, tol tolerance) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	off, example := 0, ""
	for i, w := range want {
		if math.IsNaN(got[i]) == math.IsNaN(w) && !(math.Abs(got[i]-w) > tol.Abs+tol.Rel*math.Abs(w)) {
			continue
		}
		if off++; example == "" {
			example = fmt.Sprintf("number %d is %v, want %v", i, got[i], w)
		}
	}
	if float64(off) > tol.Off*float64(len(want)) {
		t.Errorf("%s: %d of %d numbers are off; %s", what, off, len(want), example)
	}
}

// checkLevels compares the levels of an image with the arrays level0, level1, …
// of a golden case, as far as there are such, and the voxel sizes.
func checkLevels(t *testing.T, im *ngff.Image, c golden.Case, levels int, tol tolerance) {
	t.Helper()
	if len(im.Levels) != levels {
		t.Fatalf("%d levels, want %d", len(im.Levels), levels)
	}
	if c.VoxelSize != nil {
		checkBox(t, im, c.VoxelSize[0], im.Levels[0].Array.Shape())
	}
	for k, level := range im.Levels {
		want, ok := c.Arrays[fmt.Sprintf("level%d", k)]
		if !ok {
			continue
		}
		if !slices.Equal(level.Array.Shape(), want.Shape) || level.Array.DType() != want.Type {
			t.Errorf("level %d: %v %v, want %v %v", k, level.Array.DType(), level.Array.Shape(), want.Type, want.Shape)
			continue
		}
		near(t, fmt.Sprintf("level %d", k), voxels(t, level.Array, level.Array.Bounds()), numbers(t, want.Type, want.Data), tol)
	}
}

// checkBox: all levels fill the box of an image of that shape and voxel size, in µm. (Goldens have nominal sizes on
// levels: see docs/stages/images.md, Pyramids.)
func checkBox(t *testing.T, im *ngff.Image, voxel []float64, shape []int) {
	t.Helper()
	for k, level := range im.Levels {
		for d, v := range voxel {
			um, _, _ := ngff.Micrometres(im.Axes[d].Unit)
			v *= float64(shape[d]) / float64(level.Array.Shape()[d])
			if got := level.Scale[d] * um; math.Abs(got-v) > 1e-9*v {
				t.Errorf("level %d, axis %d: voxel size %v µm, want %v", k, d, got, v)
			}
		}
	}
}

// planes are some planes of an array along its first axis.
func planes(t *testing.T, a *zarr.Array, index []int) []float64 {
	t.Helper()
	var out []float64
	for _, z := range index {
		r := a.Bounds()
		r.Start[0], r.Shape[0] = z, 1
		out = append(out, voxels(t, a, r)...)
	}
	return out
}

func TestReferenceCommandsAIP(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "aip") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mosaic := staged(t, dir, "mosaic_grid_z03.ome.zarr", golden.Input(t, c))
			tol := tolerance{Rel: c.Tolerance.Rel, Abs: c.Tolerance.Abs}
			shell(t, dir, path, `linum-aip `+mosaic+` "mosaic_grid_z03_aip.ome.zarr"`)
			checkLevels(t, openImage(t, dir+"/mosaic_grid_z03_aip.ome.zarr"), c, len(c.VoxelSize), tol)
			// the reference replaces what is there, and its programs had other names
			shell(t, dir, path, `linum_aip.py `+mosaic+` mosaic_grid_z03_aip.ome.zarr --use_gpu -v`)
			checkLevels(t, openImage(t, dir+"/mosaic_grid_z03_aip.ome.zarr"), c, len(c.VoxelSize), tol)
		})
	}
}

// Of old data (--preprocess) the grid of tiles is exchanged with the axes, which linumpy forgets: pkg/oct/mosaic
// compares it.
func TestReferenceCommandsMosaic(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "mosaic_grid") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var p struct {
				Raw  string
				Args []string
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			dir := golden.Unpack(t, p.Raw)
			for name, want := range c.Arrays {
				slice, truth := strings.CutSuffix(name, "_truth")
				if better, ok := c.Arrays[name+"_truth"]; ok && !truth {
					want = better
				}
				shell(t, dir, path, `linum-create-mosaic-grid-3d "mosaic_grid_3d_`+slice+`.ome.zarr" --from_root_directory raw -z `+slice[1:]+` `+strings.Join(p.Args, " ")+` --n_processes 2`)
				a := openImage(t, dir+"/mosaic_grid_3d_"+slice+".ome.zarr").Levels[0].Array
				if slices.Contains(p.Args, "--preprocess") {
					if s := a.Shape(); s[1]*s[2] != want.Shape[1]*want.Shape[2] || s[0] != want.Shape[0] {
						t.Errorf("%s has shape %v, want the voxels of %v", slice, s, want.Shape)
					}
					continue
				}
				if !slices.Equal(a.Shape(), want.Shape) {
					t.Fatalf("%s has shape %v, want %v", slice, a.Shape(), want.Shape)
				}
				near(t, slice, voxels(t, a, a.Bounds()), numbers(t, want.Type, want.Data), tolerance{Rel: 1e-5, Abs: 1e-3})
			}
		})
	}
}

// staged links an input into a task's folder, as Nextflow does.
func staged(t *testing.T, dir, name, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReferenceCommandsResample(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "resample") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mosaic := staged(t, dir, "mosaic_grid_z03.ome.zarr", golden.Input(t, c))
			var p struct {
				Resolution float64
				Levels     int `json:"n_levels"`
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			tol := tolerance{c.Tolerance.Rel, c.Tolerance.Abs, c.Tolerance.Off}
			resolution := strconv.FormatFloat(p.Resolution, 'g', -1, 64)
			shell(t, dir, path, `linum-resample-mosaic-grid `+mosaic+` "mosaic_grid_z03_resampled.ome.zarr" \
        -r `+resolution+` --use_gpu --prefetch 4 --n_levels 0 -v`)
			checkLevels(t, openImage(t, dir+"/mosaic_grid_z03_resampled.ome.zarr"), c, 1, tol)
			shell(t, dir, path, `linum-resample-mosaic-grid `+mosaic+` mosaic_grid_z03_resampled.ome.zarr -r `+resolution+` --no-use_gpu --n_levels `+strconv.Itoa(p.Levels))
			checkLevels(t, openImage(t, dir+"/mosaic_grid_z03_resampled.ome.zarr"), c, len(c.VoxelSize), tol)
			if p.Resolution == 10 && p.Levels == 5 { // its defaults
				shell(t, dir, path, `linum_resample_mosaic_grid.py `+mosaic+` default.ome.zarr`)
				checkLevels(t, openImage(t, dir+"/default.ome.zarr"), c, len(c.VoxelSize), tol)
			}
		})
	}
}

func TestReferenceCommandsFocal(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "focal") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mosaic := staged(t, dir, "mosaic_grid_z03_resampled.ome.zarr", golden.Input(t, c))
			var p struct {
				SigmaXY float64 `json:"sigma_xy"`
				SigmaZ  float64 `json:"sigma_z"`
				Log     bool    `json:"use_log"`
			}
			var f struct {
				Planes []int `json:"plane_index"`
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.File, &f); err != nil {
				t.Fatal(err)
			}
			flags := fmt.Sprintf(" --sigma_xy %v --sigma_z %v", p.SigmaXY, p.SigmaZ)
			if p.SigmaXY == 3 && p.SigmaZ == 2 {
				flags = "" // its defaults
			}
			if p.Log {
				flags += " --use_log"
			}
			shell(t, dir, path, `linum-detect-focal-curvature `+mosaic+` "mosaic_grid_z03_focal_fix.ome.zarr" \
        --n_levels 0 --no-use_gpu`+flags)
			im := openImage(t, dir+"/mosaic_grid_z03_focal_fix.ome.zarr")
			want := c.Arrays["planes"]
			// A correction that is 0.001 planes off moves a voxel by that much of the step to its neighbour.
			tol := tolerance{Rel: 2e-3, Abs: 2, Off: 0.005}
			near(t, "planes", planes(t, im.Levels[0].Array, f.Planes), numbers(t, want.Type, want.Data), tol)
			checkLevels(t, im, golden.Case{VoxelSize: c.VoxelSize}, 1, tol)
			shell(t, dir, path, `linum_detect_focal_curvature.py `+mosaic+` mosaic_grid_z03_focal_fix.ome.zarr --verbose`+flags)
			checkLevels(t, openImage(t, dir+"/mosaic_grid_z03_focal_fix.ome.zarr"), c, len(c.VoxelSize), tol)
		})
	}
}

// There is no golden crop: under the reference's name it does what crop does
// with that program's defaults.
func TestReferenceCommandsCrop(t *testing.T) {
	path := links(t)
	dir := t.TempDir()
	run(t, dir, "phantom", "in", "--truth_slices", "--tiles", "2,2", "--tile", "96,48,48", "--voxel", "10,10,10", "--interval", "400", "--water", "120", "-q")
	slice := staged(t, dir, "slice_z00_axial_corr.ome.zarr", dir+"/in/truth/slice_z00.ome.zarr")
	shell(t, dir, path, `linum-crop-3d-mosaic-below-interface `+slice+` "slice_z00_crop_interface.ome.zarr" \
        --depth 600 \
        --crop_before_interface \
        --percentile_max 99.9 --n_levels 0`)
	run(t, dir, "crop", slice, "ours.ome.zarr", "--crop_before_interface", "--n_levels", "0", "-q")
	run(t, dir, "zarr-tool", "validate", "slice_z00_crop_interface.ome.zarr", "ours.ome.zarr", "-q")
	if got := openImage(t, dir+"/slice_z00_crop_interface.ome.zarr").Levels[0].Array.Shape(); got[0] != 60 {
		t.Errorf("%d planes, want 60 (600 µm of 10 µm)", got[0])
	}
	// its own defaults: 300 µm, nothing clipped, five levels; the voxel size comes from the image
	out := shell(t, dir, path, `linum_crop_3d_mosaic_below_interface.py `+slice+` slice_z00_crop_interface.ome.zarr --max_interface_depth_fraction 0.4 --resolution 10`)
	run(t, dir, "crop", slice, "ours.ome.zarr", "-f", "--depth", "300", "--percentile_max", "100", "--max_interface_fraction", "0.4", "-q")
	run(t, dir, "zarr-tool", "validate", "slice_z00_crop_interface.ome.zarr", "ours.ome.zarr", "-q")
	if !strings.Contains(out, "warning: flag --resolution has no effect") {
		t.Errorf("no warning of --resolution in:\n%s", out)
	}
}

// stackFlags writes a golden case's parameters as the reference's workflow does.
func stackFlags(t *testing.T, c golden.Case) string {
	t.Helper()
	var params map[string]any
	if err := json.Unmarshal(c.Params, &params); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for name, v := range params {
		switch v := v.(type) {
		case bool:
			switch {
			case v:
				b.WriteString(" --" + name)
			case name == "make_isotropic":
				b.WriteString(" --no_isotropic")
			}
		case []any:
			b.WriteString(" --" + name)
			for _, x := range v {
				fmt.Fprintf(&b, " %v", x)
			}
		case string: // places
		default:
			fmt.Fprintf(&b, " --%s %v", name, v)
		}
	}
	return b.String()
}

func TestReferenceCommandsStack(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "stack") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stageSlices(t, dir, c)
			var f struct {
				Planes  []int            `json:"plane_index"`
				Volume  []int            `json:"volume_shape"`
				Levels  [][]int          `json:"level_shapes"`
				Matches []map[string]any `json:"z_matches"`
				Tol     struct {
					Volume, Levels tolerance
					Correlation    float64 `json:"correlation_abs"`
				} `json:"tolerance"`
				Decisions []map[string]any `json:"decisions"`
			}
			if err := json.Unmarshal(c.File, &f); err != nil {
				t.Fatal(err)
			}
			line := `linum-stack-slices-motor slices shifts_xy.csv mouse.ome.zarr ` + stackFlags(t, c) +
				` --output_z_matches z_matches.csv --output_stacking_decisions stacking_decisions.csv --no-use_gpu`
			if _, err := os.Stat(dir + "/transforms"); err == nil {
				line += " --transforms_dir transforms"
			}
			shell(t, dir, path, line)
			im := openImage(t, dir+"/mouse.ome.zarr")
			first, err := filepath.Glob(dir + "/slices/slice_z*.zarr")
			if err != nil || len(first) == 0 {
				t.Fatal("no slices", err)
			}
			checkBox(t, im, openImage(t, first[0]).VoxelSize, f.Volume)
			checkLevels(t, im, golden.Case{Arrays: c.Arrays}, len(f.Levels), f.Tol.Levels)
			if slices.Equal(im.Levels[0].Array.Shape(), f.Volume) {
				want := c.Arrays["volume_planes"]
				near(t, "volume", planes(t, im.Levels[0].Array, f.Planes), numbers(t, want.Type, want.Data), f.Tol.Volume)
			}
			checkTable(t, dir+"/z_matches.csv", f.Matches, f.Tol.Correlation)
			checkTable(t, dir+"/stacking_decisions.csv", f.Decisions, f.Tol.Correlation)
			// it replaces nothing unless told so
			for _, again := range []struct {
				flag string
				code int
			}{{"", 2}, {" -f", 0}} {
				cmd := exec.Command("bash", "-c", line+again.flag)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
				if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != again.code {
					t.Errorf("a second run%s: exit code %d, want %d\n%s", again.flag, cmd.ProcessState.ExitCode(), again.code, out)
				}
			}
		})
	}
}

// stageSlices links the slices, the shifts and the transforms of a case into a folder.
func stageSlices(t *testing.T, dir string, c golden.Case) {
	t.Helper()
	in, shifts, transforms := golden.Slices(t, c)
	found, err := filepath.Glob(in + "/*.ome.zarr")
	if err != nil || len(found) == 0 {
		t.Fatalf("no slices in %s: %v", in, err)
	}
	for _, f := range found {
		staged(t, dir, "slices/"+filepath.Base(f), f)
	}
	staged(t, dir, "shifts_xy.csv", shifts)
	if transforms != "" {
		found, err := filepath.Glob(transforms + "/*")
		if err != nil || len(found) == 0 {
			t.Fatalf("no transforms in %s: %v", transforms, err)
		}
		for _, f := range found {
			staged(t, dir, "transforms/"+filepath.Base(f), f)
		}
	}
}

// checkTable compares a CSV file with rows by the names of their columns.
func checkTable(t *testing.T, path string, want []map[string]any, abs float64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != len(want)+1 {
		t.Fatalf("%s: %d rows, want %d and a header; %v", path, len(rows), len(want), err)
	}
	for i, w := range want {
		if len(w) != len(rows[0]) {
			t.Errorf("%s: columns %v, want %d", path, rows[0], len(w))
		}
		for k, name := range rows[0] {
			got := rows[i+1][k]
			switch v := w[name].(type) {
			case bool:
				if text := map[bool]string{true: "True", false: "False"}[v]; got != text {
					t.Errorf("%s: row %d: %s is %q, want %q", path, i, name, got, text)
				}
			case float64:
				x, err := strconv.ParseFloat(got, 64)
				if err != nil || math.Abs(x-v) > abs {
					t.Errorf("%s: row %d: %s is %q, want %v", path, i, name, got, v)
				}
			default:
				if got != fmt.Sprint(v) {
					t.Errorf("%s: row %d: %s is %q, want %v", path, i, name, got, v)
				}
			}
		}
	}
}

// The whole line that the reference's workflow makes of its defaults, on slices
// of 10 µm voxels and 26 planes: flags that change nothing here included.
func TestReferenceStackLine(t *testing.T) {
	path := links(t)
	for _, c := range golden.Cases(t, "stack") {
		if c.Name != "transforms_gates" {
			continue
		}
		dir := t.TempDir()
		stageSlices(t, dir, c)
		shell(t, dir, path, `linum-stack-slices-motor slices shifts_xy.csv mouse.ome.zarr  --blend --blend_z_refine_vox 5 --blend_z_refine_min_confidence 0.5`+
			` --slicing_interval_mm 0.2 --search_range_mm 0.1 --moving_z_first_index 4 --use_expected_overlap --z_overlap_min_corr 0.5`+
			` --output_z_matches z_matches.csv --output_stacking_decisions stacking_decisions.csv --transforms_dir transforms --max_rotation_deg 5.0`+
			` --skip_error_transforms --skip_warning_transforms --confidence_high 0.6 --confidence_low 0.3 --accumulate_translations`+
			` --confidence_weight_translations --max_cumulative_drift_px 50 --smooth_window 5 --translation_smooth_sigma 3.0 --translation_min_zcorr 0.2`+
			` --no_xy_shift --use_gpu --pyramid_resolutions 10 25 50 100 --make_isotropic`)
		run(t, dir, "zarr-tool", "validate", "mouse.ome.zarr", "--ngff", "-q")
		checkTable(t, dir+"/z_matches.csv", []map[string]any{
			{"fixed_id": 0.0, "moving_id": 1.0, "overlap_voxels": 0.0, "blend_overlap_voxels": 0.0, "moving_z_start": 4.0, "correlation": 0.0, "correlation_fallback_used": false},
			{"fixed_id": 1.0, "moving_id": 2.0, "overlap_voxels": 0.0, "blend_overlap_voxels": 0.0, "moving_z_start": 4.0, "correlation": 0.0, "correlation_fallback_used": false},
			{"fixed_id": 2.0, "moving_id": 3.0, "overlap_voxels": 0.0, "blend_overlap_voxels": 0.0, "moving_z_start": 4.0, "correlation": 0.0, "correlation_fallback_used": false},
		}, 0)
		return
	}
	t.Fatal("no case transforms_gates")
}

// Every program whose place ours can take has its two links, and a line in the
// migration guide; what is no link is not touched.
func TestLinks(t *testing.T) {
	dir := links(t)
	guide, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{
		"linum-aip": "aip", "linum-resample-mosaic-grid": "resample", "linum-detect-focal-curvature": "focal",
		"linum-crop-3d-mosaic-below-interface": "crop", "linum-stack-slices-motor": "stack",
		"linum-create-mosaic-grid-3d": "mosaic", "linum-extract-pyramid-levels": "zarr-tool", "linum-clip-percentile": "zarr-tool",
		"linum-axis-xyz-to-zyx": "zarr-tool", "linum-segment-brain-3d": "zarr-tool",
		"linum-stitch-motor-only": "stitch", "linum-compare-stitching": "stitch", "linum-stack-motor-only": "stack",
		"linum-analyze-registration-transforms": "register", "linum-analyze-acquisition-rotation": "shifts", "linum-suggest-params": "shifts",
	} {
		for _, link := range []string{name, strings.ReplaceAll(name, "-", "_") + ".py"} {
			if to, err := os.Readlink(filepath.Join(dir, link)); err != nil || to != filepath.Join(bin, program) {
				t.Errorf("%s is a link to %q, want %s (%v)", link, to, program, err)
			}
		}
		if !strings.Contains(string(guide), "| `"+name+" ") {
			t.Errorf("docs/migrating.md has no row for %s", name)
		}
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		name := strings.ReplaceAll(strings.TrimSuffix(e.Name(), ".py"), "_", "-")
		if !strings.Contains(string(guide), "`"+name+" ") {
			t.Errorf("docs/migrating.md does not mention %s", name)
		}
	}
	mine := t.TempDir()
	if err := os.WriteFile(mine+"/linum-aip", []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("../../scripts/links.sh", bin, mine).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "linum-aip is there and is no link") {
		t.Errorf("links.sh over a file: %v\n%s", err, out)
	}
	if b, err := os.ReadFile(mine + "/linum-aip"); err != nil || string(b) != "mine" {
		t.Errorf("links.sh replaced a file: %q, %v", b, err)
	}
	if _, err := os.Readlink(mine + "/linum_aip.py"); err != nil {
		t.Error(err)
	}
}
