package benchzarr

import (
	"context"
	"fmt"
	"os"
	"slices"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	cut "strata/pkg/bench/boxes"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// Job is an operation on an array.
type Job struct {
	Target *Target
	Op     string
	Boxes  Boxes
	Tiles  int64 // chunks that are read in a repetition; 0: they are not counted
}

// Bytes returns the number of bytes of elements that a repetition moves.
func (j *Job) Bytes() int64 {
	n := int64(0)
	for _, b := range j.Boxes.List {
		n += j.Target.Layout.Bytes(b.Shape)
	}
	return n
}

// countTiles returns the number of chunks that the boxes touch, counted for each box.
func (j *Job) countTiles() int64 {
	n := int64(0)
	for _, b := range j.Boxes.List {
		each := int64(1)
		for d, size := range j.Target.Layout.Chunks {
			each *= int64((b.Start[d]+b.Shape[d]-1)/size - b.Start[d]/size + 1)
		}
		n += each
	}
	return n
}

// largest returns the size of the largest box in bytes.
func (j *Job) largest() int64 {
	n := int64(0)
	for _, b := range j.Boxes.List {
		n = max(n, j.Target.Layout.Bytes(b.Shape))
	}
	return n
}

// makeRoom allocates memory and releases it. If memory is full of cached files, the kernel must first move them to
// make huge pages, for seconds; otherwise the first program to ask would pay for the others.
func makeRoom(n int64) {
	b, err := mem.Alloc(int(n))
	if err != nil {
		return // who needs it will say so
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	mem.Free(b)
}

// A Reader reads with one setting.
type Reader interface {
	// Check does the job once, outside of any measurement, and returns the checksum of the data.
	Check(ctx context.Context, j *Job) (uint32, error)
	// Round does the job once and measures it.
	Round(ctx context.Context, j *Job) (benchkit.Sample, error)
}

// hostReader reads into host memory.
type hostReader struct {
	setting Setting
	mem     int64 // for scratch memory
	part    int64 // most bytes of a part of the whole
}

func (h *hostReader) options() []zarr.Option {
	return []zarr.Option{zarr.Workers(h.setting.workers()), zarr.Budget(h.mem)}
}

func (h *hostReader) Check(ctx context.Context, j *Job) (uint32, error) {
	var c Checksum
	b := j.Boxes
	if j.Op == OpStream { // the same elements, and one after the other
		b = Boxes{cut.Split(j.Target.Layout.Shape, j.Target.Layout.partOf(h.part)), true}
	}
	err := h.sequence(ctx, j, b, func(box zarr.Region, data []byte) { b.Check(&c, j.Target.Layout, box, data) })
	return c.Value(), err
}

// Sum reads all of the array, in parts of at most the given size, and returns its checksum.
func (t *Target) Sum(ctx context.Context, threads int, part int64) (uint32, error) {
	h := &hostReader{setting: Setting{Backend: "host", Threads: threads}, mem: part, part: part}
	return h.Check(ctx, &Job{Target: t, Op: OpFull, Boxes: Choice{Part: part}.BoxesOf(OpFull, t.Layout)})
}

func (h *hostReader) Round(ctx context.Context, j *Job) (benchkit.Sample, error) {
	defer benchkit.Processors(h.setting.Threads)()
	w := benchkit.Start()
	var err error
	if j.Op == OpStream {
		err = h.stream(ctx, j)
	} else {
		err = h.sequence(ctx, j, j.Boxes, nil)
	}
	s := w.Stop()
	s.Backend = h.setting.Backend
	if s.Backend == "auto" {
		s.Backend = "host"
	}
	return s, err
}

// sequence opens the array and reads boxes one after another, into memory allocated for the first of them, which
// take may inspect.
func (h *hostReader) sequence(ctx context.Context, j *Job, b Boxes, take func(zarr.Region, []byte)) error {
	a, st, err := j.Target.Open(ctx, h.setting, h.options()...)
	if err != nil {
		return err
	}
	defer st.Close()
	defer a.Close()
	var buf []byte
	defer func() { mem.Free(buf) }()
	for _, box := range b.List {
		n := int(j.Target.Layout.Bytes(box.Shape))
		if n > cap(buf) {
			mem.Free(buf)
			if buf, err = mem.Alloc(n); err != nil {
				return err
			}
		}
		buf = buf[:n]
		if err := a.Read(ctx, box, buf); err != nil {
			return err
		}
		if take != nil {
			take(box, buf)
		}
	}
	return nil
}

// piece is the number of bytes of a raw chunk that a stream reads at a time, chosen to fit a core's cache.
const piece = 1 << 20

// stream opens the array and reads all of it, as many chunks at a time as the setting says, raw ones in pieces of
// whole planes. Each worker reuses its own memory.
func (h *hostReader) stream(ctx context.Context, j *Job) error {
	a, st, err := j.Target.Open(ctx, h.setting, h.options()...)
	if err != nil {
		return err
	}
	defer st.Close()
	defer a.Close()
	one := a.With(zarr.Workers(1))
	l := j.Target.Layout
	unit := slices.Clone(j.Boxes.List[0].Shape)
	if j.Target.Raw && a.Shard() == nil {
		unit[0] = int(max(1, min(int64(unit[0]), int64(unit[0])*piece/max(l.Bytes(unit), 1))))
	}
	each := l.Bytes(unit)
	workers := int(max(1, min(int64(h.setting.workers()), h.part/max(each, 1), int64(len(j.Boxes.List)))))
	bufs := make([][]byte, workers)
	defer func() {
		for _, b := range bufs {
			mem.Free(b)
		}
	}()
	for i := range bufs {
		if bufs[i], err = mem.Alloc(int(each)); err != nil {
			return err
		}
	}
	return work.Each(ctx, workers, len(j.Boxes.List), func(worker, i int) error {
		box := zarr.Region{Start: slices.Clone(j.Boxes.List[i].Start), Shape: slices.Clone(j.Boxes.List[i].Shape)}
		end := box.Start[0] + box.Shape[0]
		for box.Start[0] < end {
			box.Shape[0] = min(unit[0], end-box.Start[0])
			if err := one.Read(ctx, box, bufs[worker][:l.Bytes(box.Shape)]); err != nil {
				return err
			}
			box.Start[0] += box.Shape[0]
		}
		return nil
	})
}

// Contestant returns a reader of the job as a contestant with a result of this name, who and axes.
func (j *Job) Contestant(result bench.Result, r Reader) *benchkit.Contestant {
	result.Bytes, result.Ops = j.Bytes(), j.Tiles
	return &benchkit.Contestant{Result: result,
		Check: func(ctx context.Context) (uint64, error) { sum, err := r.Check(ctx, j); return uint64(sum), err },
		Round: func(ctx context.Context) (benchkit.Sample, error) { return r.Round(ctx, j) }}
}

// Measure does a job in rounds, by turns. The checksums are compared with that of the first contestant.
func (m *Machine) Measure(ctx context.Context, j *Job, list []*benchkit.Contestant, reps int, cold bool, progress func(int64)) error {
	if err := benchkit.Compare(ctx, list, func(c, first *benchkit.Contestant) error {
		peer := c.Result.Who != bench.Strata
		switch {
		case peer && j.Target.Lossy:
			c.Remark("its decoder rounds otherwise: other elements")
		case peer && m.tool.Lenient:
			c.Result.Reason = "reads other elements than " + who(first)
		default:
			return fmt.Errorf("%s: %s has read other elements than %s: the checksums of %s are %d and %d", j.Target.Path, who(c), who(first), j.Op, c.Sum, first.Sum)
		}
		return nil
	}); err != nil {
		return err
	}
	var held float64
	before := func(ctx context.Context) error {
		makeRoom(j.largest())
		if !cold {
			return nil
		}
		n, err := j.Target.drop(ctx)
		held = max(held, n)
		return err
	}
	if err := benchkit.Race(ctx, list, reps, before, func(*benchkit.Contestant, benchkit.Sample) { progress(j.Bytes()) }); err != nil {
		return err
	}
	for _, c := range list {
		if held > 0.01 {
			c.Remark(fmt.Sprintf("%.0f%% of the array stayed in the page cache", 100*held))
		}
	}
	return nil
}

func who(c *benchkit.Contestant) string {
	if b := c.Result.Axes.Get("backend"); c.Result.Who == bench.Strata && b != "" {
		return c.Result.Who + " (" + b + ")"
	}
	return c.Result.Who
}
