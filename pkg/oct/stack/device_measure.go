package stack

import (
	"context"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct/machine"
)

// measure is [stackPlan.measure] on the device: sums are made in the same order, and so
// are the correlations and what they decide. Per overlap 40 bytes come back.
//
// What is measured goes to the device again when the slices are placed: only
// after that is known where. Keeping it would take the ends of all slices.
func (d *deviceStack) measure(ctx context.Context) (err error) {
	ms := newMeasuring(d.plan)
	if ms == nil {
		return nil
	}
	w, err := machine.NewDeviceWorker(d.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.End()) }()
	m := &deviceMeasuring{deviceStack: d, measuring: ms, worker: w}
	if err := m.begin(); err != nil {
		return err
	}
	for y := ms.y0; y < ms.y1; {
		end := min(y/ms.rows*ms.rows+ms.rows, ms.y1) // strips end where chunks do
		if err := m.strip(ctx, y, end); err != nil {
			return err
		}
		y = end
	}
	w.Stream.Download(m.host, m.sums)
	if err := w.Stream.Wait(); err != nil {
		return err
	}
	at := int64(0)
	for _, pair := range ms.pairs {
		n := sumsOf(pair)
		pair.sums = kernels.Moments(m.host[at:at+n], pair.m.search.lo, (pair.y1-pair.y0)*(pair.x1-pair.x0))
		at += n
	}
	ms.decide(d.res)
	return nil
}

// deviceMeasuring is a pass over the centres of planes on a device.
type deviceMeasuring struct {
	*deviceStack
	*measuring
	worker  *machine.DeviceWorker
	strips  [2]gpu.Span // of two slices
	scratch gpu.Span
	sums    gpu.Span // of all pairs, one after the other
	host    []byte   // page-locked: the sums
}

// sumsOf is the size of a pair's sums.
func sumsOf(pair *measuredPair) int64 {
	dst, _ := kernels.OverlapBytes(pair.m.search.lo, pair.m.search.hi, 1)
	return dst
}

// begin takes the memory: for strips of as many rows of chunks as half of it holds, and
// of less than one only where that is too much, or the driver has less.
func (m *deviceMeasuring) begin() (err error) {
	sums := int64(0)
	for _, pair := range m.pairs {
		sums += sumsOf(pair)
	}
	if m.host, err = m.worker.Pinned(int(sums)); err != nil {
		return err
	}
	if m.sums, err = m.worker.Memory(sums); err != nil {
		return err
	}
	m.worker.Stream.Zero(m.sums)
	bytes := func(rows int) (strip, scratch int64) {
		rows = min(rows, m.y1-m.y0)
		for _, n := range m.needs {
			strip = max(strip, 4*int64(n.elements(rows)))
		}
		for _, pair := range m.pairs {
			_, s := kernels.OverlapBytes(pair.m.search.lo, pair.m.search.hi, rows)
			scratch = max(scratch, s)
		}
		return mem.Pooled(strip), mem.Pooled(scratch)
	}
	all := func(rows int) int64 {
		strip, scratch := bytes(rows)
		return 2*strip + scratch
	}
	room := m.room() - mem.Pooled(sums)
	m.rows = (m.y1 + m.chunk - 1) / m.chunk * m.chunk
	for m.rows > m.chunk && all(m.rows) > room/2 {
		m.rows -= m.chunk
	}
	for {
		strip, scratch := bytes(m.rows)
		if all(m.rows) <= room {
			var v []gpu.Span
			if v, err = m.worker.Memories(strip, strip, scratch); err == nil {
				m.strips, m.scratch = [2]gpu.Span{v[0], v[1]}, v[2]
				return nil
			}
			if !errors.Is(err, gpu.ErrMemory) {
				return err
			}
		}
		if m.rows == 1 {
			if err != nil { // the driver has less
				return err
			}
			return m.noDeviceMemory(all(1)+m.held, "measuring the overlap of slices of %v voxels in chunks of %v", m.needs[0].slice.shape, m.needs[0].slice.chunk)
		}
		m.rows = (m.rows + 1) / 2
	}
}

// strip correlates rows y0…y1−1, for all pairs, in order.
func (m *deviceMeasuring) strip(ctx context.Context, y0, y1 int) error {
	at := int64(0)
	var kept deviceStrip
	for i, n := range m.needs {
		read := deviceStrip{need: n, y0: y0, ny: max(0, min(y1, n.slice.shape[1])-y0), nx: n.x1 - n.x0, v: m.strips[i%2]}
		if err := m.load(ctx, read); err != nil {
			return err
		}
		if pair := n.asMoving; pair != nil {
			if err := m.correlate(pair, kept, read, y0, y1, m.sums.From(at, sumsOf(pair))); err != nil {
				return err
			}
			at += sumsOf(pair)
		}
		kept = read
	}
	return nil
}

// deviceStrip is a strip of a slice on the device: planes × rows × columns.
type deviceStrip struct {
	need   *stripNeed
	v      gpu.Span
	y0, ny int
	nx     int
}

// load brings the voxels of a strip there.
func (m *deviceMeasuring) load(ctx context.Context, s deviceStrip) error {
	if s.ny == 0 {
		return nil
	}
	plane, stride := 0, int64(s.ny)*int64(s.nx)
	for _, span := range s.need.spans {
		n := span[1] - span[0]
		run := planeRun{n: n, at: kernels.Planes{At: s.v.From(4*int64(plane)*stride, 4*int64(n)*stride), Pitch: s.nx, Stride: stride}}
		err := m.deviceStack.load(ctx, &stackLoad{
			slice: s.need.slice, start: [3]int{span[0], s.y0, s.need.x0}, shape: [3]int{n, s.ny, s.nx}, gain: 1, to: []planeRun{run},
		})
		if err != nil {
			return err
		}
		plane += n
	}
	return nil
}

// planes are planes of a strip from a plane of the slice on, at a pixel.
func (s deviceStrip) planes(z, y, x int) kernels.Planes {
	run := planeRun{at: kernels.Planes{At: s.v, Pitch: s.nx, Stride: int64(s.ny) * int64(s.nx)}}
	return run.from(s.need.plane(z), y-s.y0, x-s.need.x0)
}

// correlate adds the sums of the pair's rows in a strip to sums.
func (m *deviceMeasuring) correlate(pair *measuredPair, fixed, moving deviceStrip, y0, y1 int, sums gpu.Span) error {
	y0, y1 = max(y0, pair.y0), min(y1, pair.y1)
	if y0 >= y1 {
		return nil
	}
	start := time.Now()
	s := pair.m.search
	a := fixed.planes(pair.m.fixed.shape[0]-s.hi, y0, pair.x0)
	b := moving.planes(s.first, y0, pair.x0)
	if err := kernels.OverlapMoments(m.worker.Stream, sums, m.scratch, a, b, s.lo, s.hi, y1-y0, pair.x1-pair.x0); err != nil {
		return err
	}
	err := m.worker.Stream.Wait() // the memory of the fixed slice is the next one's
	m.res.Meter.Since(meter.Compute, start)
	return err
}
