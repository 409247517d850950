package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
)

// measure is the speed of a kernel, counting each byte that it must read and write once.
type measure struct {
	Name           string  `json:"name"`
	Side           int     `json:"side"` // of a plane, in pixels
	Bytes          int64   `json:"bytes"`
	Seconds        float64 `json:"seconds"` // median
	BytesPerSecond float64 `json:"bytes_per_second"`
	OfCopy         float64 `json:"of_copy"`
}

// timer measures work on a stream by the device's own clock.
type timer struct {
	stream   *gpu.Stream
	from, to *gpu.Event
	repeat   int
}

// median runs f once to warm up, then repeat times, and returns the median time; that of the first run, if it is not
// repeated.
func (t *timer) median(f func() error) (float64, error) {
	var all []float64
	for i := range t.repeat + 1 {
		t.stream.Record(t.from)
		if err := f(); err != nil {
			return 0, err
		}
		t.stream.Record(t.to)
		if err := t.stream.Wait(); err != nil {
			return 0, err
		}
		s, err := t.to.Since(t.from)
		if err != nil {
			return 0, err
		}
		if i > 0 || t.repeat == 0 {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// measureKernels measures kernels on planes of side × side pixels, and a copy of as many bytes.
func measureKernels(d *gpu.Device, r *record, side int, bytes int64, repeat int) error {
	return withTimer(d, repeat, func(t *timer) error { return t.kernels(r, side, bytes) })
}

// withTimer calls f with a timer on its own stream.
func withTimer(d *gpu.Device, repeat int, f func(*timer) error) (err error) {
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t := &timer{stream: s, repeat: repeat}
	for _, e := range []**gpu.Event{&t.from, &t.to} {
		if *e, err = d.TimedEvent(); err != nil {
			return err
		}
		defer (*e).Close()
	}
	return f(t)
}

func (t *timer) kernels(r *record, side int, bytes int64) (err error) {
	s, d := t.stream, t.stream.Device()
	var a, b, c *gpu.Buffer
	for _, m := range []**gpu.Buffer{&a, &b, &c} {
		if *m, err = d.Memory().Get(bytes); err != nil {
			return err
		}
		defer (*m).Release()
	}
	if err := noise(s, a.Span); err != nil {
		return err
	}
	seconds, err := t.median(func() error { s.Copy(b.Span, a.Span); return nil })
	if err != nil {
		return err
	}
	r.CopyBytesPerSecond = float64(2*bytes) / seconds

	// volumes of nz planes
	plane := int64(side) * int64(side)
	small, err := d.Memory().Get(plane*8 + 16)
	if err != nil {
		return err
	}
	defer small.Release()
	v := &volumes{
		stream: s, a: a.Span, b: b.Span, c: c.Span, bad: small.From(0, 8), acc: small.From(16, plane*8), side: side, plane: plane, bytes: bytes,
		run: func(name string, moved int64, f func() error) error {
			seconds, err := t.median(f)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			speed := float64(moved) / seconds
			r.Kernels = append(r.Kernels, measure{name, side, moved, seconds, speed, speed / r.CopyBytesPerSecond})
			return nil
		},
	}
	for _, kind := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32} {
		for _, f := range []func(dtype.Type) error{v.projections, v.surface, v.keys, v.conversion} {
			if err := f(kind); err != nil {
				return err
			}
		}
		if err := measureFusion(s, v.run, v.a, v.b, v.c, kind, side, side); err != nil {
			return err
		}
		if err := v.halving(kind); err != nil {
			return err
		}
	}
	if err := v.resizing(); err != nil {
		return err
	}
	if err := measureBytes(s, v.run, v.a, v.b); err != nil {
		return err
	}
	if err := measureScatter(s, v.run, v.a, v.b); err != nil {
		return err
	}
	return measurePlanes(s, v.run, v.a, v.b, side, side)
}

// volumes holds the memory of the operators on volumes, whose planes have side × side pixels.
type volumes struct {
	stream       *gpu.Stream
	run          func(name string, moved int64, f func() error) error // measures f, which moves this many bytes
	a, b, c      gpu.Span                                             // a volume each
	bad, acc     gpu.Span                                             // a counter; two planes of float32, or one of float64
	side         int
	plane, bytes int64 // pixels of a plane; size of a volume
}

// planes returns the number of planes of a type that a volume holds.
func (v *volumes) planes(kind dtype.Type) int64 {
	return max(1, v.bytes/v.plane/int64(kind.Size()))
}

// projections measures add_planes, and roll by shifts that have nothing to do with each other and by those of a smooth
// surface, as a stage has.
func (v *volumes) projections(kind dtype.Type) error {
	s, nz, size := v.stream, v.planes(kind), int64(kind.Size())
	if err := v.run(fmt.Sprintf("add_planes_%v", kind), nz*v.plane*size+v.plane*16, func() error {
		return kernels.AddPlanes(s, v.acc, v.a, v.bad, kind, int(nz), v.plane, true)
	}); err != nil {
		return err
	}
	half := int(nz/2) + 1
	smooth := v.acc.From(0, 4*v.plane)
	if err := slope(s, smooth, v.side); err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		shift gpu.Span
	}{{"", v.a.From(0, 4*v.plane)}, {", smooth", smooth}} {
		if err := v.run(fmt.Sprintf("roll_%v%s", kind, c.name), 2*int64(half)*v.plane*size+v.plane*4, func() error {
			return kernels.Roll(s, v.b, v.a, v.bad, kind, half, v.side, v.side, c.shift, v.side)
		}); err != nil {
			return err
		}
	}
	return nil
}

// surface measures row_means, column_means and steepest8: each reads the volume of the one before.
func (v *volumes) surface(kind dtype.Type) error {
	size, plane, shape := int64(kind.Size()), v.plane, [2]int{v.side, v.side}
	deep := min(int(v.planes(kind)), int(v.bytes/(8*plane)))
	f, err := kernels.NewSearcher(v.stream, filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2})
	if err != nil {
		return err
	}
	defer f.Release()
	field := kernels.Field{At: v.a, Type: kind, Planes: deep, Shape: shape, Pitch: v.side, Stride: plane, Length: shape}
	return v.run(fmt.Sprintf("interface_%v", kind), int64(deep)*plane*(size+16)+8*plane, func() error {
		return f.Run(v.stream, v.acc.From(0, 4*plane), v.acc.From(4*plane, 4*plane), field, [2]int{}, shape, v.b)
	})
}

// keys measures the counting of voxels for a percentile.
func (v *volumes) keys(kind dtype.Type) error {
	s, n := v.stream, v.planes(kind)*v.plane
	p, err := kernels.NewMagnitudePercentile(s, kind, 99.9, 8<<20)
	if err != nil {
		return err
	}
	defer p.Release()
	if err := p.Add(s, v.a, v.plane); err != nil {
		return err
	}
	if _, err := p.Begin(s); err != nil {
		return err
	}
	return v.run(fmt.Sprintf("keys_%v", kind), n*int64(kind.Size()), func() error { return p.Add(s, v.a, n) })
}

// conversion measures from_float32 for the types that it makes.
func (v *volumes) conversion(kind dtype.Type) error {
	if kind == dtype.Float32 {
		return nil
	}
	size, n := int64(kind.Size()), v.planes(kind)*v.plane
	m := min(n*size/4, n) // as many float32 as fit
	return v.run(fmt.Sprintf("from_float32_%v", kind), m*(size+4), func() error {
		return kernels.FromFloat32(v.stream, v.b, v.a, kind, m)
	})
}

// halving measures downsample, which needs two planes.
func (v *volumes) halving(kind dtype.Type) error {
	shape := [3]int{int(v.planes(kind)) &^ 1, v.side, v.side}
	if shape[0] < 2 {
		return nil
	}
	h, err := kernels.HalvingOf(shape, true, kind)
	if err != nil {
		return err
	}
	taps, err := v.stream.Device().Host(int(h.TableBytes()))
	if err != nil {
		return err
	}
	defer taps.Release()
	table := v.b.From(v.b.Bytes()/2, h.TableBytes())
	return v.run(fmt.Sprintf("downsample_%v", kind), int64(shape[0])*v.plane*int64(kind.Size())*9/8, func() error {
		return h.Run(v.stream, v.b, v.a, taps.B, table)
	})
}

// resizing measures the filter of resample along y and x.
func (v *volumes) resizing() error {
	nz, n := v.planes(dtype.Float32), int64(v.side)
	out := min(205, v.side*4/5+1) // of the length of a side
	for _, p := range []struct {
		name         string
		outer, inner int64
	}{{"along_y_float32", nz, n}, {"along_x_float32", nz * n, 1}} {
		w, err := kernels.NewWeights(v.stream, filter.CornerAligned(v.side, out, filter.AntiAliasSigma(v.side, out), filter.Reflect))
		if err != nil {
			return err
		}
		err = v.run(p.name, 4*p.outer*p.inner*int64(v.side+out), func() error {
			return w.Apply(v.stream, v.b, v.a, dtype.Float32, p.outer, p.inner)
		})
		w.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// slope fills memory with shifts of rows of the given length.
func slope(s *gpu.Stream, m gpu.Span, side int) error {
	h, err := s.Device().Host(int(m.Bytes()))
	if err != nil {
		return err
	}
	defer h.Release()
	v := dtype.Slice[float32](h.B)
	for i := range v {
		v[i] = float32(i%side)*0.05 + float32(i/side)*0.03
	}
	s.Upload(m, h.B)
	return s.Wait()
}

// noise fills memory with finite float32 noise, which is noise for other types too.
func noise(s *gpu.Stream, m gpu.Span) error {
	h, err := s.Device().Host(8 << 20)
	if err != nil {
		return err
	}
	defer h.Release()
	rng := rand.New(rand.NewPCG(1, 2))
	v := dtype.Slice[float32](h.B)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * 300)
	}
	for at := int64(0); at < m.Bytes(); at += int64(len(h.B)) {
		n := min(int64(len(h.B)), m.Bytes()-at)
		s.Upload(m.From(at, n), h.B[:n])
	}
	return s.Wait()
}
