package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// outcome combines the runs of one case.
type outcome struct {
	header
	who    []string // in order of appearance
	median map[string]summary
	diffs  []*difference // of others' results from strata's
}

// summary summarises one program's runs of a case.
type summary struct {
	seconds, cpu float64 // medians
	first        float64 // median of the first repetitions; 0: there was only one
	spread       float64 // (slowest − fastest) / median
	bytes        int64
	hwm, stored  int64 // largest
	workers      int   // fewest
	rounds       int
	failed       string
}

// speed returns the speed of a program that took the given time, in the unit of the case.
func (o *outcome) speed(seconds float64, s summary) float64 {
	if seconds == 0 {
		return 0
	}
	switch o.Unit {
	case "ms":
		return seconds * 1e3
	case "s":
		return seconds
	}
	return float64(s.bytes) / seconds / (1 << 30)
}

// speedOf returns a program's speed in the unit of the case.
func (o *outcome) speedOf(who string) float64 { return o.speed(o.median[who].seconds, o.median[who]) }

// yardstick returns the contestant that a target refers to, or "" if it was not measured.
func (o *outcome) yardstick(against string) string {
	best := ""
	for _, w := range o.who {
		s := o.median[w]
		meant := w == against
		switch against {
		case anyPeer:
			meant = w != strata
		case anyProgram:
			meant = w != strata && w != preadvPlaced && w != preadvAlone
		case bestInC:
			meant = w == inC || strings.HasPrefix(w, inC+", ")
		}
		if meant && s.failed == "" && s.seconds > 0 && (best == "" || s.seconds < o.median[best].seconds) {
			best = w
		}
	}
	return best
}

// times returns strata's speed in multiples of another's, or 0 if one of them failed.
func (o *outcome) times(who string) float64 { return o.ratio(strata, who) }

// ratio returns a program's speed in multiples of another's, or 0 if one of them failed.
func (o *outcome) ratio(who, other string) float64 {
	mine, its := o.median[who], o.median[other]
	if mine.seconds == 0 || its.seconds == 0 {
		return 0
	}
	r := its.seconds / mine.seconds
	if mine.bytes > 0 && its.bytes > 0 { // halo views are more bytes than their tiles
		r *= float64(mine.bytes) / float64(its.bytes)
	}
	return r
}

// verdict is the result of comparing with a target.
type verdict struct {
	who       string // in whose row it stands
	got, want string
	reached   bool
	inverse   bool
}

// verdicts returns the verdicts on targets whose yardstick was measured.
func (o *outcome) verdicts() []verdict {
	var all []verdict
	for _, t := range o.Targets {
		if t.Who != "" {
			if v, measured := o.verdictOn(t); measured {
				all = append(all, v)
			}
			continue
		}
		if t.Against == absolute {
			if ms := o.median[strata].seconds * 1e3; ms > 0 {
				all = append(all, verdict{who: strata, got: number(ms, "ms"), want: fmt.Sprintf("≤ %g ms", t.Ratio), reached: ms <= t.Ratio})
			}
			continue
		}
		y := o.yardstick(t.Against)
		switch r := o.times(y); {
		case r == 0:
		case t.Inverse:
			all = append(all, verdict{who: y, got: fmt.Sprintf("%.2f × %s's time", 1/r, y), want: fmt.Sprintf("≤ %g", t.Ratio), reached: 1/r <= t.Ratio, inverse: true})
		default:
			all = append(all, verdict{who: y, got: fmt.Sprintf("%.2f × as fast as %s", r, y), want: fmt.Sprintf("≥ %g", t.Ratio), reached: r >= t.Ratio})
		}
	}
	if mine := o.median[strata]; o.Memory > 0 && mine.seconds > 0 {
		all = append(all, verdict{who: strata, got: fmt.Sprintf("%d MiB resident", mine.hwm>>10), want: fmt.Sprintf("≤ %d MiB", o.Memory), reached: mine.hwm>>10 <= o.Memory})
	}
	return all
}

// readRuns reads a runs file.
func readRuns(r io.Reader) (*facts, []*outcome, error) {
	var f *facts
	var all []*outcome
	runs := map[string][]*sample{}
	byName := map[string]*outcome{}
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case l.Facts != nil:
			f = l.Facts
		case l.Case != nil:
			o := &outcome{header: *l.Case, median: map[string]summary{}}
			all, byName[o.Name] = append(all, o), o
		case l.Run != nil:
			o := byName[l.Run.Case]
			if o == nil {
				return nil, nil, fmt.Errorf("line %d: run of the unknown case %q", n, l.Run.Case)
			}
			if !slices.Contains(o.who, l.Run.Who) {
				o.who = append(o.who, l.Run.Who)
			}
			if l.Run.Seconds < 0 {
				return nil, nil, fmt.Errorf("line %d: %g seconds", n, l.Run.Seconds)
			}
			key := l.Run.Case + "\x00" + l.Run.Who
			runs[key] = append(runs[key], l.Run)
		case l.Diff != nil:
			o := byName[l.Diff.Case]
			if o == nil {
				return nil, nil, fmt.Errorf("line %d: difference of the unknown case %q", n, l.Diff.Case)
			}
			o.diffs = append(o.diffs, l.Diff)
		}
	}
	if err := in.Err(); err != nil {
		return nil, nil, err
	}
	if f == nil || len(all) == 0 {
		return nil, nil, fmt.Errorf("no facts or no cases")
	}
	for _, o := range all {
		for _, w := range o.who {
			o.median[w] = summarize(runs[o.Name+"\x00"+w])
		}
	}
	return f, all, nil
}

func summarize(runs []*sample) summary {
	var s summary
	var first, seconds, cpu []float64
	for _, r := range runs {
		if r.Failed != "" {
			return summary{failed: r.Failed}
		}
		first, seconds, cpu = append(first, r.First), append(seconds, r.Seconds), append(cpu, r.CPU)
		s.bytes = r.Bytes
		s.hwm, s.stored = max(s.hwm, r.HWM), max(s.stored, r.Stored)
		if s.workers == 0 || r.Workers < s.workers {
			s.workers = r.Workers
		}
	}
	s.first, s.seconds, s.cpu, s.rounds = median(first), median(seconds), median(cpu), len(runs)
	if s.seconds > 0 {
		s.spread = (slices.Max(seconds) - slices.Min(seconds)) / s.seconds
	}
	return s
}
