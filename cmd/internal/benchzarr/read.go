package benchzarr

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"strata/cmd/internal/benchkit"
	"strata/pkg/address"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/units"
)

func readCommand() *cli.Command {
	return &cli.Command{
		Name:  "read",
		Usage: "measure reading an array in one way",
		Description: "Performs each operation once, to compare its elements with those that the other programs read, and then --reps\n" +
			"times. The table has medians, and with several repetitions the slowest and the fastest. \"took\" is the way\n" +
			"actually taken, if it differs from the requested one.\n\n" +
			"At most half of --mem is read at a time; a larger array comes in parts, for the other programs as well.\n\n" +
			"--json_lines prints only one JSON object per operation, with the fields op, s (seconds, median), cpu (processor\n" +
			"seconds), bytes, gibs (GiB/s), hwm_mib (peak resident memory) and ck (a checksum of samples, defined in\n" +
			"docs/bench-zarr.md).",
		Args:     []cli.Arg{{Name: "ARRAY", Usage: "Zarr array, or OME-Zarr image to read level 0 of: folder, path in a .zip, or http(s):// or s3:// URL"}},
		Flags:    append(append(reading("full,rand,slab"), measuring("5")...), cli.Flag{Name: "json_lines", Kind: cli.Bool, Usage: "print one line of JSON per operation instead of the table"}),
		Shared:   cli.GPU | cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-zarr read mosaic.ome.zarr/0", Usage: "the whole array, boxes and planes, into memory"},
			{Command: "bench-zarr read mosaic.ome.zarr/0 --backend direct --cache cold", Usage: "from the storage device"},
			{Command: "bench-zarr read mosaic.ome.zarr/0 --to device --peers", Usage: "into a GPU by the best way, beside other programs"},
			{Command: "bench-zarr read s3://bucket/a.zarr --in_flight 64 --ops full", Usage: "from a bucket, with 64 requests at a time"},
			{Command: "bench-zarr read a.zarr --threads 2 --ops full,rand,slab --reps 3 --json_lines", Usage: "for a script"},
		},
		Run: cli.Accelerated(stage.GPU, runRead),
	}
}

// settingOf returns the setting given by the flags of read.
func settingOf(r *cli.Run) Setting {
	s := Setting{Backend: r.Options.Backend, To: r.String("to"), Threads: r.Options.Threads, InFlight: r.Int("in_flight"), Cold: r.String("cache") == "cold"}
	if r.IsSet("task_size") {
		s.Task = r.Size("task_size")
	}
	switch {
	case endsOnDevice(s.Backend):
		s.To = ToDevice
	case s.To == ToHost && s.Backend == "auto":
		s.Backend = "host"
	}
	return s
}

func choiceOf(r *cli.Run) Choice {
	return Choice{Edge: r.Int("edge"), Count: r.Int("boxes"), Seed: uint64(r.Int("seed")), Part: r.Options.Mem / 2}
}

func runRead(ctx context.Context, r *cli.Run) error {
	path, err := r.Input(r.Arg("ARRAY"))
	if err != nil {
		return err
	}
	s := settingOf(r)
	if r.Bool("json_lines") && r.Bool("peers") {
		return cli.Usage("--json_lines does not print the results of --peers: leave --peers out, or give --results FILE")
	}
	t, err := Look(ctx, r, path)
	if err != nil {
		return err
	}
	r.Read(t.Dataset)
	if t.far && s.Cold {
		return cli.Usage("flag --cache: the caches of a server cannot be emptied from here: leave it out for %s", path)
	}
	if err := fits(t, r.Options.Mem/2, choiceOf(r), r.Strings("ops")); err != nil {
		return err
	}
	place := path
	if t.far {
		place = ""
	}
	m, err := NewMachine(ctx, r, zarrTool, place, s.To == ToDevice, s.To == ToDevice)
	if err != nil {
		return err
	}
	defer m.Close()
	ops, reps := r.Strings("ops"), r.Int("reps")
	task := r.Progress("read", 0)
	defer task.Done()
	m.Doc.Results, err = m.read(ctx, t, ops, choiceOf(r), []Setting{s}, nil, reps, task.Add)
	if err != nil {
		return err
	}
	task.Done()
	if r.Bool("json_lines") {
		if err := lines(r.Stdout, m.Doc.Results); err != nil {
			return err
		}
		return m.Finish(false)
	}
	if m.Doc.Advice = Advise(m.Doc.Results, r.Options.Threads); m.Doc.Advice == nil {
		m.Doc.Advice = []string{"bench-zarr sweep " + bench.Quote(address.Address(t.Path).String()) + " says which setting is best here"}
	}
	return m.Finish(true)
}

// fits returns an error for operations that do not fit in memory.
func fits(t *Target, most int64, c Choice, ops []string) error {
	for _, op := range ops {
		for _, b := range c.BoxesOf(op, t.Layout).List {
			if n := t.Layout.Bytes(b.Shape); n > most {
				return cli.MemoryError("%s: %s reads %v elements at a time, %s, half of --mem is %s", t.Path, op, b.Shape, units.FormatSize(n), units.FormatSize(most))
			}
		}
	}
	return nil
}

// lines writes an object for each result, with the fields that other programs read.
func lines(w io.Writer, list []bench.Result) error {
	for _, r := range list {
		ck, err := strconv.ParseUint(r.Checksum, 10, 32)
		if err != nil {
			return fmt.Errorf("%s was not measured: %s", r.Name, r.Reason)
		}
		if err := json.NewEncoder(w).Encode(struct {
			Op      string  `json:"op"`
			Seconds float64 `json:"s"`
			CPU     float64 `json:"cpu"`
			Bytes   int64   `json:"bytes"`
			Rate    float64 `json:"gibs"`
			Peak    float64 `json:"hwm_mib"`
			Check   uint64  `json:"ck"`
		}{r.Name, r.Median(), r.CPU, r.Bytes, r.Rate() / (1 << 30), math.Round(float64(r.RSS)/(1<<20)*100) / 100, ck}); err != nil {
			return err
		}
	}
	return nil
}
