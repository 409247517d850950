package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	kvikio = "KvikIO"
	inC    = "C"
	// bestInC is the fastest of what C does with a file.
	bestInC = "best of C"
)

// fileCase is a row of the page of files.
type fileCase struct {
	name, group, label string
	piece              int
	flags              string // COLD SYNC SHIFT, of bench/gds-floor.c; C's memory always lies right
	unit               string
	kvikio, c          float64 // goals: strata's speed in multiples of theirs
	most               float64 // goal: milliseconds
	who                []fileProgram
}

// fileProgram is who does it and what its program calls that.
type fileProgram struct{ who, op string }

// Where memory begins in its page: numpy's, and that of C and of Go.
const (
	inPage  = "16"
	atStart = "0"
)

func fileCases() []fileCase {
	return []fileCase{
		{name: "read/warm", group: "fileread", label: "in the page cache", flags: "0 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "read"}, {strata + ", mapped", "mmap"}, {inC, "read"}, {inC + ", mapped", "mmap"}, {kvikio, "read"}, {kvikio + ", mapped", "mmap"}}},
		{name: "read/cold", group: "fileread", label: "not in the page cache", flags: "1 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "direct"}, {strata + ", through the cache", "read"}, {inC, "read"}, {inC + ", mapped", "mmap"}, {inC + ", direct", "direct"},
			{kvikio, "read"}, {kvikio + ", direct", "direct"}}},
		{name: "read/unaligned", group: "fileread", label: "not in the page cache, memory at byte 16 of a page", flags: "1 0 16", kvikio: 1.3, who: []fileProgram{
			{strata, "direct"}, {inC, "read"}, {inC + ", direct", "direct"}, {kvikio, "read"}, {kvikio + ", direct", "direct"}}},
		{name: "read/tasks", group: "fileread", label: "not in the page cache, 64 KiB at a time, past the page cache", piece: 64 << 10, flags: "1 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "direct"}, {inC + ", direct", "direct"}, {kvikio + ", direct", "direct"}}},
		{name: "files", group: "fileread", label: "in files of 1 MiB, in the page cache", piece: 1 << 20, flags: "0 0", kvikio: 1.3, who: []fileProgram{
			{strata, "files"}, {inC, "files"}, {kvikio, "files"}}},
		{name: "write", group: "filewrite", label: "until the call returns", flags: "0 0", kvikio: 1.5, who: []fileProgram{
			{strata, "write"}, {strata + ", through the cache", "write-cached"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}, {kvikio + ", through the cache", "write-cached"}}},
		{name: "write/synced", group: "filewrite", label: "until it is on the device", flags: "0 1", kvikio: 1.5, c: 0.95, who: []fileProgram{
			{strata, "write"}, {strata + ", through the cache", "write-cached"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}, {kvikio + ", through the cache", "write-cached"}}},
		{name: "write/unaligned", group: "filewrite", label: "until it is on the device, memory at byte 16 of a page", flags: "0 1 16", kvikio: 1.5, who: []fileProgram{
			{strata, "write"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}}},
		{name: "calls", group: "filecalls", label: "100 000 × 4 KiB, one after the other", piece: 4096, flags: "0 0", unit: "ms", kvikio: 1.3, most: 200, who: []fileProgram{
			{strata, "calls"}, {inC, "calls"}, {kvikio, "calls"}}},
	}
}

// fileUnits are the cases of the file layer, on a file of so many bytes.
func (p *plan) fileUnits(bytes int64) []unit {
	var all []unit
	for _, c := range fileCases() {
		u := unit{header: header{Name: c.name, Group: c.group, Label: c.label, Unit: cmp.Or(c.unit, "GiB/s")}, reads: filepath.Join(p.data, "file")}
		if c.name == "files" {
			u.reads = filepath.Join(p.data, "files")
		}
		if c.kvikio > 0 {
			i := slices.IndexFunc(c.who, func(w fileProgram) bool { return strings.HasPrefix(w.who, kvikio) })
			u.Goals = append(u.Goals, target{Against: c.who[i].who, Ratio: c.kvikio})
		}
		if c.c > 0 {
			u.Goals = append(u.Goals, target{Against: bestInC, Ratio: c.c})
		}
		if c.most > 0 {
			u.Target = target{Against: "ms", Ratio: c.most}
		}
		for _, w := range c.who {
			f := strings.Fields(c.flags)
			cold, sync, shift := f[0], f[1], atStart
			if len(f) > 2 {
				shift = f[2]
			}
			var program []string
			var env []string
			switch {
			case strings.HasPrefix(w.who, strata):
				program = []string{p.tool("gds")}
			case strings.HasPrefix(w.who, inC):
				program, shift = []string{p.tool("gds-floor")}, atStart
			case p.kvikio == "":
				continue
			default:
				program, env = []string{p.kvikio, "bench/gds-kvikio.py"}, p.kvikioEnv()
				shift = inPage
			}
			path := u.reads
			if strings.HasPrefix(w.op, "write") {
				path = filepath.Join(p.out, "written")
			}
			u.who = append(u.who, contestant{who: w.who, env: env,
				argv: append(program, w.op, path, strconv.FormatInt(bytes, 10), "2", strconv.Itoa(cmp.Or(c.piece, 4<<20)), "3", cold, sync, shift)})
		}
		all = append(all, u)
	}
	return all
}

// kvikioEnv is what KvikIO needs: a library of the driver where there is none, and the
// content to write.
func (p *plan) kvikioEnv() []string {
	env := []string{"FILES_CONTENT=" + filepath.Join(p.data, "file")}
	if p.noCUDA != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.noCUDA)
	}
	return env
}

// fileVersions are those of the peers of the files.
func (p *plan) fileVersions(ctx context.Context) string {
	v := firstLine(output(ctx, "cc", "--version"))
	if p.kvikio == "" {
		return v
	}
	return v + "; " + output(ctx, p.kvikio, "-c", "import sys, importlib.metadata as m\n"+
		"print('Python ', sys.version.split()[0], ', KvikIO ', m.version('kvikio-cu12'), ', numpy ', m.version('numpy'), sep='')")
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

var fileGroups = []group{
	{"fileread", "Reads", "One file into memory that is there, two threads, 4 MiB at a time unless another size is named."},
	{"filewrite", "Writes", "The same memory into a file that is new."},
	{"filecalls", "Small reads", "Anywhere in a file that is in the page cache, by one caller: 100 ms are 1 µs for each. The target is 2 µs, with the system call and the copy; nothing is allocated, which a test holds."},
}

// reportFiles prints the page.
func reportFiles(out io.Writer, f *facts, all []*outcome, n notes, svg string) {
	p := func(format string, args ...any) { fmt.Fprintf(out, format, args...) }
	p("<!-- Written by `make bench PARTS=files` (bench/compare) from measurements and bench/notes-files.md: edit those. -->\n# Benchmarks of the file layer\n\n")
	p("`pkg/gds` with host memory beside what C makes of the same file and beside the host path of KvikIO, measured by `make bench PARTS=files`: two threads each, every measurement in a process of its own, the median of three passes. ")
	p("The programs take turns, in rounds that each begin with another one; numbers are medians over the rounds. **Ratios count, not times.** ")
	p("Sampled sums over what was read, or over what is in the file that was written, are compared between all programs. ")
	p("Memory lies on huge pages for all. That of C and of Go begins with a page; KvikIO's is numpy's, which begins 16 bytes into one; where a row says so, ours does as well. ")
	p("\"Direct\" is past the page cache (`O_DIRECT`), \"mapped\" by `mmap`; without a word each does what it does without settings, but for cold reads by strata, which have direct reads switched on (`STRATA_DIRECT_IO=both`): what the page cache holds comes from there all the same.\n\n")
	p("![plot](%s)\n\n", svg)
	p("## Targets\n\nReads: 1.3 times KvikIO's host path, and 0.95 of the best of C; writes: 1.5 times KvikIO's.\n\n")
	missed := 0
	for _, o := range all {
		for _, g := range o.goals() {
			if r := o.times(g.Against); r < g.Ratio {
				missed++
				p("- **%s, %s** (%.2f × %s, wanted ≥ %g). %s\n", groupTitle(o.Group), o.Label, r, g.Against, g.Ratio, strings.Join(strings.Fields(n.cases[o.Name]), " "))
			}
		}
		if target, ok := o.verdict(); !ok {
			missed++
			p("- **%s, %s** (%s, wanted %s). %s\n", groupTitle(o.Group), o.Label, number(o.speed(strata), o.Unit), target, strings.Join(strings.Fields(n.cases[o.Name]), " "))
		}
	}
	if missed == 0 {
		p("All are reached.\n")
	}
	p("\n")
	for _, g := range fileGroups {
		p("## %s\n\n%s\n\n", g.title, g.text)
		for _, o := range all {
			if o.Group != g.name {
				continue
			}
			p("**%s**\n\n| | speed | processor time | resident | strata in multiples of it | target | |\n|---|---:|---:|---:|---:|---:|---|\n", strings.ToUpper(o.Label[:1])+o.Label[1:])
			for _, w := range o.who {
				s := o.median[w]
				if s.failed != "" {
					p("| %s | fails | | | | | |\n", w)
					continue
				}
				times, target, sign := "", "", ""
				if w != strata {
					times = fmt.Sprintf("%.2f", o.times(w))
				} else if t, ok := o.verdict(); t != "" {
					target, sign = t, mark(ok)
				}
				for _, g := range o.goals() {
					if w == g.Against || g.Against == bestInC && w == o.bestInC() {
						target, sign = fmt.Sprintf("≥ %g", g.Ratio), mark(o.times(w) >= g.Ratio)
					}
				}
				p("| %s | %s | %s | %d MiB | %s | %s | %s |\n", w, number(o.speed(w), o.Unit), number(s.cpu, "s"), s.hwm>>10, times, target, sign)
			}
			p("\n")
		}
	}
	machine(p, f)
	p("## Commands\n\n```sh\nPARTS=files make bench                # all of this, with KvikIO where Python has it: some minutes, 3 GB of disk\nKVIKIO=1 PARTS=files make bench       # with KvikIO from PyPI (its packages take 3 GB)\n")
	p("KVIKIO=PYTHON PARTS=files make bench  # with that of a Python\nBENCH_SMOKE=1 PARTS=files make bench  # small, one round, no report: does it still run?\nBENCH_DIR=… PARTS=files make bench    # where the file lies\n```\n\n")
	p("The programs that measure: bench/gds (ours), bench/gds-floor.c (C), bench/gds-kvikio.py. KvikIO opens the driver's library also for host memory: where there is none it gets one without a device (bench/gds-cuda.c).\n\n")
	p("%s", strings.TrimSpace(n.sections)+"\n")
}

// goals are those whose yardstick was measured.
func (o *outcome) goals() []target {
	var all []target
	for _, g := range o.Goals {
		if o.times(g.Against) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// bestInC is the fastest of C's ways.
func (o *outcome) bestInC() string {
	best := ""
	for _, w := range o.who {
		if s := o.median[w]; (w == inC || strings.HasPrefix(w, inC+", ")) && s.failed == "" && (best == "" || s.seconds < o.median[best].seconds) {
			best = w
		}
	}
	return best
}
