package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
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

// runsFile has a case that reaches its target, two that do not, and one
// whose peer fails.
const runsFile = `{"facts":{"CPU":"Abacus","Cores":2,"Shape":[4,5,6]}}
{"case":{"name":"full/raw","group":"full","label":"raw","unit":"GiB/s","target":{"against":"peers","ratio":2},"memory_mib":10}}
{"run":{"case":"full/raw","round":0,"who":"strata","s":1,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"full/raw","round":0,"who":"slow","s":9,"bytes":1073741824}}
{"run":{"case":"full/raw","round":0,"who":"fast","s":3,"bytes":1073741824}}
{"run":{"case":"full/raw","round":1,"who":"strata","s":2,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"full/raw","round":1,"who":"fast","s":3,"bytes":1073741824}}
{"run":{"case":"full/raw","round":2,"who":"strata","s":1,"bytes":1073741824,"hwm_kb":20480}}
{"case":{"name":"full/zstd","group":"full","label":"zstd","unit":"GiB/s","target":{"against":"peers","ratio":1.1}}}
{"run":{"case":"full/zstd","who":"strata","s":2,"bytes":1073741824}}
{"run":{"case":"full/zstd","who":"fast","failed":"no such codec"}}
{"run":{"case":"full/zstd","who":"slow","s":2,"bytes":1073741824}}
{"case":{"name":"aip/raw","group":"aip","label":"raw","unit":"ms","target":{"against":"reading alone","ratio":1.35,"inverse":true}}}
{"run":{"case":"aip/raw","who":"strata","s":0.13}}
{"run":{"case":"aip/raw","who":"reading alone","s":0.1}}
{"case":{"name":"tiles/32","group":"tiles","label":"radius 32","unit":"GiB/s","target":{"against":"tiles alone","ratio":0.8}}}
{"run":{"case":"tiles/32","who":"strata","s":1,"bytes":1207959552}}
{"run":{"case":"tiles/32","who":"tiles alone","s":0.75,"bytes":1073741824}}
{"case":{"name":"open","group":"start","label":"open","unit":"ms","target":{"against":"ms","ratio":0.05}}}
{"run":{"case":"open","who":"strata","s":0.00006}}
`

func TestRatiosAndTargets(t *testing.T) {
	_, all, err := readRuns(strings.NewReader(runsFile))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		ratio     float64
		yardstick string
		reached   bool
	}{
		"full/raw":  {3, "fast", true},
		"full/zstd": {1, "slow", false},
		"aip/raw":   {1.3, "reading alone", true},
		"tiles/32":  {0.84375, "tiles alone", true},
		"open":      {0, "", false},
	}
	for _, o := range all {
		w := want[o.Name]
		_, reached := o.verdict()
		if r := o.ratio(); r < w.ratio-1e-9 || r > w.ratio+1e-9 || o.yardstick() != w.yardstick || reached != w.reached {
			t.Errorf("%s: ratio %g of %q, reached %v, want %+v", o.Name, o.ratio(), o.yardstick(), reached, w)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d cases, want %d", len(all), len(want))
	}
	if all[0].memoryReached() {
		t.Error("20 MiB resident are within 10 MiB")
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("runs", runsFile)
	write("notes", "About this file.\n### full/zstd\nBecause of\nentropy.\n### tiles/32\nUnused.\n## Findings\nIt was the cache.\n")
	if err := writeReport(at("runs"), at("notes"), at("b.md"), at("b.svg")); err != nil {
		t.Fatal(err)
	}
	md, err := os.ReadFile(at("b.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Abacus, 2 cores", "4×5×6", "![plot](b.svg)", "3 of 6 are reached",
		"- **Full reads into fresh memory, zstd** (1.00 of slow, wanted ≥ 1.1). Because of entropy.\n",
		"- **Opening and starting, open** (0.060 ms, wanted ≤ 0.05 ms).",
		"| raw | 1.00 GiB/s | 0.11 GiB/s | 0.33 GiB/s | 3.00 × fast | ≥ 2 | ✓ |",
		"| zstd | 0.50 GiB/s | 0.50 GiB/s | fails | 1.00 × slow | ≥ 1.1 | ✗ |",
		"| raw | 130 ms | 100 ms | 1.30 | ≤ 1.35 | ✓ |",
		"20 MiB resident, wanted ≤ 10", "## Findings\nIt was the cache.",
	} {
		if !bytes.Contains(md, []byte(want)) {
			t.Errorf("report lacks %q:\n%s", want, md)
		}
	}
	for _, not := range []string{"About this file", "Unused"} {
		if bytes.Contains(md, []byte(not)) {
			t.Errorf("report has %q", not)
		}
	}
	svg, err := os.ReadFile(at("b.svg"))
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
	if bars := 3 + 3 + 2; rects < 1+bars {
		t.Errorf("plot has %d rectangles, want a background and %d bars", rects, bars)
	}
}

// remoteRuns has a goal that is reached, one that is not, and a peer that fails.
const remoteRuns = `{"facts":{"CPU":"Abacus","Shape":[4,5,6]}}
{"case":{"name":"web/full/raw","group":"web","label":"all, raw","unit":"ms","target":{},"goals":[{"against":"zarr-python","ratio":2},{"against":"tensorstore","ratio":1.2}]}}
{"run":{"case":"web/full/raw","who":"strata","s":0.1,"bytes":5,"hwm_kb":20480}}
{"run":{"case":"web/full/raw","who":"zarr-python","s":0.25,"bytes":5}}
{"run":{"case":"web/full/raw","who":"tensorstore","s":0.11,"bytes":5}}
{"case":{"name":"s3/write/raw","group":"s3","label":"write, raw","unit":"ms","target":{},"goals":[{"against":"zarr-python","ratio":2}]}}
{"run":{"case":"s3/write/raw","who":"strata","s":0.1}}
{"run":{"case":"s3/write/raw","who":"zarr-python","failed":"no such host"}}
{"run":{"case":"s3/write/raw","who":"tensorstore","s":0.3}}
`

func TestRemoteReport(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"runs": remoteRuns, "notes": "### web/full/raw\nThe server\nsleeps.\n## Findings\nNone.\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeRemote(at("runs"), at("notes"), at("r.md"), at("r.svg")); err != nil {
		t.Fatal(err)
	}
	md, err := os.ReadFile(at("r.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 of 3 are reached",
		"- **HTTP, 20 ms, all, raw** (1.10 × tensorstore, wanted ≥ 1.2). The server sleeps.\n",
		"| all, raw | 100 ms | 250 ms | 110 ms | 2.50 (≥ 2 ✓) | 1.10 (≥ 1.2 ✗) |",
		"| write, raw | 100 ms | fails | 300 ms |  | 3.00 |", "| all, raw | 20 | 0 | 0 |", "## Findings\nNone.",
	} {
		if !bytes.Contains(md, []byte(want)) {
			t.Errorf("page lacks %q:\n%s", want, md)
		}
	}
	if svg, err := os.ReadFile(at("r.svg")); err != nil || !bytes.Contains(svg, []byte("all, raw")) {
		t.Errorf("plot lacks a case (%v)", err)
	}
}

func TestRunsFileErrors(t *testing.T) {
	for _, text := range []string{"", "{", `{"facts":{}}`, `{"run":{"case":"x"}}`} {
		if _, _, err := readRuns(strings.NewReader(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// fileRuns has goals that are reached and missed, against KvikIO and the best of C, and a way that fails.
const fileRuns = `{"facts":{"CPU":"Abacus"}}
{"case":{"name":"read/warm","group":"fileread","label":"in the page cache","unit":"GiB/s","target":{},"goals":[{"against":"KvikIO","ratio":1.3},{"against":"best of C","ratio":0.95}]}}
{"run":{"case":"read/warm","who":"strata","s":0.1,"cpu_s":0.2,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"read/warm","who":"C","s":0.2,"bytes":1073741824}}
{"run":{"case":"read/warm","who":"C, mapped","s":0.09,"bytes":1073741824}}
{"run":{"case":"read/warm","who":"C, direct","failed":"invalid argument"}}
{"run":{"case":"read/warm","who":"KvikIO","s":0.15,"bytes":1073741824}}
{"case":{"name":"calls","group":"filecalls","label":"calls","unit":"ms","target":{"against":"ms","ratio":200},"goals":[{"against":"KvikIO","ratio":1.3}]}}
{"run":{"case":"calls","who":"strata","s":0.3}}
`

func TestFileReport(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"runs": fileRuns, "notes": "### read/warm\nThe same\nsystem call.\n## Findings\nNone.\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeFiles(at("runs"), at("notes"), at("f.md"), at("f.svg")); err != nil {
		t.Fatal(err)
	}
	md, err := os.ReadFile(at("f.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- **Reads, in the page cache** (0.90 × best of C, wanted ≥ 0.95). The same system call.\n", "- **Small reads, calls** (300 ms, wanted ≤ 200 ms).",
		"| strata | 10.0 GiB/s | 0.20 s | 20 MiB |  |  |  |", "| C, mapped | 11.1 GiB/s | 0.000 s | 0 MiB | 0.90 | ≥ 0.95 | ✗ |",
		"| KvikIO | 6.67 GiB/s | 0.000 s | 0 MiB | 1.50 | ≥ 1.3 | ✓ |", "| C | 5.00 GiB/s | 0.000 s | 0 MiB | 2.00 |  |  |", "| C, direct | fails |", "## Findings\nNone.",
	} {
		if !bytes.Contains(md, []byte(want)) {
			t.Errorf("page lacks %q:\n%s", want, md)
		}
	}
	if bytes.Count(md, []byte("\n- **")) != 2 {
		t.Errorf("goals without a yardstick are missed:\n%s", md)
	}
	if svg, err := os.ReadFile(at("f.svg")); err != nil || !bytes.Contains(svg, []byte("in the page cache")) {
		t.Errorf("plot lacks a case (%v)", err)
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
