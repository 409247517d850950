package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"strata/tests/regions"
)

// group is a table of a page.
type group struct{ name, title, text string }

// page is one of the documents that the benchmark writes.
type page struct {
	part     string // of run.sh; its results are in PART.jsonl
	file     string // of the page and, with another ending, of its plot
	title    string
	plot     string // its title
	plotted  []string
	groups   []group
	intro    func(f *facts) string // what was measured and how
	more     func(p printer, all []*outcome, results string) error
	table    func(p printer, t group, f *facts, all []*outcome) // nil: table
	drawn    func(w io.Writer, all []*outcome)                  // nil: bars
	commands string
	programs string
}

// method is the text common to all pages.
const method = "Each program uses two threads, and each measurement is a new process. " + rounded

// rounded is the part of it that holds for any number of threads.
const rounded = "The programs alternate in rounds, each of which starts with a different one; " +
	"figures are medians over the rounds of one run on one machine. **Compare ratios, not times**, which depend on the machine. Processor time covers all threads; resident memory is the peak. "

// kindsText explains the kinds of data.
const kindsText = "**Structured** data are 12-bit values with a smooth mean and Gaussian noise, round(1500 + 500 sin(2πy/700) sin(2πx/900) + 300 N(0, 1)) / 4095 as float32. " +
	"**Noise** is uniform over 12 bits and has no structure for a codec to use. Raw chunks are measured once, because their content makes no difference."

// kindsElsewhere tells readers of other pages where the kinds of data are explained.
const kindsElsewhere = "[Arrays](benchmarks-arrays.md) defines structured data and noise."

// firstText explains the columns of readers.
const firstText = "*First* is the first repetition in a new process; the wall time is the median of the later ones, with allocators and thread pools warm. "

func pages() []*page {
	return []*page{stagesPage(), scalingPage(), workflowPage(), arraysPage(), filesPage(), remotePage(), tiffPage(), cziPage()}
}

func arraysPage() *page {
	return &page{
		part: "arrays", file: "benchmarks-arrays.md", title: "Benchmarks of arrays",
		plot: "Speed of strata and of other programs on the same arrays", plotted: []string{"stream", "full", "write"},
		groups: []group{
			{"stream", "Streaming reads", "Region by region into reused buffers, as the stages read. C uses pread with the same pieces, libzstd, c-blosc and libdeflate on the same files."},
			{"full", "Full reads into fresh memory", "The whole array into newly allocated memory, as in an analysis script."},
			{"random", "Random boxes and planes", "Boxes at random places, into fresh memory. Times cover opening the array and reading all boxes or planes."},
			{"write", "Writes", "The whole array from memory, once per process."},
			{"start", "Opening and starting", ""},
			{"tiles", "Tile loader", "Halo views of raw 1024² uint16 tiles, compared with loading the tiles alone; speeds count the bytes of each."},
			{"ome", "OME-Zarr writer", "Writing an image with five pyramid levels tile by tile, compared with level 0 alone and with pkg/zarr writing the same array."},
		},
		intro: func(f *facts) string {
			return fmt.Sprintf("This page compares strata's speed at reading and writing Zarr arrays with that of other programs, and of C on the same files. Inputs are in the page cache. %s"+
				"Before whole arrays are read or written, memory is allocated and freed, so that no program pays for finding huge pages or for memory that a virtual machine's host supplies. "+
				"Each program returns its library's own type: numpy arrays, or bytes for zarrs. Sampled sums of the data read are compared between all programs, and strata reads back what the others write.\n\n"+
				"Arrays have %s voxels. %s", method+firstText, crossed(f.Shape), kindsText)
		},
		commands: "PARTS=arrays make bench               # this page\nBENCH_ONLY=full/zstd PARTS=arrays make bench   # some cases, no report\n" +
			"BENCH_RUST=0 PARTS=arrays make bench  # without the zarrs crate, which takes minutes to compile\n" +
			"BENCH_DIR=… BENCH_OUT=… BENCH_SHAPE=Z,Y,X PARTS=arrays make bench   # input folder, output folder, array shape\n",
		programs: "lab/arrays (strata), lab/floor.c (C), lab/peers.py (Python) and lab/zarrs (Rust)",
	}
}

func remotePage() *page {
	return &page{
		part: "remote", file: "benchmarks-remote.md", title: "Benchmarks of data on servers",
		plot: "Speed of strata and of other programs on arrays on servers", plotted: []string{"web", "s3", "s3far"},
		groups: []group{
			{"web", "HTTP, 20 ms", "A web server that waits 20 ms before each response. All reads go into fresh memory. Boxes and planes are read one after another, each waiting for at least one response; they have no target."},
			{"s3", "S3, no latency", "An in-memory S3 server that checks signatures. It shares the processors with its client, so times include its work. Writes store the whole array from memory, once per process; blosc-zstd:1 is what the stages write."},
			{"s3far", "S3, 20 ms", "The same with 20 ms before each response."},
		},
		intro: func(f *facts) string {
			return fmt.Sprintf("This page compares strata's speed at reading and writing Zarr over HTTP and S3 with that of other programs. The servers run on the same two processors, over loopback. %s"+
				"Each program is used as documented, with its default number of concurrent requests: strata 64, zarr-python 10 (with fsspec and s3fs), tensorstore 32. "+
				"Sampled sums of the data read are compared between all programs, and strata reads back what the others write.\n\nArrays have %s voxels. %s", method+firstText, crossed(f.Shape), kindsElsewhere)
		},
		commands: "PARTS=remote make bench                # this page\nBENCH_ONLY=web/full PARTS=remote make bench   # some cases, no report\n",
		programs: "lab/arrays (strata) and lab/peers.py (Python), with the web server lab/remote and the S3 server tests/s3emu/server (gofakes3)",
	}
}

func filesPage() *page {
	return &page{
		part: "files", file: "benchmarks-files.md", title: "Benchmarks of the file layer",
		plot: "Speed of the file layer, of C and of KvikIO", plotted: []string{"fileread", "filewrite", "filecalls"},
		groups: []group{
			{"fileread", "Reads", "One file into existing memory, 4 MiB at a time unless the row names another size."},
			{"filewrite", "Writes", "The same memory into a new file."},
			{"filecalls", "Small reads", "Random places in a cached file, by one caller: 100 ms mean 1 µs per read. The target is 2 µs, including the system call and the copy. Nothing is allocated, which a test checks."},
		},
		intro: func(*facts) string {
			return "This page compares the speed of `pkg/filelayer` with host memory with that of C on the same file and, if installed, of KvikIO's host path. " + method + firstText +
				"Sampled sums of the data read, or of the file written, are compared between all programs. " +
				"All memory lies on huge pages. For C and Go it begins at a page; for KvikIO it is numpy's, which begins 16 bytes into one; rows that say so use the same offset for strata. " +
				"\"Direct\" bypasses the page cache (`O_DIRECT`), \"mapped\" uses `mmap`. Other rows use the defaults, except that strata's cold reads enable direct reads (`STRATA_DIRECT_IO=both`), which still take cached data from the page cache.\n\n" +
				"Targets: 1.3 times KvikIO's host path for reads, 1.5 times for writes, and 0.95 of the best of C."
		},
		commands: "PARTS=files make bench                # this page, with KvikIO if installed\nKVIKIO=1 PARTS=files make bench       # with KvikIO from PyPI (its packages take 3 GB)\n" +
			"KVIKIO=PYTHON PARTS=files make bench  # with the KvikIO of another Python\nBENCH_DIR=… PARTS=files make bench    # folder of the file\n",
		programs: "lab/gds (strata), lab/gds-floor.c (C) and lab/gds-kvikio.py. KvikIO opens the driver's library even for host memory; if there is none, it gets a substitute without devices (lab/gds-cuda.c)",
	}
}

// crossed formats a shape.
func crossed(shape []int) string { return strings.ReplaceAll(join(shape), ",", "×") }

// writePages writes every page and plot of the results to a folder. Another one, or the same, has the pages as they
// are: what people wrote in them is kept.
func writePages(results, pagesDir, docs string) error {
	for _, g := range pages() {
		if err := g.write(results, pagesDir, docs); err != nil {
			return err
		}
	}
	return nil
}

// load reads the results of a page; without a file there are none.
func (g *page) load(results string) (*facts, []*outcome, error) {
	in, err := os.Open(filepath.Join(results, g.part+".jsonl"))
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

func (g *page) write(results, pagesDir, docs string) error {
	f, all, err := g.load(results)
	if err != nil {
		return err
	}
	form := filepath.Join(pagesDir, g.file)
	old, err := os.ReadFile(form)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := g.report(printTo(&b), f, all, results, readNotes(string(old))); err != nil {
		return err
	}
	if err := regions.Write(form, filepath.Join(docs, g.file), map[string]string{"report": b.String()}); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	b.Reset()
	if g.drawn != nil {
		g.drawn(&b, all)
	} else {
		g.draw(&b, all)
	}
	return os.WriteFile(filepath.Join(docs, g.picture()), b.Bytes(), 0o666)
}

// picture names the file of the plot.
func (g *page) picture() string { return strings.TrimSuffix(g.file, ".md") + ".svg" }

// report prints what the program writes of a page.
func (g *page) report(p printer, f *facts, all []*outcome, results string, n notes) error {
	p("# %s\n\n", g.title)
	if f == nil {
		p("Not measured yet: `make bench PARTS=%s` fills this page.\n\n%s", g.part, n.rest())
	} else {
		p("%s\n\n![plot](%s)\n\n", g.intro(f), g.picture())
		g.shortfalls(p, all, n)
		for _, t := range g.groups {
			if g.table != nil {
				g.table(p, t, f, all)
			} else {
				table(p, t, all)
			}
		}
	}
	if g.more != nil {
		if err := g.more(p, all, results); err != nil {
			return err
		}
	}
	if f != nil {
		machine(p, f)
	}
	p("## Commands\n\n```sh\n%sBENCH_SMOKE=1 make bench              # all parts small, one round, no report: a quick check\n```\n\n", g.commands)
	p("Measured by %s. lab/compare alternates the programs and writes this page; see [lab/README.md](../lab/README.md).\n", g.programs)
	return nil
}
