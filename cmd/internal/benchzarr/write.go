package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	cut "strata/pkg/bench/boxes"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/mem"
	"strata/pkg/units"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
)

func writeCommand() *cli.Command {
	return &cli.Command{
		Name:  "write",
		Usage: "measure writing a generated array",
		Description: "Writes arrays into a new folder in PLACE, which is removed afterwards. Their elements are stretches of noise and\n" +
			"of one number, mixed so that any codec compresses them about --ratio times; the table has the ratio reached. The\n" +
			"same seed and shape give the same elements. Each array, of this and of the other programs, is read and compared\n" +
			"before it is removed.\n\n" +
			"--keep also writes the array to a place where it stays, for bench-zarr read.",
		Args: []cli.Arg{{Name: "PLACE", Usage: "folder on the storage to measure"}},
		Flags: append(append(append(generating("256MiB"), measuring("5")...),
			cli.Flag{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "seed of the generated data, from 0"}),
			cli.Flag{Name: "keep", Value: "ARRAY", Usage: "also write the array to this folder or s3://bucket/path, where it stays"}),
		Shared:   cli.Resources | cli.Outputs | cli.Layout,
		Defaults: benchkit.FixedMem,
		Hints:    cli.Hints{"zarr_format": {Note: "3"}, "chunks": {Note: "128 along each axis"}},
		Examples: []cli.Example{
			{Command: "bench-zarr write /scratch --peers", Usage: "256 MiB of float32 in chunks of 128³, beside other programs"},
			{Command: "bench-zarr write . --codec zstd:3 --chunks 64,64,64 --shard 256,256,256 --ratio 4", Usage: "shards, of data that compress four times"},
			{Command: "bench-zarr write . --size 2GiB --codec raw --reps 1 --keep test.zarr", Usage: "make an array to read later"},
		},
		Run: cli.Do(runWrite),
	}
}

func runWrite(ctx context.Context, r *cli.Run) error {
	p, err := planOf(r)
	if err == nil {
		err = p.complete(r.Size("size"))
	}
	if err != nil {
		return err
	}
	if r.Bool("peers") && r.Options.Sync {
		return cli.Usage("--sync contradicts --peers, whose programs cannot do it: give one of them")
	}
	if r.Bool("peers") && r.Options.Checksum {
		return cli.Usage("--checksum contradicts --peers, whose programs write none here: give one of them")
	}
	need := p.bytes() + p.bytes()/16 + 1<<20
	if r.Bool("peers") {
		need *= 2
	}
	place := r.Arg("PLACE")
	tmp, err := NewScratch(r, zarrTool.Name, place, need)
	if err != nil {
		return err
	}
	defer tmp.Remove()
	var keep *zarrout.Output
	if name := r.String("keep"); name != "" {
		if keep, err = zarrout.Create(ctx, r, name); err != nil {
			return err
		}
	}
	m, err := NewMachine(ctx, r, zarrTool, place, false, false)
	if err != nil {
		return err
	}
	defer m.Close()
	task := r.Progress("write", 0)
	defer task.Done()
	s := Setting{Backend: "host", To: ToHost, Threads: r.Options.Threads}
	m.Doc.Results, err = m.write(ctx, p, tmp, s, r.Int("reps"), task.Add)
	if err != nil {
		return err
	}
	if keep != nil {
		spec, err := p.spec()
		if err != nil {
			return err
		}
		a, err := zarr.CreateArray(ctx, keep.Store, "", spec)
		if err != nil {
			return err
		}
		defer a.Close()
		if err := p.generate(ctx, a, r.Options.Threads, r.Options.Mem, task.Add); err != nil {
			return err
		}
		r.Wrote(datasets.Describe(a, keep.Path()))
	}
	task.Done()
	m.Doc.Advice = Advise(m.Doc.Results, r.Options.Threads)
	return m.Finish(true)
}

// writer writes the plan's array.
type writer struct {
	plan    plan
	setting Setting
	sync    bool
	mem     int64
	path    string
	done    func(int64)

	data   []byte // one part
	filled bool   // data is the whole array
}

// parts returns parts of whole chunk files, with at most half the memory each.
func (w *writer) parts() ([]zarr.Region, error) {
	l := Layout{Shape: w.plan.shape, Chunks: w.plan.chunks, files: w.plan.chunks, Size: w.plan.elem.Size()}
	if w.plan.shard != nil {
		l.files = w.plan.shard
		l.Chunks = w.plan.shard // a part of a shard would be written twice
	}
	part := l.partOf(w.mem / 2)
	if n := l.Bytes(part); n > w.mem/2 {
		return nil, cli.MemoryError("chunk files of %v elements take %s, half of --mem is %s", part, units.FormatSize(n), units.FormatSize(w.mem/2))
	}
	return cut.Split(l.Shape, part), nil
}

// round writes the array once and measures that, without generating its elements.
func (w *writer) round(ctx context.Context) (out benchkit.Sample, sum uint32, err error) {
	parts, err := w.parts()
	if err != nil {
		return out, 0, err
	}
	size := w.plan.elem.Size()
	if w.data == nil {
		if w.data, err = mem.Alloc(size * int(Volume(parts[0].Shape))); err != nil {
			return out, 0, err
		}
	}
	defer benchkit.Processors(w.setting.Threads)()
	var c Checksum
	var a *zarr.Array
	for i, part := range parts {
		data := w.data[:size*int(Volume(part.Shape))]
		if !w.filled {
			if err := w.plan.fillAll(ctx, w.setting.Threads, w.plan.shape, part, data); err != nil {
				return out, 0, err
			}
			w.filled = len(parts) == 1
		}
		c.Add(w.plan.shape, WholeStep, part, size, data)
		clock := benchkit.Start()
		if i == 0 {
			if a, err = w.plan.create(ctx, w.path, w.sync, zarr.Workers(w.setting.workers()), zarr.Budget(w.mem/2)); err != nil {
				return out, 0, err
			}
			defer a.Close()
		}
		if err := a.Write(ctx, part, data); err != nil {
			return out, 0, err
		}
		s := clock.Stop()
		out.Seconds, out.CPU, out.Peak = out.Seconds+s.Seconds, out.CPU+s.CPU, max(out.Peak, s.Peak)
		w.done(int64(len(data)))
	}
	return out, c.Value(), nil
}

func (w *writer) free() {
	mem.Free(w.data)
	w.data, w.filled = nil, false
}

// write measures writing a plan's array, alternately by strata and by the peers.
func (m *Machine) write(ctx context.Context, p plan, tmp *Scratch, s Setting, reps int, done func(int64)) ([]bench.Result, error) {
	o := m.run.Options
	w := &writer{plan: p, setting: s, sync: o.Sync, mem: o.Mem, path: tmp.File("written.zarr"), done: done}
	defer w.free()
	axes := append(p.axes(), bench.Axis{Name: "threads", Value: strconv.Itoa(s.Threads)})
	if s.InFlight > 0 {
		axes = append(axes, bench.Axis{Name: "in flight", Value: strconv.Itoa(s.InFlight)})
	}
	name, level, err := p.numbers()
	if err != nil {
		return nil, err
	}
	var sum uint32
	entry := func(who string, write func(ctx context.Context) (benchkit.Sample, error)) *benchkit.Contestant {
		c := &benchkit.Contestant{Result: bench.Result{Name: opWrite, Who: who, Axes: axes, Bytes: p.bytes()}}
		first := true
		c.Round = func(ctx context.Context) (benchkit.Sample, error) {
			out, err := write(ctx)
			if err == nil && first {
				first = false
				w.free() // it needs the memory
				err = m.verify(ctx, p, w.path, sum, c)
			}
			return out, errors.Join(err, os.RemoveAll(w.path))
		}
		return c
	}
	// Ours begins the first round: its checksum is what the others' is compared with.
	all := []*benchkit.Contestant{entry(bench.Strata, func(ctx context.Context) (out benchkit.Sample, err error) {
		out, sum, err = w.round(ctx)
		return out, err
	})}
	var missing []bench.Result
	data := tmp.File("elements")
	if m.Peers != nil {
		if err := m.Peers.Start(ctx, s.Threads, s.InFlight, true, false); err != nil {
			return nil, err
		}
		m.NoteSoftware()
		for _, x := range m.Peers.List {
			all = append(all, entry(x.Kind.Name, func(ctx context.Context) (benchkit.Sample, error) {
				return peer{x}.write(ctx, p, w.path, data, name, level)
			}))
		}
		missing = m.Peers.Missing(opWrite, axes)
		if err := p.elements(ctx, data, s.Threads, o.Mem); err != nil {
			return nil, err
		}
	}
	if err := benchkit.Race(ctx, all, reps, func(context.Context) error { return nil }, func(c *benchkit.Contestant, _ benchkit.Sample) {
		if c != all[0] {
			done(p.bytes())
		}
	}); err != nil {
		return nil, err
	}
	var out []bench.Result
	for _, c := range all {
		if c.Result.Measured() {
			c.Result.Checksum = fmt.Sprint(sum)
		} else {
			c.Result.Note = ""
		}
		out = append(out, c.Result)
	}
	return append(out, missing...), nil
}

// verify reads what a contestant has written, compares it, and records its compression ratio.
func (m *Machine) verify(ctx context.Context, p plan, path string, want uint32, c *benchkit.Contestant) error {
	t, err := Look(ctx, m.run, path)
	if err != nil {
		return fmt.Errorf("%s has written an array that cannot be read: %w", c.Result.Who, err)
	}
	got, err := t.Sum(ctx, m.run.Options.Threads, m.run.Options.Mem/2)
	if err != nil {
		return fmt.Errorf("%s has written an array that cannot be read: %w", c.Result.Who, err)
	}
	if got != want {
		return fmt.Errorf("%s: %s has written other elements than it was given: their checksums are %d and %d", path, c.Result.Who, got, want)
	}
	stored, err := StoredBytes(ctx, path)
	if err != nil {
		return err
	}
	c.Remark(fmt.Sprintf("compressed %.2f times", float64(p.bytes())/float64(max(stored, 1))))
	return nil
}

// elements writes the array's elements to a file, for the peers.
func (p *plan) elements(ctx context.Context, path string, threads int, most int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l := Layout{Shape: p.shape, Size: p.elem.Size()}
	plane := l.Bytes(p.shape) / int64(p.shape[0])
	n := int(max(1, min(int64(p.shape[0]), most/4/max(plane, 1))))
	data, err := mem.Alloc(n * int(plane))
	if err != nil {
		return err
	}
	defer mem.Free(data)
	unit := append([]int{n}, p.shape[1:]...)
	for _, r := range cut.Split(p.shape, unit) {
		b := data[:l.Bytes(r.Shape)]
		if err := p.fillAll(ctx, threads, p.shape, r, b); err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the codec's name and level in the form for peers.
func (p *plan) numbers() (name string, level int, err error) {
	name, text, given := strings.Cut(strings.TrimSuffix(p.codec, codec.ChecksumSuffix), ":")
	level = 1 // what codec.FromFlag takes
	if given {
		level, err = strconv.Atoi(text)
	}
	return name, level, err
}

// write asks a peer to write an array from elements in a file.
func (p peer) write(ctx context.Context, a plan, path, data, codec string, level int) (benchkit.Sample, error) {
	s, _, err := p.Do(ctx, request{Do: "write", Array: path, Format: a.format, Shape: a.shape, Chunks: a.chunks, Shard: a.shard,
		DType: a.elem.String(), Codec: codec, Level: level, Data: data})
	return s, err
}
