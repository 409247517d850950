// Package benchio implements the command bench-io, which measures how fast files are read and written in every way
// that the stages use, with various block sizes and numbers of threads, with the page cache warm or cold; and by
// fio, if it is installed.
package benchio

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"strata/cmd/internal/iobench"
	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/runrecord"
	"strata/pkg/settings"
	"strata/pkg/units"
)

// Command returns the command bench-io.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "bench-io",
		Usage: "measure how fast files are read and written in every way, beside fio",
		Description: "Measures a folder by writing a file of its own there, reading it in order and in random order, and removing it,\n" +
			"even after an error. Only reads if PATH is a file or a Zarr array, or if the folder is not writable; of a folder\n" +
			"it then reads the largest files. Changes nothing that exists.\n\n" +
			"The ways are host (through the page cache), direct (past it), mmap, pool (the threads of the file layer, asked\n" +
			"for 64 MiB at a time in tasks of one block), bounce (to and from a GPU through host memory) and gds (directly\n" +
			"between file and GPU). In all ways but pool, each thread moves blocks of its own. A repetition of writing ends\n" +
			"when the data are on the storage device.\n\n" +
			"Cold drops the file from the page cache before each repetition, and reports what stayed; warm reads it first.\n" +
			"The table has medians with the slowest and the fastest repetition, operations per second, and latencies of\n" +
			"single operations. Where fio is installed, its psync and mmap engines do the same, and the table has the ratio.",
		Args: []cli.Arg{{Name: "PATH", Usage: "file or folder to measure"}},
		Flags: []cli.Flag{
			{Name: "ops", Kind: cli.Strings, Value: "LIST", Note: "write,read,randread in a folder; read,randread for a file", Usage: "operations to measure: write, randwrite, read, randread"},
			{Name: "ways", Kind: cli.Strings, Value: "LIST", Note: "all", Usage: "ways to measure: host, direct, mmap, pool, bounce, gds"},
			{Name: "cache", Kind: cli.Strings, Value: "LIST", Default: "cold,warm", Usage: "states of the page cache to measure: cold (file dropped before each repetition), warm (file cached)"},
			{Name: "block_size", Aliases: []string{"bs"}, Kind: cli.Strings, Value: "SIZES", Note: "1MiB; 4KiB in random order", Usage: "sizes of a single read or write"},
			{Name: "threads", Short: "j", Kind: cli.Ints, Value: "LIST", Note: "1, and all CPUs of the job", Check: cli.Between(1, settings.MostThreads), Usage: "numbers of concurrent threads to measure"},
			{Name: "size", Kind: cli.Size, Note: "1 GiB, at most a quarter of the free space", Check: cli.AtLeast(iobench.Least), Usage: "size of the file to write"},
			{Name: "seconds", Kind: cli.Float, Default: "1", Check: cli.Between(0.01, 3600), Usage: "time for each measurement with all its repetitions, in seconds, 0.01 to 3600"},
			{Name: "reps", Kind: cli.Int, Default: "3", Check: cli.Between(1, 100), Usage: "number of repetitions of each measurement, 1 to 100"},
			{Name: "write", Kind: cli.Bool, Default: "true", Usage: "write a file if PATH is a folder; --no-write only reads files that are there"},
			{Name: "fio", Kind: cli.Bool, Note: "on if fio is installed", Usage: "measure the same with fio"},
			{Name: "use_gpu", Kind: cli.Bool, Default: "true", Usage: "measure the ways to and from a GPU, if there is one"},
			{Name: "gpu", Value: "ID", Note: "the first", Usage: "index or UUID of the GPU to measure"},
			{Name: "results", Aliases: []string{"json"}, Value: "FILE", Usage: "also write the results to FILE as JSON, which bench-zarr compare and html read; - prints them instead of the table"},
			{Name: "html", Value: "FILE", Usage: "also write the results to FILE as a web page with plots"},
			{Name: "svg", Value: "FILE", Usage: "also write a plot of the results to FILE"},
		},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "bench-io /data --html storage.html", Usage: "writing and reading in a folder, with a page"},
			{Command: "bench-io volume.ome.zarr --block_size 64KiB,1MiB,4MiB -j 1,4,16", Usage: "reading the files of an array, with many settings"},
			{Command: "srun --gres=gpu:1 bench-io /scratch --ways host,bounce,gds --results scratch.json", Usage: "what a job on a GPU node gets"},
		},
		Run: cli.Do(run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	path := r.Arg("PATH")
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		if _, err := r.Input(path); err != nil { // no output may take its place; a folder may hold them
			return err
		}
	}
	s, err := settings.Environment()
	if err != nil {
		return cli.Usage("%w", err)
	}
	outs, err := outputs(r)
	if err != nil {
		return err
	}
	other, noFIO, err := findFIO(ctx, r)
	if err != nil {
		return err
	}
	folder := iobench.IsFolder(path)
	if r.IsSet("write") && r.Bool("write") && !folder {
		return cli.Usage("flag --write needs a folder: a file that is there, such as %s, is only read", path)
	}
	if _, err := choose(r, folder); err != nil {
		return err // before a file is made
	}
	data, err := iobench.Target(ctx, path, iobench.Options{Write: folder && r.Bool("write"), Asked: r.IsSet("write"), Size: r.Size("size")})
	if err != nil {
		return err
	}
	defer data.Remove()
	defer context.AfterFunc(ctx, data.Remove)() // at once, however long the system takes with what is under way
	if data.Why != "" {
		r.Warn("no file is made: %s", data.Why)
	}
	want, err := choose(r, data.Made)
	if err != nil {
		return err
	}
	if err := want.check(path, data); err != nil {
		return err
	}
	doc := bench.New("bench-io", cli.Version(), os.Args)
	doc.System = bench.ReadSystem(ctx, path)
	x := &runner{Run: r, data: data, settings: s, want: want, doc: doc, fio: other, noFIO: noFIO, seconds: time.Duration(r.Float("seconds") * float64(time.Second)), reps: r.Int("reps"), refused: map[string]bool{}}
	if err := x.takeGPU(); err != nil {
		return err
	}
	err = errors.Join(x.all(ctx, path), x.giveGPU())
	if err != nil {
		return err
	}
	r.Read(runrecord.Dataset{Path: address.Address(path), Bytes: data.Bytes()})
	for i, write := range []func(w io.Writer) error{doc.WriteJSON, doc.HTML, x.plot} {
		if err := outs[i].Write(write); err != nil {
			return err
		}
	}
	if r.String("results") == stdout {
		return doc.WriteJSON(r.Stdout)
	}
	return x.print(path)
}

const stdout = "-" // file name that stands for standard output

// outputs opens the files of --results, --html and --svg, nil for those not requested.
func outputs(r *cli.Run) ([]*atomic.Output, error) {
	var list []*atomic.Output
	for _, name := range []string{"results", "html", "svg"} {
		if name == "results" && r.String(name) == stdout {
			list = append(list, nil)
			continue
		}
		o, err := r.OptionalFile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// takeGPU opens the device to measure, if there is one and a way needs it.
func (x *runner) takeGPU() error {
	block, threads := int64(0), 0
	for _, w := range x.want.ways {
		if w.Device {
			for _, n := range append(x.want.blocks, x.want.small...) {
				block = max(block, n)
			}
			for _, n := range x.want.threads {
				threads = max(threads, n)
			}
		}
	}
	if block == 0 {
		return nil
	}
	err := error(&gpu.Unavailable{Reason: "--no-use_gpu is given"})
	var info gpu.Info
	if x.Bool("use_gpu") {
		if info, err = iobench.ChooseDevice(x.String("gpu"), ""); err == nil {
			x.device, err = iobench.OpenDevice(info, block, threads)
		}
	}
	if err != nil {
		x.noDevice = gpu.Reason(err)
		if x.IsSet("gpu") {
			return cli.GPUFailure(err)
		}
		return nil
	}
	x.doc.System.GPU = bench.GPUOf(info)
	return nil
}

func (x *runner) giveGPU() error {
	if x.device == nil {
		return nil
	}
	return x.device.Close()
}

// print writes the table, preceded by a description of what was measured.
func (x *runner) print(path string) error {
	what := units.FormatSize(x.data.Bytes()) + " were read"
	switch {
	case x.data.Made:
		what = "a file of " + units.FormatSize(x.data.Bytes())
	case len(x.data.Files) > 1:
		what = "the largest files, of together " + what
	}
	kind := ""
	if p := x.doc.System.Places; len(p) > 0 && p[0].Type != "" {
		kind = ", on " + p[0].Type
	}
	var b strings.Builder
	b.WriteString(bench.Plain(path + ": " + what + kind))
	b.WriteByte('\n')
	if x.device == nil && x.noDevice != "" {
		b.WriteString(bench.Plain("no GPU: " + x.noDevice))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	if _, err := x.Stdout.Write([]byte(b.String())); err != nil {
		return err
	}
	return x.doc.Table(x.Stdout)
}
