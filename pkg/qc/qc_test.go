package qc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/address"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/crop"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/webpage"
	"strata/pkg/zarr/store"
)

var ctx = context.Background()

var res = oct.Resources{Workers: 2, Mem: 64 << 20}

// tree makes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// noise is a picture that compresses badly, as PNG.
func noise(t *testing.T, w, h int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(w*h)))
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = uint8(rng.IntN(256))
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	matches   = "fixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used\n"
	decisions = "slice_id,fixed_id,transform_loaded,transform_source,manual_override,confidence,overlap_source,overlap_voxels,blend_overlap_voxels,correlation\n"
	shifts    = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"
)

func load(t *testing.T, s Sources) *Report {
	t.Helper()
	r, err := Load(ctx, s, res)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, r *Report) string {
	t.Helper()
	if err := r.Fit(ctx, PictureBytes, res); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// All of a run is found by where it lies, nothing is taken from images or from what
// the engine keeps.
func TestFind(t *testing.T) {
	picture := noise(t, 8, 6)
	dir := tree(t, map[string]string{
		"reports/slice_z00.aip.json":            `{"tool":"aip","wall_seconds":2}`,
		"reports/volume.stack.json":             `{"tool":"stack","wall_seconds":3,"outputs":[{"path":"v","shape":[10,20,30],"dtype":"float32"}]}`,
		"reports/.hidden.json":                  `x`,
		"previews/volume.png":                   picture,
		"previews/slice_z00.png":                picture,
		"aip/slice_z00.png":                     picture,
		"aip/mosaic_grid_z00.png":               picture,
		"aip/slices/slice_z01.png":              picture,
		"aip/slice_z00.ome.zarr/reports/a.json": `no`,
		"volume/shifts_xy.csv":                  shifts + "0,1,1,1,0.1,-0.2\n",
		"volume/z_matches.csv":                  matches + "0,1,5,4,2,0.9,False\n",
		"volume/stacking_decisions.csv":         decisions + "1,0,True,automated,False,,expected,5,4,0.9\n",
		"slices/slice_z00_crop.json":            `{"interface": 12}`,
		"stitch/slice_z00.json":                 `{"overlap": 0.2}`,
		"focal/slice_z00/z0.png":                picture,
		"pipeline_info/missing_slices.tsv":      "process\tslice\texit\treason\nAIP\tz05\t3\tbroken\n",
		"pipeline_info/trace.tsv":               "name\tstatus\tsubmit\tcomplete\tduration\trealtime\nAIP\tCOMPLETED\t1000\t3000\t2000\t1500\n",
		"work/ab/reports/other.json":            `no`,
	})
	r := load(t, Sources{Run: dir})
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	if len(r.Runs) != 2 || len(r.Previews) != 5 || r.Shifts == nil || len(r.Matches) != 1 || len(r.Decisions) != 1 ||
		len(r.Crop) != 1 || len(r.Stitch) != 1 || len(r.Maps) != 1 || len(r.Missing) != 1 || len(r.Trace) != 1 {
		t.Errorf("found %d runs, %d previews, %d matches, %d decisions, %d crops, %d stitches, %d maps, %d missing, %d tasks",
			len(r.Runs), len(r.Previews), len(r.Matches), len(r.Decisions), len(r.Crop), len(r.Stitch), len(r.Maps), len(r.Missing), len(r.Trace))
	}
	for _, p := range r.Previews {
		if strings.HasPrefix(p.Alt, "Average") != (p.Name == "mosaic_grid_z00" || p.Name == "slice_z01" || p.Name == "slice_z00" && p.projection) {
			t.Errorf("%s: %s", p.Name, p.Alt)
		}
	}
	if g := groups(r.Previews); len(g) != 3 || len(g[0].Pictures) != 2 || !g[0].Pictures[0].Lead() || len(g[1].Pictures) != 2 || len(g[2].Pictures) != 1 {
		t.Errorf("groups %+v", g)
	}
	page := write(t, r)
	for _, want := range []string{"10 × 20 × 30", "float32, z × y × x voxels", `class="lead"`, "Average intensity projections", "0 to 1, 1 missing", "missing: AIP ended with 3: broken",
		`id="maps"`, `id="slices"`, `id="decisions"`, `id="shifts"`, `id="overlap"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	// a source that is named takes the place of what is found
	other := tree(t, map[string]string{"a.json": `{"tool":"focal"}`, "b.txt": "no record", "c.json": `{"tool":`})
	r = load(t, Sources{Run: dir, Reports: []string{other}})
	if len(r.Runs) != 1 || r.Runs[0].Tool != "focal" || len(r.Matches) != 1 {
		t.Errorf("%d runs, %d matches", len(r.Runs), len(r.Matches))
	}
	if len(r.Problems) != 1 || !strings.HasSuffix(r.Problems[0], "c.json: the JSON ends in the middle") {
		t.Errorf("problems: %q", r.Problems)
	}
}

// What is named and wrong is an error that names file and line; what is found and
// wrong is in the report.
func TestMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, want string
		named            func(string) Sources
	}{
		"record cut off":  {"reports/a.json", `{"tool": "aip", "phases": {`, "a.json: the JSON ends in the middle", func(p string) Sources { return Sources{Reports: []string{p}} }},
		"empty record":    {"reports/a.json", ``, "a.json: the JSON ends in the middle", func(p string) Sources { return Sources{Reports: []string{p}} }},
		"no record":       {"reports/a.json", `{"a": 1}`, "a.json: field tool is missing", func(p string) Sources { return Sources{Reports: []string{p}} }},
		"type":            {"reports/a.json", `{"tool": 1}`, "a.json: json: cannot unmarshal number", func(p string) Sources { return Sources{Reports: []string{p}} }},
		"no picture":      {"previews/a.png", "GIF89a", "a.png: no PNG: ", func(p string) Sources { return Sources{Previews: []string{p}} }},
		"another byte":    {"previews/a.png", strings.Replace(noise(t, 50, 50), "IDAT", "IDAU", 1), "a.png: broken PNG: wrong checksum of the chunk at byte 33", func(p string) Sources { return Sources{Previews: []string{p}} }},
		"half a picture":  {"previews/a.png", noise(t, 50, 50)[:1500], "a.png: broken PNG: ", func(p string) Sources { return Sources{Previews: []string{p}} }},
		"shifts columns":  {"shifts.csv", "a,b\n1,2\n", `shifts.csv:1: there is no column "fixed_id"`, func(p string) Sources { return Sources{Shifts: p} }},
		"shifts text":     {"shifts.csv", shifts + "0,1,0,0,0.1,west\n", "shifts.csv:2: y_shift_mm", func(p string) Sources { return Sources{Shifts: p} }},
		"matches text":    {"z_matches.csv", matches + "0,1,5,5,0,1,True\n1,2,x,5,0,1,True\n", "z_matches.csv:3: overlap_voxels", func(p string) Sources { return Sources{Matches: p} }},
		"decisions":       {"decisions.csv", matches, `decisions.csv:1: there is no column "slice_id"`, func(p string) Sources { return Sources{Decisions: p} }},
		"crop":            {"a_crop.json", "{\"a\": 1,\n\"b\": }", "a_crop.json:2: no JSON: ", func(p string) Sources { return Sources{Crop: []string{p}} }},
		"crop list":       {"a_crop.json", "[1]", "a_crop.json:1: want a JSON object", func(p string) Sources { return Sources{Crop: []string{p}} }},
		"stitch twice":    {"stitch/a.json", "{}\n{}", "a.json:2: something follows", func(p string) Sources { return Sources{Stitch: []string{p}} }},
		"missing columns": {"missing_slices.tsv", "slice\n", `missing_slices.tsv:1: there is no column "process"`, func(p string) Sources { return Sources{Missing: p} }},
		"trace time":      {"trace.tsv", "name\tstatus\tsubmit\na\tCOMPLETED\tnoon\n", "trace.tsv:2: submit is \"noon\"", func(p string) Sources { return Sources{Trace: p} }},
		"trace duration":  {"trace.tsv", "name\tstatus\trealtime\na\tCOMPLETED\t3 weeks\n", "trace.tsv:2: realtime is", func(p string) Sources { return Sources{Trace: p} }},
		"empty trace":     {"trace.tsv", "", "trace.tsv:1: the file is empty", func(p string) Sources { return Sources{Trace: p} }},
	} {
		dir := tree(t, map[string]string{c.file: c.text})
		path := filepath.Join(dir, c.file)
		_, err := Load(ctx, c.named(path), res)
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s, named: want %q: %v", name, c.want, err)
		}
		r, err := Load(ctx, Sources{Run: dir}, res)
		if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], c.want) {
			t.Errorf("%s, found: want %q: %q, %v", name, c.want, r.Problems, err)
		} else if page := write(t, r); !strings.Contains(page, "this report") {
			t.Errorf("%s: not in the page", name)
		}
	}
	for _, s := range []Sources{{Run: "nowhere"}, {Reports: []string{"nowhere"}}, {Shifts: "nowhere"}, {Focal: []string{"nowhere"}}, {Focal: []string{t.TempDir()}}} {
		if _, err := Load(ctx, s, res); !errors.Is(err, ErrInput) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	// folders without anything, and what only looks like a file
	dir := t.TempDir()
	for _, name := range []string{"reports/x.json", "previews/y.png"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "reports/pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    Sources
		want string
	}{
		{Sources{Run: dir}, dir + ": nothing in this folder"}, {Sources{Reports: []string{dir + "/reports/"}}, "reports/: no run records"},
		{Sources{Previews: []string{dir + "/previews"}}, "previews: no pictures"}, {Sources{Stitch: []string{dir}}, "no JSON files"},
	} {
		if r := load(t, c.s); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], c.want) {
			t.Errorf("%+v: %q", c.s, r.Problems)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "reports/a.json")); err != nil {
		t.Fatal(err)
	}
	if r := load(t, Sources{Run: dir}); len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], filepath.Join(dir, "reports/a.json")+": is a link to nowhere, which does not exist") {
		t.Errorf("%q", r.Problems)
	}
	if _, err := Load(ctx, Sources{Run: filepath.Join(dir, "reports/pipe.json")}, res); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "not a folder") {
		t.Error(err)
	}
	if _, err := Load(ctx, Sources{Previews: []string{filepath.Join(tree(t, map[string]string{"a.png": noise(t, 100, 100)}), "a.png")}}, oct.Resources{Workers: 1, Mem: 1000}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "too many to embed") {
		t.Error(err)
	}
}

var element = regexp.MustCompile(`<([a-zA-Z!/][^\s>]*)`)

// Nothing that comes from a file becomes an element, an attribute or an address.
func TestHostile(t *testing.T) {
	evil := `"'><script src=//x></script><img src=x onerror=alert(1)> javascript:x {{.}} </style></svg><b>`
	r := &Report{
		Title: evil, Version: evil,
		Runs: []Run{{evil, &runrecord.Record{Tool: evil, Command: evil, Version: evil, Host: evil, Arguments: []address.Address{address.Address(evil)}, Started: time.Unix(1e9, 0),
			Warnings: []string{evil}, Error: evil, ExitCode: 3, Fallback: &runrecord.Fallback{From: evil, To: evil, Reason: evil + "2"}, WallSeconds: 1,
			Phases: runrecord.Phases{Read: 1, Decode: 2}, NonFinite: 5}},
			{evil, &runrecord.Record{Tool: "aip", Started: time.Unix(1e9+2, 0), WallSeconds: math.Inf(1)}}},
		Matches:   []registration.Match{{Fixed: 0, Moving: 1, Correlation: 0.1}},
		Decisions: []registration.Decision{{TransformLoaded: true, TransformSource: evil, Confidence: evil, OverlapSource: evil, Correlation: evil}},
		Missing:   []MissingSlice{{evil, evil, evil, evil}},
		Stitch:    []*Facts{{Name: evil, Fields: []string{evil}, Values: map[string]string{evil: evil}}},
		Crop:      []*Facts{{Name: evil, Fields: []string{"a"}, Values: map[string]string{"a": evil}}},
		Problems:  []string{evil},
	}
	for _, name := range []string{evil, "volume" + evil} {
		p, err := newPicture(image.NewGray(image.Rect(0, 0, 3, 3)))
		if err != nil {
			t.Fatal(err)
		}
		p.Name, p.Alt = name, name
		r.Previews = append(r.Previews, p)
	}
	p, _ := newPicture(image.NewGray(image.Rect(0, 0, 3, 3)))
	p.Name, p.Alt = evil, evil
	r.Maps = []*MapSet{{Name: evil, Maps: []*Map{{Title: evil, Unit: evil, Picture: p, HasNumbers: true, Mean: math.NaN()}}}}
	page := write(t, r)
	known := strings.Fields("a b body caption code dd details div dl dt figcaption figure footer g h1 h2 h3 head header html i img input label li line link main meta nav ol p polyline path rect circle section small span strong style summary svg table tbody td text th thead title tr ul !DOCTYPE")
	for _, m := range element.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(known, strings.TrimPrefix(m[1], "/")) {
			t.Errorf("element %q", m[1])
		}
	}
	for _, bad := range []string{"<script", "<b>", "<img src=x", "href=\"j", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	for _, img := range regexp.MustCompile(`<img [^>]*>`).FindAllString(page, -1) {
		if !strings.HasPrefix(img, `<img src="data:image/`) {
			t.Errorf("picture %.60s", img)
		}
	}
	if n := strings.Count(page, "alert(1)"); n < 15 {
		t.Errorf("the hostile text is there %d times: it should be shown", n)
	}
	if strings.Contains(strings.ReplaceAll(page, "http-equiv", ""), "http") {
		t.Error("an address in the page")
	}
}

// An empty report is a page too.
func TestEmpty(t *testing.T) {
	page := write(t, &Report{Title: "nothing"})
	if !strings.Contains(page, "No warnings.") || strings.Contains(page, "<table") || strings.Contains(page, "key-figures\">") {
		t.Errorf("%s", page)
	}
}

// decode undoes a data URL.
func decode(t *testing.T, p *Picture) (image.Image, string) {
	t.Helper()
	_, code, ok := strings.Cut(string(p.URL), ";base64,")
	b, err := base64.StdEncoding.DecodeString(code)
	if err != nil || !ok {
		t.Fatal(err)
	}
	img, format, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img, format
}

// Pictures keep to the budget together; small ones stay as they are.
func TestFit(t *testing.T) {
	files := map[string]string{"big.png": noise(t, 600, 450), "wide.png": noise(t, 4000, 8), "small.png": noise(t, 40, 30)}
	for k := range 5 {
		files[fmt.Sprintf("n%d.png", k)] = noise(t, 200+k, 160)
	}
	dir := tree(t, files)
	for _, budget := range []int{PictureBytes, 160 << 10, 40 << 10} {
		r := load(t, Sources{Previews: []string{dir}})
		if err := r.Fit(ctx, budget, res); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, p := range r.Previews {
			sum += len(p.URL)
			img, format := decode(t, p)
			if size := img.Bounds().Size(); size.X != p.Width || size.Y != p.Height {
				t.Errorf("%s says %d × %d, is %v", p.Name, p.Width, p.Height, size)
			}
			if max(p.Width, p.Height) > longestSide {
				t.Errorf("%s: %d × %d", p.Name, p.Width, p.Height)
			}
			want := map[string]float64{"big": 600. / 450, "wide": 4000. / 8, "small": 40. / 30}[p.Name]
			if want > 0 && want < 10 && math.Abs(float64(p.Width)/float64(p.Height)/want-1) > 0.03 {
				t.Errorf("%s: proportions of %d × %d", p.Name, p.Width, p.Height)
			}
			if p.Name == "small" && (format != "png" || p.Width != 40) {
				t.Errorf("the small picture was changed: %s of %d px", format, p.Width)
			}
			if p.Name == "big" && budget == PictureBytes && (format != "png" || p.Width != 600) {
				t.Errorf("there was room for the big picture: %s of %d px", format, p.Width)
			}
		}
		if sum > budget {
			t.Errorf("%d bytes, %d are allowed", sum, budget)
		}
		// none is starved for another
		for _, p := range r.Previews {
			if share := budget / len(r.Previews); budget < PictureBytes && (p.Name == "big" || p.Name == "n4") && len(p.URL) < share/3 {
				t.Errorf("%s has %d of %d bytes, a fair share is %d", p.Name, len(p.URL), budget, share)
			}
		}
		if budget == 160<<10 && sum < budget/2 {
			t.Errorf("%d bytes, %d are allowed", sum, budget)
		}
	}
}

// The picture of the result has more room than those of slices.
func TestFitLead(t *testing.T) {
	files := map[string]string{"volume.png": noise(t, 500, 400)}
	for k := range 20 {
		files[fmt.Sprintf("slice_z%02d.png", k)] = noise(t, 500, 400)
	}
	r := load(t, Sources{Previews: []string{tree(t, files)}})
	const budget = 200 << 10
	if err := r.Fit(ctx, budget, res); err != nil {
		t.Fatal(err)
	}
	sum, lead, most := 0, 0, 0
	for _, p := range r.Previews {
		sum += len(p.URL)
		if p.Lead() {
			lead = len(p.URL)
		} else {
			most = max(most, len(p.URL))
		}
	}
	if sum > budget || lead < budget/8 || lead > budget/4 || most > budget/20 {
		t.Errorf("%d bytes, of which the volume's picture has %d, the largest of the others %d", sum, lead, most)
	}
}

// A large picture keeps its content when it is made smaller.
func TestShrink(t *testing.T) {
	img := image.NewGray16(image.Rect(0, 0, 3600, 100))
	for x := range 3600 {
		for y := range 100 {
			img.SetGray16(x, y, color.Gray16{uint16(x * 18)})
		}
	}
	small := shrink(img, 900)
	if s := small.Bounds().Size(); s != (image.Point{900, 25}) {
		t.Fatal(s)
	}
	for x := 5; x < 895; x++ {
		r, _, _, _ := small.At(x, 12).RGBA()
		if want := (float64(x)*4 + 1.5) * 18; math.Abs(float64(r)-want) > 300 {
			t.Errorf("pixel %d: %d, want %v", x, r, want)
		}
	}
}

func TestStages(t *testing.T) {
	run := func(tool string, wall float64, exit int) Run {
		return Run{tool, &runrecord.Record{Tool: tool, WallSeconds: wall, ExitCode: exit, BytesRead: 10, BytesWritten: 5, PeakResidentBytes: int64(wall * 100),
			Inputs: []runrecord.Dataset{{Shape: []int{10, 100}, DType: "float32"}, {Shape: []int{3}, DType: "oops"}}, Phases: runrecord.Phases{Read: 1, Compute: 3}}}
	}
	got := stages([]Run{run("stack", 1, 0), run("aip", 1, 0), run("aip", 4, 3), run("aip", 2, 0), run("zeta", 1, 0)})
	if len(got) != 3 || got[0].Tool != "aip" || got[1].Tool != "stack" || got[2].Tool != "zeta" {
		t.Fatalf("%+v", got)
	}
	want := Stage{Tool: "aip", Runs: 3, Failed: 1, Wall: 7, Median: 2, Longest: 4, LongestName: "aip", Voxels: 12000, Read: 30, Written: 15, Peak: 400,
		Phases: [5]float64{3, 0, 9, 0, 0}, HasThroughput: true, Throughput: 12000. / 7}
	if *got[0] != want {
		t.Errorf("%+v\nwant %+v", *got[0], want)
	}
	page := write(t, &Report{Runs: []Run{run("aip", 100, 0)}})
	for _, want := range []string{"width:25.00%", "width:75.00%", `aria-label="read 25 %, compute 75 %"`, "1 min 40 s", "9.77 KiB"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestEngine(t *testing.T) {
	text := "task_id\tname\tstatus\tattempt\tsubmit\tstart\tcomplete\tduration\trealtime\n" +
		"1\tA\tCOMPLETED\t1\t2026-01-31 12:00:00.000\t2026-01-31 12:00:02.000\t2026-01-31 12:00:10.000\t10s\t8s\n" +
		"2\tB\tFAILED\t1\t2026-01-31 12:00:01.500\t2026-01-31 12:00:04.000\t2026-01-31 12:00:06.000\t4.5s\t2s\n" +
		"3\tC\tCACHED\t1\t2020-01-31 12:00:01.500\t-\t-\t4d 3h 2m 1s\t2s\r\n" +
		"\n4\tD\tCOMPLETED\t2\t2026-01-31 12:00:10.000\t2026-01-31 12:00:15.000\t2026-01-31 12:00:20.000\t10s\t500ms\n"
	tasks, err := readTrace(strings.NewReader(text), "t")
	if err != nil || len(tasks) != 4 || tasks[2].Duration != 99*time.Hour+2*time.Minute+time.Second || tasks[3].Attempt != 2 {
		t.Fatalf("%+v, %v", tasks, err)
	}
	want := Engine{Tasks: 3, Cached: 1, Failed: 1, Span: 20 * time.Second, Busy: 8500 * time.Millisecond, Work: 10500 * time.Millisecond, Waiting: 14 * time.Second}
	if got := engine(tasks); *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	raw, err := readTrace(strings.NewReader("name\tstatus\tsubmit\tcomplete\trealtime\nA\tCOMPLETED\t1769860800000\t1769860801500\t250\n"), "t")
	if err != nil || raw[0].Submit != time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) || raw[0].Realtime != 250*time.Millisecond {
		t.Errorf("%+v, %v", raw, err)
	}
	if engine(nil) != nil {
		t.Error("an engine without tasks")
	}
}

// A slice is missing once, however many stages failed on it, also if only the shifts
// know it; one that is in the volume is not, whatever became of its picture.
func TestMissing(t *testing.T) {
	r := load(t, Sources{Shifts: filepath.Join(tree(t, map[string]string{"s.csv": shifts + "0,1,0,0,1,1\n1,2,0,0,1,1\n2,3,0,0,1,1\n3,9,0,0,1,1\n"}), "s.csv")})
	r.Missing = []MissingSlice{{"RESAMPLE", "mosaic_grid_3d_z02", "3", "broken"}, {"AIP", "mosaic_grid_3d_z02", "3", "broken"}, {"AIP", "slice_z03", "1", "disk full"}, {"FOCAL", "left", "3", "broken"}}
	if got := r.missing(); !slices.Equal(got, []string{"left", "z02", "z03"}) {
		t.Errorf("without a volume: %q", got)
	}
	r.Matches = []registration.Match{{Fixed: 0, Moving: 1}, {Fixed: 1, Moving: 3}}
	if got := r.missing(); !slices.Equal(got, []string{"left", "z02", "z09"}) {
		t.Errorf("missing of the volume: %q", got)
	}
}

func TestNotices(t *testing.T) {
	fallback := &runrecord.Fallback{From: "gpu", To: "cpu", Reason: "no driver"}
	r := load(t, Sources{
		Shifts: filepath.Join(tree(t, map[string]string{"s.csv": shifts + "0,1,0,0,1,1\n2,3,0,0,1,1\n"}), "s.csv"),
	})
	r.Matches = []registration.Match{{Fixed: 0, Moving: 1, Correlation: 0.9, Overlap: 3}, {Fixed: 1, Moving: 2, Correlation: 0.2, Fallback: true, Overlap: 7},
		{Fixed: 2, Moving: 5, Correlation: 0.04, Overlap: 4}, {Fixed: 5, Moving: 7, Overlap: 0}}
	r.Missing = []MissingSlice{{"FOCAL", "z04", "3", "broken"}}
	r.Found = []registration.FoundShift{{Fixed: 0, Moving: 1}, {Fixed: 1, Moving: 2, X: 0.01, Y: 0.002, RecordedX: 0.5, RecordedY: -0.1, Contradicted: true}}
	for i := range 3 {
		r.Runs = append(r.Runs, Run{fmt.Sprintf("z0%d.aip", i), &runrecord.Record{Tool: "aip", Warnings: []string{"no usable GPU: no driver; using the CPU", "odd unit"}, Fallback: fallback}})
	}
	for _, tool := range []string{"focal", "crop", "crop"} { // a matter of course, of which nobody was warned
		r.Runs = append(r.Runs, Run{"z00." + tool, &runrecord.Record{Tool: tool, Fallback: fallback}})
	}
	r.Runs = append(r.Runs, Run{"z03.aip", &runrecord.Record{Tool: "aip", Error: "disk full", ExitCode: 1, NonFinite: 7}})
	var got []string
	for _, n := range r.notices() {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", n.Grade, n.Where, n.Text, strings.Join(n.Runs, ",")))
	}
	shiftsFile := r.Shifts.Name
	want := []string{
		"error|z04|missing: FOCAL ended with 3: broken|",
		"error|aip|exit code 1: disk full|z03",
		"warning|aip|odd unit|z00,z01,z02",
		"warning|slices 1–2|the recorded shift, (500, -100) µm, is contradicted by the slices' pictures, which show (10, 2) µm|",
		"warning|slices 1–2|correlation 0.20 is too low: the expected overlap of 7 planes was used|",
		"warning|slices 2–5|the overlap's correlation of 0.04 is low (under 0.1)|",
		"warning|slices 5–7|no overlap|",
		"warning|shifts|" + shiftsFile + ": no shift between slices 1 and 2: taken as none|",
		"warning|shifts|" + shiftsFile + ": no shift for slices [5 7]: they are put at the position of the first|",
		"note|aip|CPU instead of GPU: no driver|z00,z01,z02",
		"note|GPU|CPU instead of GPU: no driver|focal,crop",
		"note|aip|7 voxels of the input are NaN or infinite|z03",
		"note|slices|there are no slices 3 to 4|",
		"note|slices|there is no slice 6|",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the stack says itself is not said again.
func TestSaidOnce(t *testing.T) {
	r := load(t, Sources{Shifts: filepath.Join(tree(t, map[string]string{"s.csv": shifts + "0,1,0,0,1,1\n2,3,0,0,1,1\n"}), "s.csv")})
	r.Matches = []registration.Match{{Fixed: 0, Moving: 1, Correlation: 0.2, Fallback: true, Overlap: 7}, {Fixed: 10, Moving: 11, Correlation: 0.2, Fallback: true, Overlap: 7}}
	before := len(r.notices())
	r.Runs = []Run{{"v", &runrecord.Record{Tool: "stack", Warnings: []string{"slices 0 and 1: low", "work/s.csv: no shift between slices 1 and 2: taken as none"}}}}
	if got := len(r.notices()); got != before {
		t.Errorf("%d notices, without the stack's own words %d: want as many", got, before)
	}
	// the decisions say it where the matches are not there to
	r.Decisions = []registration.Decision{{Fixed: 0, Slice: 1, OverlapSource: "correlation_fallback"}, {Fixed: 10, Slice: 11, OverlapSource: "correlation_fallback", Overlap: 7}, {Fixed: 11, Slice: 12}}
	if got := len(r.notices()); got != before {
		t.Errorf("%d notices with decisions, without them %d: want as many", got, before)
	}
	r.Matches, r.Shifts = nil, nil
	if n := r.notices(); !slices.ContainsFunc(n, func(n *Notice) bool {
		return n.Where == "slices 10–11" && strings.Contains(n.Text, "expected overlap of 7 planes")
	}) ||
		slices.ContainsFunc(n, func(n *Notice) bool { return n.Where == "slices 0–1" }) {
		t.Errorf("%+v", n)
	}
}

// Many notices that differ in numbers only are one, with the others below it.
func TestSimilar(t *testing.T) {
	r := &Report{}
	for i := range 6 {
		r.Matches = append(r.Matches, registration.Match{Fixed: i, Moving: i + 1, Correlation: 0.1 + float64(i)/100, Fallback: true, Overlap: 7})
	}
	n := r.notices()
	if len(n) != 1 || len(n[0].Similar) != 5 || n[0].Similar[4] != "slices 5–6: correlation 0.15 is too low: the expected overlap of 7 planes was used" {
		t.Errorf("%d notices, %q", len(n), n[0].Similar)
	}
	if page := write(t, r); !strings.Contains(page, "5 more like this") || !strings.Contains(page, "slices 5–6: correlation 0.15") {
		t.Error("not in the page")
	}
	r.Matches = r.Matches[:4]
	if n := r.notices(); len(n) != 4 {
		t.Errorf("%d notices of 4", len(n))
	}
}

// The drift in the plot is the sum of the shifts.
func TestDrift(t *testing.T) {
	r := load(t, Sources{Shifts: filepath.Join(tree(t, map[string]string{"s.csv": shifts + "0,1,0,0,0.1,-0.2\n1,2,0,0,0.05,0.3\n"}), "s.csv")})
	page := write(t, r)
	for _, want := range []string{"slices 1–2: x 50 µm, y 300 µm", "slice 0: x 0 µm, y 0 µm", "slice 1: x 100 µm, y −200 µm", "slice 2: x 150 µm, y 100 µm"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestFacts(t *testing.T) {
	f, err := parseFacts([]byte(`{"b": 1.23456789, "a": "x", "none": null, "ok": true, "o": {"i": [1, 2], "deep": {"x": 1}}, "l": [1,2,3,4,5], "t": [{"a":1}], "m": [[1, 0.5], [-0.25, 1]], "n": [[1,2,3],[4,5,6]], "d": [[[1]]], "e": [], "b": 2}`), "f")
	want := &Facts{Fields: []string{"b", "a", "none", "ok", "o.i", "l", "t", "m", "n", "d", "e"},
		Values: map[string]string{"b": "2", "a": "x", "none": "–", "ok": "yes", "o.i": "1, 2", "l": "5 entries", "t": "1 entry", "m": "1, 0.5; -0.25, 1", "n": "2 entries", "d": "1 entry", "e": ""}}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, %v", f, err)
	}
}

// What stitch and crop write is summed up; what only looks like it is shown as it is.
func TestSlices(t *testing.T) {
	stitching := func(k int) string {
		var b bytes.Buffer
		err := stitch.WriteStitching(&b, &stitch.Result{Grid: [2]int{1, 3}, Size: [2]int{100, 270}, Blending: canvas.BlendFeather,
			Tiles: []stitch.TilePlan{{}, {Residual: [2]float64{0.3, -0.4}}, {Empty: true}}, Pairs: []stitch.TilePair{{Used: true}, {Reason: stitch.TooFar}},
			Seams: []canvas.Seam{{Voxels: 100, Relative: 0.1, Correlation: 0.9}, {Voxels: 300, Relative: 0.02 * float64(k), Correlation: 0.7}}})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	crop, err := json.Marshal(crop.Metrics{Interface: 12, InterfaceUM: 42.5, Kept: 60, InputPlanes: 96, Found: true, ALines: 10, ALinesUsed: 7, Missing: 3})
	if err != nil {
		t.Fatal(err)
	}
	dir := tree(t, map[string]string{
		"stitch/slice_z01.json": stitching(1), "stitch/slice_z02.json": stitching(2), "stitch/transform.json": `{"matrix": [[1,0],[0,1]], "spread_px": 0.25}`,
		"slices/slice_z01_crop.json": string(crop), "slices/slice_z02_crop.json": `{"input_planes": "many", "interface": 3}`,
	})
	r := load(t, Sources{Run: dir})
	f := r.Stitch[1]
	want := map[string]string{"Tiles": "1 × 3", "Slice, px": "100 × 270", "Blending": "feather", "Empty tiles": "1", "Largest residual, px": "0.5",
		"Pairs used": "1 of 2", "Pairs rejected": "too far from where it should be: 1", "Tiles unplaced": "2", "Difference at seams": "5.5 %", "At the worst seam": "10 %", "Lowest seam correlation": "0.7"}
	if f.Name != "slice_z02" || !reflect.DeepEqual(f.Values, want) {
		t.Errorf("%+v", f)
	}
	page := write(t, r)
	for _, want := range []string{"slice_z01: 4 %", "slice_z02: 10 %", "<td>found</td>", "<td>42.5</td>", "60 of 96", "7 of 10", ">spread_px</th>", "<td>many</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, "below the first plane") {
		t.Error("a plot of one slice")
	}
}

// Maps of a slice have their numbers and pictures.
func TestMaps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"flatfield", "correction"} {
		path := filepath.Join(dir, "slice_z03", name+".ome.zarr")
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		w, err := ngff.Create(ctx, store.Folder(path), "", ngff.ImageSpec{Shape: []int{30, 40}, Chunks: []int{8, 40}, DType: dtype.Float32, Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{2, 2}})
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, 1200)
		for i := range v {
			v[i] = float32(i) / 2
		}
		v[7] = float32(math.NaN())
		if err := w.WriteTile(ctx, []int{0, 0}, []int{30, 40}, dtype.Bytes(v)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "slice_z03")} {
		r := load(t, Sources{Focal: []string{path}})
		if len(r.Maps) != 1 || r.Maps[0].Name != "slice_z03" || len(r.Maps[0].Maps) != 2 {
			t.Fatalf("%s: %+v", path, r.Maps)
		}
		m := r.Maps[0].Maps[0]
		if m.Min != 0 || m.Max != 599.5 || math.Abs(m.Mean-(1199*1200/4.-3.5)/1199) > 1e-9 || m.Picture.Width < 300 {
			t.Errorf("%+v", m)
		}
		if page := write(t, r); !strings.Contains(page, "Flat-field: 0 to 600, mean 300") || !strings.Contains(page, "Curvature correction: 0 to 600 planes") {
			t.Errorf("captions are missing")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "slice_z03/flatfield.ome.zarr/0/zarr.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(ctx, Sources{Focal: []string{filepath.Join(dir, "slice_z03")}}, res); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "flatfield.ome.zarr") {
		t.Error(err)
	}
	if r := load(t, Sources{Focal: []string{dir}}); len(r.Problems) != 1 || len(r.Maps[0].Maps) != 1 {
		t.Errorf("%q", r.Problems)
	}
}

// Of many slices, some maps stand in the open and all in the plots.
func TestManyMaps(t *testing.T) {
	r := &Report{}
	for i := range 6 {
		m := func(kind string) *Map {
			return &Map{Kind: kind, Title: titles[kind].name, Picture: &Picture{Name: "p", Alt: "a", encoded: []byte("x")}, HasNumbers: true, Min: -1, Mean: float64(i), Max: float64(2 * i)}
		}
		r.Maps = append(r.Maps, &MapSet{Name: fmt.Sprintf("slice_z%02d", i), Maps: []*Map{m("flatfield"), m("correction"), m("z0")}})
	}
	plots := r.mapPlots()
	if len(plots) != 2 {
		t.Fatalf("%d plots", len(plots))
	}
	for i, want := range []string{"slice_z05: 11 planes", "slice_z05: 5 planes"} {
		if !strings.Contains(string(plots[i].SVG), want) {
			t.Errorf("plot %d has no %q", i, want)
		}
	}
	if len(r.FirstMaps()) != 2 || len(r.OtherMaps()) != 4 {
		t.Errorf("%d and %d", len(r.FirstMaps()), len(r.OtherMaps()))
	}
	page := write(t, r)
	if open := strings.Index(page, "4 more slices"); open < strings.Index(page, "<h3>slice_z01") || open > strings.Index(page, "<h3>slice_z02") || strings.Count(page, "<figure><label") != 18 {
		t.Error("the maps are not where they should be")
	}
	for _, set := range r.Maps {
		for _, m := range set.Maps {
			m.Picture.encoded = []byte("x")
		}
	}
	if r.Maps = r.Maps[:4]; len(r.FirstMaps()) != 4 || len(r.OtherMaps()) != 0 || strings.Contains(write(t, r), "more slice") {
		t.Error("few slices: some are hidden")
	}
	if r.Maps = r.Maps[:1]; len(r.mapPlots()) != 0 {
		t.Error("a plot of one slice")
	}
}

// Of many pictures, the first stand in the open, those of the volume before all.
func TestManyPictures(t *testing.T) {
	r := &Report{}
	for i := range 25 {
		r.Previews = append(r.Previews, &Picture{Name: fmt.Sprintf("slice_z%02d", i), Alt: "a", encoded: []byte("x")})
	}
	r.Previews = append(r.Previews, &Picture{Name: "volume", Alt: "a", encoded: []byte("x")})
	page := write(t, r)
	at := func(name string) int { return strings.Index(page, "<figcaption>"+name+"</figcaption>") }
	fold := strings.Index(page, "14 more pictures")
	if fold < 0 || at("volume") > at("slice_z00") || at("slice_z10") > fold || at("slice_z11") < fold || at("slice_z24") < fold {
		t.Error("the pictures are not where they should be")
	}
	r.Previews = r.Previews[2:]
	for _, p := range r.Previews {
		p.encoded = []byte("x")
	}
	if page := write(t, r); strings.Contains(page, "more picture") || strings.Count(page, "<figure") != 24 {
		t.Error("few pictures: some are hidden")
	}
}

func TestWords(t *testing.T) {
	for source, want := range map[string]string{"": "–", "correlation": "correlation", "correlation_fallback": "expected (correlation too low)", "expected": "expected"} {
		if got := overlapFrom(source); got != want {
			t.Errorf("%q: %q", source, got)
		}
	}
	for v, want := range map[float64]string{0.0123: "12 ms", 1.234: "1.23 s", 99.9: "99.9 s", 100: "1 min 40 s", 3601: "1 h 0 min", -1: "–"} {
		if got := webpage.Seconds(v); got != want {
			t.Errorf("%v s: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[int64]string{0: "0 B", 999: "999 B", 1023: "0.999 KiB", 1 << 20: "1 MiB", 5 << 40: "5 TiB", -1: "–"} {
		if got := webpage.Size(v); got != want {
			t.Errorf("%d bytes: %q, want %q", v, got, want)
		}
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null}], "c": {"d": "e"}}`))
	f.Add([]byte("{\"a\":\n1e999}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		facts, err := parseFacts(b, "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if !json.Valid(b) || len(facts.Fields) > maxFacts || len(facts.Values) != len(facts.Fields) {
			t.Errorf("%q: %+v", b, facts)
		}
	})
}

func FuzzTrace(f *testing.F) {
	f.Add("name\tstatus\tsubmit\tcomplete\tduration\trealtime\tattempt\nA\tCOMPLETED\t1000\t3000\t2h 3s\t1500\t1\n")
	f.Add("process\tslice\texit\treason\nA\tb\t1\tc")
	f.Fuzz(func(t *testing.T, text string) {
		if tasks, err := readTrace(strings.NewReader(text), "f"); err == nil {
			if e := engine(tasks); e != nil && (e.Busy < 0 || e.Waiting < 0) {
				t.Errorf("%+v", e)
			}
		} else if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		if _, err := readMissing(strings.NewReader(text), "f"); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q", err)
		}
	})
}

// A picture of preview has the name of a projection's, and is no file that aip wrote.
func TestPreviewsAreNoProjections(t *testing.T) {
	dir := tree(t, map[string]string{"previews/slice_z00.png": "a picture", "aip/slice_z00.png": "another"})
	r := &Report{Runs: []Run{{"slice_z00.aip", &runrecord.Record{Tool: "aip", Files: []runrecord.File{{Path: "aip/slice_z00.png", Digest: "sha256:00"}}}}}}
	lists := map[string][]found{"previews": {{filepath.Join(dir, "previews/slice_z00.png"), false}, {filepath.Join(dir, "aip/slice_z00.png"), false}}}
	if err := r.checkTogether(t.Context(), lists); err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "aip/slice_z00.png: is not what aip wrote") {
		t.Errorf("%q", r.Problems)
	}
}

// The page has the paragraph for a paper, of the runs that succeeded.
func TestMethods(t *testing.T) {
	dir := tree(t, map[string]string{
		"reports/a.stitch.json": `{"tool":"stitch","version":"1.2.0","settings":[{"name":"overlap","value":"<b>0.1</b>"}]}`,
		"reports/b.crop.json":   `{"tool":"crop","version":"1.2.0","exit_code":1}`,
	})
	page := write(t, load(t, Sources{Run: dir}))
	for _, want := range []string{`<a href="#methods">Methods</a>`, `<section id="methods">`, "Tiles were stitched into slices [3] (stitch; overlap &lt;b&gt;0.1&lt;/b&gt;).", "<li>Kuglin"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if strings.Contains(page, "cropped to a depth") {
		t.Error("the methods have a run that failed")
	}
	if page := write(t, load(t, Sources{Run: tree(t, map[string]string{"reports/a.view.json": `{"tool":"view"}`})})); strings.Contains(page, `id="methods"`) {
		t.Error("there are methods of nothing")
	}
}
