package benchtiff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/cmd/internal/benchzarr"
	"strata/pkg/bench"
	"strata/pkg/bench/boxes"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/mem"
	"strata/pkg/units"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

const opTrip = "round-trip"

// tripTool is [tool] with the programs that write Zarr.
var tripTool = benchzarr.Tool{
	Name: "bench-tiff", Script: peersScript, Tiles: true, Lenient: true,
	Peers: []benchkit.PeerKind{
		{Key: "tifffile", Name: "tifffile + zarr-python", Packages: "numpy tifffile imagecodecs zarr"},
		{Key: "tensorstore", Name: "tifffile + tensorstore", Packages: "numpy tensorstore tifffile imagecodecs"},
		{Key: "cucim", Name: "cuCIM + zarr-python", Packages: "numpy cucim-cu12 zarr"},
	},
}

func roundTripCommand() *cli.Command {
	return &cli.Command{
		Name:  opTrip,
		Usage: "measure converting a pyramid level to Zarr, each tile to a chunk",
		Description: "Reads the file and writes the array --reps times for each codec, in alternation with the other programs, to a\n" +
			"folder beside OUT that is removed afterwards. Compares each copy with the file once. Then writes OUT with the\n" +
			"first codec.",
		Args: []cli.Arg{{Name: "FILE", Usage: "TIFF file: path, or http(s):// or s3:// URL"}, {Name: "OUT", Usage: "folder of the Zarr array to write"}},
		Flags: append(append(choosing(), []cli.Flag{
			{Name: "codecs", Kind: cli.Strings, Default: "raw,lz4,blosc-lz4,zstd:1,zstd:3", Usage: "codecs of the arrays to write: raw, zstd, lz4, gzip, blosc-lz4, blosc-zstd, with :LEVEL if wanted"},
			{Name: "zarr_format", Kind: cli.Int, Default: "3", Check: cli.Between(2, 3), Usage: "Zarr format of the arrays to write: 2 or 3"},
		}...), measuring("3")...),
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-tiff round-trip scan.tif copy.zarr --peers", Usage: "all codecs, beside other programs"},
			{Command: "bench-tiff round-trip scan.tif copy.zarr --codecs raw --threads 1 --reps 5", Usage: "only uncompressed, by one thread"},
		},
		Run: cli.Do(runRoundTrip),
	}
}

func runRoundTrip(ctx context.Context, r *cli.Run) error {
	t, _, err := look(ctx, r, r.Arg("FILE"))
	if err != nil {
		return err
	}
	r.Read(t.Dataset)
	src, st, err := t.Open(ctx, benchzarr.Setting{Backend: "host"})
	if err != nil {
		return cli.BadInput(err)
	}
	defer st.Close()
	defer src.Close()
	var specs []zarr.Spec
	for _, name := range r.Strings("codecs") {
		chain, err := codec.FromFlag(name, src.DType(), r.Int("zarr_format"))
		if err != nil {
			return cli.Usage("flag --codecs: %w", err)
		}
		specs = append(specs, zarr.Spec{Format: r.Int("zarr_format"), Shape: src.Shape(), Chunks: src.Chunks(), DType: src.DType(), Codecs: chain})
	}
	if n := t.Layout.Bytes(src.Chunks()); 2*n > r.Options.Mem/2 {
		return cli.MemoryError("%s: a tile takes %s, twice that is more than half of --mem, %s", t.Path, units.FormatSize(n), units.FormatSize(r.Options.Mem/2))
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	place := filepath.Dir(filepath.Clean(r.Arg("OUT")))
	tmp, err := benchzarr.NewScratch(r, "bench-tiff", place, t.Layout.Bytes(src.Shape())*9/8+1<<20)
	if err != nil {
		return err
	}
	defer tmp.Remove()
	m, err := benchzarr.NewMachine(ctx, r, tripTool, place, false, false)
	if err != nil {
		return err
	}
	defer m.Close()
	task := r.Progress(opTrip, 0)
	defer task.Done()
	x := &trip{run: r, machine: m, target: t, path: tmp.File("copy.zarr")}
	if x.sum, err = t.Sum(ctx, r.Options.Threads, r.Options.Mem/2); err != nil {
		return stage.Failed(err)
	}
	for i, spec := range specs {
		if err := x.measure(ctx, r.Strings("codecs")[i], spec, task.Add); err != nil {
			return err
		}
	}
	a, err := zarr.CreateArray(ctx, out.Store, "", specs[0])
	if err != nil {
		return err
	}
	defer a.Close()
	if err := copyTiles(ctx, src, a, r.Options.Threads, r.Options.Mem/2); err != nil {
		return stage.Failed(err)
	}
	r.Wrote(datasets.Describe(a, out.Path()))
	task.Done()
	m.Doc.Advice = benchzarr.Advise(m.Doc.Results, r.Options.Threads)
	return m.Finish(true)
}

// trip measures copies of a level.
type trip struct {
	run     *cli.Run
	machine *benchzarr.Machine
	target  *benchzarr.Target
	path    string // of a copy
	sum     uint32 // of the level
}

// measure measures one codec, alternately with strata and the peers.
func (x *trip) measure(ctx context.Context, name string, spec zarr.Spec, progress func(int64)) error {
	r := x.run
	cold := cold(r)
	axes := bench.Axes{{Name: "codec", Value: name}, {Name: "format", Value: "v" + strconv.Itoa(spec.Format)},
		{Name: "threads", Value: strconv.Itoa(r.Options.Threads)}, {Name: "cache", Value: map[bool]string{false: "warm", true: "cold"}[cold]}}
	j := &benchzarr.Job{Target: x.target, Op: opTrip, Boxes: benchzarr.Choice{Part: r.Options.Mem / 2}.BoxesOf(benchzarr.OpFull, x.target.Layout),
		Tiles: int64(len(boxes.Split(x.target.Layout.Shape, x.target.Layout.Chunks)))}
	var list []*benchkit.Contestant
	enter := func(who string, copy func(ctx context.Context) (benchkit.Sample, error)) {
		c := &copier{trip: x, copy: copy}
		list = append(list, j.Contestant(bench.Result{Name: opTrip, Who: who, Axes: axes}, c))
		c.result = &list[len(list)-1].Result
	}
	enter(bench.Strata, func(ctx context.Context) (benchkit.Sample, error) { return x.ours(ctx, spec) })
	var missing []bench.Result
	if p := x.machine.Peers; p != nil {
		if err := p.Start(ctx, r.Options.Threads, 0, true, false); err != nil {
			return err
		}
		x.machine.NoteSoftware()
		for _, peer := range p.List {
			enter(peer.Kind.Name, func(ctx context.Context) (benchkit.Sample, error) { return x.theirs(ctx, peer, name, spec) })
		}
		missing = p.Missing(opTrip, axes)
	}
	if err := x.machine.Measure(ctx, j, list, r.Int("reps"), cold, progress); err != nil {
		return stage.Failed(err)
	}
	for _, c := range list {
		x.machine.Doc.Results = append(x.machine.Doc.Results, c.Result)
	}
	x.machine.Doc.Results = append(x.machine.Doc.Results, missing...)
	return nil
}

// copier makes copies with one program.
type copier struct {
	trip   *trip
	result *bench.Result
	copy   func(ctx context.Context) (benchkit.Sample, error)
}

// Check makes a copy and reads it.
func (c *copier) Check(ctx context.Context, _ *benchzarr.Job) (sum uint32, err error) {
	x := c.trip
	defer func() { err = errors.Join(err, os.RemoveAll(x.path)) }()
	if _, err := c.copy(ctx); err != nil {
		return 0, err
	}
	t, err := benchzarr.Look(ctx, x.run, x.path)
	if err != nil {
		return 0, fmt.Errorf("%s has written an array that cannot be read: %w", c.result.Who, err)
	}
	if sum, err = t.Sum(ctx, x.run.Options.Threads, x.run.Options.Mem/2); err != nil {
		return 0, fmt.Errorf("%s has written an array that cannot be read: %w", c.result.Who, err)
	}
	switch {
	case sum == x.sum || x.target.Lossy && c.result.Who != bench.Strata:
	case c.result.Who != bench.Strata: // it is left out
		return 0, benchkit.Unablef("has written other elements than the file has")
	default:
		return 0, fmt.Errorf("%s: the copy has other elements than the file: their checksums are %d and %d", x.path, sum, x.sum)
	}
	stored, err := benchzarr.StoredBytes(ctx, x.path)
	c.result.Note = fmt.Sprintf("compressed %.2f times", float64(t.Layout.Bytes(t.Layout.Shape))/float64(max(stored, 1)))
	return sum, err
}

// Round makes a copy and measures it.
func (c *copier) Round(ctx context.Context, _ *benchzarr.Job) (benchkit.Sample, error) {
	s, err := c.copy(ctx)
	return s, errors.Join(err, os.RemoveAll(c.trip.path))
}

func (x *trip) ours(ctx context.Context, spec zarr.Spec) (benchkit.Sample, error) {
	o := x.run.Options
	defer benchkit.Processors(o.Threads)()
	w := benchkit.Start()
	err := func() error {
		src, st, err := x.target.Open(ctx, benchzarr.Setting{Backend: "host"})
		if err != nil {
			return err
		}
		defer st.Close()
		defer src.Close()
		dst, err := zarr.CreateArray(ctx, store.Folder(x.path), "", spec)
		if err != nil {
			return err
		}
		defer dst.Close()
		return copyTiles(ctx, src, dst, o.Threads, o.Mem/2)
	}()
	return w.Stop(), err
}

// theirs asks a peer for a copy.
func (x *trip) theirs(ctx context.Context, p *benchkit.Peer, name string, spec zarr.Spec) (benchkit.Sample, error) {
	name, level, given := strings.Cut(name, ":")
	if !given {
		level = "1" // what codec.FromFlag takes
	}
	number, err := strconv.Atoi(level)
	if err != nil {
		return benchkit.Sample{}, err
	}
	s, _, err := p.Do(ctx, map[string]any{"do": "copy", "source": x.target.Path, "level_of_pyramid": x.target.Level, "array": x.path, "format": spec.Format, "shape": spec.Shape,
		"chunks": spec.Chunks, "shard": nil, "dtype": spec.DType.String(), "codec": name, "level": number})
	return s, err
}

// copyTiles copies an array into one with the same chunks, as many at a time as workers and memory allow.
func copyTiles(ctx context.Context, src, dst *zarr.Array, workers int, budget int64) error {
	src, dst = src.With(zarr.Workers(1)), dst.With(zarr.Workers(1))
	list := boxes.Split(src.Shape(), src.Chunks())
	each := int64(src.DType().Size()) * benchzarr.Volume(src.Chunks())
	workers = int(max(1, min(int64(workers), int64(len(list)), budget/max(each+src.ScratchBytes(false)+dst.ScratchBytes(true), 1))))
	buf, err := mem.Alloc(workers * int(each))
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	return work.Each(ctx, workers, len(list), func(worker, i int) error {
		b := buf[int64(worker)*each:][:int64(src.DType().Size())*benchzarr.Volume(list[i].Shape)]
		if err := src.Read(ctx, list[i], b); err != nil {
			return err
		}
		return dst.Write(ctx, list[i], b)
	})
}
