package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/host"
)

// chainRecord completes the record of a workflow run from the engine's trace (a tab-separated table) and the run
// records that the programs wrote.
func chainRecord(ctx context.Context, trace, records string, rec chainRun, w io.Writer) error {
	f, err := os.Open(trace)
	if err != nil {
		return err
	}
	defer f.Close()
	tasks, err := readTrace(f)
	if err != nil {
		return fmt.Errorf("%s: %w", trace, err)
	}
	tools, err := toolSeconds(records)
	if err != nil {
		return err
	}
	rec.Date = time.Now().UTC().Format("2006-01-02 15:04 MST")
	rec.Commit = output(ctx, "git", "rev-parse", "--short", "HEAD")
	rec.CPU = host.CPUModel()
	rec.Idle = rec.Wall - covered(tasks)
	busy := 0.0
	for _, t := range tasks {
		name := strings.ToLower(t.process)
		i := slices.IndexFunc(rec.Stages, func(s chainStep) bool { return s.Name == name })
		if i < 0 {
			i = len(rec.Stages)
			rec.Stages = append(rec.Stages, chainStep{Name: name, Tool: tools[programOf(name)]})
		}
		rec.Stages[i].Tasks++
		rec.Stages[i].Busy += t.seconds
		busy += t.seconds
	}
	rec.Overhead = rec.Wall - busy/float64(rec.Cores)
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(&rec)
}

// programOf returns the program whose records belong to a process of the engine.
func programOf(process string) string {
	if process == "report" {
		return "qc-report"
	}
	return strings.ReplaceAll(process, "_", "-")
}

// task is a completed task of the engine.
type task struct {
	process        string
	start, seconds float64 // of its script
}

func readTrace(r io.Reader) ([]task, error) {
	in := bufio.NewScanner(r)
	column := map[string]int{}
	var tasks []task
	for n := 1; in.Scan(); n++ {
		cells := strings.Split(in.Text(), "\t")
		if n == 1 {
			for i, c := range cells {
				column[c] = i
			}
			for _, c := range []string{"name", "status", "start", "realtime"} {
				if _, ok := column[c]; !ok {
					return nil, fmt.Errorf("the trace has no column %q", c)
				}
			}
			continue
		}
		if len(cells) < len(column) {
			return nil, fmt.Errorf("line %d has %d cells, want %d", n, len(cells), len(column))
		}
		cell := func(name string) string { return cells[column[name]] }
		if cell("status") != "COMPLETED" {
			continue
		}
		start, err := time.Parse("2006-01-02 15:04:05.999", cell("start"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		seconds, err := engineSeconds(cell("realtime"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		process, _, _ := strings.Cut(cell("name"), " ")
		process = process[strings.LastIndex(process, ":")+1:] // less the workflow's name
		tasks = append(tasks, task{process, float64(start.UnixMilli()) / 1e3, seconds})
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("no task was completed")
	}
	return tasks, nil
}

// engineSeconds parses a duration as the engine prints it: "1m 2.5s", "340ms".
func engineSeconds(text string) (s float64, err error) {
	for part := range strings.FieldsSeq(text) {
		digits := strings.TrimRight(part, "dhms")
		v, err := strconv.ParseFloat(digits, 64)
		unit, ok := map[string]float64{"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}[part[len(digits):]]
		if err != nil || !ok {
			return 0, fmt.Errorf("%q is no duration", text)
		}
		s += v * unit
	}
	return s, nil
}

// covered returns the number of seconds in which at least one task ran.
func covered(tasks []task) (s float64) {
	sorted := slices.SortedFunc(slices.Values(tasks), func(a, b task) int { return cmp.Compare(a.start, b.start) })
	end := math.Inf(-1)
	for _, t := range sorted {
		if to := t.start + t.seconds; to > end {
			s += to - max(end, t.start)
			end = to
		}
	}
	return s
}

// toolSeconds returns the total wall seconds of the run records below a folder, by the program's name.
func toolSeconds(dir string) (map[string]float64, error) {
	sum := map[string]float64{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".json" {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var r struct {
			Tool    string  `json:"tool"`
			Command string  `json:"command"`
			Wall    float64 `json:"wall_seconds"`
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.Tool == "stitch" && strings.Contains(filepath.Base(name), "estimate") {
			r.Tool = "estimate" // a run of stitch, a process of its own for the engine
		} else if r.Command == "clean" || r.Command == "config" { // of shifts and slices, likewise
			r.Tool = r.Command
		}
		sum[r.Tool] += r.Wall
		return nil
	})
	return sum, err
}
