package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shiftsHeader = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"

// stackInput writes three slices, their shifts and a transform for each but the
// first: what stack takes, to be spoilt.
func stackInput(t *testing.T, dir string) {
	t.Helper()
	for i := range 3 {
		volume{value: func(z, y, x int) float64 { return tissue(z+4, y+i, x) }}.write(t, filepath.Join(dir, fmt.Sprintf("slices/slice_z%02d.ome.zarr", i)))
	}
	text(t, dir, "shifts.csv", shiftsHeader+"0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n")
	for i := 1; i < 3; i++ {
		transform(t, dir, i, euler3D(0.01, 2, -1), "3 1", metrics(0.9))
	}
}

func text(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// transform writes the folder of a slice's registration; "" leaves a file out.
func transform(t *testing.T, dir string, slice int, tfm, offsets, metrics string) {
	t.Helper()
	folder := fmt.Sprintf("transforms/slice_z%02d", slice)
	for name, content := range map[string]string{"transform.tfm": tfm, "offsets.txt": offsets, "pairwise_registration_metrics.json": metrics} {
		if content == "" {
			_ = os.Remove(filepath.Join(dir, folder, name)) // it may not be there
		} else {
			text(t, dir, folder+"/"+name, content)
		}
	}
}

func itk(kind, parameters, fixed string) string {
	return fmt.Sprintf("#Insight Transform File V1.0\n#Transform 0\nTransform: %s\nParameters: %s\nFixedParameters: %s\n", kind, parameters, fixed)
}

func euler3D(angle, tx, ty float64) string {
	return itk("Euler3DTransform_double_3_3", fmt.Sprintf("0 0 %v %v %v 0", angle, tx, ty), "16 16 0 0")
}

func metrics(confidence float64) string {
	return fmt.Sprintf(`{"overall_status": "ok", "metrics": {"registration_confidence": {"value": %v}, "translation_x": {"value": 2}, "translation_y": {"value": -1}, "z_correlation": {"value": 0.8}, "rotation": {"value": 0.6}}}`, confidence)
}

func TestBadStacks(t *testing.T) {
	const line = "stack slices shifts.csv out.ome.zarr --slicing_interval_mm 0.08 --moving_z_first_index 1 --pyramid_resolutions 20"
	shifts := func(content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { text(t, dir, "shifts.csv", content) }
	}
	slice := func(name string, v volume) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "slices", name)); err != nil {
				t.Fatal(err)
			}
			v.write(t, filepath.Join(dir, "slices", name))
		}
	}
	registered := func(tfm, offsets, metrics string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { transform(t, dir, 2, tfm, offsets, metrics) }
	}
	const transforms = " --transforms_dir transforms"
	deep := volume{value: func(z, y, x int) float64 { return tissue(z+4, y, x) }}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		flags string
		want  outcome
	}{
		{"as it should be", nil, "", fine},
		{"with transforms", nil, transforms, fine},

		// shifts
		{"BOM and CRLF", shifts("\ufeff" + strings.ReplaceAll(shiftsHeader+"0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n", "\n", "\r\n")), "", fine},
		{"columns in another order, and more of them", shifts("note,moving_id,fixed_id,y_shift_mm,x_shift_mm\nok,1,0,0.01,0.02\n\"a, b\",2,1,0.03,-0.01\n"), "", fine},
		{"blank lines and spaces", shifts(strings.ReplaceAll(shiftsHeader, ",", ", ") + "0, 1, 2, 1, 0.02, 0.01\n\n1, 2, -1, 3, -0.01, 0.03\n\n"), "", fine},
		{"missing pair", shifts(shiftsHeader + "0,1,2,1,0.02,0.01\n"), "", outcome{0, `warning: .*shifts\.csv.*\b2\b`}},
		{"no pairs", shifts(shiftsHeader), "", outcome{0, `warning: .*shifts\.csv`}},
		{"duplicate pair", shifts(shiftsHeader + "0,1,2,1,0.02,0.01\n0,1,2,1,0.5,0.01\n1,2,-1,3,-0.01,0.03\n"), "", outcome{3, `shifts\.csv:3: .*(twice|again|already|duplicate).*`}},
		{"text for a number", shifts(shiftsHeader + "0,1,2,1,0.02,0.01\n1,2,-1,3,abc,0.03\n"), "", outcome{3, `shifts\.csv:3: .*x_shift_mm.*"abc"`}},
		{"text for an id", shifts(shiftsHeader + "zero,1,2,1,0.02,0.01\n"), "", outcome{3, `shifts\.csv:2: .*fixed_id.*"zero"`}},
		{"NaN", shifts(shiftsHeader + "0,1,2,1,nan,0.01\n1,2,-1,3,-0.01,0.03\n"), "", outcome{3, `shifts\.csv:2: .*x_shift_mm`}},
		{"empty cell", shifts(shiftsHeader + "0,1,2,1,,0.01\n1,2,-1,3,-0.01,0.03\n"), "", outcome{3, `shifts\.csv:2: .*x_shift_mm`}},
		{"semicolons", shifts(strings.ReplaceAll(shiftsHeader+"0,1,2,1,0.02,0.01\n", ",", ";")), "", outcome{3, `shifts\.csv:1: .*;`}},
		{"tabs", shifts(strings.ReplaceAll(shiftsHeader+"0,1,2,1,0.02,0.01\n", ",", "\t")), "", outcome{3, `shifts\.csv:1: .*(tab|\\t)`}},
		{"too few cells", shifts(shiftsHeader + "0,1,2,1,0.02\n"), "", outcome{3, `shifts\.csv:2: `}},
		{"no header", shifts("0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n"), "", outcome{3, `shifts\.csv:1: .*fixed_id`}},
		{"no mm columns", shifts("fixed_id,moving_id,x_shift,y_shift\n0,1,2,1\n"), "", outcome{3, `shifts\.csv:1: .*x_shift_mm`}},
		{"empty file", shifts(""), "", outcome{3, `shifts\.csv`}},
		{"bytes that are no text", shifts("\x00\xff\xfe\x01\n\x00"), "", outcome{3, `shifts\.csv`}},
		{"an unended quote", shifts(shiftsHeader + "0,1,2,1,\"0.02,0.01\n"), "", outcome{3, `shifts\.csv:2: `}},
		{"no such file", func(t *testing.T, dir string) {
			if err := os.Remove(dir + "/shifts.csv"); err != nil {
				t.Fatal(err)
			}
		}, "", outcome{3, `shifts\.csv: no such file`}},
		{"a canvas of terabytes", shifts(shiftsHeader + "0,1,2,1,0.02,0.01\n1,2,-1,3,90000,80000\n"), "", outcome{3, `(TiB|PiB|TB|PB|terabyte|bytes)`}},
		{"a canvas beyond numbers", shifts(shiftsHeader + "0,1,2,1,0.02,0.01\n1,2,-1,3,1e300,1e300\n"), "", outcome{3, `shifts\.csv|canvas`}},

		// slices
		{"a slice is missing", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir + "/slices/slice_z01.ome.zarr"); err != nil {
				t.Fatal(err)
			}
		}, "", outcome{0, `warning: `}},
		{"one slice", func(t *testing.T, dir string) {
			for _, i := range []string{"1", "2"} {
				if err := os.RemoveAll(dir + "/slices/slice_z0" + i + ".ome.zarr"); err != nil {
					t.Fatal(err)
				}
			}
		}, "", fine},
		{"no slice", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir + "/slices"); err != nil {
				t.Fatal(err)
			}
			text(t, dir, "slices/readme", "")
		}, "", outcome{3, `slices: .*slice_z`}},
		{"a number twice", slice("slice_z1_again.ome.zarr", deep), "", outcome{3, `slice_z01\.ome\.zarr.*slice_z1_again\.ome\.zarr|slice_z1_again\.ome\.zarr.*slice_z01\.ome\.zarr`}},
		{"other files beside", func(t *testing.T, dir string) {
			text(t, dir, "slices/slice_z01_metrics.json", "{}")
			text(t, dir, "slices/notes.txt", "")
		}, "", fine},
		{"a larger slice", slice("slice_z01.ome.zarr", volume{shape: []int{12, 40, 48}}), "", fine},
		{"a smaller slice", slice("slice_z01.ome.zarr", volume{shape: []int{12, 20, 24}}), "", fine},
		{"a thinner slice", slice("slice_z01.ome.zarr", volume{shape: []int{3, 32, 32}}), "", fine},
		{"thinner than its first index", slice("slice_z01.ome.zarr", volume{shape: []int{1, 32, 32}}), "", outcome{0, ``}},
		{"overlap larger than a slice", nil, " --use_expected_overlap --slicing_interval_mm 0", outcome{0, ``}},
		{"interval larger than a slice", nil, " --use_expected_overlap --slicing_interval_mm 5", fine},
		{"other voxel size", slice("slice_z01.ome.zarr", volume{scale: "20, 20, 20"}), "", outcome{3, `slice_z01\.ome\.zarr.*voxel size`}},
		{"other unit, same size", slice("slice_z01.ome.zarr", volume{unit: "millimeter", scale: "0.01, 0.01, 0.01"}), "", fine},
		{"voxel size 0", slice("slice_z01.ome.zarr", volume{scale: "0, 10, 10"}), "", outcome{3, `slice_z01\.ome\.zarr: multiscales\[0\].*scale`}},
		{"other type", slice("slice_z01.ome.zarr", volume{dtype: "<u2"}), "", outcome{0, ``}},
		{"complex", slice("slice_z01.ome.zarr", volume{dtype: "<c8"}), "", outcome{3, `slice_z01\.ome\.zarr.*complex64`}},
		{"two axes", slice("slice_z01.ome.zarr", volume{shape: []int{32, 32}, chunks: []int{16, 16}, axes: "yx", scale: "10, 10"}), "", outcome{3, `slice_z01\.ome\.zarr.*2 axes, want 3`}},
		{"zeros", slice("slice_z01.ome.zarr", volume{value: constant(0)}), " --blend" + transforms, fine},
		{"constant", slice("slice_z01.ome.zarr", volume{value: constant(5)}), " --blend", fine},
		{"NaN", slice("slice_z01.ome.zarr", volume{value: constant(math.NaN())}), " --blend" + transforms, fine},
		{"some NaN", slice("slice_z01.ome.zarr", volume{value: nanAt(tissue, func(z, y, x int) bool { return (x+y+z)%7 == 0 })}), " --blend" + transforms, fine},
		{"no image", func(t *testing.T, dir string) {
			if err := os.Remove(dir + "/slices/slice_z01.ome.zarr/.zattrs"); err != nil {
				t.Fatal(err)
			}
		}, "", outcome{3, `slice_z01\.ome\.zarr.*no OME-Zarr image`}},

		// transforms
		{"no transforms folder", nil, " --transforms_dir none", outcome{3, `none: no such file`}},
		{"no folder of a slice", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir + "/transforms/slice_z02"); err != nil {
				t.Fatal(err)
			}
		}, transforms, outcome{0, `warning: .*2`}},
		{"no .tfm", registered("", "3 1", metrics(0.9)), transforms, outcome{0, `warning: .*slice_z02`}},
		{"no offsets", registered(euler3D(0.01, 0, 0), "", metrics(0.9)), transforms, fine},
		{"no metrics", registered(euler3D(0.01, 0, 0), "3 1", ""), transforms, fine},
		{"an affine transform", registered(itk("AffineTransform_double_3_3", "1 0.1 0 0 1 0 0 0 1 2 3 0", "16 16 0"), "3 1", metrics(0.9)), transforms, outcome{0, `warning: .*transform\.tfm.*AffineTransform`}},
		{"tilted out of the plane", registered(itk("Euler3DTransform_double_3_3", "0.4 0.1 0.01 2 3 0", "16 16 0 0"), "3 1", metrics(0.9)), transforms, outcome{0, ``}},
		{"too few parameters", registered(itk("Euler3DTransform_double_3_3", "0 0 0.01", "16 16 0 0"), "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm:4: .*6`}},
		{"text for a parameter", registered(itk("Euler3DTransform_double_3_3", "0 0 abc 1 2 0", "16 16 0 0"), "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm:4: .*"abc"`}},
		{"NaN for a parameter", registered(itk("Euler3DTransform_double_3_3", "0 0 nan 1 2 0", "16 16 0 0"), "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm:4: `}},
		{"no centre", registered("#Insight Transform File V1.0\nTransform: Euler3DTransform_double_3_3\nParameters: 0 0 0 1 2 0\n", "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm.* fixed parameters`}},
		{"no ITK file", registered("hello\n", "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm`}},
		{"an empty .tfm", registered("\n", "3 1", metrics(0.9)), transforms, outcome{3, `transform\.tfm`}},
		{"one offset", registered(euler3D(0.01, 0, 0), "3", metrics(0.9)), transforms, outcome{3, `offsets\.txt.*`}},
		{"offsets that are text", registered(euler3D(0.01, 0, 0), "three one", metrics(0.9)), transforms, outcome{3, `offsets\.txt:1: .*"three"`}},
		{"offsets beyond the slices", registered(euler3D(0.01, 0, 0), "500 1", metrics(0.9)), transforms, outcome{0, ``}},
		{"negative offsets", registered(euler3D(0.01, 0, 0), "-3 -1", metrics(0.9)), transforms, outcome{3, `offsets\.txt.*-3`}},
		{"moving offset beyond the slice", registered(euler3D(0.01, 0, 0), "3 500", metrics(0.9)), transforms, outcome{0, `warning: .*the first 500 are left out`}},
		{"metrics that are no JSON", registered(euler3D(0.01, 0, 0), "3 1", "{\n \"metrics\": oh\n}"), transforms, outcome{3, `pairwise_registration_metrics\.json(:2)?: `}},
		{"metrics with text", registered(euler3D(0.01, 0, 0), "3 1", `{"overall_status": "ok", "metrics": {"registration_confidence": {"value": "high"}}}`), transforms, outcome{3, `pairwise_registration_metrics\.json.*registration_confidence`}},
		{"metrics of null", registered(euler3D(0.01, 0, 0), "3 1", `{"overall_status": "ok", "metrics": {"registration_confidence": {"value": null}}}`), transforms, outcome{0, ``}},
		{"huge translations", registered(euler3D(0, 1e12, -1e12), "3 1", metrics(0.9)), transforms, outcome{3, `slice_z02.transform\.tfm: moves slice 2 by 1e\+12 pixels, the slice has 32 × 32: give --allow_large_motion`}},
		{"huge translations that are meant", registered(euler3D(0, 1e12, -1e12), "3 1", metrics(0.9)), transforms + " --allow_large_motion", outcome{0, `warning: .*moves slice 2 off the canvas`}},
		{"translations beyond numbers", registered(euler3D(0, 1e300, -1e300), "3 1", metrics(0.9)), transforms + " --allow_large_motion", outcome{3, `transform\.tfm:4: number 4 is "1e\+300"`}},
		{"a voxel of a metre", func(t *testing.T, dir string) {
			for _, i := range []string{"0", "1", "2"} {
				slice("slice_z0"+i+".ome.zarr", volume{scale: "10, 10, 1e6", unit: "micrometer"})(t, dir)
			}
		}, "", outcome{1, `slice_z00\.ome\.zarr: a pyramid of .* needs \d+ MiB of buffers, --mem grants 64 MiB`}},

		// the configuration of slices
		{"slice configuration", func(t *testing.T, dir string) {
			text(t, dir, "config.csv", "slice_id,use,auto_excluded\n00,true,false\n01,false,\n02,true,true\n")
		}, transforms + " --slice_config config.csv", fine},
		{"slice configuration without slice_id", func(t *testing.T, dir string) {
			text(t, dir, "config.csv", "slice,use\n1,true\n")
		}, transforms + " --slice_config config.csv", outcome{3, `config\.csv:1: .*slice_id`}},
		{"slice configuration with another word", func(t *testing.T, dir string) {
			text(t, dir, "config.csv", "slice_id,use\n1,perhaps\n")
		}, transforms + " --slice_config config.csv", outcome{3, `config\.csv:2: .*use.*"perhaps"`}},

		// flags
		{"no interval", nil, " --slicing_interval_mm nan", outcome{2, `--slicing_interval_mm`}},
		{"negative interval", nil, " --slicing_interval_mm -1", outcome{2, `--slicing_interval_mm`}},
		{"negative first plane", nil, " --moving_z_first_index -1", outcome{2, `--moving_z_first_index`}},
		{"first plane beyond the slices", nil, " --moving_z_first_index 100", outcome{0, ``}},
		{"resolution 0", nil, " --pyramid_resolutions 0", outcome{2, `--pyramid_resolutions`}},
		{"no limit of slices", nil, " --max_slices 0", fine},
		{"a confidence of 3", nil, " --confidence_low 3", outcome{2, `--confidence_low`}},
		{"blend depth", nil, " --blend --blend_depth 4", outcome{0, `warning: .*--blend_depth`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stackInput(t, dir)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			c.want.check(t, dir, strings.Fields(line+c.flags))
		})
	}
}

// Every image that other stages are tried with, as the slices of a stack.
func TestBadSlices(t *testing.T) {
	for name, c := range badImages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, n := range []string{"00", "01", "02"} {
				c.write(t, filepath.Join(dir, "slices/slice_z"+n+".ome.zarr"))
			}
			text(t, dir, "shifts.csv", shiftsHeader+"0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n")
			want := c.want
			want.line = strings.ReplaceAll(strings.ReplaceAll(want.line, `/0: `, `: `), `in\.ome\.zarr`, `slices/slice_z0\d\.ome\.zarr`)
			if name == "fine voxels" { // shifts of 20 µm are 2000 of them
				want = outcome{1, `stack: .* needs \d+ MiB of buffers, --mem grants 64 MiB`}
			}
			line := "stack slices shifts.csv out.ome.zarr --slicing_interval_mm 0.08 --moving_z_first_index 1 --pyramid_resolutions 20 40 --blend --output_z_matches out.csv"
			want.check(t, dir, strings.Fields(line))
		})
	}
}
