package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// deviceStack is what a stack on a device needs from its beginning to its end: readers
// of the slices, and workers that bring their voxels to where the planes are.
//
// What is decided (overlaps, gains, shifts) and what is written are the CPU's, to the
// last bit: sums are made in the same order, percentiles are exact; the phase
// correlation, whose transforms round differently, is the host's, on two mean planes. Only
// NaN that arithmetic makes or passes on may have other bits.
type deviceStack struct {
	plan    *stackPlan
	res     *oct.Resources
	device  *gpu.Device
	readers map[*stackSlice]*zarrgpu.Reader
	loaders []*stackLoader
	held    int64 // device memory of the loaders, and of what they fetch
	pinned  int64 // host memory likewise
}

// stackLoader is a worker that fetches regions of slices: it fetches one while the
// device converts the one before.
type stackLoader struct {
	*machine.DeviceWorker
	staging gpu.Span // a region as it is stored
	bad     gpu.Span // uint64: voxels of it that are not finite
	count   []byte   // page-locked: as bad

	of      *stackSlice   // whose regions the slots are for
	running *zarr.Region  // what the device works on
	slot    *zarrgpu.Slot // through which it goes
	turn    int
}

func newDeviceStack(p *stackPlan, res *oct.Resources) (d *deviceStack, err error) {
	d = &deviceStack{plan: p, res: res, device: res.Device, readers: map[*stackSlice]*zarrgpu.Reader{}}
	var staging, fetched, pinned, scratch int64
	for _, s := range p.slices {
		r, err := res.Reader(s.array, res.Meter)
		if err != nil {
			return nil, err
		}
		d.readers[s] = r
		shape := d.region(s)
		host, device := r.Memory(shape[:])
		staging, fetched = max(staging, r.Bytes(shape[:])), max(fetched, device)
		pinned, scratch = max(pinned, host), max(scratch, r.Scratch())
	}
	onDevice, onHost := mem.Pooled(staging+16)+machine.MostSlots*fetched, machine.MostSlots*pinned+scratch
	if onDevice > d.device.Memory().Limit() {
		return nil, d.noDeviceMemory(onDevice, "fetching a slice")
	}
	// a quarter of the memory at most, but one there must be
	n := min(int64(res.Workers), max(1, d.device.Memory().Limit()/4/onDevice), max(1, res.Mem/4/onHost))
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	for len(d.loaders) < int(n) {
		var w *machine.DeviceWorker
		if w, err = machine.NewDeviceWorker(d.device); err != nil {
			return d, err
		}
		l := &stackLoader{DeviceWorker: w}
		if err = l.begin(staging); err != nil {
			if err = errors.Join(err, w.End()); len(d.loaders) > 0 && errors.Is(err, gpu.ErrMemory) {
				err = nil // those that there are do the work
				break
			}
			return d, err
		}
		d.loaders = append(d.loaders, l)
	}
	d.held, d.pinned = onDevice*int64(len(d.loaders)), onHost*int64(len(d.loaders))
	return d, nil
}

// begin takes the memory, for regions of so many bytes.
func (l *stackLoader) begin(bytes int64) error {
	bytes = (bytes + 7) &^ 7
	m, err := l.Memory(bytes + 8)
	if err != nil {
		return err
	}
	l.staging, l.bad = m.From(0, bytes), m.From(bytes, 8)
	l.count, err = l.Pinned(8)
	return err
}

// close gives the loaders' memory back, once nothing runs any more.
func (d *deviceStack) close() (err error) {
	for _, l := range d.loaders {
		err = errors.Join(err, l.End())
	}
	d.loaders = nil
	return err
}

// region is the shape of what is fetched of a slice at a time: a chunk, several if they
// are small, or planes of one if any part of it can be read. Where it can be chosen it is
// a small part of the memory.
func (d *deviceStack) region(s *stackSlice) [3]int {
	r := s.chunk
	piece := int(min(machine.DevicePiece, d.device.Memory().Limit()/64, d.res.Mem/64))
	bytes := func() int { return r[0] * r[1] * r[2] * s.dtype.Size() }
	if len(s.array.Codecs()) == 0 && s.array.Order() == 'C' {
		r[0] = min(r[0], max(1, piece/(bytes()/r[0])))
	}
	for _, a := range []int{2, 1, 0} {
		for r[a] < s.shape[a] && 2*bytes() <= piece {
			r[a] *= 2
		}
		r[a] = min(r[a], s.shape[a])
	}
	return r
}

// planeRun is planes of float32 that lie evenly in device memory: n of them, the first
// being number first of some order.
type planeRun struct {
	first, n int
	at       kernels.Planes
}

// from is the planes from the i-th of them on, and of each the pixels from (y, x) on.
func (r planeRun) from(i, y, x int) kernels.Planes {
	at := 4 * (int64(i)*r.at.Stride + int64(y)*int64(r.at.Pitch) + int64(x))
	return kernels.Planes{At: r.at.At.From(at, r.at.At.Bytes()-at), Pitch: r.at.Pitch, Stride: r.at.Stride}
}

// stackLoad is a box of a slice on its way to the device, where it is converted, scaled
// by gain and put where the runs, which count its planes, say.
type stackLoad struct {
	slice        *stackSlice
	start, shape [3]int
	gain         float32
	to           []planeRun
	// anew: its bytes are progress, and those of its voxels count that are not finite.
	anew bool
}

// load brings it there. What used the runs' memory must have been waited for.
func (d *deviceStack) load(ctx context.Context, b *stackLoad) (err error) {
	g := d.region(b.slice)
	var first, n [3]int
	for a := range 3 {
		first[a] = b.start[a] / g[a]
		n[a] = (b.start[a]+b.shape[a]+g[a]-1)/g[a] - first[a]
	}
	total := n[0] * n[1] * n[2]
	team, err := d.team(b.slice, g, min(len(d.loaders), total))
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range team { // nothing runs any more, also after an error
			err = errors.Join(err, l.Stream.Wait())
			l.running = nil
		}
	}()
	err = work.Each(ctx, len(team), total, func(worker, i int) error {
		at := [3]int{i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]}
		r := zarr.Region{Start: make([]int, 3), Shape: make([]int, 3)}
		for a := range 3 {
			lo := (first[a] + at[a]) * g[a]
			r.Start[a] = max(b.start[a], lo)
			r.Shape[a] = min(b.start[a]+b.shape[a], lo+g[a]) - r.Start[a]
		}
		return team[worker].next(ctx, b, r, d.res)
	})
	for _, l := range team {
		if err == nil {
			err = l.wait(b, d.res)
		}
	}
	return err
}

// team are at most n loaders with slots for regions of a slice, which they keep for its
// next load: each two if there is the memory.
func (d *deviceStack) team(s *stackSlice, shape [3]int, n int) ([]*stackLoader, error) {
	for _, l := range d.loaders {
		if l.of != s {
			for _, slot := range l.Slots {
				slot.Release()
			}
			l.of, l.Slots = s, nil
		}
	}
	for i, l := range d.loaders[:n] {
		for len(l.Slots) < machine.MostSlots {
			slot, err := d.readers[s].Slot(shape[:])
			if err == nil {
				l.Slots = append(l.Slots, slot)
				continue
			}
			switch {
			case !errors.Is(err, gpu.ErrMemory) || i == 0 && len(l.Slots) == 0:
				return nil, err
			case len(l.Slots) == 0: // those before do the work
				return d.loaders[:i], nil
			}
			break
		}
	}
	return d.loaders[:n], nil
}

// next fetches a region while the device works on the one before, and queues what is to
// be done with it. With one slot all this is done in turn.
func (l *stackLoader) next(ctx context.Context, b *stackLoad, r zarr.Region, res *oct.Resources) error {
	if len(l.Slots) == 1 {
		if err := l.wait(b, res); err != nil {
			return err
		}
	}
	slot := l.Slots[l.turn%len(l.Slots)]
	l.turn++
	if err := slot.Fetch(ctx, r); err != nil {
		return unreadable(err)
	}
	if err := l.wait(b, res); err != nil {
		return err
	}
	l.running, l.slot = &r, slot
	return l.queue(b)
}

// wait waits for what the device works on.
func (l *stackLoader) wait(b *stackLoad, res *oct.Resources) error {
	if l.running == nil {
		return nil
	}
	begin := time.Now()
	defer func() { res.Meter.Since(meter.Compute, begin) }()
	if err := l.Stream.Wait(); err != nil {
		return err
	}
	if b.anew {
		b.slice.progress(res, l.slot.Bytes())
		if b.slice.dtype.IsFloat() {
			res.Meter.AddNonFinite(int64(dtype.Slice[uint64](l.count)[0]))
		}
	}
	l.running = nil
	return nil
}

// queue queues what is to be done with the region in the slot.
func (l *stackLoader) queue(b *stackLoad) error {
	r := l.running
	l.slot.Into(l.Stream, l.staging)
	count := gpu.Span{}
	if b.anew && b.slice.dtype.IsFloat() {
		count = l.bad
		l.Stream.Zero(count)
	}
	z, y, x := r.Start[0]-b.start[0], r.Start[1]-b.start[1], r.Start[2]-b.start[2]
	plane := int64(r.Shape[1]) * int64(r.Shape[2]) * int64(b.slice.dtype.Size())
	for _, run := range b.to {
		lo, hi := max(z, run.first), min(z+r.Shape[0], run.first+run.n)
		if lo >= hi {
			continue
		}
		src := l.staging.From(int64(lo-z)*plane, int64(hi-lo)*plane)
		if err := kernels.Place(l.Stream, run.from(lo-run.first, y, x), src, b.slice.dtype, hi-lo, r.Shape[1], r.Shape[2], b.gain, count); err != nil {
			return err
		}
	}
	l.Stream.Download(l.count[:count.Bytes()], count)
	return nil
}

// noDeviceMemory says how much memory of the device is missing.
func (d *deviceStack) noDeviceMemory(need int64, format string, args ...any) error {
	return fmt.Errorf("%s: %s takes %d MiB of device memory, there are %d MiB: %w", d.plan.slices[0].path, fmt.Sprintf(format, args...), need>>20+1, d.device.Memory().Limit()>>20, gpu.ErrMemory)
}

// room is the device memory that the loaders leave.
func (d *deviceStack) room() int64 { return d.device.Memory().Limit() - d.held }
