package qc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/pattern"
	"strata/pkg/smallfile"
)

// MissingSlice is a slice for which the workflow gave up a process.
type MissingSlice struct {
	Process, Slice, Exit, Reason string
}

// Task is a line of the workflow engine's trace.
type Task struct {
	Name, Status            string
	Submit, Start, Complete time.Time // zero if unknown
	Duration, Realtime      time.Duration
	Attempt                 int
	HasTimes                bool
}

// tsv reads tab-separated values with a header that has the needed columns; each
// is called with a row's fields by name.
func tsv(r io.Reader, name string, needed []string, each func(line int, get func(string) string) error) error {
	b, err := smallfile.Lines(r, name)
	if err != nil {
		return err
	}
	var header []string
	line := 0
	for text := range strings.Lines(string(b)) {
		line++
		text = strings.TrimRight(text, "\r\n")
		if header == nil {
			header = strings.Split(strings.TrimPrefix(text, "\ufeff"), "\t")
			for _, n := range needed {
				if !slices.Contains(header, n) {
					return fmt.Errorf("%s:%d: there is no column %q", name, line, n)
				}
			}
			continue
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		row := strings.Split(text, "\t")
		get := func(column string) string {
			if i := slices.Index(header, column); i >= 0 && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		if err := each(line, get); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	if header == nil {
		return fmt.Errorf("%s:1: the file is empty, want a header", name)
	}
	return nil
}

// readMissing reads the table of slices that were given up.
func readMissing(r io.Reader, name string) (out []MissingSlice, err error) {
	err = tsv(r, name, []string{"process", "slice", "exit", "reason"}, func(_ int, get func(string) string) error {
		out = append(out, MissingSlice{get("process"), get("slice"), get("exit"), get("reason")})
		return nil
	})
	return out, err
}

// readTrace reads Nextflow's trace, of human-readable or raw values.
func readTrace(r io.Reader, name string) (out []Task, err error) {
	err = tsv(r, name, []string{"name", "status"}, func(_ int, get func(string) string) error {
		t := Task{Name: get("name"), Status: get("status")}
		if a := get("attempt"); a != "" {
			if t.Attempt, err = strconv.Atoi(a); err != nil {
				return fmt.Errorf("attempt is %q, want a number", a)
			}
		}
		for column, dst := range map[string]*time.Time{"submit": &t.Submit, "start": &t.Start, "complete": &t.Complete} {
			v, err := moment(get(column))
			if err != nil {
				return fmt.Errorf("%s is %q: %w", column, get(column), err)
			}
			*dst = v
		}
		for column, dst := range map[string]*time.Duration{"duration": &t.Duration, "realtime": &t.Realtime} {
			v, err := span(get(column))
			if err != nil {
				return fmt.Errorf("%s is %q: %w", column, get(column), err)
			}
			*dst = v
		}
		t.HasTimes = !t.Submit.IsZero() && !t.Complete.IsZero() && !t.Complete.Before(t.Submit)
		out = append(out, t)
		return nil
	})
	return out, err
}

// moment reads a time of the trace: milliseconds since 1970, or a date; "" and
// "-" are no time.
func moment(text string) (time.Time, error) {
	if text == "" || text == "-" {
		return time.Time{}, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse("2006-01-02 15:04:05.999999999", text)
	if err != nil {
		return t, errors.New("want a date such as 2026-01-31 12:00:00.123")
	}
	return t, nil
}

var spanPart = pattern.Lazy(`^(\d+(?:\.\d+)?)(ms|s|m|h|d)$`)

// span reads a duration of the trace: "2h 3m 4.5s", or milliseconds.
func span(text string) (time.Duration, error) {
	if text == "" || text == "-" {
		return 0, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 && ms < 1<<50 {
		return time.Duration(ms) * time.Millisecond, nil
	}
	var sum float64
	for _, part := range strings.Fields(text) {
		m := spanPart().FindStringSubmatch(part)
		if m == nil {
			return 0, errors.New("want a duration such as 2m 3.5s")
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, err
		}
		sum += v * map[string]float64{"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}[m[2]]
	}
	if sum > 1e9 {
		return 0, errors.New("more than thirty years")
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// Engine summarises a run from the workflow engine's trace.
type Engine struct {
	Tasks, Cached, Failed int
	Span                  time.Duration // from the first submission to the last completion
	Busy                  time.Duration // at least one task was running
	Work                  time.Duration // sum of the tasks' own time
	Waiting               time.Duration // sum of the tasks' times beyond their run time: queue, staging, publishing
}

// engine sums up tasks. Those from the cache took no time in this run.
func engine(tasks []Task) *Engine {
	if len(tasks) == 0 {
		return nil
	}
	e := &Engine{}
	type interval struct{ from, to time.Time }
	var running []interval
	var first, last time.Time
	for _, t := range tasks {
		switch t.Status {
		case "CACHED":
			e.Cached++
			continue
		case "FAILED", "ABORTED":
			e.Failed++
		}
		e.Tasks++
		e.Work += t.Realtime
		e.Waiting += max(0, t.Duration-t.Realtime)
		if !t.HasTimes {
			continue
		}
		if first.IsZero() || t.Submit.Before(first) {
			first = t.Submit
		}
		if t.Complete.After(last) {
			last = t.Complete
		}
		from := t.Complete.Add(-t.Realtime)
		if !t.Start.IsZero() && t.Start.After(from) {
			from = t.Start
		}
		running = append(running, interval{from, t.Complete})
	}
	e.Span = last.Sub(first)
	slices.SortFunc(running, func(a, b interval) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	var until time.Time
	for _, i := range running {
		if i.from.Before(until) {
			i.from = until
		}
		if i.to.After(i.from) {
			e.Busy += i.to.Sub(i.from)
			until = i.to
		}
	}
	return e
}
