// Command compare runs the benchmark: every program on the same arrays, alternately in rounds, with a separate
// process for each measurement. It also writes the report of the results.
//
//	compare arrays|stages|scaling|workflow|remote|files|tiff|czi -tools DIR -data DIR … > PART.jsonl
//	compare large -data DIR -large DIR … > large.json
//	compare chain -trace FILE -records DIR … > chain.json
//	compare report -results DIR -pages DIR -docs DIR -readme FILE
//
// lab/run.sh calls these.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: compare arrays|stages|scaling|workflow|remote|files|tiff|czi|large|chain|report [flags]")
	}
	fs := flag.NewFlagSet("compare "+args[0], flag.ExitOnError)
	switch args[0] {
	case "arrays", "stages", "scaling", "workflow", "remote", "files", "tiff", "czi":
		return measurePart(ctx, fs, args)
	case "large":
		p := plan{}
		fs.StringVar(&p.bin, "bin", "bin", "folder of the stages")
		fs.StringVar(&p.data, "data", "", "small input, as lab/run.sh makes it for the stages")
		fs.StringVar(&p.out, "out", "", "folder for what the stages write")
		large := fs.String("large", "", "large input")
		input := fs.String("input", "", "what it is, in words")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return growthOf(ctx, &p, *large, *input, os.Stdout, os.Stderr)
	case "chain":
		trace := fs.String("trace", "", "the engine's trace")
		records := fs.String("records", "", "folder of the programs' run records")
		var rec chainRun
		fs.StringVar(&rec.Input, "input", "", "what ran, in words")
		fs.StringVar(&rec.Engine, "engine", "", "the engine and its version")
		fs.StringVar(&rec.Load, "load", "", "of the machine, before the run")
		fs.IntVar(&rec.Slices, "slices", 0, "slices that ran")
		fs.IntVar(&rec.Cores, "cores", 2, "cores that ran them")
		fs.IntVar(&rec.Rounds, "rounds", 1, "rounds of which this is the median")
		fs.Int64Var(&rec.Forks, "forks", 0, "processes that were started meanwhile")
		fs.Int64Var(&rec.Faults, "faults", 0, "page faults meanwhile")
		fs.Float64Var(&rec.Wall, "wall", 0, "seconds from the engine's start to its end")
		fs.Float64Var(&rec.Shell, "shell", 0, "seconds of the same steps from a shell")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return chainRecord(ctx, *trace, *records, rec, os.Stdout)
	case "report":
		results := fs.String("results", "", "folder of what the other commands printed, and of chain and large")
		pages := fs.String("pages", "docs", "folder of the pages as they are, with what people wrote in them")
		docs := fs.String("docs", "", "folder of the pages and plots to write")
		readme := fs.String("readme", "", "README whose table to write")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return errors.Join(writePages(*results, *pages, *docs, os.Stderr), writeReadme(*results, *readme))
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// measurePart runs the cases of a part and prints their results.
func measurePart(ctx context.Context, fs *flag.FlagSet, args []string) error {
	p, r := plan{}, runner{}
	fs.StringVar(&p.tools, "tools", "", "folder of arrays, floor and, if built, zarrs-bench")
	fs.StringVar(&p.bin, "bin", "bin", "folder of aip and zarr-tool")
	fs.StringVar(&p.data, "data", "", "folder that arrays gen filled, with the mosaics beside")
	fs.StringVar(&p.out, "out", "", "folder for what the programs write")
	fs.StringVar(&p.python, "python", "", "python of the peers")
	fs.StringVar(&p.peers, "peers", "lab/peers.py", "script of the peers")
	fs.StringVar(&p.stages, "stages", "lab/stages.py", "script of the stages' peers")
	fs.StringVar(&p.linumpy, "linumpy", "", "folder of linumpy to run beside the stages")
	fs.StringVar(&p.about, "about", "", "the data, in words")
	fs.StringVar(&p.mosaics, "mosaics", "", "mosaics of scaling: names that begin with the size of a chunk, comma-separated")
	fs.StringVar(&p.kvikio, "kvikio", "", "python that has KvikIO")
	fs.StringVar(&p.noCUDA, "nocuda", "", "folder of a libcuda.so.1 without a device")
	turbo := fs.String("libjpeg", "", "libturbojpeg, which decodes JPEG in a run of its own")
	fs.StringVar(&p.fastLoader, "fastloader", "", "a program by which FastLoader streams views")
	bytes := fs.Int64("bytes", 1<<30, "of the file")
	shape := fs.String("shape", "512,1024,1024", "shape of the arrays")
	fs.IntVar(&r.least, "least", 3, "rounds of every case")
	fs.IntVar(&r.most, "most", 9, "rounds that a quick case may take")
	fs.DurationVar(&r.patience, "patience", 12e9, "time after which a case takes no more rounds")
	fs.StringVar(&r.only, "only", "", "run cases whose name contains this")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	r.w, r.log = os.Stdout, os.Stderr
	if units := map[string]func() ([]unit, error){"stages": p.stageUnits, "scaling": p.scalingUnits, "workflow": p.processUnits}[args[0]]; units != nil {
		cases, err := units()
		if err != nil {
			return err
		}
		return r.all(ctx, &p, cases)
	}
	if args[0] == "tiff" {
		p.packages = "'tifffile', 'imagecodecs', 'cucim-cu12', 'openslide-python', 'openslide-bin', 'tensorstore', 'zarr', 'numcodecs', 'ngff-zarr', 'bioio-conversion', 'numpy'"
		return r.tiff(ctx, &p, *turbo)
	}
	if args[0] == "czi" {
		p.packages = "'aicspylibczi', 'pylibCZIrw', 'czifile', 'imagecodecs', 'bioio-conversion', 'bioio-czi', 'zarr', 'numpy'"
		runs, units := p.cziCases()
		return r.toolRuns(ctx, &p, runs, units)
	}
	if args[0] == "files" {
		p.files = true
		return r.all(ctx, &p, p.fileUnits(*bytes))
	}
	for s := range strings.SplitSeq(*shape, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("-shape %s: %w", *shape, err)
		}
		p.shape = append(p.shape, n)
	}
	if args[0] == "remote" {
		s, err := p.startServers(filepath.Join(p.data, "arrays"))
		if err != nil {
			return err
		}
		return errors.Join(r.all(ctx, &p, p.remoteUnits(s)), s.stop())
	}
	cases, err := p.cases()
	if err != nil {
		return err
	}
	return r.all(ctx, &p, cases)
}
