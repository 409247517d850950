package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// workflowLines are the command lines of the stages that follow stitch, each on the image "in.ome.zarr" or on a folder
// of three slices of which it is the second.
var workflowLines = map[string]string{
	"flatfield":    "flatfield in.ome.zarr out.ome.zarr",
	"linum-basic":  "flatfield in.ome.zarr out.ome.zarr --solver linum-basic",
	"beam-profile": "beam-profile in.ome.zarr out.ome.zarr",
	"attenuation":  "attenuation in.ome.zarr out.ome.zarr",
	"normalize":    "normalize in.ome.zarr out.ome.zarr",
	"bias-field":   "bias-field in.ome.zarr out.ome.zarr --pyramid_resolutions 20",
	"align":        "align in.ome.zarr out.ome.zarr --template slices/slice_z00.ome.zarr --level 0 --pyramid_resolutions 20",
	"template":     "align slices/slice_z00.ome.zarr out.ome.zarr --template in.ome.zarr --level 0 --pyramid_resolutions 20",
	"zmorph":       "interpolate slices/slice_z00.ome.zarr in.ome.zarr out.ome.zarr",
	"average":      "interpolate in.ome.zarr in.ome.zarr out.ome.zarr --method average",
	"weighted":     "interpolate slices/slice_z00.ome.zarr in.ome.zarr out.ome.zarr --method weighted",
	"register":     "register slices/slice_z00.ome.zarr in.ome.zarr out",
	"fixed":        "register in.ome.zarr slices/slice_z00.ome.zarr out",
	"common-space": "common-space slices shifts.csv out",
	"zero fill":    "common-space slices shifts.csv out --fill zero --whole_pixels",
	"assess":       "slices assess slices out.csv --exclude_first 0",
	"stack":        "stack slices shifts.csv out.ome.zarr --slicing_interval_mm 0.08 --moving_z_first_index 1 --pyramid_resolutions 20",
}

// makeNoImage are the lines that write no image: what check looks at when they succeed.
var makeNoImage = map[string]string{"register": "out/transform.tfm", "fixed": "out/transform.tfm", "common-space": "out/slice_z01.ome.zarr/.zattrs",
	"zero fill": "out/slice_z01.ome.zarr/.zattrs", "assess": "out.csv"}

// nothingIn is what each says of a slice that shows nothing, by what it shows instead: an error, or a warning and a
// result that the documentation describes. "" is for all that are not named.
var nothingIn = map[string]map[string]outcome{
	"flatfield":    {"": {3, `in\.ome\.zarr/0: (all tiles are 0|no voxel is above 0)`}, "constant": {0, `warning: seam_pearson`}},
	"linum-basic":  {"": {3, `in\.ome\.zarr/0: (all tiles are 0|no voxel is above 0)`}, "constant": {0, `warning: seam_pearson`}},
	"beam-profile": {"": {0, `warning: in\.ome\.zarr/0: no agarose with a signal found: nothing is corrected`}},
	"attenuation":  {"": {0, `warning: in\.ome\.zarr/0: fewer than 100 voxels have a signal`}, "constant": {0, `warning: in\.ome\.zarr/0: no threshold separates the tissue`}},
	"normalize":    {"": {0, `warning: in\.ome\.zarr/0: no threshold separates agarose from tissue`}},
	"bias-field":   {"": {3, `in\.ome\.zarr/0: no voxel is above 0`}, "constant": {0, `warning: section 1 of 1 has the same value everywhere`}},
	"align":        {"": {3, `in\.ome\.zarr/0, to .*: the volume or the template has no voxel above 0`}, "constant": {3, `the volume has the same value nearly everywhere`}},
	"template":     {"": {3, `to in\.ome\.zarr/0: the volume or the template has no voxel above 0`}, "constant": {3, `the template has the same value nearly everywhere`}},
	"zmorph":       {"": {0, `warning: out\.ome\.zarr: the gap stays: no_foreground_planes`}},
	"average":      {"": {0, `warning: the slice between shows nothing: in\.ome\.zarr/0: all voxels are (NaN or infinite|-?[07])`}},
	"weighted":     {"": {0, `warning: in\.ome\.zarr/0 shows nothing, which spoils the slice between: all voxels are (NaN or infinite|-?[07])`}},
	"register":     {"": {0, `warning: not registered, the identity is written: the moving plane shows nothing`}},
	"fixed":        {"": {0, `warning: not registered, the identity is written: the fixed plane shows nothing`}},
	"common-space": {"": {0, `warning: slices/slice_z01\.ome\.zarr: slice 1 shows nothing: all voxels are (NaN or infinite|-?[07])`}}, // it moves voxels, whatever they say
	"zero fill":    {"": {0, `warning: slices/slice_z01\.ome\.zarr: slice 1 shows nothing: all voxels are (NaN or infinite|-?[07])`}},
	"stack":        {"": {0, `warning: slices 0 and 1: the best overlap of \S+ planes correlates by 0\.000`}},
	"assess": {
		"":                  {0, `warning: slice 1: empty: all voxels that were looked at are 0: excluded`}, // NaN counts as 0
		"constant":          {0, `warning: slice 1: empty: all voxels that were looked at are 7: excluded`},
		"constant negative": {0, `warning: slice 1: empty: all voxels that were looked at are -7: excluded`},
	},
}

// try runs a line of the workflow with an image in the place of the second of three slices.
func (want outcome) try(t *testing.T, stage string, v volume) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"slices/slice_z00", "slices/slice_z02"} {
		volume{}.write(t, filepath.Join(dir, name+".ome.zarr"))
	}
	v.write(t, dir+"/slices/slice_z01.ome.zarr")
	if err := os.Symlink("slices/slice_z01.ome.zarr", dir+"/in.ome.zarr"); err != nil {
		t.Fatal(err)
	}
	text(t, dir, "shifts.csv", shiftsHeader+"0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n")
	line := strings.Fields(workflowLines[stage])
	file, other := makeNoImage[stage]
	if want.code == 0 && (other || strings.Contains(want.line, "the gap stays")) {
		told(t, dir, line, want.line)
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
		return
	}
	want.check(t, dir, line)
}

// A slice that is empty, constant or without a number anywhere: an error that names it, or a word about it.
func TestSlicesThatShowNothing(t *testing.T) {
	shows := map[string]volume{
		"zeros":             {value: constant(0)},
		"zeros uint16":      {value: constant(0), dtype: "<u2"},
		"constant":          {value: constant(7)},
		"constant negative": {value: constant(-7), dtype: "<i2"},
		"all NaN":           {value: constant(math.NaN())},
		"all infinite":      {value: constant(math.Inf(1))},
	}
	for stage := range workflowLines {
		for name, v := range shows {
			t.Run(stage+"/"+name, func(t *testing.T) {
				t.Parallel()
				want, own := nothingIn[stage][name]
				if !own {
					want = nothingIn[stage][""]
				}
				want.try(t, stage, v)
			})
		}
	}
}

// otherSizes is what each says of a slice of one voxel, and of one whose planes have another size than its neighbours'.
var otherSizes = map[string]struct{ voxel, other outcome }{
	"flatfield":    {fine, fine},
	"linum-basic":  {fine, fine},
	"beam-profile": {outcome{0, `warning: in\.ome\.zarr/0: no agarose with a signal found: nothing is corrected`}, fine},
	"attenuation":  {outcome{0, `warning: in\.ome\.zarr/0: fewer than 100 voxels have a signal`}, fine},
	"normalize":    {outcome{0, `warning: in\.ome\.zarr/0: no threshold separates agarose from tissue`}, fine},
	"bias-field":   {outcome{3, `in\.ome\.zarr/0: no tissue found`}, fine},
	"align":        {outcome{3, `the volume has the same value nearly everywhere`}, fine},
	"template":     {outcome{3, `the template has the same value nearly everywhere`}, fine},
	"zmorph":       {outcome{0, `warning: out\.ome\.zarr: the gap stays: no_foreground_planes`}, outcome{0, `warning: slices/slice_z00\.ome\.zarr/0 has planes of 32 × 32 voxels, in\.ome\.zarr/0 of 40 × 24`}},
	"average":      {outcome{0, `warning: the slice between shows nothing`}, fine},
	"weighted":     {outcome{0, `warning: slices/slice_z00\.ome\.zarr/0 has planes of 32 × 32 voxels, in\.ome\.zarr/0 of 1 × 1`}, outcome{0, `in\.ome\.zarr/0 of 40 × 24`}},
	"register":     {outcome{0, `warning: not registered, the identity is written: the fixed plane has less than 16 × 16 pixels`}, fine},
	"fixed":        {outcome{0, `warning: not registered, the identity is written: the fixed plane has less than 16 × 16 pixels`}, fine},
	"common-space": {outcome{0, `warning: slices/slice_z01\.ome\.zarr: slice 1 shows nothing: all voxels are 2`}, fine},
	"zero fill":    {outcome{0, `warning: slices/slice_z01\.ome\.zarr: slice 1 shows nothing: all voxels are 2`}, fine},
	"assess":       {outcome{3, `slice_z01\.ome\.zarr/0: planes of 1 × 1 pixels are compared, want at least 7 × 7`}, fine},
	"stack":        {outcome{0, `warning: slices/slice_z01\.ome\.zarr: has 1 planes`}, outcome{0, `warning: slices/slice_z01\.ome\.zarr: planes of 40 × 24 are larger than the 32 × 32 of`}},
}

// Slices of other sizes: rightly, with a word about it, or an error that names them.
func TestSlicesOfOtherSizes(t *testing.T) {
	for stage := range workflowLines {
		want, ok := otherSizes[stage]
		if !ok {
			t.Errorf("nothing says what becomes of slices of other sizes by %s", stage)
		}
		t.Run(stage+"/one voxel", func(t *testing.T) {
			t.Parallel()
			want.voxel.try(t, stage, badImages["one voxel"].volume)
		})
		t.Run(stage+"/another size", func(t *testing.T) {
			t.Parallel()
			want.other.try(t, stage, volume{shape: []int{12, 40, 24}})
		})
	}
}

// Raw tiles that show nothing are named by mosaic; tiles of different sizes are an error.
func TestRawTilesThatShowNothing(t *testing.T) {
	const line = "mosaic raw out.ome.zarr --slice 0 --resolution -1"
	fill := func(v float32, tiles string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			files, err := filepath.Glob(filepath.Join(dir, "raw/z00", tiles, "image_*.bin"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			for _, f := range files {
				info, err := os.Stat(f)
				if err != nil {
					t.Fatal(err)
				}
				var b []byte
				for range info.Size() / 4 {
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
				}
				if err := os.WriteFile(f, b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	nan, grid := float32(math.NaN()), []string{"--tiles", "2,2", "--tile", "12,16,16", "--galvo_extra", "4"}
	for name, c := range map[string]struct {
		phantom []string
		spoil   func(t *testing.T, dir string)
		want    outcome
	}{
		"all NaN":   {grid, fill(nan, "*"), outcome{0, `warning: slice 00 shows nothing: all voxels are NaN or infinite`}},
		"zeros":     {grid, fill(0, "*"), outcome{0, `warning: slice 00 shows nothing: all voxels are 0`}},
		"constant":  {grid, fill(7, "*"), outcome{0, `warning: slice 00 shows nothing: all voxels are 7`}},
		"one tile":  {grid, fill(nan, "tile_x01_y00*"), outcome{0, `warning: slice 00: 1 of 4 tiles show nothing: tile_x01_y00_z00 \(all voxels are NaN or infinite\)`}},
		"one voxel": {[]string{"--tiles", "1,1", "--tile", "1,1,1", "--galvo_extra", "0"}, nil, outcome{0, `warning: slice 00 shows nothing: all voxels are \d`}},
		"another size": {grid, func(t *testing.T, dir string) {
			file := filepath.Join(dir, "raw/z00/tile_x00_y00_z00/info.txt")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.Replace(b, []byte("nx: 16"), []byte("nx: 12"), 1), 0o666); err != nil {
				t.Fatal(err)
			}
		}, outcome{3, `raw/z00/tile_x00_y01_z00: nx is 16, but 12 in raw/z00/tile_x00_y00_z00`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run(t, dir, "phantom", append([]string{"raw", "--raw", "-q"}, c.phantom...)...)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			c.want.check(t, dir, strings.Fields(line))
		})
	}
}

// Images that are none, or not of the kind: exit code 3 with the file and the place.
func TestBadImagesOfTheWorkflow(t *testing.T) {
	for _, name := range []string{"bool", "voxel size 0", "two axes", "axes in another order", "an axis without voxels"} {
		c := badImages[name]
		for stage := range workflowLines {
			if stage == "stack" { // has a test of its own
				continue
			}
			t.Run(stage+"/"+name, func(t *testing.T) {
				t.Parallel()
				want := c.want
				want.line = strings.Replace(want.line, `in\.ome\.zarr`, `(in|slice_z01)\.ome\.zarr`, 1)
				want.try(t, stage, c.volume)
			})
		}
	}
}

// Slices of which some voxels are no numbers, or which are small: a valid result.
func TestSlicesWithHoles(t *testing.T) {
	for _, name := range []string{"NaN A-lines", "NaN tile", "one plane", "uint8"} {
		for stage := range workflowLines {
			if strings.HasPrefix(stage, "align") || stage == "template" || stage == "zmorph" { // which may find that there is too little to fit
				continue
			}
			t.Run(stage+"/"+name, func(t *testing.T) {
				t.Parallel()
				fine.try(t, stage, badImages[name].volume)
			})
		}
	}
}

// A chunk that is cut off: exit code 3, and nothing is left.
func TestChunksCutOff(t *testing.T) {
	for stage, line := range workflowLines {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range 3 {
				volume{}.write(t, filepath.Join(dir, fmt.Sprintf("slices/slice_z%02d.ome.zarr", i)))
			}
			if err := os.Symlink("slices/slice_z01.ome.zarr", dir+"/in.ome.zarr"); err != nil {
				t.Fatal(err)
			}
			for _, chunk := range []string{"0/0", "0/1", "1/0", "1/1"} {
				if err := os.Truncate(dir+"/slices/slice_z01.ome.zarr/0/0/"+chunk, 100); err != nil {
					t.Fatal(err)
				}
			}
			text(t, dir, "shifts.csv", shiftsHeader+"0,1,2,1,0.02,0.01\n1,2,-1,3,-0.01,0.03\n")
			outcome{3, `(in|slice_z01)\.ome\.zarr/0.*0/[01]/[01]`}.check(t, dir, strings.Fields(line))
		})
	}
}

// Two slices that do not fit together, and tables that are broken.
func TestSlicesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		volume
		line string
		want outcome
	}{
		"register, another voxel size":    {volume{scale: "10, 5, 5"}, workflowLines["register"], outcome{3, `in\.ome\.zarr: voxel size is 5 µm along y`}},
		"zmorph, another voxel size":      {volume{scale: "10, 5, 5"}, workflowLines["zmorph"], outcome{3, `in\.ome\.zarr/0: voxel size`}},
		"common-space, another size":      {volume{scale: "10, 5, 5"}, workflowLines["common-space"], outcome{3, `slice_z01\.ome\.zarr: voxel size is 5 µm along y`}},
		"common-space, a broken table":    {volume{}, "common-space slices broken.csv out", outcome{3, `broken\.csv:2: x_shift_mm is "east"`}},
		"common-space, a table of no use": {volume{}, "common-space slices shifts.csv out --slice_config broken.csv", outcome{3, `broken\.csv:1: `}},
		"assess, a broken table":          {volume{}, "slices assess slices out.csv --existing_config broken.csv", outcome{3, `broken\.csv:1: `}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			volume{}.write(t, dir+"/slices/slice_z00.ome.zarr")
			c.write(t, dir+"/slices/slice_z01.ome.zarr")
			if err := os.Symlink("slices/slice_z01.ome.zarr", dir+"/in.ome.zarr"); err != nil {
				t.Fatal(err)
			}
			text(t, dir, "shifts.csv", shiftsHeader+"0,1,2,1,0.02,0.01\n")
			text(t, dir, "broken.csv", shiftsHeader+"0,1,2,1,east,0.01\n")
			c.want.check(t, dir, strings.Fields(c.line))
		})
	}
}

// Programs for tables, which hold no voxels: a table that is broken, by its line.
func TestBrokenTables(t *testing.T) {
	for line, want := range map[string]string{
		"shifts clean broken.csv out.csv":           `^shifts: broken\.csv:2: x_shift_mm is "east"`,
		"shifts analyze broken.csv out":             `^shifts: broken\.csv:2: x_shift_mm is "east"`,
		"slices exclude slices broken.csv out.csv":  `^slices: broken\.csv:1: `,
		"slices finalise slices broken.csv out.csv": `^slices: broken\.csv:1: `,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text(t, dir, "slices/slice_z01/readme", "")
			text(t, dir, "broken.csv", shiftsHeader+"0,1,2,1,east,0.01\n")
			c := command(dir, strings.Fields(line)[0], strings.Fields(line)[1:]...)
			out, _ := c.CombinedOutput() // the exit code says it
			if code := c.ProcessState.ExitCode(); code != 3 || !regexp.MustCompile(want).Match(out) || strings.Count(string(out), "\n") != 1 {
				t.Errorf("exit code %d, want 3 and a line that matches %q:\n%s", code, want, out)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*out*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q (%v)", left, err)
			}
		})
	}
}

// Every program that the workflow adds to the chain is in the tables above.
func TestWorkflowLinesAreComplete(t *testing.T) {
	missing := maps.Clone(workflowLines)
	for stage := range nothingIn {
		delete(missing, stage)
	}
	if len(missing) > 0 {
		t.Errorf("nothing says what becomes of slices that show nothing by %v", missing)
	}
}
