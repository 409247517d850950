package oct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
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
// NaN that resampling or blending make of infinity may have other bits.
type deviceStack struct {
	plan    *stackPlan
	res     *Resources
	device  *gpu.Device
	readers map[*stackSlice]*zarrgpu.Reader
	loaders []*stackLoader
	held    int64 // device memory of the loaders, and of what they fetch
	pinned  int64 // host memory likewise
}

// stackLoader is a worker that fetches regions of slices: it fetches one while the
// device converts the one before.
type stackLoader struct {
	*deviceWorker
	staging gpu.Span // a region as it is stored
	slots   [2]*zarrgpu.Slot
	turn    int
}

func newDeviceStack(p *stackPlan, res *Resources) (d *deviceStack, err error) {
	d = &deviceStack{plan: p, res: res, device: res.Device, readers: map[*stackSlice]*zarrgpu.Reader{}}
	staging, fetched, pinned, decoding := int64(0), int64(0), int64(0), int64(0)
	for _, s := range p.slices {
		o := zarrgpu.Options{Workers: 1, Meter: res.Meter, Warn: res.Warn}
		if d.readers[s], err = zarrgpu.NewReader(s.array, d.device, o); err != nil {
			return nil, inputError{err}
		}
		r := s.region()
		host, device := d.readers[s].Memory(r[:])
		staging = max(staging, int64(r[0])*int64(r[1])*int64(r[2])*int64(s.dtype.Size()))
		fetched, pinned, decoding = max(fetched, device), max(pinned, host), max(decoding, s.readerBytes())
	}
	onDevice, onHost := int64(mem.Size(int(staging)))+2*fetched, 2*pinned+decoding
	// a quarter of the memory at most, but one there must be
	n := min(int64(res.Workers), max(1, d.device.Memory().Limit()/4/onDevice), max(1, res.Mem/4/onHost))
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	for len(d.loaders) < int(n) {
		var w *deviceWorker
		if w, err = newDeviceWorker(d.device); err != nil {
			return d, err
		}
		l := &stackLoader{deviceWorker: w}
		if l.staging, err = w.memory(staging); err != nil {
			if err = errors.Join(err, w.end()); len(d.loaders) > 0 && errors.Is(err, gpu.ErrMemory) {
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

// close gives the loaders' memory back, once nothing runs any more.
func (d *deviceStack) close() (err error) {
	for _, l := range d.loaders {
		err = errors.Join(err, l.end())
	}
	d.loaders = nil
	return err
}

// region is the shape of what is fetched of a slice at a time: a chunk, several if they
// are small, or planes of one if any part of it can be read.
func (s *stackSlice) region() [3]int {
	r := s.chunk
	bytes := func() int { return r[0] * r[1] * r[2] * s.dtype.Size() }
	if len(s.array.Codecs()) == 0 {
		r[0] = min(r[0], max(1, devicePiece/(bytes()/r[0])))
	}
	for _, d := range []int{2, 1, 0} {
		for r[d] < s.shape[d] && 2*bytes() <= devicePiece {
			r[d] *= 2
		}
		r[d] = min(r[d], s.shape[d])
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

// load brings a box of a slice to the device, where it is converted, scaled by gain and
// put where the runs, which count its planes, say. Unless bad is empty, voxels that are not
// finite are counted there. What used the runs' memory must have been waited for. The bytes
// are progress, or not.
func (d *deviceStack) load(ctx context.Context, s *stackSlice, start, shape [3]int, gain float32, bad gpu.Span, to []planeRun, progress bool) (err error) {
	g := s.region()
	var first, n [3]int
	for a := range 3 {
		first[a] = start[a] / g[a]
		n[a] = (start[a]+shape[a]+g[a]-1)/g[a] - first[a]
	}
	total := n[0] * n[1] * n[2]
	team, err := d.team(s, g, min(len(d.loaders), total))
	defer func() {
		for _, l := range team {
			err = errors.Join(err, l.finish())
		}
	}()
	if err != nil {
		return err
	}
	return work.Each(ctx, len(team), total, func(worker, i int) error {
		at := [3]int{i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]}
		r := zarr.Region{Start: make([]int, 3), Shape: make([]int, 3)}
		for a := range 3 {
			lo := (first[a] + at[a]) * g[a]
			r.Start[a] = max(start[a], lo)
			r.Shape[a] = min(start[a]+shape[a], lo+g[a]) - r.Start[a]
		}
		l := team[worker]
		slot, err := l.fetch(ctx, r)
		if err != nil {
			return unreadable(err)
		}
		begin := time.Now()
		defer d.res.Meter.Since(meter.Compute, begin)
		if err := l.stream.Wait(); err != nil { // the other slot may be filled again
			return err
		}
		slot.Into(l.stream, l.staging)
		z, y, x := r.Start[0]-start[0], r.Start[1]-start[1], r.Start[2]-start[2]
		plane := int64(r.Shape[1]) * int64(r.Shape[2]) * int64(s.dtype.Size())
		if progress {
			d.res.progress(int64(r.Shape[0]) * plane)
		}
		for _, run := range to {
			lo, hi := max(z, run.first), min(z+r.Shape[0], run.first+run.n)
			if lo >= hi {
				continue
			}
			src := l.staging.From(int64(lo-z)*plane, int64(hi-lo)*plane)
			if err := kernels.Place(l.stream, run.from(lo-run.first, y, x), src, s.dtype, hi-lo, r.Shape[1], r.Shape[2], gain, bad); err != nil {
				return err
			}
		}
		return nil
	})
}

// team takes slots for regions of a slice, for at most n loaders, each two if there is
// the memory. The loaders that it returns have slots, also with an error.
func (d *deviceStack) team(s *stackSlice, shape [3]int, n int) ([]*stackLoader, error) {
	for i, l := range d.loaders[:n] {
		for k := range l.slots {
			slot, err := d.readers[s].Slot(shape[:])
			switch {
			case err == nil:
				l.slots[k] = slot
			case !errors.Is(err, gpu.ErrMemory) || i == 0 && k == 0:
				return d.loaders[:i+1], err
			case k == 0: // those before do the work
				return d.loaders[:i], nil
			}
		}
	}
	return d.loaders[:n], nil
}

// fetch fetches a region into the slot whose turn it is.
func (l *stackLoader) fetch(ctx context.Context, r zarr.Region) (*zarrgpu.Slot, error) {
	slot := l.slots[l.turn%2]
	l.turn++
	if slot == nil { // there is one only
		slot = l.slots[0]
	}
	if l.slots[1] == nil {
		if err := l.stream.Wait(); err != nil {
			return nil, err
		}
	}
	return slot, slot.Fetch(ctx, r)
}

// finish waits for what is queued, and gives the slots back.
func (l *stackLoader) finish() error {
	err := l.stream.Wait()
	for k, s := range l.slots {
		if s != nil {
			s.Release()
		}
		l.slots[k] = nil
	}
	return err
}

// noDeviceMemory says how much memory of the device is missing.
func (d *deviceStack) noDeviceMemory(need int64, format string, args ...any) error {
	return fmt.Errorf("%s: %s takes %d MiB of device memory, there are %d MiB: %w", d.plan.slices[0].path, fmt.Sprintf(format, args...), need>>20+1, d.device.Memory().Limit()>>20, gpu.ErrMemory)
}

// room is the device memory that the loaders leave.
func (d *deviceStack) room() int64 { return d.device.Memory().Limit() - d.held }
