package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stagesFile has a stage that reaches its targets, with linumpy beside it, and one
// that misses all that were measured.
const stagesFile = `{"facts":{"CPU":"Abacus","Cores":2,"About":"Two voxels."}}
{"case":{"name":"aip/tiles","group":"stage","label":"aip, zstd","unit":"s","targets":[{"against":"I/O alone","ratio":1.3,"inverse":true},{"against":"linumpy","ratio":4}],"memory_mib":1024}}
{"run":{"case":"aip/tiles","who":"strata","s":1,"cpu_s":2,"hwm_kb":1024,"stored":1048576}}
{"run":{"case":"aip/tiles","who":"I/O alone","s":0.8}}
{"run":{"case":"aip/tiles","who":"Python","s":5,"hwm_kb":4096}}
{"diff":{"case":"aip/tiles","who":"Python","max":0.25,"mean":0.1,"range":100,"far":0.02}}
{"run":{"case":"aip/tiles","who":"linumpy","s":7}}
{"diff":{"case":"aip/tiles","who":"linumpy","shapes":[[1],[2]]}}
{"case":{"name":"focal/tiles","group":"stage","label":"focal, zstd","unit":"s","targets":[{"against":"I/O alone","ratio":1.3,"inverse":true}],"memory_mib":1024}}
{"run":{"case":"focal/tiles","who":"strata","s":2,"hwm_kb":2097152}}
{"run":{"case":"focal/tiles","who":"I/O alone","s":1}}
{"run":{"case":"focal/tiles","who":"Python","failed":"no basicpy"}}
{"case":{"name":"start/aip","group":"start","label":"aip","unit":"ms","targets":[{"against":"ms","ratio":6}]}}
{"run":{"case":"start/aip","who":"strata","s":0.002}}
{"run":{"case":"start/aip","who":"C","s":0.001}}
`

const (
	regionFile = `{"facts":{"cpu":"Abacus","cores":2}}
{"case":{"name":"region","group":"start","label":"a region","unit":"ms"}}
{"run":{"case":"region","who":"strata","s":0.008}}
{"run":{"case":"region","who":"zarr-python","s":0.4}}
`
	chainFile = `{"engine":"Nextflow 1","slices":2,"input":"two mosaics","wall_s":30,"shell_s":20,"cores":2,"overhead_s":12.5,"commit":"c","date":"d",
"stages":[{"name":"resample","tasks":2,"busy_s":4,"tool_s":3},{"name":"stack","tasks":1,"busy_s":2,"tool_s":1.5}]}`
	largeFile = `{"input":"20 GB","runs":[{"stage":"aip","gb":1.9,"hwm_kb":20480,"wall_s":1},{"stage":"aip","gb":19,"hwm_kb":21504,"wall_s":10},
{"stage":"focal","gb":19,"hwm_kb":921600,"wall_s":10},{"stage":"focal","gb":1.9,"hwm_kb":307200,"wall_s":1}]}`
)

func TestStagesPage(t *testing.T) {
	files := map[string]string{"stages.jsonl": stagesFile, "benchmarks.md": form("benchmarks.md", "<!-- note: stages: focal/tiles -->It rolls.\n")}
	dir, log := pagesOf(t, files)
	if log != "" {
		t.Error(log)
	}
	check(t, filepath.Join(dir, "benchmarks.md"), []string{
		"Two voxels.", "4 of 6 targets are reached", "It rolls.\n",
		"| | strata, s | ÷ I/O alone | Python | linumpy | MiB (others) |\n",
		"| aip, zstd | 1.00 | 1.25 | 5.00× | 7.00× | 1 (4) |\n",
		"| focal, zstd | 2.00 | 2.00 ✗ | fails |  | 2048 ✗ |\n",
		"| | Python | linumpy |\n|---|---:|---:|\n| `aip` | 2 % | other shape, 2 |\n",
		"| aip | 2.00 | 0.50× |", "chain: begin --><!--",
	}, nil)
	files["chain.json"], files["large.json"] = chainFile, largeFile
	dir, _ = pagesOf(t, files)
	check(t, filepath.Join(dir, "benchmarks.md"), []string{
		"4 of 6 targets are reached", "Not reached: focal has 900 MiB resident, compared with 300 for the small input.",
		"| 2 | 3 | 30.0 | 20.0 | 6.00 | 4.50 | 12.5 (4.17) | 0.00 | resample 3.00, stack 1.50 |\n", "| aip | 19.0 GB | 10.0 s |",
	}, nil)
	check(t, filepath.Join(dir, "benchmarks.svg"), []string{"aip, zstd"}, nil)
}

// A program that was not measured has no column in README, and no number is left of
// another run.
func TestReadme(t *testing.T) {
	const text = "Before.\n<!-- stages: begin -->\nold 30.7 ×\n<!-- stages: end -->\n<!-- felt: begin -->\n- 99 s\n<!-- felt: end -->\nAfter.\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "README.md")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	readme := func(want, not []string) {
		t.Helper()
		if err := writeReadme(dir, file); err != nil {
			t.Fatal(err)
		}
		check(t, file, append(want, "Before.\n", "\nAfter.\n"), not)
	}
	write("README.md", text)
	readme([]string{"-->\nNot measured yet: `make bench` fills this table.\n<!--", "felt: begin -->\n<!--"}, []string{"30.7", "99 s"})
	write("stages.jsonl", stagesFile)
	readme([]string{"Abacus, 2 cores; pages cached. Two voxels.", "| written | Python | linumpy |", "| `aip` | 1.00 s | 2.00 s | 1 MiB | 1 MiB | 5.0 × | 7.0 × |", "| `focal` | 2.00 s | 0.000 s | 2048 MiB |  | | |"}, nil)
	write("stages.jsonl", strings.ReplaceAll(stagesFile, `"who":"linumpy"`, `"who":"nobody"`))
	readme([]string{"| written | Python |\n"}, []string{"linumpy"})
	write("arrays.jsonl", regionFile)
	write("chain.json", chainFile)
	readme([]string{"in 8 ms, from the start of the process to its end; Python with zarr-python takes 50 × as long", "- **Whole chain**: from 2 slices, two mosaics, to a volume in 20.0 s on 2 cores, from a shell; in 30.0 s with Nextflow"}, nil)
	write("README.md", "none")
	if err := writeReadme(dir, file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

// Rows of README are cases that are measured.
func TestReadmeRows(t *testing.T) {
	names := map[string]bool{}
	for _, c := range stageCases() {
		names[c.name+"/"+c.input] = true
	}
	for _, r := range readmeStages {
		if !names[r.name] {
			t.Errorf("no case of the stages is called %s", r.name)
		}
	}
}

// A damaged file is named.
func TestPageErrors(t *testing.T) {
	for name, text := range map[string]string{"stages.jsonl": "{", "chain.json": "{", "arrays.jsonl": `{"facts":{}}`} {
		dir, _ := pagesOf(t, map[string]string{"stages.jsonl": stagesFile})
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := writePages(dir, dir, dir, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that names %s", err, name)
		}
	}
}

// A program of limited rounds runs no more often, what it writes is removed before and
// sized up after, and outputs are compared once.
func TestOutputsAreComparedOnce(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	note := func(who string) contestant {
		c := shell(who, `[ -z "$(ls -A `+kept+`)" ] || { echo "not empty" >&2; exit 1; }; printf 12345 >`+kept+`/x; echo '{"s":1}'`)
		c.clear = kept
		return c
	}
	peer := shell(peers, `echo '{"s":1}'`)
	peer.most, peer.diff = 1, "theirs"
	u := unit{header: header{Name: "x"}, who: []contestant{note(strata), peer}, diff: []string{"sh", "-c", `echo "{\"max\":2}"; [ "$0" = theirs ]`}}
	var out bytes.Buffer
	r := runner{least: 3, most: 3, w: &out, log: io.Discard}
	u.reads = t.TempDir()
	if err := r.unit(t.Context(), &plan{out: t.TempDir()}, &u); err != nil {
		t.Fatal(err)
	}
	_, all, err := readRuns(io.MultiReader(strings.NewReader(`{"facts":{}}`+"\n"), &out))
	if err != nil {
		t.Fatal(err)
	}
	o := all[0]
	if o.median[strata].rounds != 3 || o.median[peers].rounds != 1 || o.median[strata].stored != 5 {
		t.Errorf("%+v: want 3 rounds of strata, which writes 5 bytes, and 1 of the peer", o.median)
	}
	if len(o.diffs) != 1 || o.diffs[0].Max != 2 || o.diffs[0].Who != peers {
		t.Errorf("%d differences %+v", len(o.diffs), o.diffs)
	}
}

// linumpy is run by its own Python on its own scripts, or not at all: it alternates
// with the others and has a target.
func TestLinumpy(t *testing.T) {
	dir := t.TempDir()
	if _, err := findLinumpy(dir, "aip"); err == nil || !strings.Contains(err.Error(), "linum_aip.py") {
		t.Errorf("error %v, want one that names the program", err)
	}
	touch := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "scripts", "visualization", "linum_aip.py")
	touch(script)
	if _, err := findLinumpy(dir, "aip"); err == nil || !strings.Contains(err.Error(), "no Python") {
		t.Errorf("error %v, want one that misses its Python", err)
	}
	python := filepath.Join(dir, "venv", "bin", "python")
	touch(python)
	for _, with := range []string{"", dir} {
		p := plan{tools: "t", data: "d", out: "o", bin: "b", python: "python", stages: "s", linumpy: with}
		u, err := p.stageUnit(&stageCase{name: "aip", input: "zstd", passes: "1", alone: 1.3, old: 5, python: true})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(u.who, func(c contestant) bool { return c.who == linumpy })
		if (i >= 0) != (with != "") || slices.ContainsFunc(u.Targets, func(g target) bool { return g.Against == linumpy }) != (with != "") {
			t.Errorf("LINUMPY=%s: programs %+v, targets %+v", with, u.who, u.Targets)
		}
		if i >= 0 {
			c := u.who[i]
			if c.argv[0] != python || c.argv[1] != script || !slices.Contains(c.env, "PYTHONPATH="+dir) || c.most != 3 || c.diff == "" {
				t.Errorf("%+v", c)
			}
		}
	}
}
