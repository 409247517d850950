package qc

import (
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// The verdict counts joins, those that are uncertain, missing slices, warnings and errors, and its word grades the run.
func TestVerdict(t *testing.T) {
	good := []registration.Match{{Fixed: 0, Moving: 1, Correlation: 0.9, Overlap: 3}, {Fixed: 1, Moving: 2, Correlation: 0.8, Overlap: 3}}
	doubtful := append(slices.Clone(good), registration.Match{Fixed: 2, Moving: 3, Correlation: 0.02, Fallback: true, Overlap: 4},
		registration.Match{Fixed: 3, Moving: 4, Correlation: 0.05, Overlap: 4}, registration.Match{Fixed: 4, Moving: 5, Correlation: 0.7})
	stack := func(warnings ...string) []Run {
		return []Run{{"volume.stack", &runrecord.Record{Tool: "stack", Warnings: warnings}}}
	}
	for _, c := range []struct {
		name   string
		report Report
		want   verdict
	}{
		{"nothing", Report{}, verdict{"good", "Good", "nothing to report"}},
		{"good", Report{Matches: good}, verdict{"good", "Good", "2 joins, none uncertain · no warnings"}},
		{"not measured", Report{Matches: []registration.Match{{Moving: 1, Overlap: 3}}}, verdict{"good", "Good", "1 join, not measured · no warnings"}},
		{"doubtful", Report{Matches: doubtful}, verdict{"warning", "Check", "5 joins, 3 uncertain · 3 warnings"}},
		{"by the decisions", Report{Decisions: []registration.Decision{{Fixed: 0, Slice: 1, Correlation: "0.5"}, {Fixed: 1, Slice: 2, OverlapSource: "correlation_fallback"}}},
			verdict{"warning", "Check", "2 joins, 1 uncertain · 1 warning"}},
		{"contradicted", Report{Matches: good, Found: []registration.FoundShift{{Fixed: 1, Moving: 2, Contradicted: true}}}, verdict{"warning", "Check", "2 joins, 1 uncertain · 1 warning"}},
		{"warnings of a stage", Report{Matches: good, Runs: stack("a", "b")}, verdict{"warning", "Check", "2 joins, none uncertain · 2 warnings"}},
		{"missing", Report{Missing: []MissingSlice{{"FOCAL", "z04", "3", "broken"}}}, verdict{"error", "Failed", "1 slice missing · 1 error"}},
	} {
		if got := c.report.verdict(c.report.notices()); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		page := write(t, &c.report)
		if at := strings.Index(page, `<p class="verdict `+c.want.Grade+`"><strong>`+c.want.Word); at < 0 || at > strings.Index(page, "<section") {
			t.Errorf("%s: the verdict is not on top", c.name)
		}
	}
}

// Lengths are in µm where the records say how large a voxel is.
func TestMicrometres(t *testing.T) {
	volume := runrecord.Dataset{Shape: []int{100, 200, 300}, DType: "float32", VoxelSize: []float64{5, 10, 10}}
	r := &Report{Runs: []Run{{"volume.stack", &runrecord.Record{Tool: "stack", Outputs: []runrecord.Dataset{volume}}}},
		Matches: []registration.Match{{Fixed: 0, Moving: 1, Overlap: 7, BlendOverlap: 4, MovingZ: 2, Correlation: 0.04, Fallback: true}}}
	page := write(t, r)
	for _, want := range []string{"500 × 2000 × 3000", "voxels of 5 × 10 × 10 µm", "Overlap, µm</th>", `<td class="n">35</td><td class="n">20</td><td class="n">10</td>`, "the expected overlap of 35 µm was used",
		"overlap 35 µm, blended 20 µm", "overlap, µm"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, " mm") {
		t.Error("millimetres in the page")
	}
}

// Every warning says what to do, in words that the programs know: each text is one that a program has, each flag is
// one.
func TestAdvice(t *testing.T) {
	var source strings.Builder
	for _, dir := range []string{"../oct", "../cli", "../registration", "../zarr", ".", "../../cmd/internal"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "advice.go" {
				return err
			}
			b, err := os.ReadFile(path)
			source.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := source.String()
	flag := regexp.MustCompile(`--([a-z_]+)`)
	known := func(do string) {
		for _, m := range flag.FindAllStringSubmatch(do, -1) {
			name := strings.TrimPrefix(m[1], "no-")
			if !slices.Contains([]string{"help", "use_gpu", "require_gpu", "no", "outdir"}, name) && !strings.Contains(all, `Name: "`+name+`"`) {
				t.Errorf("advice %q: no program has --%s", do, name)
			}
		}
		if strings.Count(do, "`")%2 != 0 {
			t.Errorf("advice %q: an odd number of backquotes", do)
		}
	}
	for _, a := range advice {
		if !strings.Contains(all, a.part) {
			t.Errorf("no program warns with %q", a.part)
		}
		known(a.do)
	}
	for _, do := range doExit {
		known(do)
	}
	r := &Report{Runs: []Run{{"v.stack", &runrecord.Record{Tool: "stack", Warnings: []string{"slices 0 and 1: the best overlap of 3 planes correlates by 0.02", "something else"}, Error: "full", ExitCode: 1}}}}
	page := write(t, r)
	for _, want := range []string{"<code>strata view volume.ome.zarr</code>", "<code>strata stack --help</code>", "Check free disk space"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, n := range r.notices() {
		if n.Grade != "note" && n.Do == "" {
			t.Errorf("nothing to do about %q", n.Text)
		}
	}
}

// Tables are saved with all digits, and hold nothing that a spreadsheet would run.
func TestCSV(t *testing.T) {
	r := &Report{Runs: []Run{{`=cmd|"x"`, &runrecord.Record{Tool: "@aip", WallSeconds: 1.23456789, BytesRead: 123456789}}},
		Decisions: []registration.Decision{{Slice: 1, Correlation: "-0.1", TransformLoaded: true, TransformSource: "+1 a,\nb"}}}
	page := write(t, r)
	files := map[string][][]string{}
	for _, m := range regexp.MustCompile(`download="([a-z.-]+)" href="data:text/csv;base64,([^"]+)"`).FindAllStringSubmatch(page, -1) {
		b, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(b), "\ufeff"))).ReadAll()
		if err != nil || !strings.HasPrefix(string(b), "\ufeff") {
			t.Fatalf("%s: %v", m[1], err)
		}
		files[m[1]] = rows
	}
	if n := strings.Count(page, "<table>"); n != len(files) || n != 3 {
		t.Errorf("%d tables, %d files", n, len(files))
	}
	if head := fmt.Sprint(files["runs.csv"][0]); head != "[Run Program Wall time, s Workers Peak memory, bytes Read, bytes Written, bytes Exit code Arguments]" {
		t.Errorf("runs.csv: %s", head)
	}
	for file, want := range map[string]string{
		"runs.csv":      `['=cmd|"x" '@aip 1.23456789 0 0 123456789 0 0 ]`,
		"decisions.csv": "[1 0 '+1 a,\nb   0 0 -0.1]",
	} {
		if rows := files[file]; len(rows) != 2 || fmt.Sprint(rows[1]) != want {
			t.Errorf("%s: %q, want %q", file, rows, want)
		}
	}
}

// A registered pair has register's correlation or a dash, never the 1 of older tables, and is good or bad by register's
// own verdict.
func TestRegisteredJoins(t *testing.T) {
	decided := func(slice int, source, correlation string) registration.Decision {
		return registration.Decision{Fixed: slice - 1, Slice: slice, TransformLoaded: true, OverlapSource: source, Correlation: correlation, Overlap: 7}
	}
	decisions := []registration.Decision{decided(1, "registration", "0.6250"), decided(2, "registration", "1.0000"), decided(3, "registration", "0.0000"),
		decided(4, "registration", "0.0500"), decided(5, "correlation", "1.0000"), decided(6, "expected", "0.0000")}
	matches := []registration.Match{{Fixed: 0, Moving: 1, Overlap: 7, Correlation: 0.625}, {Fixed: 1, Moving: 2, Overlap: 7, Correlation: 1}, {Fixed: 2, Moving: 3, Overlap: 7},
		{Fixed: 3, Moving: 4, Overlap: 7, Correlation: 0.05}, {Fixed: 4, Moving: 5, Overlap: 7, Correlation: 0.99999}, {Fixed: 5, Moving: 6, Overlap: 7}}
	for _, r := range []*Report{{Matches: matches, Decisions: decisions}, {Decisions: decisions}} {
		want := []struct {
			measured bool
			result   string
		}{{true, "registered"}, {false, "registered"}, {false, "registered"}, {true, "registered"}, {true, "good"}, {false, "not measured"}}
		for i, j := range r.joins() {
			if j.Measured != want[i].measured || j.result() != want[i].result {
				t.Errorf("join %d: measured %v, %s, want %v", i, j.Measured, j.result(), want[i])
			}
		}
		table := r.decisionTable()
		for i, want := range []string{"0.625", "–", "–", "0.050", "1.000", "–"} {
			if got := table.Rows[i][7].Text; got != want {
				t.Errorf("decision %d: correlation %s, want %s", i, got, want)
			}
		}
		if v := r.verdict(r.notices()); v.Grade != "good" {
			t.Errorf("%+v", v)
		}
	}
	r := &Report{Matches: matches[1:2]} // of a table without decisions
	if j := r.joins()[0]; j.Measured || strings.Contains(write(t, r), "1.000<") {
		t.Errorf("%+v", j)
	}
	table := (&Report{Matches: matches, Decisions: decisions}).matchTable()
	for i, want := range []string{"0.625", "–", "–", "0.050", "1.000", "–"} {
		if got := table.Rows[i][4].Text; got != want {
			t.Errorf("match %d: correlation %s, want %s", i, got, want)
		}
	}
}
