package machine

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
)

// Percentile finds a percentile of the magnitudes of elements, exactly, by counting all of them, more than once if a
// look at some does not say where it lies.
type Percentile struct {
	kind    dtype.Type
	host    *filter.MagnitudePercentile
	device  *kernels.MagnitudePercentile
	stream  *gpu.Stream // of the device
	bytes   int64       // of the counters
	looking bool
	bad     atomic.Int64
}

// NewPercentile makes a search for a percentile of the source's magnitudes, 0…100. Close gives its memory back.
func (s *Source) NewPercentile(percent float64) (*Percentile, error) {
	p := &Percentile{kind: s.mosaic.DType, looking: true}
	if s.res.Device == nil {
		p.bytes = max(1<<20, min(32<<20, s.res.Mem/8))
		p.host = filter.NewMagnitudePercentile(percent, p.bytes)
		return p, nil
	}
	p.bytes = s.res.Device.Memory().Limit() / 32
	s.fewerRows(p.onDevice())
	region := mem.Pooled(s.columns.Bytes(s.columns.SlotShape()))
	_, err := s.columns.Workers(s.res, s.res.Mem, 1<<20, mem.Pooled(1), region+p.onDevice(), "counting "+s.columns.Pieces())
	if err != nil {
		return nil, err
	}
	if p.stream, err = s.res.Device.Stream(); err != nil {
		return nil, err
	}
	if p.device, err = kernels.NewMagnitudePercentile(p.stream, p.kind, percent, p.bytes); err != nil {
		return nil, errors.Join(err, p.stream.Close())
	}
	return p, nil
}

// Close gives the memory back.
func (p *Percentile) Close() error {
	if p.device == nil {
		return nil
	}
	p.device.Release()
	return p.stream.Close()
}

// HostBytes is the memory of the host that the search takes.
func (p *Percentile) HostBytes() int64 {
	if p.device != nil {
		return 0
	}
	return p.bytes + 1<<20
}

// onDevice is the memory of a device that the search takes.
func (p *Percentile) onDevice() int64 {
	if p == nil {
		return 0
	}
	return kernels.PercentileBytes(p.kind, p.bytes)
}

// Looks reports whether a look at some elements, before Begin, spares a pass over all.
func (p *Percentile) Looks() bool { return p.device == nil || p.device.Looks() }

// Begin begins a pass over all elements; false: the percentile is known.
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

// Value is the percentile.
func (p *Percentile) Value() float32 {
	if p.device != nil {
		return p.device.Value()
	}
	return p.host.Value()
}

// NonFinite is how many elements are not finite: they do not count.
func (p *Percentile) NonFinite() int64 {
	if p.device != nil {
		return p.device.NonFinite()
	}
	return p.bad.Load()
}

// counter counts magnitudes, with the same result on every machine.
type counter interface {
	// Count counts the elements of planes in the plan's search for a percentile.
	Count(planes Block)
}

// countedAtATime is how many elements are brought to float32 at a time: they stay in the cache.
const countedAtATime = 64 << 10

func (w *host) Count(planes Block) {
	p := w.plan.Percentile
	start := time.Now()
	if p.kind != dtype.Float32 && w.piece == nil {
		w.piece = make([]float32, countedAtATime)
	}
	inFloat32(planes.host, p.kind, w.piece, func(v []float32) {
		if p.looking {
			p.host.Look(v)
		} else {
			p.bad.Add(p.host.Add(v))
		}
	})
	w.plan.Source.res.Meter.Since(meter.Compute, start)
}

// inFloat32 hands elements to take, by way of piece where they are of another type.
// What is finite in float64 only is 0.
func inFloat32(v []byte, kind dtype.Type, piece []float32, take func(v []float32)) {
	if kind == dtype.Float32 {
		take(dtype.Slice[float32](v))
		return
	}
	for len(v) > 0 {
		n := min(len(v)/kind.Size(), len(piece))
		some := v[:n*kind.Size()]
		toFloat32[kind](piece[:n], some)
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
		return w.plan.Percentile.device.Add(w.dev.Stream, planes.device, planes.device.Bytes()/int64(w.plan.Percentile.kind.Size()))
	})
}

// fewerRows lets fewer rows of a tile come to the device at a time, where it has no room for all beside so much.
func (s *Source) fewerRows(beside int64) {
	for {
		region := s.columns.Bytes(s.columns.SlotShape())
		_, slot := s.columns.Memory(s.columns.SlotShape())
		if mem.Pooled(region)+beside+slot <= s.res.Device.Memory().Limit() || !s.columns.Less() {
			return
		}
	}
}
