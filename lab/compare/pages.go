package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/tests/regions"
)

// group is a table of a page, in the region PART/GROUP.
type group struct{ name, title string }

// part holds what one run measures. People write the page; the part fills the regions PART/targets, PART/summary,
// PART/about, PART/machine and one for each group, and draws a plot.
type part struct {
	name    string // of run.sh; its results are in NAME.jsonl
	page    string // the document
	picture string // file of the plot
	plot    string // its title
	plotted []string
	groups  []group
	brief   bool                                                            // only tables of commands have a column of memory; elsewhere it is that of the data
	hidden  func(o *outcome) bool                                           // rows that the page lacks and the sheet has; nil: none
	tables  func(f *facts, all []*outcome) map[string]string                // regions in place of those of the groups; nil: none
	drawn   func(w io.Writer, all []*outcome)                               // nil: bars
	more    func(all []*outcome, results string) (map[string]string, error) // regions besides
}

// sheet is the file with all rows of all pages, machines that of what they were measured on and with.
const (
	sheet    = "benchmarks.csv"
	machines = "benchmarks-machines.csv"
)

func parts() []*part {
	return []*part{stagesPart(), workflowPart(), scalingPart(), arraysPart(), remotePart(), filesPart(), tiffPart(), cziPart()}
}

// noise reports whether a case is one of data without structure.
func noise(o *outcome) bool { return strings.HasSuffix(o.Name, "-noise") }

func arraysPart() *part {
	return &part{
		name: "arrays", page: "benchmarks-arrays.md", picture: "benchmarks-arrays.svg", brief: true,
		hidden: func(o *outcome) bool { // what other rows or pages show, too, or only writers of libraries ask
			return noise(o) || o.Group == "tiles" || o.Group == "ome" || slices.Contains([]string{"version", "random/shard", "slab/shard", "stream/blosczstdbit", "full/blosczstdbit",
				"stream/zstd", "full/zstd", "write/zstd", "stream/gzip"}, o.Name)
		},
		plot: "Speed of strata and of other programs on the same arrays", plotted: []string{"stream", "full", "write"},
		groups: []group{{"stream", "Streaming reads"}, {"full", "Full reads into fresh memory"}, {"random", "Random boxes and planes"}, {"write", "Writes"},
			{"start", "Opening and starting"}, {"tiles", "Tile loader"}, {"ome", "OME-Zarr writer"}},
	}
}

func remotePart() *part {
	return &part{
		name: "remote", page: "benchmarks-arrays.md", picture: "benchmarks-remote.svg", brief: true,
		hidden: func(o *outcome) bool {
			return noise(o) || strings.HasSuffix(o.Name, "/raw") && o.Name != "s3/write/raw" || slices.Contains([]string{"s3/write/zstd", "s3/write/shard", "web/slab/shard"}, o.Name)
		},
		plot: "Speed of strata and of other programs on arrays on servers", plotted: []string{"web", "s3", "s3far"},
		groups: []group{{"web", "HTTP, 20 ms"}, {"s3", "S3, no latency"}, {"s3far", "S3, 20 ms"}},
	}
}

func filesPart() *part {
	return &part{
		name: "files", page: "benchmarks-arrays.md", picture: "benchmarks-files.svg", brief: true,
		hidden: func(o *outcome) bool { return strings.HasSuffix(o.Name, "/unaligned") || o.Name == "read/tasks" },
		plot:   "Speed of the file layer, of C and of KvikIO", plotted: []string{"fileread", "filewrite", "filecalls"},
		groups: []group{{"fileread", "Reads"}, {"filewrite", "Writes"}, {"filecalls", "Small reads"}},
	}
}

// crossed formats a shape.
func crossed(shape []int) string { return strings.ReplaceAll(join(shape), ",", "×") }

// writePages writes the pages, plots and sheet of the results to a folder. Another one, or the same, has the pages as
// they are: what people wrote in them is kept. The log names missed targets that no note explains.
func writePages(results, pagesDir, docs string, log io.Writer) error {
	texts := map[string]map[string]string{} // by page
	var rows, conditions [][]string
	for _, g := range parts() {
		f, all, err := g.load(results)
		if err != nil {
			return err
		}
		filled, err := g.regions(f, all, results)
		if err != nil {
			return err
		}
		if texts[g.page] == nil {
			texts[g.page] = map[string]string{}
		}
		page, err := os.ReadFile(filepath.Join(pagesDir, g.page))
		if err != nil {
			return err
		}
		maps.DeleteFunc(filled, func(name, text string) bool { // pages may do without
			_, err := regions.Text(string(page), name)
			return err != nil && (text == "" || name == g.name+"/about" || name == g.name+"/summary")
		})
		maps.Copy(texts[g.page], filled)
		rows = append(rows, g.rows(all)...)
		if f == nil {
			continue
		}
		conditions = append(conditions, f.row(g.name))
		var b bytes.Buffer
		if g.drawn != nil {
			g.drawn(&b, all)
		} else {
			g.draw(&b, all)
		}
		if err := os.WriteFile(filepath.Join(docs, g.picture), b.Bytes(), 0o666); err != nil {
			return err
		}
		for _, text := range g.unexplained(string(page), all) {
			fmt.Fprintf(log, "%s: %s\n", g.page, text)
		}
	}
	for page, filled := range texts {
		if err := regions.Write(filepath.Join(pagesDir, page), filepath.Join(docs, page), filled); err != nil {
			return err
		}
	}
	if err := writeSheet(filepath.Join(docs, machines), machinesHead, conditions); err != nil {
		return err
	}
	return writeSheet(filepath.Join(docs, sheet), sheetHead, rows)
}

// load reads the results of a part; without a file there are none.
func (g *part) load(results string) (*facts, []*outcome, error) {
	in, err := os.Open(filepath.Join(results, g.name+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	f, all, err := readRuns(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", in.Name(), err)
	}
	return f, all, nil
}

// regions returns what the program writes of a page, by the name of the region.
func (g *part) regions(f *facts, all []*outcome, results string) (map[string]string, error) {
	texts := map[string]string{}
	text := func(name string, write func(p printer)) {
		var b strings.Builder
		if f != nil {
			write(printTo(&b))
		}
		texts[g.name+"/"+name] = b.String()
	}
	if g.tables != nil {
		maps.Copy(texts, g.tables(f, all))
	} else {
		for _, t := range g.groups {
			text(t.name, func(p printer) { g.rowsOf(p, t, all) })
		}
	}
	text("about", func(p printer) {
		if p("%s", f.About); f.About == "" {
			p("%s", crossed(f.Shape))
		}
	})
	text("machine", func(p printer) { machine(p, f) })
	text("targets", func(p printer) { g.targets(p, all) })
	text("summary", func(p printer) { p("%s", g.summary(all)) })
	if f == nil {
		texts[g.name+"/targets"] = fmt.Sprintf("Not measured yet: `make bench PARTS=%s` fills the tables.", g.name)
	}
	if g.more != nil {
		others, err := g.more(all, results)
		if err != nil {
			return nil, err
		}
		maps.Copy(texts, others)
	}
	return texts, nil
}
