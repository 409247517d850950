package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readmeCase is a row of a table in README: a case of a page.
type readmeCase struct{ part, name, label string }

// readmeStages are the rows of its table of the stages.
var readmeStages = []readmeCase{
	{"stages", "aip/zstd", "`aip`"}, {"stages", "resample/zstd", "`resample` to 10 µm"}, {"stages", "focal/zstd", "`focal`"},
	{"stages", "stitch/zstd", "`stitch`"}, {"stages", "crop/zstd", "`crop`"}, {"stages", "stack/slices", "`stack`"},
	{"stages", "aip/raw", "`aip`, uncompressed"}, {"stages", "resample/raw", "`resample`, uncompressed"},
}

// readmeLayers are the rows of its table of the layers below.
var readmeLayers = []readmeCase{
	{"files", "read/warm", "a file of 1 GiB from the page cache"},
	{"files", "read/cold", "not cached, past the page cache"},
	{"files", "read/tasks", "not cached, 64 KiB at a time"},
	{"files", "write/synced", "written, until it is on the device"},
	{"arrays", "full/zstdsmall", "all of an array of zstd:3 64³ chunks"},
	{"arrays", "full/zstdsmall-noise", "… of noise"},
	{"arrays", "random/zstdsmall", "40 boxes of it"},
	{"arrays", "write/blosczstd", "written as blosc-zstd:1"},
	{"remote", "web/full/raw", "256 MiB of raw chunks over HTTP, 20 ms away"},
	{"remote", "web/full/zstd", "… of zstd:3 chunks"},
	{"remote", "s3/full/zstd", "zstd:3 chunks from S3"},
	{"remote", "s3/write/blosc", "blosc-zstd:1 to S3"},
}

// writeReadme writes the tables of README, each between two markers, from the
// results of a folder.
func writeReadme(results, file string) error {
	found := map[string]*outcome{}
	var machine *facts
	for _, g := range pages() {
		f, all, err := g.load(results)
		if err != nil {
			return err
		}
		if g.part == "stages" {
			machine = f
		}
		for _, o := range all {
			found[g.part+" "+o.Name] = o
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name string
		make func(p printer)
	}{
		{"stages", func(p printer) { stagesInReadme(p, machine, rowsOf(readmeStages, found)) }},
		{"layers", func(p printer) { layersInReadme(p, rowsOf(readmeLayers, found)) }},
	} {
		var b bytes.Buffer
		t.make(printTo(&b))
		if b.Len() == 0 {
			b.WriteString("Not measured yet: `make bench` fills this table.\n")
		}
		if text, err = between(text, t.name, b.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, text, 0o666)
}

// between replaces what stands between the markers of a name.
func between(text []byte, name string, with []byte) ([]byte, error) {
	begin, end := []byte("<!-- bench: "+name+" -->\n"), []byte("<!-- bench: end of "+name+" -->\n")
	at := bytes.Index(text, begin)
	to := bytes.Index(text, end)
	if at < 0 || to < at {
		return nil, fmt.Errorf("no lines %q and %q", bytes.TrimSpace(begin), bytes.TrimSpace(end))
	}
	return slices.Concat(text[:at+len(begin)], with, text[to:]), nil
}

// readmeRow is a case with what was measured.
type readmeRow struct {
	label string
	*outcome
}

func rowsOf(list []readmeCase, found map[string]*outcome) []readmeRow {
	var rows []readmeRow
	for _, c := range list {
		if o := found[c.part+" "+c.name]; o != nil && o.speedOf(strata) > 0 {
			rows = append(rows, readmeRow{c.label, o})
		}
	}
	return rows
}

func stagesInReadme(p printer, f *facts, rows []readmeRow) {
	if len(rows) == 0 {
		return
	}
	var others []string
	for _, who := range []string{peers, linumpy} { // a program that was not there has no column
		if slices.ContainsFunc(rows, func(r readmeRow) bool { return r.times(who) > 0 }) {
			others = append(others, who)
		}
	}
	p("%s, %d cores; pages cached. %s Others in the same run, in multiples of strata's time:\n\n", f.CPU, f.Cores, f.About)
	p("| | strata | processor | memory | written | %s |\n|---|---:|---:|---:|---:|%s\n", strings.Join(others, " | "), strings.Repeat("---:|", len(others)))
	for _, r := range rows {
		s := r.median[strata]
		p("| %s | %s | %s | %s | %s |", r.label, number(s.seconds, "s"), number(s.cpu, "s"), sizeText(s.hwm<<10), sizeText(s.stored))
		for _, who := range others {
			if t := r.times(who); t > 0 {
				p(" %.1f ×", t)
			}
			p(" |")
		}
		p("\n")
	}
}

func layersInReadme(p printer, rows []readmeRow) {
	if len(rows) == 0 {
		return
	}
	p("| | strata | processor | the others' time in multiples of it |\n|---|---:|---:|---|\n")
	for _, r := range rows {
		var others []string
		for _, who := range r.who {
			if t := r.times(who); who != strata && t > 0 && !strings.HasPrefix(who, strata) {
				others = append(others, fmt.Sprintf("%.2f %s", t, strings.ReplaceAll(who, ", ", " ")))
			}
		}
		p("| %s | %s | %s | %s |\n", r.label, number(r.speedOf(strata), r.Unit), milli(r.median[strata].cpu), strings.Join(others, ", "))
	}
}
