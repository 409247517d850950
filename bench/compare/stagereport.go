package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A run of the chain of stages, as bench/chain.sh records it.
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
	Overhead float64     `json:"overhead_s"` // wall time less the tasks' time, spread over the cores
	Idle     float64     `json:"idle_s"`     // wall time in which no task ran
}

type chainStep struct {
	Name  string  `json:"name"`
	Tasks int     `json:"tasks"`
	Busy  float64 `json:"busy_s"` // sum over the tasks, from start to end of their script
	Tool  float64 `json:"tool_s"` // of that, what the programs' own records say
}

// A run on an input of ten times the size, as bench/large.sh records it.
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

// writeStages makes the page of the stages from the files of a results folder:
// stages.jsonl, and chain.json and large.json where they are.
func writeStages(results, notesFile, md, svg string) error {
	in, err := os.Open(filepath.Join(results, "stages.jsonl"))
	if err != nil {
		return err
	}
	defer in.Close()
	f, all, err := readRuns(in)
	if err != nil {
		return fmt.Errorf("%s: %w", in.Name(), err)
	}
	chain, err := readJSON[chainRun](filepath.Join(results, "chain.json"))
	if err != nil {
		return err
	}
	large, err := readJSON[largeRun](filepath.Join(results, "large.json"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(notesFile)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := reportStages(&b, f, all, chain, large, parseNotes(string(text)), filepath.Base(svg), results); err != nil {
		return err
	}
	if err := os.WriteFile(md, b.Bytes(), 0o666); err != nil {
		return err
	}
	b.Reset()
	plot(&b, all, []string{"stage"}, "Speed of the stages, of their input and output alone, and of numpy and scipy")
	return os.WriteFile(svg, b.Bytes(), 0o666)
}

// against is how a stage compares with the reference: its seconds as they would
// be here, and strata's speed in multiples of it. Zero: there is no reference.
func (o *outcome) against(all []*outcome) (seconds, ratio float64) {
	if o.Reference == nil || o.median[strata].seconds == 0 {
		return 0, 0
	}
	for _, floor := range all {
		if floor.Name == o.Reference.Floor && floor.speed("C") > 0 {
			seconds = o.Reference.Seconds * o.Reference.Speed / floor.speed("C")
			return seconds, seconds / o.median[strata].seconds
		}
	}
	return 0, 0
}

func reportStages(w io.Writer, f *facts, all []*outcome, chain *chainRun, large *largeRun, n notes, svg, results string) error {
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("<!-- Written by `make bench` (bench/compare) from bench/results and bench/notes-stages.md: edit those. -->\n# Benchmarks\n\n")
	p("The stages, each as a whole command: beside their input and output alone, beside the same operators called from Python, and beside the pipeline that they replace. ")
	p("Reading and writing of [arrays](benchmarks-arrays.md), of [files](benchmarks-files.md) and of [data on servers](benchmarks-remote.md) have pages of their own; [bench-zarr](bench-zarr.md) and [bench-io](bench-io.md) measure your machine. Two threads each, pages cached, every measurement in a process of its own; ")
	p("the programs take turns, in rounds that each begin with another one, and numbers are medians over the rounds. **Ratios count, not times**: another machine has other times.\n\n")
	p("Input: a virtual specimen's mosaic grid of 200×1536×1536 float32 (1.9 GB, 36 tiles of 256², 3.5×2×2 µm; made by `phantom`) as shards of zstd:3, as it is, and as blosc-zstd:1; ")
	p("for `stack` six slices of 60×1200² (blosc-zstd:1), whose overlaps it has to find. Outputs are blosc-zstd:1 with their pyramids, the default.\n\n![plot](%s)\n\n", svg)
	stageTargets(p, all, large, n)
	stageTables(p, all)
	if chain != nil {
		chainTable(p, chain)
	}
	if large != nil {
		largeTable(p, large)
	}
	if err := goalTables(p, results); err != nil {
		return err
	}
	machine(p, f)
	p("## Commands\n\n```sh\nPARTS=stages make bench               # this page: ten minutes, 8 GB of disk\nPARTS=chain make bench                # its table of the chain: some minutes, 3 GB (needs Nextflow and Java)\n")
	p("bench/large.sh                        # its table of the large input: 20 GB, a quarter of an hour\nPARTS=arrays make bench               # the page of the arrays: half an hour, 16 GB of disk\n")
	p("PARTS=files,remote make bench         # the pages of files and of data on servers\n")
	p("make bench                            # stages and arrays\nmake bench LINUMPY=DIR                # with a checkout of linumpy beside the stages\nBENCH_SMOKE=1 make bench              # all parts small: does it all still run?\n")
	p("BENCH_ONLY=resample/ PARTS=stages make bench   # some cases, no report\n```\n\n")
	p("The programs that measure: bench/arrays (I/O alone), bench/stages.py (Python), bench/floor.c (C); bench/compare lets them take turns and wrote this page.\n\n")
	p("%s", strings.TrimSpace(n.sections)+"\n")
	return nil
}

func mark(ok bool) string { return map[bool]string{true: "✓", false: "✗"}[ok] }

// stageTargets counts the targets and names those that are missed.
func stageTargets(p func(string, ...any), all []*outcome, large *largeRun, n notes) {
	stated, missed := 0, 0
	var text strings.Builder
	for _, o := range all {
		var words []string
		check := func(ok bool, format string, args ...any) {
			if stated++; !ok {
				missed++
				words = append(words, fmt.Sprintf(format, args...))
			}
		}
		if target, ok := o.verdict(); target != "" {
			if o.Target.Against == "ms" {
				check(ok, "%s, wanted %s", number(o.speed(strata), o.Unit), target)
			} else {
				check(ok, "%.2f of %s, wanted %s", o.ratio(), o.yardstick(), target)
			}
		}
		if o.Reference != nil {
			_, ratio := o.against(all)
			check(ratio >= o.Reference.Ratio, "%.1f times as fast as the reference, wanted ≥ %g", ratio, o.Reference.Ratio)
		}
		if o.Memory > 0 {
			check(o.memoryReached(), "%d MiB resident, wanted ≤ %d", o.median[strata].hwm>>10, o.Memory)
		}
		if words != nil {
			fmt.Fprintf(&text, "- **%s** (%s). %s\n", strings.ReplaceAll(o.Label, "`", ""), strings.Join(words, "; "), strings.Join(strings.Fields(n.cases[o.Name]), " "))
		}
	}
	if large != nil {
		sizes := large.growth()
		for _, stage := range slices.Sorted(maps.Keys(sizes)) {
			growth := sizes[stage]
			if stated++; growth.big > 1<<20 || growth.big > growth.small*5/4 {
				missed++
				fmt.Fprintf(&text, "- **%s of 20 GB** (%d MiB resident, %d with a tenth of the input). %s\n", stage, growth.big>>10, growth.small>>10,
					strings.Join(strings.Fields(n.cases["large/"+stage]), " "))
			}
		}
	}
	p("## Targets\n\n%d of %d are reached.", stated-missed, stated)
	if missed > 0 {
		p(" These are not:\n\n%s", text.String())
	}
	p("\n")
}

func stageTables(p func(string, ...any), all []*outcome) {
	p("## Against input and output alone\n\n")
	p("\"I/O alone\" is a process that reads and decodes the same input (`focal`: twice, as it must; `crop`: all of it for the percentile, the planes that the search sees, and those that are kept) and encodes and writes the stage's own output and its pyramid from memory, with our own code and the same threads, and computes nothing. ")
	p("The targets: 1.3 of it where the input is compressed; 2.5 for `resample` of raw input, where it computes most of the time.\n\n")
	p("| | wall | processor | resident | I/O alone | ratio | target | |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	lo, hi, spread := 1<<30, 0, []float64{}
	for _, o := range all {
		if o.Group != "stage" {
			continue
		}
		s := o.median[strata]
		target, ok := o.verdict()
		sign := ""
		if target != "" {
			sign = mark(ok)
		}
		p("| %s | %s | %s | %d MiB | %s | %.2f | %s | %s |\n", o.Label, number(s.seconds, "s"), number(s.cpu, "s"), s.hwm>>10,
			number(o.median[ioAlone].seconds, "s"), o.ratio(), target, sign)
		lo, hi = min(lo, s.rounds), max(hi, s.rounds)
		spread = append(spread, s.spread, o.median[ioAlone].spread)
	}
	p("\n%d to %d rounds; the slowest and the fastest of a program lie %.0f %% apart (median). Resident memory is the largest of the rounds; the target is 1 GiB.\n\n", lo, hi, 100*median(spread))

	p("## Against Python\n\nThe same operators called as libraries (bench/stages.py): zarr-python, numpy, scipy.ndimage, scikit-image, basicpy; two threads where they let go of the interpreter, whole process, one round, no pyramid. ")
	p("The difference is between the level 0 of both results.\n\n")
	p("| | strata | Python | ratio | resident, strata | resident, Python | largest difference | of |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, o := range all {
		s, ok := o.median[peers]
		if o.Group != "stage" || !ok {
			continue
		}
		if s.failed != "" {
			p("| %s | %s | fails | | %d MiB | | | |\n", o.Label, number(o.median[strata].seconds, "s"), o.median[strata].hwm>>10)
			continue
		}
		apart, of := "", ""
		if d := o.diff; d != nil && d.Shapes != nil {
			apart = fmt.Sprintf("shapes %v", d.Shapes)
		} else if d != nil {
			apart, of = fmt.Sprintf("%.2g", d.Max), fmt.Sprintf("%.4g", d.Range)
			if d.Far > 0 {
				apart += fmt.Sprintf(" (%.2g %% of the voxels differ by more than 0.1 %%)", 100*d.Far)
			}
		}
		p("| %s | %s | %s | %.0f × | %d MiB | %d MiB | %s | %s |\n", o.Label, number(o.median[strata].seconds, "s"), number(s.seconds, "s"),
			s.seconds/o.median[strata].seconds, o.median[strata].hwm>>10, s.hwm>>10, apart, of)
	}

	p("\n## Against the reference\n\nlinumpy took the seconds of the second column for the same work on inputs of the same size, on another two-core machine, with the floors of the third. ")
	p("They are scaled by those floors as measured here, in the same run: ")
	for i, o := range all {
		if o.Group == "floor" {
			if i > 0 {
				p(", ")
			}
			p("%s %s", o.Label, number(o.speed("C"), "GB/s"))
		}
	}
	p(". For pread the fastest of what was measured there (5 to 20 GB/s) is taken, and our mosaic decodes faster than noise does: both are in the reference's favour.\n\n")
	measured := false
	p("| | reference there | floor there | reference here, scaled | strata | ratio | target | | |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, o := range all {
		if o.Reference == nil {
			continue
		}
		here, ratio := o.against(all)
		own := ""
		if s, ok := o.median[linumpy]; ok && s.failed == "" {
			own, measured = fmt.Sprintf("checkout: %s, %.1f ×", number(s.seconds, "s"), s.seconds/o.median[strata].seconds), true
		}
		p("| %s | %s | %g GB/s | %s | %s | %.1f × | ≥ %g | %s | %s |\n", o.Label, number(o.Reference.Seconds, "s"), o.Reference.Speed,
			number(here, "s"), number(o.median[strata].seconds, "s"), ratio, o.Reference.Ratio, mark(ratio >= o.Reference.Ratio), own)
	}
	if !measured {
		p("\nNo checkout of it was at hand: `make bench LINUMPY=DIR` runs its programs on the same inputs and adds what they take.\n")
	}
	p("\n## Start of a process\n\n| | strata | an empty C program | target | |\n|---|---:|---:|---:|---:|\n")
	for _, o := range all {
		if o.Group == "start" {
			target, ok := o.verdict()
			p("| %s | %s | %s | %s | %s |\n", o.Label, number(o.speed(strata), "ms"), number(o.speed("C"), "ms"), target, mark(ok))
		}
	}
	p("\n")
}

func chainTable(p func(string, ...any), c *chainRun) {
	var busy float64
	tasks := 0
	for _, s := range c.Stages {
		busy, tasks = busy+s.Busy, tasks+s.Tasks
	}
	p("## The chain\n\n%d slices through the whole workflow (%s), one core a task: %s. **%.1f s** from the engine's start to its end on %d cores (%s; commit %s, %s, load before %s; the median of %d rounds). ",
		c.Slices, c.Engine, c.Input, c.Wall, c.Cores, c.CPU, c.Commit, c.Date, c.Load, c.Rounds)
	p("The tasks took %.1f s, which %d cores could do in %.1f s: **the engine costs %.1f s**, %.2f s a task, for its start, for submitting, watching and publishing, and for the core that idles while there is one task only. ",
		busy, c.Cores, c.Wall-c.Overhead, c.Overhead, c.Overhead/float64(max(1, tasks)))
	p("In %.1f s of it no task ran at all. The same steps from a shell, one after another and each on %d cores, take **%.1f s** and make the same bytes.\n\n", c.Idle, c.Cores, c.Shell)
	p("| | tasks | sum of the tasks | of that, the programs | the rest: shell and engine's wrapper |\n|---|---:|---:|---:|---:|\n")
	var tool float64
	for _, s := range c.Stages {
		p("| %s | %d | %s | %s | %s |\n", s.Name, s.Tasks, number(s.Busy, "s"), number(s.Tool, "s"), number(max(0, s.Busy-s.Tool), "s"))
		tool += s.Tool
	}
	p("| all | %d | %s | %s | %s |\n\n", tasks, number(busy, "s"), number(tool, "s"), number(max(0, busy-tool), "s"))
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

func largeTable(p func(string, ...any), l *largeRun) {
	p("## Ten times the input\n\nOnce, by hand: %s (commit %s, %s). Its pages do not stay in memory, so that times are those of the disk too.\n\n", l.Input, l.Commit, l.Date)
	p("| | input | wall | processor | resident |\n|---|---:|---:|---:|---:|\n")
	for _, r := range l.Runs {
		p("| %s | %.1f GB | %s | %s | %d MiB |\n", r.Stage, r.GB, number(r.Wall, "s"), number(r.CPU, "s"), r.HWM>>10)
	}
	p("\n")
}
