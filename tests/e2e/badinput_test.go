package e2e

import (
	"errors"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outcome is what a program should say to an input: exit code 0 and an image
// that is valid, or another code and one line that matches.
type outcome struct {
	code int
	line string // regular expression of the error, or of a warning when code is 0
}

var fine = outcome{}

// What is tried with which program, and where:
//
//	                         aip resample focal crop smooth stitch | stack          | preview               | qc-report
//	one tile, small Z, constants,   TestBadImages                  | TestBadSlices  | TestBadPreviews,      | maps: pkg/qc
//	NaN, types, voxel sizes, axes                                  |                | TestPreviewsOfOthers  |
//	tables: gaps, twice, text,      –                              | TestBadStacks  | –                     | TestBadReports
//	separators, BOM, CRLF
//	several images that must fit    TestBadEstimates, and          | TestBadStacks  | –                     | –
//	                                --correction: cmd/focal        |                |                       |
//	matrices and transforms         TestBadPlacements              | TestBadStacks  | –                     | –
//	overlaps, terabytes             TestBadPlacements              | TestBadStacks  | --max_size: cmd       | --max_pictures: cmd
//	flags that cannot be            TestBadFlags and cmd/*         | TestBadStacks  | cmd/preview           | cmd/qc-report
//	broken chunks, missing files    cmd/*/testdata                 | cmd/stack      | cmd/preview           | TestBadReports
//	outputs in the way              TestSidecarsInTheWay           | pkg/cli        | cmd/preview           | cmd/qc-report

// stageLine is a stage's command line on the image "in.ome.zarr", small filters
// and pyramids, with the output "out.ome.zarr".
var stageLines = map[string][]string{
	"aip":      {"aip", "in.ome.zarr", "out.ome.zarr"},
	"resample": {"resample", "in.ome.zarr", "out.ome.zarr", "--resolution", "25"},
	"focal":    {"focal", "in.ome.zarr", "out.ome.zarr"},
	"crop":     {"crop", "in.ome.zarr", "out.ome.zarr", "--depth", "50", "--crop_before_interface"},
	"stitch":   {"stitch", "in.ome.zarr", "out.ome.zarr", "--overlap", "0.25", "--blending", "average"},
	"smooth":   {"smooth", "in.ome.zarr", "out.ome.zarr", "--median", "3", "--sigma_px", "1", "--gradient"},
	// all that they can be asked for besides
	"focal of logarithms": {"focal", "in.ome.zarr", "out.ome.zarr", "--use_log", "--sigma_xy", "20", "--sigma_z", "9", "--save_map", "outmaps"},
	"stitch by the images": {"stitch", "in.ome.zarr", "out.ome.zarr", "--overlap", "0.5", "--estimate", "--max_refinement_px", "3",
		"--blending", "diffusion", "--save_positions", "out.json"},
}

// check runs a command line in dir and compares what comes of it with the outcome.
func (want outcome) check(t *testing.T, dir string, line []string) {
	t.Helper()
	c := command(dir, line[0], append(slices.Clone(line[1:]), "--progress", "none", "--mem", "64MiB")...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code, text := c.ProcessState.ExitCode(), strings.TrimSpace(string(out))
	if code != want.code {
		t.Fatalf("%s: exit code %d, want %d\n%s", strings.Join(line, " "), code, want.code, text)
	}
	if want.line != "" && !regexp.MustCompile(want.line).MatchString(text) {
		t.Errorf("%s: nothing matches %q in:\n%s", strings.Join(line, " "), want.line, text)
	}
	if strings.Contains(text, "this is a bug") || strings.Contains(text, "goroutine ") {
		t.Errorf("%s: a panic:\n%s", strings.Join(line, " "), text)
	}
	switch _, err := os.Stat(filepath.Join(dir, "out.png")); {
	case code == 0 && line[0] == "qc-report":
		page, err := os.ReadFile(filepath.Join(dir, "out.html"))
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(page)), "</html>") {
			t.Errorf("%s: no whole page (%v)", strings.Join(line, " "), err)
		}
		return
	case code == 0 && err == nil:
		f, err := os.Open(filepath.Join(dir, "out.png"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := png.Decode(f); err != nil {
			t.Errorf("%s: the picture: %v", strings.Join(line, " "), err)
		}
		return
	case code == 0:
		run(t, dir, "zarr-tool", "validate", "out.ome.zarr", "--ngff", "-q")
		return
	}
	lines := strings.Split(text, "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, line[0]+": ") || strings.Contains(last, "warning: ") {
		t.Errorf("%s: the last line is no error of %s:\n%s", strings.Join(line, " "), line[0], text)
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.Contains(l, "warning: ") {
			t.Errorf("%s: more than one line of error:\n%s", strings.Join(line, " "), text)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*out*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*strata-*"))
	if err != nil || len(left)+len(hidden) > 0 {
		t.Errorf("%s: left behind: %q, %q (%v)", strings.Join(line, " "), left, hidden, err)
	}
}

func nanAt(v func(z, y, x int) float64, where func(z, y, x int) bool) func(z, y, x int) float64 {
	return func(z, y, x int) float64 {
		if where(z, y, x) {
			return math.NaN()
		}
		return v(z, y, x)
	}
}

// badImages are images at the edge of what makes sense and beyond.
var badImages = map[string]struct {
	volume
	want outcome
}{
	"one tile":                          {volume{shape: []int{12, 16, 16}}, fine},
	"one voxel":                         {volume{shape: []int{1, 1, 1}, chunks: []int{1, 1, 1}}, fine},
	"one plane":                         {volume{shape: []int{1, 32, 32}}, fine},
	"three planes":                      {volume{shape: []int{3, 32, 32}}, fine},
	"tiles of one voxel":                {volume{shape: []int{5, 3, 4}, chunks: []int{5, 1, 1}}, fine},
	"partial tiles":                     {volume{shape: []int{12, 33, 39}}, fine},
	"chunks along z":                    {volume{shape: []int{12, 32, 32}, chunks: []int{5, 16, 16}}, fine},
	"zeros":                             {volume{value: constant(0)}, fine},
	"zeros uint16":                      {volume{value: constant(0), dtype: "<u2"}, fine},
	"constant":                          {volume{value: constant(7)}, fine},
	"constant negative":                 {volume{value: constant(-7), dtype: "<i2"}, fine},
	"NaN here and there":                {volume{value: nanAt(tissue, func(z, y, x int) bool { return (z+y*3+x*5)%17 == 0 })}, fine},
	"NaN A-lines":                       {volume{value: nanAt(tissue, func(z, y, x int) bool { return x == 5 })}, fine},
	"NaN tile":                          {volume{value: nanAt(tissue, func(z, y, x int) bool { return x < 16 && y < 16 })}, fine},
	"all NaN":                           {volume{value: constant(math.NaN())}, fine},
	"all infinite":                      {volume{value: constant(math.Inf(1))}, fine},
	"huge numbers":                      {volume{value: func(z, y, x int) float64 { return 1e38 * float64(1+(z+x)%3) }}, fine},
	"uint8":                             {volume{dtype: "|u1"}, fine},
	"int8":                              {volume{dtype: "|i1", value: func(z, y, x int) float64 { return tissue(z, y, x) / 2 }}, fine},
	"uint16":                            {volume{dtype: "<u2"}, fine},
	"int16":                             {volume{dtype: "<i2"}, fine},
	"uint32":                            {volume{dtype: "<u4"}, fine},
	"int32":                             {volume{dtype: "<i4"}, fine},
	"uint64":                            {volume{dtype: "<u8"}, fine},
	"int64":                             {volume{dtype: "<i8"}, fine},
	"big-endian float32":                {volume{dtype: ">f4"}, fine},
	"float64":                           {volume{dtype: "<f8"}, fine},
	"bool":                              {volume{dtype: "|b1", value: constant(1)}, outcome{3, `in\.ome\.zarr/0: data type bool`}},
	"float16":                           {volume{dtype: "<f2"}, outcome{3, `in\.ome\.zarr/0: data type float16`}},
	"complex64":                         {volume{dtype: "<c8"}, outcome{3, `in\.ome\.zarr/0: data type complex64`}},
	"voxel size 0":                      {volume{scale: "10, 0, 10"}, outcome{3, `in\.ome\.zarr: multiscales\[0\].*scale`}},
	"voxel size < 0":                    {volume{scale: "10, 10, -10"}, outcome{3, `in\.ome\.zarr: multiscales\[0\].*scale`}},
	"voxel size text":                   {volume{scale: `10, "10", 10`}, outcome{3, `in\.ome\.zarr: multiscales\[0\].*scale`}},
	"voxel size missing":                {volume{scale: "10, 10"}, outcome{3, `in\.ome\.zarr: multiscales\[0\]`}},
	"voxel size too large for a number": {volume{scale: "10, 1e400, 10"}, outcome{3, `in\.ome\.zarr: multiscales\[0\]`}},
	"no unit, mm":                       {volume{unit: "-", scale: "0.01, 0.01, 0.01"}, outcome{0, `warning: .*unit: missing; .* is taken as millimeter`}},
	"no unit, µm":                       {volume{unit: "-"}, outcome{0, `warning: .*unit: missing; .* is taken as micrometer`}},
	"nanometres":                        {volume{unit: "nanometer", scale: "10000, 10000, 10000"}, fine},
	"two axes":                          {volume{shape: []int{32, 32}, chunks: []int{16, 16}, axes: "yx", scale: "10, 10"}, outcome{3, `in\.ome\.zarr/0: .*2 axes, want 3`}},
	"axes in another order":             {volume{axes: "xyz"}, outcome{3, `in\.ome\.zarr.*axis 0.* "x", want z, y, x`}},
	"an axis without voxels":            {volume{shape: []int{12, 0, 32}, chunks: []int{12, 16, 16}}, outcome{3, `in\.ome\.zarr/0: .*empty`}},
	// voxels so coarse that 25 µm are finer, and so fine that nothing is left
	"coarse voxels": {volume{scale: "100, 100, 100"}, fine},
	"fine voxels":   {volume{scale: "0.01, 0.01, 0.01", unit: "micrometer"}, fine},
}

// Every stage that reads an image: a defined result, or an error that names the
// file and the place.
func TestBadImages(t *testing.T) {
	for name, c := range badImages {
		for stage, line := range stageLines {
			t.Run(stage+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				c.write(t, dir+"/in.ome.zarr")
				want := c.want
				switch stitch := strings.HasPrefix(stage, "stitch"); {
				case stage == "smooth" && (name == "two axes" || name == "axes in another order"):
					want = fine // it takes any image
				case stitch && name == "two axes":
					want = fine // a plane, as of a slide scan
				case stitch && name == "axes in another order":
					want.line = `in\.ome\.zarr/0: .*axes \[x y z\], want z, y, x or y, x`
				}
				want.check(t, dir, line)
			})
		}
	}
}

// A picture of every image that is none of the worst.
func TestBadPreviews(t *testing.T) {
	for name, c := range badImages {
		switch name {
		case "float16", "bool", "two axes", "axes in another order": // there can be pictures of them
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.write(t, dir+"/in.ome.zarr")
			want := c.want
			if want.code == 3 {
				want.line = "in.ome.zarr"
			}
			want.check(t, dir, []string{"preview", "in.ome.zarr", "out.png"})
		})
	}
}

// Numbers that no flag can have: wrong usage that names the flag.
func TestBadFlags(t *testing.T) {
	dir := t.TempDir()
	volume{}.write(t, dir+"/in.ome.zarr")
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"resample in.ome.zarr out.ome.zarr --resolution 0", 2, `--resolution`},
		{"resample in.ome.zarr out.ome.zarr --resolution -10", 2, `--resolution`},
		{"resample in.ome.zarr out.ome.zarr --resolution nan", 2, `--resolution`},
		{"resample in.ome.zarr out.ome.zarr --resolution 10,10", 2, `--resolution`},
		{"resample in.ome.zarr out.ome.zarr --prefetch 0", 2, `--prefetch`},
		{"focal in.ome.zarr out.ome.zarr --sigma_z 0", 2, `--sigma_z`},
		{"focal in.ome.zarr out.ome.zarr --sigma_xy -1", 2, `--sigma_xy`},
		{"focal in.ome.zarr out.ome.zarr --correction none.ome.zarr", 3, `none\.ome\.zarr: no such file`},
		{"crop in.ome.zarr out.ome.zarr --depth 0", 2, `--depth`},
		{"crop in.ome.zarr out.ome.zarr --percentile_max 101", 2, `--percentile_max`},
		{"crop in.ome.zarr out.ome.zarr --max_interface_fraction 0", 2, `--max_interface_fraction`},
		{"smooth in.ome.zarr out.ome.zarr --median 2", 2, `--median`},
		{"smooth in.ome.zarr out.ome.zarr --sigma inf", 2, `--sigma`},
		{"smooth in.ome.zarr out.ome.zarr --sigma_px 1,nan,1", 2, `--sigma_px`},
		{"stitch in.ome.zarr out.ome.zarr --overlap 1", 2, `--overlap`},
		{"stitch in.ome.zarr out.ome.zarr --overlap -0.1", 2, `--overlap`},
		{"stitch in.ome.zarr out.ome.zarr --blending soft", 2, `--blending`},
		{"stitch in.ome.zarr out.ome.zarr --transform none.json", 3, `none\.json: no such file`},
		{"stitch in.ome.zarr out.ome.zarr --max_refinement_px -1", 2, `--max_refinement_px`},
	} {
		t.Run(c.line, func(t *testing.T) {
			line := strings.Fields(c.line)
			outcome{c.code, c.want}.check(t, dir, line)
		})
	}
}
