package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
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
{"case":{"name":"full/zstdsmall","group":"full","label":"zstd","unit":"GiB/s","targets":[{"against":"peers","ratio":1.1}]}}
{"run":{"case":"full/zstdsmall","who":"strata","s":2,"bytes":1073741824}}
{"run":{"case":"full/zstdsmall","who":"fast","failed":"no such codec"}}
{"run":{"case":"full/zstdsmall","who":"slow","s":2,"bytes":1073741824}}
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
		"full/raw":       {{who: "fast", got: "3.00 × as fast as fast", want: "≥ 2", reached: true}, {who: strata, got: "20 MiB resident", want: "≤ 10 MiB"}},
		"full/zstdsmall": {{who: "slow", got: "1.00 × as fast as slow", want: "≥ 1.1"}},
		"tiles/32":       {{who: "tiles alone", got: "0.84 × as fast as tiles alone", want: "≥ 0.8", reached: true}},
		"write/raw":      nil,
		"open":           {{who: strata, got: "0.060 ms", want: "≤ 0.05 ms"}},
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

// form returns a page with all regions of its parts, and what people wrote below them.
func form(page, below string) string {
	var b strings.Builder
	region := func(name string) { fmt.Fprintf(&b, "%s: <!-- %[1]s: begin -->old<!-- %[1]s: end -->\n", name) }
	for _, g := range parts() {
		if g.page != page {
			continue
		}
		groups := g.groups
		if g.tables != nil {
			groups = []group{{"stages", ""}, {"read", ""}}
		}
		for _, t := range groups {
			fmt.Fprintf(&b, "<!-- %[1]s/%[2]s: begin -->\n| old |\n<!-- %[1]s/%[2]s: end -->\n", g.name, t.name)
		}
		for _, name := range []string{"about", "machine", "targets", "summary", "differences"} {
			region(g.name + "/" + name)
		}
	}
	for _, name := range []string{"chain", "large", "scaling/busy"} {
		region(name)
	}
	return b.String() + below
}

// pagesOf writes all pages of a folder of results and pages, and returns the folder and the log.
func pagesOf(t *testing.T, files map[string]string) (dir, log string) {
	t.Helper()
	dir = t.TempDir()
	for _, g := range parts() {
		if files[g.page] == "" {
			files[g.page] = form(g.page, "")
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := writePages(dir, dir, dir, &b); err != nil {
		t.Fatal(err)
	}
	return dir, b.String()
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
	dir, log := pagesOf(t, map[string]string{"arrays.jsonl": runsFile,
		"benchmarks-arrays.md": form("benchmarks-arrays.md", "- <!-- note: arrays: full/z* -->Because of entropy.\n- <!-- note: arrays: tiles/* -->It was the cache.\n")})
	check(t, filepath.Join(dir, "benchmarks-arrays.md"), []string{
		"arrays/machine: begin -->Abacus, 2 cores", "arrays/about: begin -->4×5×6<", "arrays/targets: begin -->2 of 5 targets are reached; ✗ marks the others.<",
		"| | strata, GiB/s | slow | fast |\n",
		"| raw | 1.00 ✗ | 9.00× | 3.00× |\n",
		"| zstd | 0.50 | 1.00× ✗ | fails |\n",
		"| | strata, ms |", "| open | 0.060 ✗ |", "| raw | 1.00 | 1 |\n", "Because of entropy.",
	}, []string{"| old |", "linumpy"})
	for _, want := range []string{
		"benchmarks-arrays.md: no note explains why full/raw misses a target: write <!-- note: arrays: full/raw -->", "why open misses",
		"the note of arrays: tiles/* explains nothing",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "full/zstdsmall") {
		t.Errorf("a note that is there is missed:\n%s", log)
	}
	check(t, filepath.Join(dir, sheet), []string{
		"arrays,full,full/raw,raw,strata,1,GiB/s,4,1,1.5,20,,2097152,,3,1,,≤ 10 MiB,20 MiB resident,,,,,\n",
		"arrays,full,full/raw,raw,fast,0.3333,GiB/s,5,3,,,,2097152,,2,,3,≥ 2,,,,,,\n", ",no such codec\n",
	}, nil)
	check(t, filepath.Join(dir, machines), []string{"part,processor,cores,", "\narrays,Abacus,2,"}, nil)
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
	// the other parts have no results, and say so
	for _, g := range parts() {
		if g.name != "arrays" {
			check(t, filepath.Join(dir, g.page), []string{"Not measured yet: `make bench PARTS=" + g.name + "`", g.name + "/machine: begin --><!--"}, []string{"| old |"})
		}
	}
}

// TestPagesAreOfResults: the pages, the sheet and README's tables are what the results in git make; of each missed
// target people wrote why, and of none that is reached.
func TestPagesAreOfResults(t *testing.T) {
	const results, docs = "../results", "../../docs"
	dir := t.TempDir()
	var log strings.Builder
	if err := writePages(results, docs, dir, &log); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
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
	same(sheet, filepath.Join(docs, sheet))
	same(machines, filepath.Join(docs, machines))
	for _, g := range parts() {
		same(g.page, filepath.Join(docs, g.page))
		if f, _, err := g.load(results); err != nil || f != nil { // a part without results has no plot
			same(g.picture, filepath.Join(docs, g.picture))
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

// A multiple that lies closer to 1 than the rounds of one of the programs differ is marked.
func TestAlike(t *testing.T) {
	o := &outcome{median: map[string]summary{strata: {seconds: 1, spread: 0.1}, "close": {seconds: 1.09}, "restless": {seconds: 1.5, spread: 0.6}, "far": {seconds: 1.11, spread: 0.1}, "ahead": {seconds: 0.5, spread: 0.6}}}
	for who, want := range map[string]string{"close": "≈", "restless": "≈", "far": "", "ahead": ""} {
		if got := o.alike(who); got != want {
			t.Errorf("%s, %.2f times: %q, want %q", who, o.times(who), got, want)
		}
	}
}

// The memory of others is a range, unless it reads alike.
func TestBeside(t *testing.T) {
	o := &outcome{median: map[string]summary{strata: {hwm: 20480}, "small": {hwm: 10240}, "large": {hwm: 30720}, "unknown": {}}}
	of := func(s summary) int64 { return s.hwm }
	for others, want := range map[string]string{"small large unknown": "20 (10–30)", "small": "20 (10)", "unknown": "20"} {
		if got := o.beside(strings.Fields(others), of, mib); got != want {
			t.Errorf("%s: %q, want %q", others, got, want)
		}
	}
}

func TestRemotePage(t *testing.T) {
	dir, log := pagesOf(t, map[string]string{"remote.jsonl": `{"facts":{"CPU":"Abacus","Shape":[4,5,6]}}
{"case":{"name":"web/full/zstd","group":"web","label":"all, zstd:3","unit":"ms","targets":[{"against":"zarr-python","ratio":2},{"against":"tensorstore","ratio":1.2}]}}
{"run":{"case":"web/full/zstd","who":"strata","s":0.1,"bytes":5,"hwm_kb":20480}}
{"run":{"case":"web/full/zstd","who":"zarr-python","s":0.25,"bytes":5}}
{"run":{"case":"web/full/zstd","who":"tensorstore","s":0.11,"bytes":5}}
{"case":{"name":"web/full/zstd-noise","group":"web","label":"all, zstd:3, noise","unit":"ms","targets":[{"against":"tensorstore","ratio":1.2}]}}
{"run":{"case":"web/full/zstd-noise","who":"strata","s":0.1,"bytes":5,"hwm_kb":20480}}
{"run":{"case":"web/full/zstd-noise","who":"tensorstore","s":0.1,"bytes":5}}
`, "benchmarks-arrays.md": form("benchmarks-arrays.md", "<!-- note: remote: web/*/* -->The server sleeps.\n")})
	check(t, filepath.Join(dir, "benchmarks-arrays.md"), []string{
		"1 of 3 targets are reached; ✗ marks the others, 1 of them only in [the sheet](benchmarks.csv).<",
		"| all, zstd:3 | 100 | 2.50× | 1.10× ✗ |\n",
	}, []string{"| all, zstd:3, noise"})
	if log != "" {
		t.Error(log)
	}
	check(t, filepath.Join(dir, "benchmarks-remote.svg"), []string{"all, zstd:3"}, nil)
}

// The best of what C does is the yardstick, by whatever way.
func TestFilesPage(t *testing.T) {
	dir, _ := pagesOf(t, map[string]string{"files.jsonl": `{"facts":{"CPU":"Abacus"}}
{"case":{"name":"read/warm","group":"fileread","label":"in the page cache","unit":"GiB/s","targets":[{"against":"KvikIO","ratio":1.3},{"against":"best of C","ratio":0.95}]}}
{"run":{"case":"read/warm","who":"strata","s":0.1,"cpu_s":0.2,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"read/warm","who":"C","s":0.2,"bytes":1073741824,"hwm_kb":10240}}
{"run":{"case":"read/warm","who":"C, mapped","s":0.09,"bytes":1073741824,"hwm_kb":30720}}
{"run":{"case":"read/warm","who":"C, direct","failed":"invalid argument"}}
`})
	check(t, filepath.Join(dir, "benchmarks-arrays.md"), []string{
		"0 of 1 targets are reached", "| | strata, GiB/s | C | C, mapped | C, direct |\n",
		"| in the page cache | 10.0 | 2.00× | 0.90× ✗ | fails |\n",
	}, nil)
}

// Of a program with few cases, or that is no program that a user could take instead, there is no summary.
func TestSummary(t *testing.T) {
	var runs strings.Builder
	runs.WriteString("{\"facts\":{}}\n")
	for i := range 5 {
		name := fmt.Sprintf("full/%d", i)
		fmt.Fprintf(&runs, "{\"case\":{\"name\":%q,\"group\":\"full\",\"unit\":\"s\"}}\n", name)
		for at, who := range []string{strata, "zarrs", ioAlone, "tensorstore"} {
			fmt.Fprintf(&runs, "{\"run\":{\"case\":%q,\"who\":%q,\"s\":%g}}\n", name, who, []float64{1, float64(i + 1), 0.5, 2}[at])
		}
	}
	runs.WriteString(`{"run":{"case":"full/0","who":"rare","s":7}}`)
	_, all, err := readRuns(strings.NewReader(runs.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := arraysPart().summary(all), "1.00 to 5.00 times as fast as zarrs (median 3.00), 2.00 to 2.00 times tensorstore (2.00)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
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
