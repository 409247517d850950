package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mosaicOf writes the documents of mosaics, which cases read.
func mosaicOf(t *testing.T, names string) *plan {
	t.Helper()
	p := &plan{data: t.TempDir(), out: "out", bin: "bin", tools: "tools", python: "python", peers: "peers.py", mosaics: names}
	for name := range strings.SplitSeq(names, ",") {
		dir := filepath.Join(p.mosaic(name), "0")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		const document = `{"shape":[200,1024,1024],"chunk_grid":{"configuration":{"chunk_shape":[200,512,512]}},"codecs":[{"name":"bytes"},{"name":"zstd","configuration":{"level":3}}]}`
		if err := os.WriteFile(filepath.Join(dir, "zarr.json"), []byte(document), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func whoOfUnit(all []unit, name string) (who []string) {
	for _, u := range all {
		if u.Name == name {
			for _, c := range u.who {
				who = append(who, c.who)
			}
		}
	}
	return who
}

// No program runs with more threads than the machine has processors, and every program of a case runs with all of them.
func TestScalingUnits(t *testing.T) {
	for cores, want := range map[int]map[string]string{
		2: {"aip/1-zstd": "default, 1 thread; default, 2 threads",
			"crop/105-zstd":   "default, 1 thread; default, 2 threads; --mem 512MiB, 2 threads; --mem 4GiB, 2 threads",
			"read/1-zstd":     "strata, 1 thread; zarr-python, 1 thread; tensorstore, 1 thread; strata, 2 threads; zarr-python, 2 threads; tensorstore, 2 threads",
			"aip/36x105-zstd": "default, 2 threads", "read/36x105-zstd": ""},
		5:  {"focal/400-zstd": "default, 1 thread; default, 2 threads; --mem 512MiB, 2 threads; default, 4 threads; --mem 512MiB, 4 threads"},
		16: {"aip/1-zstd": "default, 1 thread; default, 2 threads; default, 4 threads; default, 8 threads; default, 16 threads", "aip/36x105-zstd": "default, 16 threads"},
	} {
		p := mosaicOf(t, "1-zstd,105-zstd,400-zstd,36x105-zstd")
		all, err := p.scalingOf(cores)
		if err != nil {
			t.Fatal(err)
		}
		for name, who := range want {
			if got := strings.Join(whoOfUnit(all, name), "; "); got != who {
				t.Errorf("%d processors: %s: %s, want %s", cores, name, got, who)
			}
		}
		for _, u := range all {
			for _, c := range u.who {
				_, n := seriesOf(c.who)
				i := slices.IndexFunc(c.argv, func(a string) bool { return strings.TrimLeft(a, "-") == "threads" })
				if n < 1 || i < 0 || c.argv[i+1] != strings.Fields(c.who[strings.LastIndex(c.who, ", ")+2:])[0] {
					t.Errorf("%s: %s: %v", u.Name, c.who, c.argv)
				}
			}
			if u.Label != "4 × 105 MB (200×512×512), zstd:3" {
				t.Errorf("%s: label %q", u.Name, u.Label)
			}
		}
	}
	if _, err := (&plan{data: t.TempDir(), mosaics: "1-zstd"}).scalingOf(2); err == nil {
		t.Error("a mosaic that is missing has cases")
	}
}

// scalingRuns has what reaches its targets and what does not, with two processors.
const scalingRuns = `{"facts":{"CPU":"Abacus","Cores":2,"About":"Mosaics."}}
{"case":{"name":"focal/105-zstd","group":"focal","label":"4 × 105 MB, zstd","unit":"s","targets":[{"who":"default, 2 threads","against":"busy cores","ratio":1.8},{"who":"default, 2 threads","against":"--mem 4GiB, 2 threads","ratio":1.05,"inverse":true},{"who":"--mem 512MiB, 2 threads","against":"MiB resident","ratio":768},{"who":"default, 2 threads","against":"efficiency","ratio":0.75},{"who":"default, 16 threads","against":"efficiency","ratio":0.75},{"who":"default, 2 threads","against":"ms","ratio":2500}],"input":1048576}}
{"run":{"case":"focal/105-zstd","who":"default, 1 thread","s":4,"cpu_s":4,"hwm_kb":204800,"workers":1}}
{"run":{"case":"focal/105-zstd","who":"default, 2 threads","s":2.5,"cpu_s":4.25,"hwm_kb":409600,"workers":3}}
{"run":{"case":"focal/105-zstd","who":"default, 2 threads","s":2.5,"cpu_s":4.25,"hwm_kb":409600,"workers":2}}
{"run":{"case":"focal/105-zstd","who":"--mem 512MiB, 2 threads","failed":"needs 542 MiB"}}
{"run":{"case":"focal/105-zstd","who":"--mem 4GiB, 2 threads","s":2,"cpu_s":4,"hwm_kb":409600}}
{"case":{"name":"read/105-zstd","group":"read","label":"4 × 105 MB, zstd","unit":"s"}}
{"run":{"case":"read/105-zstd","who":"strata, 1 thread","s":1,"cpu_s":1}}
{"run":{"case":"read/105-zstd","who":"tensorstore, 2 threads","s":1,"cpu_s":1}}
`

func TestScalingPage(t *testing.T) {
	dir, log := pagesOf(t, map[string]string{"scaling.jsonl": scalingRuns})
	check(t, filepath.Join(dir, "benchmarks-scaling.md"), []string{
		"2 of 5 targets are reached",
		"| | 1 thread | 2 threads | busy cores | efficiency, % | MiB | `--mem 512MiB` | `--mem 4GiB` |\n",
		"| `focal`, 4 × 105 MB, zstd | 4.00 s | 2.50 s | 1.70 ✗ | 80 | 400 | fails ✗ | 0.80, 400 ✗ |\n",
		"| 4 × 105 MB, zstd | 1.00 s |  |  |  | 0 |  |\n", "scaling/busy: begin -->1.70 to 1.70 cores busy with 2 threads (median 1.70)<",
	}, []string{"16 threads"})
	if want := "no note explains why focal/105-zstd misses a target"; !strings.Contains(log, want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	check(t, filepath.Join(dir, sheet), []string{",\"default, 2 threads\",2.5,s,,2.5,4.25,400,2,"}, nil)
	svg, err := os.ReadFile(filepath.Join(dir, "benchmarks-scaling.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var drawing struct {
		Circles []struct{} `xml:"circle"`
	}
	if err := xml.Unmarshal(svg, &drawing); err != nil || len(drawing.Circles) != 5 {
		t.Errorf("%d points, %v, want those of the 5 that ran", len(drawing.Circles), err)
	}
}

// The workers of a run are those of its record, which the next run finds gone.
func TestWorkersOfARun(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record.json")
	c := shell("default, 2 threads", `test ! -e "$0" && echo '{"workers":3}' >"$0"`)
	c.argv, c.wall, c.record = append(c.argv, record), true, record
	runs, err := runUnit(t, &unit{header: header{Name: "x"}, who: []contestant{c}}, 2)
	if err != nil || len(runs) != 2 || runs[0].Workers != 3 || runs[1].Workers != 3 || runs[1].Failed != "" {
		t.Errorf("%+v, %v", runs, err)
	}
	c.argv[2] = "true"
	if runs, err := runUnit(t, &unit{header: header{Name: "x"}, who: []contestant{c}}, 1); err != nil || !strings.Contains(runs[0].Failed, "no run record") {
		t.Errorf("%+v, %v: want the failure that there is no record", runs, err)
	}
}
