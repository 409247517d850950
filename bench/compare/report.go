package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// outcome is what the runs of one case say together.
type outcome struct {
	header
	who    []string // in order of appearance
	median map[string]summary
	diff   *difference // from a peer's result; nil: not compared
}

// summary of one program's runs of a case.
type summary struct {
	seconds, cpu float64 // medians
	spread       float64 // (slowest − fastest) / median
	bytes        int64
	hwm, stored  int64 // largest
	rounds       int
	failed       string
}

// speed is the summary's number in the unit of the case.
func (o *outcome) speed(who string) float64 {
	s := o.median[who]
	if s.seconds == 0 {
		return 0
	}
	switch o.Unit {
	case "ms":
		return s.seconds * 1e3
	case "s":
		return s.seconds
	case "GB/s":
		return float64(s.bytes) / s.seconds / 1e9
	}
	return float64(s.bytes) / s.seconds / (1 << 30)
}

// yardstick is who strata is compared with, "" for nobody.
func (o *outcome) yardstick() string {
	if o.Target.Against != "peers" {
		if _, ok := o.median[o.Target.Against]; ok {
			return o.Target.Against
		}
		return ""
	}
	best, who := 0.0, ""
	for _, w := range o.who {
		if s := o.median[w]; w != strata && s.failed == "" && (who == "" || s.seconds < best) {
			best, who = s.seconds, w
		}
	}
	return who
}

// ratio is strata's speed in multiples of the yardstick's; with Inverse its
// time in multiples of the yardstick's. 0: no yardstick.
func (o *outcome) ratio() float64 {
	y := o.yardstick()
	if y == "" || o.median[strata].seconds == 0 {
		return 0
	}
	mine, its := o.median[strata], o.median[y]
	r := its.seconds / mine.seconds
	if mine.bytes > 0 && its.bytes > 0 { // halo views are more bytes than their tiles
		r *= float64(mine.bytes) / float64(its.bytes)
	}
	if o.Target.Inverse {
		return 1 / r
	}
	return r
}

// verdict compares with the target: its text, and whether it is reached.
func (o *outcome) verdict() (text string, reached bool) {
	t := o.Target
	switch {
	case t.Ratio == 0:
		return "", true
	case t.Against == "ms":
		return fmt.Sprintf("≤ %g ms", t.Ratio), o.speed(strata) <= t.Ratio
	case t.Inverse:
		return fmt.Sprintf("≤ %g", t.Ratio), o.ratio() <= t.Ratio
	}
	return fmt.Sprintf("≥ %g", t.Ratio), o.ratio() >= t.Ratio
}

// memoryReached tells whether strata's resident memory stays where it should.
func (o *outcome) memoryReached() bool {
	return o.Memory == 0 || o.median[strata].hwm>>10 <= o.Memory
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
		}
		if l.Diff != nil {
			o := byName[l.Diff.Case]
			if o == nil {
				return nil, nil, fmt.Errorf("line %d: difference of the unknown case %q", n, l.Diff.Case)
			}
			o.diff = l.Diff
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
	var seconds, cpu []float64
	for _, r := range runs {
		if r.Failed != "" {
			return summary{failed: r.Failed}
		}
		seconds, cpu = append(seconds, r.Seconds), append(cpu, r.CPU)
		s.bytes = r.Bytes
		s.hwm, s.stored = max(s.hwm, r.HWM), max(s.stored, r.Stored)
	}
	s.seconds, s.cpu, s.rounds = median(seconds), median(cpu), len(runs)
	if s.seconds > 0 {
		s.spread = (slices.Max(seconds) - slices.Min(seconds)) / s.seconds
	}
	return s
}

// group is a table of a page.
type group struct{ name, title, text string }

// groups are the tables of the report, in this order.
var groups = []group{
	{"stream", "Streaming reads", "Region by region into reused buffers, as the stages read, against C: pread with the same pieces, libzstd, c-blosc and libdeflate on the same files, two threads."},
	{"full", "Full reads into fresh memory", "The whole array into memory that the program allocates, as an analysis script does."},
	{"random", "Random boxes and planes", "Boxes at any place, into fresh memory; the array is open. Times are those of all boxes or planes together."},
	{"write", "Writes", "The whole array from memory."},
	{"start", "Opening and starting", ""},
	{"aip", "`aip` of a mosaic", "The whole command with its output, a pyramid of five levels as `blosc-zstd:1`, against a process that reads and decodes the same pieces with the same two workers and does nothing with them, and against what a user of zarr-python writes: `zarr.open_array(path)[...].mean(axis=0)`, which writes nothing."},
	{"tiles", "Tile loader", "Halo views of raw 1024² uint16 tiles against loading the tiles alone, in bytes per second of each."},
	{"ome", "OME-Zarr writer", "An image with five pyramid levels, tile by tile, against its level 0 alone and against pkg/zarr writing the same array."},
}

func writeReport(runsFile, notesFile, md, svg string) error {
	return writePage(runsFile, notesFile, md, svg, plotted, "Speed of strata and of other programs on the same arrays", report)
}

func writeRemote(runsFile, notesFile, md, svg string) error {
	return writePage(runsFile, notesFile, md, svg, []string{"web", "s3", "s3far"}, "Speed of strata and of other programs on arrays that are far away", reportRemote)
}

func writeFiles(runsFile, notesFile, md, svg string) error {
	return writePage(runsFile, notesFile, md, svg, []string{"fileread", "filewrite", "filecalls"}, "Speed of the file layer, of C and of KvikIO", reportFiles)
}

// writePage makes a page and its plot of what was measured.
func writePage(runsFile, notesFile, md, svg string, plotted []string, title string, report func(io.Writer, *facts, []*outcome, notes, string)) error {
	in, err := os.Open(runsFile)
	if err != nil {
		return err
	}
	defer in.Close()
	f, all, err := readRuns(in)
	if err != nil {
		return fmt.Errorf("%s: %w", runsFile, err)
	}
	text, err := os.ReadFile(notesFile)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	report(&b, f, all, parseNotes(string(text)), filepath.Base(svg))
	if err := os.WriteFile(md, b.Bytes(), 0o666); err != nil {
		return err
	}
	b.Reset()
	plot(&b, all, plotted, title)
	return os.WriteFile(svg, b.Bytes(), 0o666)
}

// notes are what a person wrote: a word on a case that falls short, by the
// case's name, and sections for the end of the report.
type notes struct {
	cases    map[string]string
	sections string
}

// parseNotes splits the notes file: "### name" starts the note of a case, other
// headings are sections of the report.
func parseNotes(text string) notes {
	n := notes{cases: map[string]string{}}
	name := ""
	for l := range strings.Lines(text) {
		if c, ok := strings.CutPrefix(l, "### "); ok {
			name = strings.TrimSpace(c)
			continue
		}
		if strings.HasPrefix(l, "## ") {
			name = "-"
		}
		switch name {
		case "": // what the file says of itself
		case "-":
			n.sections += l
		default:
			n.cases[name] += l
		}
	}
	return n
}

func report(w io.Writer, f *facts, all []*outcome, n notes, svg string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("<!-- Written by `make bench` (bench/compare) from measurements and bench/notes-arrays.md: edit those. -->\n# Benchmarks of arrays\n\n")
	p("Strata beside other programs that read and write Zarr, and beside what C makes of the same files, measured by `make bench PARTS=arrays` (the stages have [a page of their own](benchmarks.md)): ")
	p("two threads each, pages cached, every measurement in a process of its own. The programs take turns, in rounds that each begin with another one; ")
	p("numbers are medians over the rounds. **Ratios count, not times**: another machine has other times. ")
	p("Before a program reads or writes a whole array, memory is taken and given back, so that nobody pays for the search for huge pages or, in a virtual machine, for memory that comes from the host. ")
	p("Sampled sums over what was read are compared between all programs, and what others write is read by us.\n\n")
	p("Data: %d×%d×%d float32, 12-bit noise: nothing that a codec could win from structure.\n\n![plot](%s)\n\n", f.Shape[0], f.Shape[1], f.Shape[2], svg)
	shortfalls(p, all, n)
	for _, g := range groups {
		table(p, g.name, g.title, g.text, all)
	}
	machine(p, f)
	p("## Commands\n\n```sh\nPARTS=arrays make bench               # all of this: half an hour, 16 GB of disk\nBENCH_SMOKE=1 make bench              # small, all parts, one round, no report: does it all still run?\n")
	p("BENCH_ONLY=full/zstd make bench       # some cases, no report\nBENCH_RUST=1 make bench               # with the zarrs crate itself as a peer (needs cargo)\n")
	p("BENCH_DIR=… BENCH_OUT=… BENCH_SHAPE=Z,Y,X make bench   # where the data lies, where programs write, its shape\n```\n\n")
	p("The programs that measure: bench/arrays (ours), bench/floor.c (C), bench/peers.py (Python), bench/zarrs (Rust); bench/compare lets them take turns and wrote this page.\n\n")
	p("%s", strings.TrimSpace(n.sections)+"\n")
}

// machine prints what the numbers depend on.
func machine(p func(string, ...any), f *facts) {
	p("## Machine and versions\n\n| | |\n|---|---|\n| processor | %s, %d cores |\n| memory | %.1f GiB |\n| system | %s, %s |\n| compiler | %s |\n| others | %s |\n",
		f.CPU, f.Cores, float64(f.MemoryMiB)/1024, f.OS, f.Kernel, f.Go, f.Versions)
	changed := ""
	if f.Changed != "" {
		changed = " and " + f.Changed + " changed source files"
	}
	p("| written to | %s |\n| commit | %s%s |\n| date | %s |\n| load before the run | %s |\n\n", f.Out, f.Commit, changed, f.Date, f.Load)
}

// shortfalls names what misses its target, with the reason if somebody has
// written it down.
func shortfalls(p func(string, ...any), all []*outcome, n notes) {
	var missed, stated int
	var text strings.Builder
	for _, o := range all {
		target, ok := o.verdict()
		if target != "" {
			stated++
		}
		if o.Memory != 0 {
			stated++
		}
		word := ""
		if !ok {
			missed++
			if o.Target.Against == "ms" {
				word = fmt.Sprintf("%s, wanted %s", number(o.speed(strata), o.Unit), target)
			} else {
				word = fmt.Sprintf("%.2f of %s, wanted %s", o.ratio(), o.yardstick(), target)
			}
		}
		if !o.memoryReached() {
			missed++
			if word != "" {
				word += "; "
			}
			word += fmt.Sprintf("%d MiB resident, wanted ≤ %d", o.median[strata].hwm>>10, o.Memory)
		}
		if word != "" {
			fmt.Fprintf(&text, "- **%s, %s** (%s). %s\n", groupTitle(o.Group), o.Label, word, strings.Join(strings.Fields(n.cases[o.Name]), " "))
		}
	}
	p("## Targets\n\n%d of %d are reached.", stated-missed, stated)
	if missed > 0 {
		p(" These are not:\n\n%s", text.String())
	} else {
		p("\n")
	}
	p("\n")
}

func groupTitle(name string) string {
	for _, g := range slices.Concat(groups, remoteGroups, fileGroups) {
		if g.name == name {
			return g.title
		}
	}
	return name
}

// table prints one group: speeds with ratio and target, and memory.
func table(p func(string, ...any), group, title, text string, all []*outcome) {
	var rows []*outcome
	var who []string
	memory, stored := false, false
	for _, o := range all {
		if o.Group != group {
			continue
		}
		rows = append(rows, o)
		memory = memory || o.Memory != 0
		for _, w := range o.who {
			stored = stored || o.median[w].stored != 0
			if !slices.Contains(who, w) {
				who = append(who, w)
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	p("## %s\n\n", title)
	if text != "" {
		p("%s\n\n", text)
	}
	head := func(last ...string) {
		cols := append(append([]string{""}, who...), last...)
		p("| %s |\n|---|%s\n", strings.Join(cols, " | "), strings.Repeat("---:|", len(cols)-1))
	}
	head("ratio", "target", "")
	for _, o := range rows {
		cells := []string{o.Label}
		for _, w := range who {
			cells = append(cells, o.cell(w, func(summary) string { return number(o.speed(w), o.Unit) }))
		}
		ratio, mark := "", ""
		if r := o.ratio(); r != 0 {
			ratio = fmt.Sprintf("%.2f", r)
			if o.Target.Against == "peers" {
				ratio += " × " + o.yardstick()
			}
		}
		target, ok := o.verdict()
		if target != "" {
			mark = map[bool]string{true: "✓", false: "✗"}[ok]
		}
		p("| %s |\n", strings.Join(append(cells, ratio, target, mark), " | "))
	}
	if memory {
		p("\nMost resident memory, MiB:\n\n")
		head("target", "")
		for _, o := range rows {
			cells := []string{o.Label}
			for _, w := range who {
				cells = append(cells, o.cell(w, func(s summary) string { return fmt.Sprint(s.hwm >> 10) }))
			}
			mark, target := "", ""
			if o.Memory != 0 {
				target, mark = fmt.Sprintf("≤ %d", o.Memory), map[bool]string{true: "✓", false: "✗"}[o.memoryReached()]
			}
			p("| %s |\n", strings.Join(append(cells, target, mark), " | "))
		}
	}
	if stored {
		p("\nStored bytes in multiples of the voxels':\n\n")
		head()
		for _, o := range rows {
			cells := []string{o.Label}
			for _, w := range who {
				cells = append(cells, o.cell(w, func(s summary) string { return fmt.Sprintf("%.3f", float64(s.stored)/float64(s.bytes)) }))
			}
			p("| %s |\n", strings.Join(cells, " | "))
		}
	}
	lo, hi, spread := 1<<30, 0, []float64{}
	for _, o := range rows {
		for _, s := range o.median {
			if s.failed == "" {
				lo, hi, spread = min(lo, s.rounds), max(hi, s.rounds), append(spread, s.spread)
			}
		}
	}
	if len(spread) > 0 {
		p("\n%d to %d rounds; the slowest and the fastest of a program lie %.0f %% apart (median).\n\n", lo, hi, 100*median(spread))
	}
}

func (o *outcome) cell(who string, text func(summary) string) string {
	s, ok := o.median[who]
	switch {
	case !ok:
		return ""
	case s.failed != "":
		return "fails"
	}
	return text(s)
}

// number prints with three digits or so, and the unit.
func number(v float64, unit string) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	case v >= 0.1:
		return fmt.Sprintf("%.2f %s", v, unit)
	}
	return fmt.Sprintf("%.3f %s", v, unit)
}
