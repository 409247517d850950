package main

import (
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

func stagesPage() *page {
	return &page{
		part: "stages", file: "benchmarks.md", title: "Benchmarks",
		plot: "Speed of the stages, of their input and output alone, and of other programs", plotted: []string{"stage"},
		groups: []group{
			{"stage", "Stages", "**I/O alone** reads and decodes the same input (`focal`: twice, as required; `crop`: all of it for the percentile, then the planes searched and those kept), then encodes and writes the stage's output and pyramid from memory. It uses strata's code and the same threads, and computes nothing. " +
				"Targets against it are upper limits on the ratio of times. **Python** calls the same operators as libraries (lab/stages.py): zarr-python, numpy, scipy.ndimage, scikit-image, basicpy, on two threads where they release the interpreter lock; it writes no pyramid. **linumpy**, if available, runs its own programs. All are whole processes."},
			{"start", "Start of a process", "Compared with an empty C program."},
		},
		intro: func(f *facts) string {
			return "This page compares the speed of the stages with that of their input and output alone, of the same operators called from Python and, if available, of linumpy. Each stage runs as a whole command. [benchmarks-workflow.md](benchmarks-workflow.md) does the same for the programs from raw frames to an aligned volume, [benchmarks-scaling.md](benchmarks-scaling.md) measures the stages at 1 to 16 threads. " +
				"Reading and writing of [arrays](benchmarks-arrays.md), of [files](benchmarks-files.md) and of [data on servers](benchmarks-remote.md) have their own pages; [bench-zarr](bench-zarr.md) and [bench-io](bench-io.md) measure your machine. Inputs are in the page cache. " +
				method + "\n\n" + f.About + " " + kindsElsewhere + " Outputs are blosc-zstd:1 with their pyramids, the default."
		},
		more: func(p printer, all []*outcome, results string) error {
			differences(p, all)
			large, err := readJSON[largeRun](filepath.Join(results, "large.json"))
			if err != nil {
				return err
			}
			for _, run := range []struct{ file, title string }{{"chain.json", "The chain"}, {"many.json", "A hundred small slices"}} {
				c, err := readJSON[chainRun](filepath.Join(results, run.file))
				if err != nil {
					return err
				}
				if c != nil {
					chainTable(p, run.title, c)
				}
			}
			if large != nil {
				largeTable(p, large)
			}
			return nil
		},
		commands: "make bench                            # all parts but large: every figure of the pages and of README\n" +
			"PARTS=stages make bench               # this page\nPARTS=stages make bench LINUMPY=DIR   # with linumpy beside the stages (lab/README.md)\n" +
			"PARTS=chain,many make bench           # the tables of the chain (need Nextflow and Java)\nPARTS=large make bench                # the table of the large input (35 GB of disk, a quarter of an hour)\n" +
			"BENCH_ONLY=resample/ PARTS=stages make bench   # some cases, no report\n",
		programs: "lab/arrays (I/O alone), lab/stages.py (Python) and lab/floor.c (C)",
	}
}

// differences prints how far level 0 of other programs' results differs from strata's.
func differences(p printer, all []*outcome) {
	head := "## Differences between results\n\nDifferences between level 0 of strata's result and of another program's result on the same input. *Far* is the share of voxels that differ by more than a thousandth of the largest value.\n\n" +
		"| | compared with | largest | mean | largest value | far |\n|---|---|---:|---:|---:|---:|\n"
	for _, o := range all {
		for _, d := range o.diffs {
			p("%s", head)
			head = ""
			if d.Shapes != nil {
				p("| %s | %s | shapes %v | | | |\n", o.Label, d.Who, d.Shapes)
				continue
			}
			p("| %s | %s | %.2g | %.2g | %.4g | %.2g %% |\n", o.Label, d.Who, d.Max, d.Mean, d.Range, 100*d.Far)
		}
	}
	if head == "" {
		p("\n")
	}
}

func chainTable(p printer, title string, c *chainRun) {
	var busy float64
	tasks, rounds := 0, "one round"
	if c.Rounds > 1 {
		rounds = fmt.Sprintf("the median of %d rounds", c.Rounds)
	}
	for _, s := range c.Stages {
		busy, tasks = busy+s.Busy, tasks+s.Tasks
	}
	p("## %s\n\nThe whole workflow processed %d slices (%s), one core per task: %s. It took **%.1f s** from Nextflow's start to its end on %d cores (%s; commit %s, %s, load before %s; %s). ",
		title, c.Slices, c.Engine, c.Input, c.Wall, c.Cores, c.CPU, c.Commit, c.Date, c.Load, rounds)
	p("The tasks took %.1f s, which %d cores could do in %.1f s: **the engine costs %.1f s**, %.2f s per task, for starting, submitting, monitoring and publishing, and for the core that idles while only one task runs. ",
		busy, c.Cores, c.Wall-c.Overhead, c.Overhead, c.Overhead/float64(max(1, tasks)))
	p("For %.1f s of that no task ran at all. The same steps from a shell, one after another and each on %d cores, take **%.1f s** and produce the same bytes.", c.Idle, c.Cores, c.Shell)
	if n := int64(max(1, tasks)); c.Forks > 0 {
		p(" With the engine, %d processes were started for each task (its wrapper's shells and tools, and threads), and %d pages first touched.", c.Forks/n, c.Faults/n)
	}
	p("\n\n")
	p("| | tasks | task time | of which programs | shell and Nextflow's wrapper |\n|---|---:|---:|---:|---:|\n")
	var tool float64
	for _, s := range c.Stages {
		p("| %s | %d | %s | %s | %s |\n", s.Name, s.Tasks, number(s.Busy, "s"), number(s.Tool, "s"), number(max(0, s.Busy-s.Tool), "s"))
		tool += s.Tool
	}
	p("| all | %d | %s | %s | %s |\n\n", tasks, number(busy, "s"), number(tool, "s"), number(max(0, busy-tool), "s"))
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

func largeTable(p printer, l *largeRun) {
	p("## A large input\n\n`make bench PARTS=large`, one run: %s (commit %s, %s). The input does not fit into the page cache, so times include the disk.\n\n", l.Input, l.Commit, l.Date)
	l.targets(p)
	p("| | input | wall | processor | resident |\n|---|---:|---:|---:|---:|\n")
	for _, r := range l.Runs {
		p("| %s | %.1f GB | %s | %s | %d MiB |\n", r.Stage, r.GB, number(r.Wall, "s"), number(r.CPU, "s"), r.HWM>>10)
	}
	p("\n")
}
