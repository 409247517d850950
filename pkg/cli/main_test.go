package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
	"strata/pkg/work"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"demo": func() { cli.Main(demo()) },
		"limited-demo": func() {
			var limit syscall.Rlimit
			err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit)
			if limit.Cur = 4 << 30; err == nil {
				err = syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
			}
			if err != nil {
				panic(err)
			}
			cli.Main(demo())
		},
		// links to demo, by which it is started
		"old-demo":    func() { cli.Main(demo()) },
		"the-demo":    func() { cli.Main(demo()) },
		"old_demo.py": func() { cli.Main(demo()) },
		"demolition":  func() { cli.Main(demo()) },
		"many":        func() { cli.Main(many()) },
		"say_it.py":   func() { cli.Main(many()) },
		"both":        func() { cli.Main(both()) },
	})
}

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

func TestCommands(t *testing.T) {
	clitest.Check(t, demo())
	clitest.Check(t, many())
	clitest.Check(t, both())
}

// demo is a stage in small: it copies a file into a folder, in two halves.
func demo() *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "copy a file into a folder that looks like a Zarr",
		Description: "A stage in small, for tests.\n\nIt has one flag of every kind.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "file to copy"},
			{Name: "OUT", Usage: "folder to write"},
		},
		Shared: cli.Stage,
		Flags: []cli.Flag{
			{Name: "sigma_xy", Short: "s", Kind: cli.Float, Default: "3.0", Check: cli.Above(-100), Usage: "width of the filter"},
			{Name: "pyramid_resolutions", Kind: cli.Floats, Default: "10,25", Usage: "target resolutions"},
			{Name: "names", Kind: cli.Strings, Usage: "some names"},
			{Name: "wait", Kind: cli.Duration, Default: "1s", Usage: "a time"},
			{Name: "make_isotropic", Kind: cli.Bool, Default: "true", Usage: "scale each axis on its own"},
			{Name: "no_xy_shift", Kind: cli.Bool, Usage: "slices share a frame"},
			{Name: "method", Default: "mean", Choices: []string{"mean", "median"}, Usage: "how values are joined"},
			{Name: "png", Aliases: []string{"picture"}, Value: "FILE", Usage: "also write this file"},
			{Name: "task", Hidden: true, Default: "copy", Usage: "name of the task in the progress"},
			{Name: "pause", Kind: cli.Bool, Usage: "say half after half of the work, and wait for a signal"},
			{Name: "deaf", Kind: cli.Bool, Usage: "with --pause: never notice signals"},
			{Name: "read_only", Kind: cli.Bool, Hidden: true, Usage: "write nothing, and conclude something"},
			{Name: "show", Kind: cli.Bool, Usage: "print the values of all flags"},
			{Name: "fail", Choices: []string{"plain", "input", "lines", "space", "panic", "worker", "gpu", "folder", "status", "replaced", "memory", "goroutine"}, Usage: "fail in a certain way"},
			{Name: "non_finite", Kind: cli.Int, Hidden: true, Usage: "number of NaN voxels found"},
			{Name: "warn", Kind: cli.Strings, Usage: "warn of something"},
			{Name: "secret", Kind: cli.Bool, Hidden: true, Usage: "not shown"},
		},
		Examples: []cli.Example{{Command: "demo in.txt out.zarr --png out.png", Usage: "with a picture"}, {Command: "demo in.txt out.zarr -f"}},
		Aliases: []cli.Alias{
			{
				Name: "old-demo", Defaults: cli.Defaults{"overwrite": "true", "sigma_xy": "4", "codec": "raw"},
				Flags:   map[string]string{"breadth_xy": "sigma_xy", "force": "overwrite"},
				Ignored: []cli.Flag{{Name: "warp", Kind: cli.Int, Ignored: "there is no warp in demo"}},
			},
			{Name: "the-demo"},
		},
		Run: cli.Do(runDemo),
	}
}

func runDemo(ctx context.Context, r *cli.Run) error {
	if r.Bool("show") {
		return show(r)
	}
	in, err := r.Input(r.Arg("IN"))
	if err != nil {
		return err
	}
	if r.Bool("read_only") {
		return readOnly(ctx, r)
	}
	out, err := r.OutputFolder(r.Arg("OUT"), replace.ByRule(ctx, func(key string, folder bool) replace.Kind {
		if folder || !slices.Contains([]string{"first", "second", "zarr.json"}, key) {
			return replace.Foreign
		}
		return replace.File
	}))
	if err != nil {
		return err
	}
	if png := r.String("png"); png != "" {
		file, err := r.OutputFile(png)
		if err != nil {
			return err
		}
		f, err := file.Create()
		if err != nil {
			return err
		}
		_, err = f.WriteString("\x89PNG\r\n\x1a\npicture of " + filepath.Base(in) + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	for _, w := range r.Strings("warn") {
		r.Warn("%s", w)
		r.Log.Warn().Msg(w)
	}
	data, err := os.ReadFile(in)
	if err != nil {
		return cli.BadInput(err)
	}
	task := r.Progress(r.String("task"), int64(len(data)))
	half := len(data) / 2
	if err := os.WriteFile(filepath.Join(out.Work(), "first"), data[:half], 0o666); err != nil {
		return err
	}
	task.Add(int64(half))
	r.Meter.AddRead(int64(len(data)))
	r.Meter.AddNonFinite(int64(r.Int("non_finite")))
	if r.Bool("pause") {
		r.Log.Info().Msg("half")
		if r.Bool("deaf") {
			select {}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := fail(r.String("fail"), in); err != nil {
		return fmt.Errorf("copy %s: %w", in, err)
	}
	if err := os.WriteFile(filepath.Join(out.Work(), "second"), data[half:], 0o666); err != nil {
		return err
	}
	task.Add(int64(len(data) - half))
	r.Meter.AddWritten(int64(len(data)))
	task.Done()
	r.Read(runrecord.Dataset{Path: address.Address(in), Shape: []int{len(data)}, DType: "uint8"})
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: []int{2, half}, DType: "uint8", Chunks: []int{1, half}, Codecs: []string{"blosc"}, Format: 3, VoxelSize: []float64{3.5, 2}, Levels: 2})
	if r.Bool("make_isotropic") {
		r.Conclude("copied")
	}
	return os.WriteFile(filepath.Join(out.Work(), "zarr.json"), []byte("{}\n"), 0o666)
}

// readOnly is a command without outputs.
func readOnly(ctx context.Context, r *cli.Run) error {
	if r.Bool("pause") {
		r.Log.Info().Msg("half")
		<-ctx.Done()
		return context.Cause(ctx)
	}
	r.Conclude("valid: %s", r.Arg("IN"))
	return nil
}

func fail(how, in string) error {
	switch how {
	case "plain":
		return errors.New("it does not work")
	case "input":
		return cli.BadInputf("chunk 0/0 is broken")
	case "replaced": // by the run that was replacing it
		return os.Remove(strings.TrimSuffix(filepath.Dir(in), ".old"))
	case "status":
		return fmt.Errorf("run: %w", cli.ExitStatus(99))
	case "lines":
		return errors.Join(errors.New("first"), errors.New("second"))
	case "space":
		return cli.BadInput(&fs.PathError{Op: "write", Path: "chunk", Err: syscall.ENOSPC})
	case "gpu":
		return cli.GPUFailure(errors.New("out of device memory"))
	case "worker":
		// what reading an input returns: its reader panicked in a goroutine of its own
		return cli.BadInput(work.Each(context.Background(), 2, 2, func(_, i int) error {
			var none []int
			_ = none[i]
			return nil
		}))
	case "memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<30))
			_ = all[0] // all of it stays
		}
	case "goroutine":
		go func() { panic("of a goroutine") }()
		select {}
	case "panic":
		var nobody *cli.Flag
		return errors.New(nobody.Name)
	}
	return nil
}

// show prints what a command got to see.
func show(r *cli.Run) error {
	o := r.Options
	for _, line := range []struct {
		name  string
		value any
	}{
		{"IN", r.Arg("IN")}, {"OUT", r.Arg("OUT")},
		{"sigma_xy", r.Float("sigma_xy")}, {"pyramid_resolutions", r.Floats("pyramid_resolutions")},
		{"names", r.Strings("names")}, {"wait", r.Duration("wait")}, {"make_isotropic", r.Bool("make_isotropic")},
		{"no_xy_shift", r.Bool("no_xy_shift")}, {"method", r.String("method")}, {"png", r.String("png")},
		{"png set", r.IsSet("png")}, {"secret", r.Bool("secret")},
		{"use_gpu", r.Bool("use_gpu")}, {"options.use_gpu", o.UseGPU}, {"gpu", o.GPU}, {"gpu_mem", o.GPUMem}, {"gpu_files", fmt.Sprintf("%+v", o.GPUFiles)}, {"http", fmt.Sprintf("%+v", o.HTTP)},
		{"threads", o.Threads}, {"mem", o.Mem}, {"backend", o.Backend}, {"overwrite", o.Overwrite}, {"sync", o.Sync},
		{"zarr_format", o.ZarrFormat}, {"codec", o.Codec}, {"chunks", o.Chunks}, {"shard", o.Shard}, {"n_levels", o.Levels},
		{"verbose", o.Verbose}, {"quiet", o.Quiet},
	} {
		if _, err := fmt.Fprintf(r.Stdout, "%s=%v\n", line.name, line.value); err != nil {
			return err
		}
	}
	return nil
}

// both does something itself and has sub-commands.
func both() *cli.Command {
	c := many()
	c.Name, c.Usage = "both", "one job, and others beside it"
	c.Args = []cli.Arg{{Name: "PATH", Usage: "a place", Optional: true}}
	c.Flags = []cli.Flag{{Name: "upper", Short: "u", Kind: cli.Bool, Usage: "in capitals"}, {Name: "depth", Kind: cli.Int, Default: "3", Usage: "how deep"}}
	c.Run = cli.Do(func(ctx context.Context, r *cli.Run) error {
		_, err := fmt.Fprintf(r.Stdout, "itself %q %v %d\n", r.Arg("PATH"), r.Bool("upper"), r.Int("depth"))
		return err
	})
	return c
}

// many has sub-commands, with flags and arguments of their own.
func many() *cli.Command {
	echo := func(ctx context.Context, r *cli.Run) error {
		_, err := fmt.Fprintln(r.Stdout, r.Args("WORD"), r.Bool("upper"))
		return err
	}
	return &cli.Command{
		Name: "many", Usage: "several jobs in one binary",
		Aliases: []cli.Alias{{Name: "say-it", Command: "echo", Defaults: cli.Defaults{"upper": "true"}, Flags: map[string]string{"loud": "upper"}}},
		Commands: []*cli.Command{
			{
				Name: "echo", Usage: "print words",
				Args:     []cli.Arg{{Name: "WORD", Usage: "word to print", Optional: true, Many: true}},
				Flags:    []cli.Flag{{Name: "upper", Short: "u", Kind: cli.Bool, Usage: "in capitals"}},
				Examples: []cli.Example{{Command: "many echo a b"}},
				Run:      cli.Do(echo),
			},
			{
				Name: "levels", Usage: "print how many levels",
				Args:     []cli.Arg{{Name: "ARRAY", Usage: "an array"}},
				Shared:   cli.Pyramid | cli.Resources,
				Defaults: cli.Defaults{"n_levels": "2"},
				Flags:    []cli.Flag{{Name: "region", Value: "SLICES", Usage: "a region"}, {Name: "out", Short: "o", Value: "FILE", Usage: "a file"}},
				Run: cli.Do(func(ctx context.Context, r *cli.Run) error {
					_, err := fmt.Fprintln(r.Stdout, r.Arg("ARRAY"), r.Options.Levels, r.String("region"), r.String("out"))
					return err
				}),
			},
		},
	}
}
