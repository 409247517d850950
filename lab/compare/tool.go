package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	results "strata/pkg/bench"
)

// toolRun is one run of a benchmark program whose results are cases.
type toolRun struct {
	program string
	command []string // after the program, without what all have
	env     []string
	fewest  bool // its peers take minutes: three repetitions at most
	cases   []toolCase
}

// toolCase selects some results of a run as a case.
type toolCase struct {
	header
	name string            // of the results
	axes map[string]string // that they have
}

// toolRuns measures runs of benchmark programs, and then whole commands.
func (r *runner) toolRuns(ctx context.Context, p *plan, runs []toolRun, units []unit) error {
	f, err := gatherFacts(ctx, p)
	if err != nil {
		return err
	}
	if err := r.print(line{Facts: f}); err != nil {
		return err
	}
	for _, run := range runs {
		if !slices.ContainsFunc(run.cases, func(c toolCase) bool { return strings.Contains(c.Name, r.only) }) {
			continue
		}
		start := time.Now()
		if err := r.toolRun(ctx, p, run); err != nil {
			return fmt.Errorf("%s: %w", run.cases[0].Name, err)
		}
		fmt.Fprintf(r.log, "%-20s %6.1f s\n", run.cases[0].Name, time.Since(start).Seconds())
	}
	for _, u := range units {
		if strings.Contains(u.Name, r.only) {
			if err := r.unit(ctx, p, &u); err != nil {
				return fmt.Errorf("%s: %w", u.Name, err)
			}
		}
	}
	return nil
}

// repetitions returns how often each operation is measured, at most the given number of times.
func (run *toolRun) repetitions(most int) int {
	if run.fewest {
		return min(3, most)
	}
	return most
}

// toolRun runs a benchmark program once. That program alternates between its peers and compares what they read.
func (r *runner) toolRun(ctx context.Context, p *plan, run toolRun) error {
	file := filepath.Join(p.data, "run.json")
	args := append(slices.Clone(run.command), "--peers", "--reps", strconv.Itoa(run.repetitions(r.most)), "--results", file, "-f", "-q")
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, run.program), args...)
	cmd.Env = append(os.Environ(), run.env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(lastLine(string(text))))
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	d, err := results.ReadJSON(in)
	if err != nil {
		return err
	}
	for _, c := range run.cases {
		if err := r.print(line{Case: &c.header}); err != nil {
			return err
		}
		for _, x := range d.Results {
			if x.Name != c.name || slices.ContainsFunc(sortedKeys(c.axes), func(k string) bool { return x.Axes.Get(k) != c.axes[k] }) {
				continue
			}
			if err := r.result(p, c, x); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.Remove(file), emptyFolder(p.out))
}

// result prints the repetitions of a result.
func (r *runner) result(p *plan, c toolCase, x results.Result) error {
	s := sample{Case: c.Name, Who: whoOf(x), CPU: x.CPU, Bytes: x.Bytes, HWM: x.RSS >> 10}
	if !x.Measured() {
		if strings.Contains(x.Reason, "No module named") { // a program that was not there has no row
			return nil
		}
		s.Failed = p.withoutFolders(x.Reason)
		return r.print(line{Run: &s})
	}
	for i, seconds := range x.Seconds {
		s.Round, s.Seconds = i, seconds
		if err := r.print(line{Run: &s}); err != nil {
			return err
		}
	}
	return nil
}

// whoOf returns the name of the program of a result, or of the yardstick that ours serve as.
func whoOf(x results.Result) string {
	if x.Who == results.Strata {
		switch x.Axes.Get("backend") {
		case "preadv":
			return preadvPlaced
		case "tiles":
			return preadvAlone
		}
	}
	return x.Who
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
