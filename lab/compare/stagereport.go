package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// chainRun is a run of the chain of stages, as lab/chain.sh records it.
type chainRun struct {
	Date     string      `json:"date"`
	Commit   string      `json:"commit"`
	CPU      string      `json:"cpu"`
	Cores    int         `json:"cores"`
	Load     string      `json:"load"`   // before the run
	Rounds   int         `json:"rounds"` // of which this is the one of the median wall time
	Engine   string      `json:"engine"`
	Slices   int         `json:"slices"`
	Input    string      `json:"input"` // in words
	Wall     float64     `json:"wall_s"`
	Shell    float64     `json:"shell_s"` // the same steps from a shell, one after another
	Stages   []chainStep `json:"stages"`
	Forks    int64       `json:"forks"`      // processes started meanwhile, on the whole machine
	Faults   int64       `json:"faults"`     // page faults, likewise
	Overhead float64     `json:"overhead_s"` // wall time less the tasks' time, spread over the cores
	Idle     float64     `json:"idle_s"`     // wall time in which no task ran
}

type chainStep struct {
	Name  string  `json:"name"`
	Tasks int     `json:"tasks"`
	Busy  float64 `json:"busy_s"` // sum over the tasks, from start to end of their script
	Tool  float64 `json:"tool_s"` // of that, what the programs' own records say
}

// largeRun is a run on an input ten times as large, as lab/large.sh records it.
type largeRun struct {
	Date   string     `json:"date"`
	Commit string     `json:"commit"`
	Input  string     `json:"input"`
	Runs   []largeOne `json:"runs"`
}

type largeOne struct {
	Stage string  `json:"stage"`
	GB    float64 `json:"gb"` // of the input's voxels
	Wall  float64 `json:"wall_s"`
	CPU   float64 `json:"cpu_s"`
	HWM   int64   `json:"hwm_kb"`
}

// readJSON reads a file that may be absent.
func readJSON[T any](path string) (*T, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

func stagesPart() *part {
	return &part{
		name: "stages", page: "benchmarks.md", picture: "benchmarks.svg",
		plot: "Speed of the stages, of their input and output alone, and of other programs", plotted: []string{"stage"},
		groups: []group{{"stage", "Stages"}, {"start", "Start of a process"}},
		hidden: func(o *outcome) bool { // what the tiles show, too, or is data of the laboratory; all programs start alike
			_, kind, _ := strings.Cut(o.Name, "/")
			return kind == "zstd" || kind == "blosc" || kind == "structured" || kind == "noise" || o.Group == "start" && kind != "aip" && kind != "stack"
		},
		more: func(all []*outcome, results string) (map[string]string, error) {
			texts := map[string]string{"stages/differences": differences(all), "chain": "", "large": ""}
			var runs []*chainRun
			for _, name := range []string{"chain", "many"} {
				c, err := readJSON[chainRun](filepath.Join(results, name+".json"))
				if err != nil {
					return nil, err
				}
				if c != nil {
					runs = append(runs, c)
				}
			}
			if runs != nil {
				texts["chain"] = chainTable(runs)
			}
			large, err := readJSON[largeRun](filepath.Join(results, "large.json"))
			if err == nil && large != nil {
				texts["large"] = largeTable(large)
			}
			return texts, err
		},
	}
}

// differences returns a table of the share of level 0 in which other programs' results differ from strata's: of each
// stage, that of the worst input.
func differences(all []*outcome) string {
	type key struct{ stage, who string }
	var stages, others []string
	worst := map[key]string{}
	far := map[key]float64{}
	for _, o := range all {
		stage, _, _ := strings.Cut(o.Name, "/")
		for _, d := range o.diffs {
			if !slices.Contains(stages, stage) {
				stages = append(stages, stage)
			}
			if !slices.Contains(others, d.Who) {
				others = append(others, d.Who)
			}
			k := key{stage, d.Who}
			switch {
			case d.Shapes != nil:
				worst[k] = "other shape, " + crossed(d.Shapes[1])
				far[k] = 2
			case worst[k] == "" || d.Far > far[k]:
				worst[k], far[k] = fmt.Sprintf("%.2g %%", 100*d.Far), d.Far
			}
		}
	}
	if stages == nil {
		return ""
	}
	var b strings.Builder
	p := printTo(&b)
	p("| | %s |\n|---|%s\n", strings.Join(others, " | "), strings.Repeat("---:|", len(others)))
	for _, s := range stages {
		p("| `%s` |", s)
		for _, w := range others {
			p(" %s |", worst[key{s, w}])
		}
		p("\n")
	}
	return b.String()
}

// chainTable returns a table of runs of the whole workflow.
func chainTable(runs []*chainRun) string {
	var b strings.Builder
	p := printTo(&b)
	p("| slices | tasks | Nextflow s | shell s | tasks' s | of which programs | engine s (per task) | idle s | longest programs, s |\n|---|%s---|\n", strings.Repeat("---:|", 7))
	for _, c := range runs {
		var busy, tool float64
		tasks := 0
		for _, s := range c.Stages {
			busy, tool, tasks = busy+s.Busy, tool+s.Tool, tasks+s.Tasks
		}
		longest := slices.SortedStableFunc(slices.Values(c.Stages), func(a, b chainStep) int { return cmp.Compare(b.Tool, a.Tool) })
		var names []string
		for _, s := range longest[:min(3, len(longest))] {
			names = append(names, fmt.Sprintf("%s %s", s.Name, digits(s.Tool)))
		}
		p("| %d | %d | %s | %s | %s | %s | %s (%s) | %s | %s |\n", c.Slices, tasks, digits(c.Wall), digits(c.Shell), digits(busy), digits(tool),
			digits(c.Overhead), digits(c.Overhead/float64(max(1, tasks))), digits(c.Idle), strings.Join(names, ", "))
	}
	p("\n")
	for _, c := range runs {
		rounds := "one round"
		if c.Rounds > 1 {
			rounds = fmt.Sprintf("median of %d rounds", c.Rounds)
		}
		day, _, _ := strings.Cut(c.Date, " ")
		p("- %d slices: %s; %s, %d cores of %s, commit %s, %s, %s.\n", c.Slices, c.Input, c.Engine, c.Cores, c.CPU, c.Commit, day, rounds)
	}
	return b.String()
}

// targets reports whether the memory of a stage stays within its target.
func (l *largeRun) targets(p printer) {
	var missed []string
	sizes := l.growth()
	for _, stage := range slices.Sorted(maps.Keys(sizes)) {
		if g := sizes[stage]; g.big > 1<<20 || g.big > g.small*5/4 {
			missed = append(missed, fmt.Sprintf("%s has %d MiB resident, compared with %d for the small input", stage, g.big>>10, g.small>>10))
		}
	}
	p("Target: at most 1 GiB resident, and at most 1.25 times that of the small input. ")
	if missed == nil {
		p("All stages reach it.\n\n")
		return
	}
	p("Not reached: %s.\n\n", strings.Join(missed, "; "))
}

type growth struct{ small, big int64 } // KiB resident

// growth pairs the runs of a stage on the small and on the large input.
func (l *largeRun) growth() map[string]growth {
	all := map[string]growth{}
	size := map[string]float64{}
	for _, r := range l.Runs {
		g := all[r.Stage]
		if size[r.Stage] == 0 || r.GB < size[r.Stage] {
			g.small = r.HWM
			if g.big == 0 {
				g.big = r.HWM
			}
		}
		if r.GB > size[r.Stage] {
			g.big = r.HWM
			if g.small == 0 {
				g.small = r.HWM
			}
		}
		all[r.Stage], size[r.Stage] = g, r.GB
	}
	return all
}

// largeTable returns a table of the stages on an input that memory does not hold.
func largeTable(l *largeRun) string {
	var b strings.Builder
	p := printTo(&b)
	p("## A large input\n\n`make bench PARTS=large`, one run: %s (commit %s, %s). The input does not fit into the page cache, so times include the disk.\n\n", l.Input, l.Commit, l.Date)
	l.targets(p)
	p("| | input | wall | processor | resident |\n|---|---:|---:|---:|---:|\n")
	for _, r := range l.Runs {
		p("| %s | %.1f GB | %s | %s | %d MiB |\n", r.Stage, r.GB, number(r.Wall, "s"), number(r.CPU, "s"), r.HWM>>10)
	}
	return b.String()
}
