package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"strata/tests/regions"
)

// readmeCase is a row of the table in README: a case of the stages' page.
type readmeCase struct{ name, label string }

// readmeStages lists the rows of the table in README, with the command of each behind its inputs and output.
var readmeStages = []readmeCase{
	{"aip/tiles", "`aip`"}, {"resample/tiles", "`resample --resolution 10`"}, {"focal/tiles", "`focal`"},
	{"stitch/tiles", "`stitch`"}, {"crop/tiles", "`crop`"}, {"stack/slices", "`stack " + strings.Join(asReference, " ") + "`"},
	{"aip/raw", "`aip`, uncompressed"}, {"resample/raw", "`resample --resolution 10`, uncompressed"},
}

// writeReadme writes the table of README and the costs below it, each between its markers, from the results of a
// folder.
func writeReadme(results, file string) error {
	machine, all, err := stagesPart().load(results)
	if err != nil {
		return err
	}
	found := map[string]*outcome{}
	for _, o := range all {
		found[o.Name] = o
	}
	var stages, felt bytes.Buffer
	stagesInReadme(printTo(&stages), machine, rowsOf(readmeStages, found))
	if stages.Len() == 0 {
		stages.WriteString("Not measured yet: `make bench` fills this table.\n")
	}
	if err := feltInReadme(printTo(&felt), results); err != nil {
		return err
	}
	return regions.Write(file, file, map[string]string{"stages": stages.String(), "felt": felt.String()})
}

// feltInReadme prints the two costs that a user feels most: how soon there is a first result, and how long the whole
// chain takes.
func feltInReadme(p printer, results string) error {
	_, arrays, err := arraysPart().load(results)
	if err != nil {
		return err
	}
	for _, o := range arrays {
		if s, times := o.median[strata], o.times("zarr-python"); o.Name == "region" && s.seconds > 0 && times > 0 {
			p("- **First result**: `zarr-tool cat` writes a region of 64³ voxels of a compressed array to a file in %.0f ms, from the start of the process to its end; Python with zarr-python takes %.0f × as long (`PARTS=arrays make bench`).\n",
				1000*s.seconds, times)
		}
	}
	for _, run := range []struct{ name, label string }{{"chain", "Whole chain"}, {"many", "Many slices"}} {
		c, err := readJSON[chainRun](filepath.Join(results, run.name+".json"))
		if err != nil {
			return err
		}
		if c != nil {
			p("- **%s**: from %d slices, %s, to a volume in %s on %d cores, from a shell; in %s with Nextflow, one core per task (`PARTS=%s make bench`).\n",
				run.label, c.Slices, c.Input, number(c.Shell, "s"), c.Cores, number(c.Wall, "s"), run.name)
		}
	}
	return nil
}

// readmeRow is a case with its results.
type readmeRow struct {
	label string
	*outcome
}

func rowsOf(list []readmeCase, found map[string]*outcome) []readmeRow {
	var rows []readmeRow
	for _, c := range list {
		if o := found[c.name]; o != nil && o.speedOf(strata) > 0 {
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
	p("%s, %d cores; pages cached. %s Times of others, measured in the same run, are multiples of strata's; *%s* calls the same operators from numpy, scipy, scikit-image and BaSiCPy. Each row is the command `NAME IN OUT` with the flags that it shows and `--threads 2` (`PARTS=stages make bench`):\n\n", f.CPU, f.Cores, f.About, peers)
	p("| | strata | CPU time | peak memory | written | %s |\n|---|---:|---:|---:|---:|%s\n", strings.Join(others, " | "), strings.Repeat("---:|", len(others)))
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
