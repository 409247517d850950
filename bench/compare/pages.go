package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// group is a table of a page.
type group struct{ name, title, text string }

// page is one of the documents that the benchmark writes.
type page struct {
	part     string // of run.sh; its results are in PART.jsonl, its notes in notes-PART.md
	file     string // of the page and, with another ending, of its plot
	title    string
	plot     string // its title
	plotted  []string
	groups   []group
	intro    func(f *facts) string // what was measured and how
	more     func(p printer, all []*outcome, results string) error
	commands string
	programs string
}

// method is what holds for every page.
const method = "Two threads each, every measurement in a process of its own. The programs alternate, in rounds that each begin with another one; numbers are medians over the rounds, " +
	"of one run on one machine. **Ratios count, not times**: another machine has other times. Processor time is that of all threads of the process; resident memory is its peak. "

// kindsText says what the kinds of data are.
const kindsText = "**Structured** data are 12-bit values with a smooth mean and Gaussian noise, round(1500 + 500 sin(2πy/700) sin(2πx/900) + 300 N(0, 1)) / 4095 as float32; " +
	"**noise** is uniform over 12 bits, with nothing that a codec could win from structure. Raw chunks are the same to every program whatever is in them, and measured once."

// firstText explains the columns of readers.
const firstText = "*First* is the first repetition of a fresh process, with nothing read before it; the wall time is the median of those that follow in it, with allocators and thread pools warm. "

func pages() []*page {
	return []*page{stagesPage(), arraysPage(), filesPage(), remotePage(), tiffPage(), cziPage()}
}

func arraysPage() *page {
	return &page{
		part: "arrays", file: "benchmarks-arrays.md", title: "Benchmarks of arrays",
		plot: "Speed of strata and of other programs on the same arrays", plotted: []string{"stream", "full", "write"},
		groups: []group{
			{"stream", "Streaming reads", "Region by region into reused buffers, as the stages read, against C: pread with the same pieces, libzstd, c-blosc and libdeflate on the same files."},
			{"full", "Full reads into fresh memory", "The whole array into memory that the program allocates, as an analysis script does. " + firstText},
			{"random", "Random boxes and planes", "Boxes at any place, into fresh memory. Times are those of opening the array and of all boxes or planes together. " + firstText},
			{"write", "Writes", "The whole array from memory, once in a process."},
			{"start", "Opening and starting", ""},
			{"tiles", "Tile loader", "Halo views of raw 1024² uint16 tiles against loading the tiles alone, in bytes per second of each."},
			{"ome", "OME-Zarr writer", "An image with five pyramid levels, tile by tile, against its level 0 alone and against pkg/zarr writing the same array."},
		},
		intro: func(f *facts) string {
			return fmt.Sprintf("Strata beside other programs that read and write Zarr, and beside what C makes of the same files, pages cached. %s"+
				"Before a program reads or writes a whole array, memory is taken and given back, so that nobody pays for the search for huge pages or, in a virtual machine, for memory that comes from the host. "+
				"Each program returns what its library returns by itself: numpy arrays, zarrs' own bytes. Sampled sums over what was read are compared between all programs, and what others write is read by us.\n\n"+
				"Arrays have %s voxels. %s", method, crossed(f.Shape), kindsText)
		},
		commands: "PARTS=arrays make bench               # this page\nBENCH_ONLY=full/zstd PARTS=arrays make bench   # some cases, no report\n" +
			"BENCH_RUST=0 PARTS=arrays make bench  # without the zarrs crate, which takes minutes to compile\n" +
			"BENCH_DIR=… BENCH_OUT=… BENCH_SHAPE=Z,Y,X PARTS=arrays make bench   # where the data lies, where programs write, its shape\n",
		programs: "bench/arrays (ours), bench/floor.c (C), bench/peers.py (Python), bench/zarrs (Rust)",
	}
}

func remotePage() *page {
	return &page{
		part: "remote", file: "benchmarks-remote.md", title: "Benchmarks of data on servers",
		plot: "Speed of strata and of other programs on arrays on servers", plotted: []string{"web", "s3", "s3far"},
		groups: []group{
			{"web", "HTTP, 20 ms", "A web server that waits 20 ms before each answer. Everything into fresh memory; boxes and planes one after the other, each of which waits for at least one answer: they have no target. " + firstText},
			{"s3", "S3, no latency", "An S3 server in memory that checks signatures and shares the processors with its client: its work is part of the times. Writes are of everything, from memory, once in a process; blosc-zstd:1 is what our stages write. " + firstText},
			{"s3far", "S3, 20 ms", "The same with 20 ms before each answer."},
		},
		intro: func(f *facts) string {
			return fmt.Sprintf("Strata beside other programs that read and write Zarr over HTTP and S3; the servers run on the same two processors, over loopback. %s"+
				"Each program is used as its documentation shows, with as many requests at a time as it makes by itself: strata 64, zarr-python 10 (with fsspec and s3fs), tensorstore 32. "+
				"Sampled sums over what was read are compared between all programs, and what others write is read by us.\n\nArrays have %s voxels. %s", method, crossed(f.Shape), kindsText)
		},
		commands: "PARTS=remote make bench                # this page\nBENCH_ONLY=web/full PARTS=remote make bench   # some cases, no report\n",
		programs: "bench/arrays (ours), bench/peers.py (Python); the web server is bench/remote, the S3 server tests/s3emu/server (gofakes3)",
	}
}

func filesPage() *page {
	return &page{
		part: "files", file: "benchmarks-files.md", title: "Benchmarks of the file layer",
		plot: "Speed of the file layer, of C and of KvikIO", plotted: []string{"fileread", "filewrite", "filecalls"},
		groups: []group{
			{"fileread", "Reads", "One file into memory that is there, 4 MiB at a time unless another size is named. " + firstText},
			{"filewrite", "Writes", "The same memory into a file that is new. " + firstText},
			{"filecalls", "Small reads", "Anywhere in a file that is in the page cache, by one caller: 100 ms are 1 µs for each. The target is 2 µs, with the system call and the copy; nothing is allocated, which a test holds."},
		},
		intro: func(*facts) string {
			return "`pkg/gds` with host memory beside what C makes of the same file and, where Python has it, beside the host path of KvikIO. " + method +
				"Sampled sums over what was read, or over what is in the file that was written, are compared between all programs. " +
				"Memory lies on huge pages for all. That of C and of Go begins with a page; KvikIO's is numpy's, which begins 16 bytes into one; where a row says so, ours does as well. " +
				"\"Direct\" is past the page cache (`O_DIRECT`), \"mapped\" by `mmap`; without a word each does what it does without settings, but for cold reads by strata, which have direct reads switched on (`STRATA_DIRECT_IO=both`): what the page cache holds comes from there all the same.\n\n" +
				"The targets: 1.3 times KvikIO's host path for reads and 1.5 times for writes, 0.95 of the best of C."
		},
		commands: "PARTS=files make bench                # this page, with KvikIO where Python has it\nKVIKIO=1 PARTS=files make bench       # with KvikIO from PyPI (its packages take 3 GB)\n" +
			"KVIKIO=PYTHON PARTS=files make bench  # with that of a Python\nBENCH_DIR=… PARTS=files make bench    # where the file lies\n",
		programs: "bench/gds (ours), bench/gds-floor.c (C), bench/gds-kvikio.py. KvikIO opens the driver's library also for host memory: where there is none it gets one without a device (bench/gds-cuda.c)",
	}
}

// crossed prints a shape.
func crossed(shape []int) string { return strings.ReplaceAll(join(shape), ",", "×") }

// writePages makes every page and plot of the results in a folder, with the notes of
// another.
func writePages(results, notes, docs string) error {
	for _, g := range pages() {
		if err := g.write(results, notes, docs); err != nil {
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

func (g *page) write(results, notesDir, docs string) error {
	f, all, err := g.load(results)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(notesDir, "notes-"+g.part+".md"))
	if err != nil {
		return err
	}
	n := parseNotes(string(text))
	svg := strings.TrimSuffix(g.file, ".md") + ".svg"
	var b bytes.Buffer
	p := printTo(&b)
	p("<!-- Written by `make bench PARTS=%s` (bench/compare) from bench/results and bench/notes-%[1]s.md: edit those. -->\n# %s\n\n", g.part, g.title)
	if f == nil {
		p("Not measured yet: `make bench PARTS=%s` fills this page.\n\n", g.part)
	} else {
		p("%s\n\n![plot](%s)\n\n", g.intro(f), svg)
		g.shortfalls(p, all, n)
		for _, t := range g.groups {
			table(p, t, all)
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
	p("## Commands\n\n```sh\n%sBENCH_SMOKE=1 make bench              # all parts small, one round, no report: does it all still run?\n```\n\n", g.commands)
	p("The programs that measure: %s; bench/compare lets them alternate and wrote this page. [bench/README.md](../bench/README.md) has the rest.\n", g.programs)
	if n.sections != "" {
		p("\n%s", strings.TrimSpace(n.sections)+"\n")
	}
	if err := os.WriteFile(filepath.Join(docs, g.file), b.Bytes(), 0o666); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	b.Reset()
	g.draw(&b, all)
	return os.WriteFile(filepath.Join(docs, svg), b.Bytes(), 0o666)
}
