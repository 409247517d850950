package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shell is a contestant that prints what a script prints.
func shell(who, script string) contestant {
	return contestant{who: who, argv: []string{"sh", "-c", script}}
}

func runUnit(t *testing.T, u *unit, least int) ([]sample, error) {
	t.Helper()
	var out bytes.Buffer
	r := runner{least: least, most: least, w: &out, log: io.Discard}
	if u.reads == "" {
		u.reads = t.TempDir()
	}
	err := r.unit(context.Background(), &plan{out: t.TempDir()}, u)
	var runs []sample
	for l := range strings.Lines(out.String()) {
		var v line
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatal(err)
		}
		if v.Run != nil {
			runs = append(runs, *v.Run)
		}
	}
	return runs, err
}

func TestProgramsTakeTurns(t *testing.T) {
	u := unit{header: header{Name: "x"}, who: []contestant{
		shell(strata, `echo '{"s":1,"ck":5}'`), shell("a", `echo '{"s":2,"ck":5}'`), shell("b", `echo '{"s":3,"ck":5}'`)}}
	runs, err := runUnit(t, &u, 3)
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, r := range runs {
		order += r.Who[:1]
	}
	if want := "sab" + "abs" + "bsa"; order != want {
		t.Errorf("programs ran in the order %q, want %q", order, want)
	}
}

func TestOtherNumbersAreAnError(t *testing.T) {
	u := unit{header: header{Name: "x"}, who: []contestant{shell(strata, `echo '{"s":1,"ck":5}'`), shell("a", `echo '{"s":2,"ck":6}'`)}}
	if _, err := runUnit(t, &u, 1); err == nil || !strings.Contains(err.Error(), "a has other numbers than strata: sums 6 and 5") {
		t.Errorf("error %v, want one that names both sums", err)
	}
}

func TestAPeerMayFailStrataMayNot(t *testing.T) {
	const broken = `echo "no such codec" >&2; exit 1`
	u := unit{header: header{Name: "x"}, who: []contestant{shell(strata, `echo '{"s":1}'`), shell("a", broken)}}
	runs, err := runUnit(t, &u, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 3 || !strings.Contains(runs[1].Failed, "no such codec") {
		t.Errorf("runs %+v: want strata twice and the failure of a once, with its message", runs)
	}
	u.who[0].argv[2] = broken
	if _, err := runUnit(t, &u, 2); err == nil || !strings.Contains(err.Error(), "no such codec") {
		t.Errorf("error %v, want strata's failure", err)
	}
}

// runsFile has a case that reaches its target, two that do not, one whose peer fails,
// and one whose yardstick was not measured.
const runsFile = `{"facts":{"CPU":"Abacus","Cores":2,"Shape":[4,5,6]}}
{"case":{"name":"full/raw","group":"full","label":"raw","unit":"GiB/s","targets":[{"against":"peers","ratio":2}],"memory_mib":10,"input":2097152}}
{"run":{"case":"full/raw","round":0,"who":"strata","first_s":4,"s":1,"cpu_s":1.5,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"full/raw","round":0,"who":"slow","s":9,"bytes":1073741824}}
{"run":{"case":"full/raw","round":0,"who":"fast","first_s":5,"s":3,"bytes":1073741824}}
{"run":{"case":"full/raw","round":1,"who":"strata","first_s":4,"s":2,"cpu_s":1.5,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"full/raw","round":1,"who":"fast","first_s":5,"s":3,"bytes":1073741824}}
{"run":{"case":"full/raw","round":2,"who":"strata","first_s":4,"s":1,"cpu_s":1.5,"bytes":1073741824,"hwm_kb":20480}}
{"case":{"name":"full/zstd","group":"full","label":"zstd","unit":"GiB/s","targets":[{"against":"peers","ratio":1.1}]}}
{"run":{"case":"full/zstd","who":"strata","s":2,"bytes":1073741824}}
{"run":{"case":"full/zstd","who":"fast","failed":"no such codec"}}
{"run":{"case":"full/zstd","who":"slow","s":2,"bytes":1073741824}}
{"case":{"name":"tiles/32","group":"tiles","label":"radius 32","unit":"GiB/s","targets":[{"against":"tiles alone","ratio":0.8}]}}
{"run":{"case":"tiles/32","who":"strata","s":1,"bytes":1207959552}}
{"run":{"case":"tiles/32","who":"tiles alone","s":0.75,"bytes":1073741824}}
{"case":{"name":"write/raw","group":"write","label":"raw","unit":"GiB/s","targets":[{"against":"linumpy","ratio":5}]}}
{"run":{"case":"write/raw","who":"strata","s":1,"bytes":1073741824,"stored":1048576}}
{"case":{"name":"open","group":"start","label":"open","unit":"ms","targets":[{"against":"ms","ratio":0.05}]}}
{"run":{"case":"open","who":"strata","s":0.00006}}
`

func TestVerdicts(t *testing.T) {
	_, all, err := readRuns(strings.NewReader(runsFile))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]verdict{
		"full/raw":  {{who: "fast", got: "3.00 × as fast as fast", want: "≥ 2", reached: true}, {who: strata, got: "20 MiB resident", want: "≤ 10 MiB"}},
		"full/zstd": {{who: "slow", got: "1.00 × as fast as slow", want: "≥ 1.1"}},
		"tiles/32":  {{who: "tiles alone", got: "0.84 × as fast as tiles alone", want: "≥ 0.8", reached: true}},
		"write/raw": nil,
		"open":      {{who: strata, got: "0.060 ms", want: "≤ 0.05 ms"}},
	}
	for _, o := range all {
		if got := o.verdicts(); !slices.Equal(got, want[o.Name]) {
			t.Errorf("%s: %+v, want %+v", o.Name, got, want[o.Name])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d cases, want %d", len(all), len(want))
	}
}

// empty returns a page with an older report, and what people wrote below it.
func empty(report, below string) string {
	return "<!-- report: begin -->\n" + report + "<!-- report: end -->\n" + below
}

// pagesOf writes all pages of a folder of results and pages.
func pagesOf(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, g := range pages() {
		if files[g.file] == "" {
			files[g.file] = empty("# Old\n", "")
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := writePages(dir, dir, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// check looks for lines of a written file, and for what it must not have.
func check(t *testing.T, path string, want, not []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if !bytes.Contains(text, []byte(w)) {
			t.Errorf("%s lacks %q:\n%s", filepath.Base(path), w, text)
		}
	}
	for _, w := range not {
		if bytes.Contains(text, []byte(w)) {
			t.Errorf("%s has %q", filepath.Base(path), w)
		}
	}
}

func TestArraysPage(t *testing.T) {
	dir := pagesOf(t, map[string]string{"arrays.jsonl": runsFile,
		"benchmarks-arrays.md": empty("# Old\n- **Reads: zstd** (2 s, wanted ≤ 1 s). <!-- note: full/zstd -->Because of entropy.\n- **Opening: open** (2 s). <!-- note: open -->\n\n<!-- Notes:\nnote: tiles/32: Not needed.\n-->\n", "\n## Findings\nIt was the cache.\n")})
	check(t, filepath.Join(dir, "benchmarks-arrays.md"), []string{
		"Abacus, 2 cores", "4×5×6", "![plot](benchmarks-arrays.svg)", "2 of 5 are reached",
		"- **Full reads into fresh memory: zstd** (1.00 × as fast as slow, wanted ≥ 1.1). <!-- note: full/zstd -->Because of entropy.\n",
		"- **Opening and starting: open** (0.060 ms, wanted ≤ 0.05 ms). <!-- note: open -->\n", "\n<!-- Notes of cases that reach their targets:\nnote: tiles/32: Not needed.\n-->\n",
		"|  |  | speed | first | processor | resident | strata is | target |\n",
		"| raw, 2 MiB stored | strata | 1.00 GiB/s | 0.25 GiB/s | 1.50 s | 20 MiB |  | ≤ 10 MiB ✗ |\n",
		"|  | fast | 0.33 GiB/s | 0.20 GiB/s | 0.000 ms |  | 3.00 × as fast | ≥ 2 ✓ |\n",
		"|  | fast | fails |", "| raw | strata | 1.00 GiB/s | 0.000 ms |  | 1 MiB |  |  |\n", "## Findings\nIt was the cache.",
	}, []string{"# Old", "linumpy"})
	svg, err := os.ReadFile(filepath.Join(dir, "benchmarks-arrays.svg"))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	rects := 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("plot is no XML: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if want := 1 + 1 + 7; rects != want { // ground, legend, bars of full and write
		t.Errorf("plot has %d rectangles, want %d", rects, want)
	}
	// the other pages have no results, and say so
	for _, g := range pages() {
		if g.part != "arrays" {
			check(t, filepath.Join(dir, g.file), []string{"Not measured yet: `make bench PARTS=" + g.part + "`"}, []string{"## Targets", "Machine"})
		}
	}
}

// TestPagesAreOfResults: the pages and README's tables are what the results in git make, and what people wrote in them is kept.
func TestPagesAreOfResults(t *testing.T) {
	const results, docs = "../results", "../../docs"
	dir := t.TempDir()
	if err := writePages(results, docs, dir); err != nil {
		t.Fatal(err)
	}
	same := func(name, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(want); err != nil || !bytes.Equal(b, got) {
			t.Errorf("%s is not what lab/results makes (go run ./lab/compare report -results lab/results -docs docs -readme README.md); %v", want, err)
		}
	}
	for _, g := range pages() {
		same(g.file, filepath.Join(docs, g.file))
		if f, _, err := g.load(results); err != nil || f != nil { // a page without results has no plot
			same(g.picture(), filepath.Join(docs, g.picture()))
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "README.md"), readme, 0o666)
	}
	if err == nil {
		err = writeReadme(results, filepath.Join(dir, "README.md"))
	}
	if err != nil {
		t.Fatal(err)
	}
	same("README.md", "../../README.md")
}

func TestRemotePage(t *testing.T) {
	dir := pagesOf(t, map[string]string{"remote.jsonl": `{"facts":{"CPU":"Abacus","Shape":[4,5,6]}}
{"case":{"name":"web/full/raw","group":"web","label":"all, raw","unit":"ms","targets":[{"against":"zarr-python","ratio":2},{"against":"tensorstore","ratio":1.2}]}}
{"run":{"case":"web/full/raw","who":"strata","s":0.1,"bytes":5,"hwm_kb":20480}}
{"run":{"case":"web/full/raw","who":"zarr-python","s":0.25,"bytes":5}}
{"run":{"case":"web/full/raw","who":"tensorstore","s":0.11,"bytes":5}}
`, "benchmarks-remote.md": empty("note: web/full/raw: The server sleeps.\n", "")})
	check(t, filepath.Join(dir, "benchmarks-remote.md"), []string{
		"1 of 2 are reached", "- **HTTP, 20 ms: all, raw** (1.10 × as fast as tensorstore, wanted ≥ 1.2). <!-- note: web/full/raw -->The server sleeps.\n",
		"| all, raw | strata | 100 ms |", "|  | zarr-python | 250 ms | 0.000 ms |  | 2.50 × as fast | ≥ 2 ✓ |",
	}, nil)
	check(t, filepath.Join(dir, "benchmarks-remote.svg"), []string{"all, raw"}, nil)
}

// The best of what C does is the yardstick, by whatever way.
func TestFilesPage(t *testing.T) {
	dir := pagesOf(t, map[string]string{"files.jsonl": `{"facts":{"CPU":"Abacus"}}
{"case":{"name":"read/warm","group":"fileread","label":"in the page cache","unit":"GiB/s","targets":[{"against":"KvikIO","ratio":1.3},{"against":"best of C","ratio":0.95}]}}
{"run":{"case":"read/warm","who":"strata","s":0.1,"cpu_s":0.2,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"read/warm","who":"C","s":0.2,"bytes":1073741824}}
{"run":{"case":"read/warm","who":"C, mapped","s":0.09,"bytes":1073741824}}
{"run":{"case":"read/warm","who":"C, direct","failed":"invalid argument"}}
`})
	check(t, filepath.Join(dir, "benchmarks-files.md"), []string{
		"0 of 1 are reached", "- **Reads: in the page cache** (0.90 × as fast as C, mapped, wanted ≥ 0.95).",
		"| in the page cache | strata | 10.0 GiB/s | 0.20 s | 20 MiB |  |  |", "|  | C, mapped | 11.1 GiB/s | 0.000 ms |  | 0.90 × as fast | ≥ 0.95 ✗ |", "|  | C, direct | fails |",
	}, nil)
}

func TestRunsFileErrors(t *testing.T) {
	for _, text := range []string{"", "{", `{"facts":{}}`, `{"run":{"case":"x"}}`} {
		if _, _, err := readRuns(strings.NewReader(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Each program is asked for the same bytes of the same file.
func TestFileUnits(t *testing.T) {
	for _, with := range []string{"", "python"} {
		p := plan{tools: "tools", data: "data", out: "out", kvikio: with, noCUDA: "nocuda"}
		for _, u := range p.fileUnits(1 << 20) {
			peers := 0
			for _, c := range u.who {
				args := c.argv[len(c.argv)-9:]
				if strings.HasPrefix(c.who, kvikio) {
					peers++
					if args[8] != "16" || !strings.Contains(strings.Join(c.env, " "), "LD_LIBRARY_PATH=nocuda") {
						t.Errorf("%s: %+v", u.Name, c)
					}
				}
				writes := strings.HasPrefix(args[0], "write")
				if args[2] != "1048576" || args[3] != "2" || writes != (args[1] == filepath.Join("out", "written")) || !writes && args[1] != u.reads {
					t.Errorf("%s: %s: %v", u.Name, c.who, args)
				}
			}
			if (peers > 0) != (with != "") || u.who[0].who != strata {
				t.Errorf("%s: %d peers, first %s", u.Name, peers, u.who[0].who)
			}
		}
	}
}
