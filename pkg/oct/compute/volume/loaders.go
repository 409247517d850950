package volume

import (
	"context"
	"errors"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// loaderWorker fetches regions of sources for a device: it fetches one while the device converts the preceding
// one.
type loaderWorker struct {
	*transfer.DeviceWorker
	staging gpu.Span // a region in stored form
	bad     gpu.Span // uint64: non-finite voxels of it
	count   []byte   // page-locked copy of bad

	of      *Source       // source of the regions in the slots
	running *zarr.Region  // region that the device is processing
	slot    *zarrgpu.Slot // its slot
	turn    int
}

// openDevice opens a memory on the device, with a reader for each source and workers that load voxels.
func openDevice(ctx context.Context, sources []*Source, res *oct.Resources) (_ Memory, err error) {
	d := &device{res: res, gpu: res.Device, sources: sources, readers: map[*Source]*zarrgpu.Reader{}}
	d.ctx, d.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	var staging, fetched, pinned, scratch int64
	for _, s := range sources {
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
	onDevice, locked := mem.Pooled(staging+16)+transfer.SlotsInTurn*fetched, mem.Pooled(8)+transfer.SlotsInTurn*pinned
	if onDevice > d.gpu.Memory().Limit() {
		return nil, d.noMemory(onDevice, "fetching a slice")
	}
	if d.worker, err = transfer.NewDeviceWorker(d.gpu); err != nil {
		return nil, err
	}
	// a quarter of the memory at most, but one there must be
	n := min(int64(res.Workers), max(1, d.gpu.Memory().Limit()/4/onDevice), max(1, transfer.PinnedFor(d.gpu)/4/locked), max(1, res.Mem/4/max(1, scratch)))
	for len(d.loaders) < int(n) {
		l, err := newLoader(d.gpu, staging)
		if err != nil {
			if len(d.loaders) > 0 && errors.Is(err, gpu.ErrMemory) {
				break // those that there are do the work
			}
			return nil, err
		}
		d.loaders = append(d.loaders, l)
	}
	d.loading = loading{device: onDevice, locked: locked, slot: pinned, host: scratch}
	d.hold()
	return d, nil
}

// loading holds the memory of a loader, in bytes.
type loading struct {
	device, locked, host int64
	slot                 int64 // of locked: one of its slots
}

// hold adds up the memory of the loaders.
func (d *device) hold() {
	n := int64(len(d.loaders))
	d.held, d.decoding, d.locked = n*d.loading.device, n*d.loading.host, n*d.loading.locked
	if n == 1 {
		d.locked -= d.loading.slot // one slot does
	}
}

// fewerLoaders gives up half of the loaders and reports whether there was more than one.
func (d *device) fewerLoaders() (bool, error) {
	n := len(d.loaders)
	if n == 1 {
		return false, nil
	}
	var err error
	for _, l := range d.loaders[n/2:] {
		err = errors.Join(err, l.End())
	}
	d.loaders = d.loaders[:n/2]
	d.hold()
	return true, err
}

// newLoader returns a loader of regions of up to the given number of bytes.
func newLoader(d *gpu.Device, bytes int64) (*loaderWorker, error) {
	w, err := transfer.NewDeviceWorker(d)
	if err != nil {
		return nil, err
	}
	l := &loaderWorker{DeviceWorker: w}
	bytes = (bytes + 7) &^ 7
	m, err := l.Memory(bytes + 8)
	if err == nil {
		l.staging, l.bad = m.From(0, bytes), m.From(bytes, 8)
		l.count, err = l.Pinned(8)
	}
	if err != nil {
		return nil, errors.Join(err, w.End())
	}
	return l, nil
}

// region returns the shape fetched from a source at a time: a chunk, several small ones, or planes of an
// uncompressed chunk. If it can be chosen, it is a small part of the memory.
func (d *device) region(s *Source) [3]int {
	r := s.chunk
	piece := int(min(transfer.DevicePiece, d.gpu.Memory().Limit()/64, d.res.Mem/64))
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

func (d *device) Load(b *Box) {
	d.try(d.wait)
	d.try(func() error { return d.load(b) })
}

// load distributes the regions of a box to the loaders.
func (d *device) load(b *Box) (err error) {
	g := d.region(b.Source)
	var first, n [3]int
	for a := range 3 {
		first[a] = b.Start[a] / g[a]
		n[a] = (b.Start[a]+b.Shape[a]+g[a]-1)/g[a] - first[a]
	}
	total := n[0] * n[1] * n[2]
	team, err := d.team(b.Source, g, min(len(d.loaders), total))
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range team { // nothing runs any more, also after an error
			err = errors.Join(err, l.Stream.Wait())
			l.running = nil
		}
	}()
	err = work.Each(d.ctx, len(team), total, func(worker, i int) error {
		at := [3]int{i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]}
		r := zarr.Region{Start: make([]int, 3), Shape: make([]int, 3)}
		for a := range 3 {
			lo := (first[a] + at[a]) * g[a]
			r.Start[a] = max(b.Start[a], lo)
			r.Shape[a] = min(b.Start[a]+b.Shape[a], lo+g[a]) - r.Start[a]
		}
		return team[worker].next(d.ctx, b, r, d.res)
	})
	for _, l := range team {
		if err == nil {
			err = l.wait(b, d.res)
		}
	}
	return err
}

// team returns at most n loaders with slots for regions of a source: two each if memory allows. They keep the
// slots for the source's next load.
func (d *device) team(s *Source, shape [3]int, n int) ([]*loaderWorker, error) {
	for _, l := range d.loaders {
		if l.of != s {
			for _, slot := range l.Slots {
				slot.Release()
			}
			l.of, l.Slots = s, nil
		}
	}
	for i, l := range d.loaders[:n] {
		for len(l.Slots) < transfer.SlotsInTurn {
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

// next fetches a region while the device processes the preceding one, and queues its processing. With only one
// slot, these steps run one after another.
func (l *loaderWorker) next(ctx context.Context, b *Box, r zarr.Region, res *oct.Resources) error {
	if len(l.Slots) == 1 {
		if err := l.wait(b, res); err != nil {
			return err
		}
	}
	slot := l.Slots[l.turn%len(l.Slots)]
	l.turn++
	if err := slot.Fetch(ctx, r); err != nil {
		return oct.Readable(err)
	}
	if err := l.wait(b, res); err != nil {
		return err
	}
	l.running, l.slot = &r, slot
	return l.queue(b)
}

// wait waits until the device has processed the current region.
func (l *loaderWorker) wait(b *Box, res *oct.Resources) error {
	if l.running == nil {
		return nil
	}
	begin := time.Now()
	defer func() { res.Meter.Since(meter.Compute, begin) }()
	if err := l.Stream.Wait(); err != nil {
		return err
	}
	if b.Anew {
		b.Source.progress(res, l.slot.Bytes())
		if b.Source.dtype.IsFloat() {
			res.Meter.AddNonFinite(int64(dtype.Slice[uint64](l.count)[0]))
		}
	}
	l.running = nil
	return nil
}

// queue queues the processing of the region in the slot.
func (l *loaderWorker) queue(b *Box) error {
	r, kind := l.running, b.Source.dtype
	l.slot.Into(l.Stream, l.staging)
	count := gpu.Span{}
	if b.Anew && kind.IsFloat() {
		count = l.bad
		l.Stream.Zero(count)
	}
	z, y, x := r.Start[0]-b.Start[0], r.Start[1]-b.Start[1], r.Start[2]-b.Start[2]
	plane := int64(r.Shape[1]) * int64(r.Shape[2]) * int64(kind.Size())
	err := eachRun(b.To[z:z+r.Shape[0]], b.Y+y, b.X+x, func(first, n int, at kernels.Planes) error {
		src := l.staging.From(int64(first)*plane, int64(n)*plane)
		return kernels.Place(l.Stream, at, src, kind, n, r.Shape[1], r.Shape[2], b.Gain, count)
	})
	l.Stream.Download(l.count[:count.Bytes()], count)
	return err
}
