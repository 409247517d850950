package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stagesFile has a stage that reaches its targets and one that misses all three.
const stagesFile = `{"facts":{"CPU":"Abacus","Cores":2}}
{"case":{"name":"floor/zstd","group":"floor","label":"libzstd","unit":"GB/s","target":{}}}
{"run":{"case":"floor/zstd","who":"C","s":1,"bytes":3400000000}}
{"case":{"name":"aip/zstd","group":"stage","label":"aip, zstd","unit":"s","target":{"against":"I/O alone","ratio":1.3,"inverse":true},"memory_mib":1024,"reference":{"s":8,"floor":"floor/zstd","gbps":1.7,"ratio":4}}}
{"run":{"case":"aip/zstd","who":"strata","s":1,"cpu_s":2,"hwm_kb":1024}}
{"run":{"case":"aip/zstd","who":"I/O alone","s":0.8}}
{"run":{"case":"aip/zstd","who":"Python","s":5,"hwm_kb":4096}}
{"diff":{"case":"aip/zstd","max":0.25,"mean":0.1,"range":100,"far":0.02}}
{"case":{"name":"focal/zstd","group":"stage","label":"focal, zstd","unit":"s","target":{"against":"I/O alone","ratio":1.3,"inverse":true},"memory_mib":1024,"reference":{"s":8,"floor":"floor/zstd","gbps":1.7,"ratio":4}}}
{"run":{"case":"focal/zstd","who":"strata","s":2,"hwm_kb":2097152}}
{"run":{"case":"focal/zstd","who":"I/O alone","s":1}}
{"run":{"case":"focal/zstd","who":"Python","failed":"no basicpy"}}
{"run":{"case":"focal/zstd","who":"linumpy","s":7}}
{"case":{"name":"start/aip","group":"start","label":"aip","unit":"ms","target":{"against":"ms","ratio":6}}}
{"run":{"case":"start/aip","who":"strata","s":0.002}}
{"run":{"case":"start/aip","who":"C","s":0.001}}
`

const (
	chainFile = `{"engine":"Nextflow 1","slices":2,"input":"two mosaics","wall_s":30,"cores":2,"overhead_s":12.5,"commit":"c","date":"d",
"stages":[{"name":"resample","tasks":2,"busy_s":4,"tool_s":3},{"name":"stack","tasks":1,"busy_s":2,"tool_s":1.5}]}`
	largeFile = `{"input":"20 GB","runs":[{"stage":"aip","gb":1.9,"hwm_kb":20480,"wall_s":1},{"stage":"aip","gb":19,"hwm_kb":21504,"wall_s":10},
{"stage":"focal","gb":19,"hwm_kb":921600,"wall_s":10},{"stage":"focal","gb":1.9,"hwm_kb":307200,"wall_s":1}]}`
)

func TestStagesPage(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	page := func() string {
		t.Helper()
		if err := writeStages(dir, at("notes"), at("b.md"), at("b.svg")); err != nil {
			t.Fatal(err)
		}
		md, err := os.ReadFile(at("b.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(md)
	}
	for name, text := range map[string]string{"stages.jsonl": stagesFile, "notes": "### focal/zstd\nIt rolls.\n### large/focal\nIt hoards.\n## Findings\nNone.\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	md := page()
	for _, want := range []string{
		"4 of 7 are reached",
		"- **focal, zstd** (2.00 of I/O alone, wanted ≤ 1.3; 2.0 times as fast as the reference, wanted ≥ 4; 2048 MiB resident, wanted ≤ 1024). It rolls.\n",
		"| aip, zstd | 1.00 s | 2.00 s | 1 MiB | 0.80 s | 1.25 | ≤ 1.3 | ✓ |",
		"| aip, zstd | 1.00 s | 5.00 s | 5 × | 1 MiB | 4 MiB | 0.25 (2 % of the voxels differ by more than 0.1 %) | 100 |",
		"| focal, zstd | 2.00 s | fails |",
		"| aip, zstd | 8.00 s | 1.7 GB/s | 4.00 s | 1.00 s | 4.0 × | ≥ 4 | ✓ |  |",
		"| focal, zstd | 8.00 s | 1.7 GB/s | 4.00 s | 2.00 s | 2.0 × | ≥ 4 | ✗ | checkout: 7.00 s, 3.5 × |",
		"| aip | 2.00 ms | 1.00 ms | ≤ 6 ms | ✓ |",
		"libzstd 3.40 GB/s", "## Findings\nNone.",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("page lacks %q:\n%s", want, md)
		}
	}
	for _, not := range []string{"The chain", "Ten times", "hoards"} {
		if strings.Contains(md, not) {
			t.Errorf("page has %q without its results", not)
		}
	}
	for name, text := range map[string]string{"chain.json": chainFile, "large.json": largeFile} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	md = page()
	for _, want := range []string{
		"5 of 9 are reached", "- **focal of 20 GB** (900 MiB resident, 300 with a tenth of the input). It hoards.\n",
		"| resample | 2 | 4.00 s | 3.00 s | 1.00 s |", "| all | 3 | 6.00 s | 4.50 s | 1.50 s |", "**the engine costs 12.5 s**", "| aip | 19.0 GB | 10.0 s |",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("page lacks %q:\n%s", want, md)
		}
	}
	svg, err := os.ReadFile(at("b.svg"))
	if err != nil || !bytes.Contains(svg, []byte("aip, zstd")) {
		t.Errorf("plot (%v) lacks a stage", err)
	}
}

// The page needs the stages; a damaged file is named.
func TestStagesPageErrors(t *testing.T) {
	dir := t.TempDir()
	if err := writeStages(dir, "notes", "md", "svg"); err == nil {
		t.Error("a page without results")
	}
	for name, text := range map[string]string{"stages.jsonl": stagesFile, "chain.json": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeStages(dir, "notes", "md", "svg"); err == nil || !strings.Contains(err.Error(), "chain.json") {
		t.Errorf("error %v, want one that names chain.json", err)
	}
}

// A program of limited rounds runs no more often, what it writes is removed
// before, and outputs are compared once.
func TestOutputsAreComparedOnce(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	note := func(who string) contestant {
		c := shell(who, `[ -z "$(ls -A `+kept+`)" ] || { echo "not empty" >&2; exit 1; }; echo x >`+kept+`/x; echo '{"s":1}'`)
		c.clear = kept
		return c
	}
	peer := shell(peers, `echo '{"s":1}'`)
	peer.most = 1
	u := unit{header: header{Name: "x"}, who: []contestant{note(strata), peer}, diff: []string{"sh", "-c", `echo '{"max":2}'`}}
	runs, err := runUnit(t, &u, 3)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range runs {
		count[r.Who]++
	}
	if count[strata] != 3 || count[peers] != 1 {
		t.Errorf("runs %v, want 3 of strata and 1 of the peer", count)
	}
	d, err := compareResults(t.Context(), &u)
	if err != nil || d.Max != 2 || d.Case != "x" {
		t.Errorf("difference %+v, %v", d, err)
	}
}

func TestProgramOfACheckout(t *testing.T) {
	dir := t.TempDir()
	if _, err := program(dir, "linum-no-such"); err == nil || !strings.Contains(err.Error(), "linum-no-such") {
		t.Errorf("error %v, want one that names the program", err)
	}
	bin := filepath.Join(dir, ".venv", "bin")
	if err := os.MkdirAll(bin, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "linum-no-such"), nil, 0o777); err != nil {
		t.Fatal(err)
	}
	if path, err := program(dir, "linum-no-such"); err != nil || path != filepath.Join(bin, "linum-no-such") {
		t.Errorf("program %q, %v", path, err)
	}
}
