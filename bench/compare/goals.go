package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// other is a page of measurements of which the page of the stages shows the targets.
type other struct {
	results, page, plot string // files
	title, text         string
}

var others = []other{
	{"files.jsonl", "benchmarks-files.md", "benchmarks-files.svg", "Files", "`pkg/gds` with host memory, beside hand-written C and KvikIO's host path."},
	{"remote.jsonl", "benchmarks-remote.md", "benchmarks-remote.svg", "Data on servers", "Arrays behind HTTP and S3 servers, beside zarr-python with fsspec and s3fs, and tensorstore."},
}

// goalTables prints the targets of the other pages that a results folder has.
func goalTables(p func(string, ...any), results string) error {
	for _, o := range others {
		in, err := os.Open(filepath.Join(results, o.results))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, all, err := readRuns(in)
		_ = in.Close() // it was only read
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name(), err)
		}
		p("## %s\n\n%s All of it, with reasons where a target is missed: [%s](%s).\n\n![plot](%s)\n\n", o.title, o.text, o.page, o.page, o.plot)
		p("| | strata | beside | ratio | target | |\n|---|---:|---|---:|---:|---|\n")
		for _, c := range all {
			for _, g := range c.goals() {
				r := c.times(g.Against)
				p("| %s, %s | %s | %s | %.2f | ≥ %g | %s |\n", groupTitle(c.Group), c.Label, number(c.speed(strata), c.Unit), g.Against, r, g.Ratio, mark(r >= g.Ratio))
			}
			if target, ok := c.verdict(); target != "" {
				p("| %s, %s | %s | | | %s | %s |\n", groupTitle(c.Group), c.Label, number(c.speed(strata), c.Unit), target, mark(ok))
			}
		}
		p("\n")
	}
	return nil
}
