package compute

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// A Percentile is the operator of a [Counter]. It finds an exact percentile of the magnitudes of elements by counting
// all of them. If a preliminary look at some elements does not locate it, all are counted more than once.
type Percentile struct {
	summing
	kind    dtype.Type
	host    *filter.MagnitudePercentile
	device  *kernels.MagnitudePercentile
	stream  *gpu.Stream // of the device
	bytes   int64       // of the counters
	looking bool
	bad     atomic.Int64
}

// mostCounters is the maximum size in bytes of the counters on the host. A device that joins needs twice the bytes of
// these counters, rounded up to a power of two: with this maximum, 64 MiB.
const mostCounters = 65 << 19

// NewPercentile returns a search for a percentile, 0…100, of the source's magnitudes. Close releases its memory.
func (s *Source) NewPercentile(percent float64) (*Percentile, error) {
	p := &Percentile{kind: s.mosaic.DType, looking: true}
	if s.res.Device == nil {
		p.bytes = max(1<<20, min(mostCounters, s.res.Mem/8))
		p.host = filter.NewMagnitudePercentile(percent, p.bytes)
		return p, nil
	}
	p.bytes = s.res.Device.Memory().Limit() / 32
	s.fewerRows(p.onDevice())
	region := mem.Pooled(s.columns.Bytes(s.columns.SlotShape()))
	_, err := s.columns.Workers(transfer.Needs{What: "counting " + s.columns.Pieces(), Mem: s.res.Mem, Host: 1 << 20, Place: mem.Pooled(8), Device: region + p.onDevice()})
	if err != nil {
		return nil, err
	}
	return p, p.begin(s.res.Device, percent)
}

// begin takes the device's memory.
func (p *Percentile) begin(d *gpu.Device, percent float64) (err error) {
	if p.stream, err = d.Stream(); err != nil {
		return err
	}
	if p.device, err = kernels.NewMagnitudePercentile(p.stream, p.kind, percent, p.bytes); err != nil {
		return errors.Join(err, p.stream.Close())
	}
	return nil
}

// Join returns counters on a device that shares the first pass with the host's counters p. s is the source of the same
// mosaic on the device. [Percentile.Merge] adds the device's counts to p; Close releases the memory.
func (p *Percentile) Join(s *Source) (*Percentile, error) {
	from, to := p.host.Window()
	q := &Percentile{kind: p.kind, bytes: 1 << bits.Len32(8*(to-from)-1)}
	s.fewerRows(q.onDevice())
	if err := q.begin(s.res.Device, 0); err != nil {
		return nil, err
	}
	if err := q.device.Window(q.stream, from, to); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Merge adds to p the counts of q, which [Percentile.Join] returned in this pass. No worker may be counting.
func (p *Percentile) Merge(q *Percentile) error {
	n, err := q.device.Counted(q.stream, p.host.AddCounted)
	p.bad.Add(n)
	return err
}

// Joins reports whether a device can join the pass that has begun.
func (p *Percentile) Joins() bool { return p.host != nil && p.host.Passes() == 1 }

// Close releases the memory.
func (p *Percentile) Close() error {
	if p.device == nil {
		return nil
	}
	p.device.Release()
	return p.stream.Close()
}

// HostBytes returns the host memory of the search.
func (p *Percentile) HostBytes() int64 {
	if p.device != nil {
		return 0
	}
	return p.bytes + 1<<20
}

// onHost returns the memory in which a worker converts elements to float32.
func (p *Percentile) onHost(*Plan) int64 { return 4 * countedAtATime }

func (p *Percentile) needs(_ *Plan, n *transfer.Needs) { n.Shared += p.onDevice() }

// onDevice returns the device memory of the search.
func (p *Percentile) onDevice() int64 {
	return kernels.PercentileBytes(p.kind, p.bytes)
}

// Looks reports whether sampling some elements before Begin saves a pass over all elements.
func (p *Percentile) Looks() bool { return p.device == nil || p.device.Looks() }

// Begin begins a pass over all elements. It returns false if the percentile is known.
func (p *Percentile) Begin() (bool, error) {
	p.looking = false
	if p.device != nil {
		return p.device.Begin(p.stream)
	}
	more := p.host.Begin()
	if more {
		p.bad.Store(0)
	}
	return more, nil
}

// Value returns the percentile.
func (p *Percentile) Value() float32 {
	if p.device != nil {
		return p.device.Value()
	}
	return p.host.Value()
}

// NonFinite returns the number of non-finite elements, which are ignored.
func (p *Percentile) NonFinite() int64 {
	if p.device != nil {
		return p.device.NonFinite()
	}
	return p.bad.Load()
}

// Counter is a worker that counts magnitudes, with the same result on every machine.
type Counter interface {
	Worker
	// Count counts the elements of planes for the plan's Percentile.
	Count(planes Block)
}

// countedAtATime is the number of elements converted to float32 at a time, chosen to fit the cache.
const countedAtATime = 64 << 10

func (w *host) Count(planes Block) {
	w.compute(func() { w.err = operatorOf[*Percentile](w.plan).count(w.ctx, planes.host) })
}

// countedByOne is the number of bytes that a processor counts at a time.
const countedByOne = 4 << 20

// countSpaces keeps the conversion buffers between counts.
var countSpaces = sync.Pool{New: func() any { return new([countedAtATime]float32) }}

// count counts elements, on idle processors as well. It looks at them in their order.
func (p *Percentile) count(ctx context.Context, v []byte) error {
	one, take := countedByOne, func(v []float32) { p.bad.Add(p.host.Add(v)) }
	if p.looking {
		one, take = max(1, len(v)), p.host.Look
	}
	return work.Split(ctx, (len(v)+one-1)/one, 4*countedAtATime, func(i int) error {
		piece := countSpaces.Get().(*[countedAtATime]float32)
		defer countSpaces.Put(piece)
		inFloat32(v[i*one:min((i+1)*one, len(v))], p.kind, piece[:], take)
		return nil
	})
}

// inFloat32 passes elements to take as float32. Elements of other types are first converted into piece. A finite
// float64 that overflows float32 becomes 0.
func inFloat32(v []byte, kind dtype.Type, piece []float32, take func(v []float32)) {
	if kind == dtype.Float32 {
		take(dtype.Slice[float32](v))
		return
	}
	for len(v) > 0 {
		n := min(len(v)/kind.Size(), len(piece))
		some := v[:n*kind.Size()]
		filter.FromStored(kind, piece[:n], some)
		if kind == dtype.Float64 {
			for i, f := range dtype.Slice[float64](some) {
				if f-f == 0 && math.Abs(float64(piece[i])) > math.MaxFloat32 {
					piece[i] = 0
				}
			}
		}
		take(piece[:n])
		v = v[len(some):]
	}
}

func (w *onDevice) Count(planes Block) {
	w.try(func() error {
		p := operatorOf[*Percentile](w.plan)
		return p.device.Add(w.dev.Stream, planes.device, planes.device.Bytes()/int64(p.kind.Size()))
	})
}

// fewerRows reduces the rows of a tile that are on the device at a time until they fit besides the given number of
// bytes.
func (s *Source) fewerRows(beside int64) {
	for {
		region := s.columns.Bytes(s.columns.SlotShape())
		_, slot := s.columns.Memory(s.columns.SlotShape())
		if mem.Pooled(region)+beside+slot <= s.res.Device.Memory().Limit() || !s.columns.Less() {
			return
		}
	}
}
