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

// median runs f once to warm up, then repeat times, and returns the median time.
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
		if i > 0 {
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
	nx, ny := side, side
	plane := int64(side) * int64(side)
	small, err := d.Memory().Get(plane*8 + 8)
	if err != nil {
		return err
	}
	defer small.Release()
	bad, acc := small.From(0, 8), small.From(8, plane*8)
	planes := func(t dtype.Type) int64 { return max(1, bytes/plane/int64(t.Size())) }
	run := func(name string, moved int64, f func() error) error {
		seconds, err := t.median(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		speed := float64(moved) / seconds
		r.Kernels = append(r.Kernels, measure{name, side, moved, seconds, speed, speed / r.CopyBytesPerSecond})
		return nil
	}
	for _, kind := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32} {
		nz, size := planes(kind), int64(kind.Size())
		n := nz * plane
		search := &filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2}
		if err := run(fmt.Sprintf("add_planes_%v", kind), n*size+plane*16, func() error {
			return kernels.AddPlanes(s, acc, a.Span, bad, kind, int(nz), plane, true)
		}); err != nil {
			return err
		}
		half := int(nz/2) + 1
		shift := a.From(0, 4*plane)
		if err := run(fmt.Sprintf("roll_%v", kind), 2*int64(half)*plane*size+plane*4, func() error {
			return kernels.Roll(s, b.Span, a.Span, bad, kind, half, ny, nx, shift, nx)
		}); err != nil {
			return err
		}
		m := n * size / 4 // as many float32 as fit
		m = min(m, n)
		// row_means, column_means and steepest8: each reads the volume of the one before
		deep := min(int(nz), int(bytes/(8*plane)))
		f, err := kernels.NewSearcher(s, *search)
		if err != nil {
			return err
		}
		field := kernels.Field{At: a.Span, Type: kind, Planes: deep, Shape: [2]int{ny, nx}, Pitch: nx, Stride: plane, Length: [2]int{ny, nx}}
		err = run(fmt.Sprintf("interface_%v", kind), int64(deep)*plane*(size+16)+8*plane, func() error {
			return f.Run(s, acc.From(0, 4*plane), acc.From(4*plane, 4*plane), field, [2]int{}, [2]int{ny, nx}, b.Span)
		})
		f.Release()
		if err != nil {
			return err
		}
		p, err := kernels.NewMagnitudePercentile(s, kind, 99.9, 8<<20)
		if err != nil {
			return err
		}
		if err = p.Add(s, a.Span, plane); err == nil {
			if _, err = p.Begin(s); err == nil {
				err = run(fmt.Sprintf("keys_%v", kind), n*size, func() error { return p.Add(s, a.Span, n) })
			}
		}
		p.Release()
		if err != nil {
			return err
		}
		if kind != dtype.Float32 {
			if err := run(fmt.Sprintf("from_float32_%v", kind), m*(size+4), func() error {
				return kernels.FromFloat32(s, b.Span, a.Span, kind, m)
			}); err != nil {
				return err
			}
		}
		if err := measureFusion(s, run, a.Span, b.Span, c.Span, kind, ny, nx); err != nil {
			return err
		}
		shape := [3]int{int(nz) &^ 1, ny, nx}
		if shape[0] > 1 {
			h, err := kernels.HalvingOf(shape, true, kind)
			if err != nil {
				return err
			}
			taps, err := s.Device().Host(int(h.TableBytes()))
			if err != nil {
				return err
			}
			table := b.From(b.Bytes()/2, h.TableBytes())
			err = run(fmt.Sprintf("downsample_%v", kind), int64(shape[0])*plane*size*9/8, func() error {
				return h.Run(s, b.Span, a.Span, taps.B, table)
			})
			taps.Release()
			if err != nil {
				return err
			}
		}
	}
	nz := planes(dtype.Float32)
	for _, p := range []struct {
		name         string
		in, out      int
		outer, inner int64
	}{{"along_y_float32", ny, 205, nz, int64(nx)}, {"along_x_float32", nx, 205, nz * int64(ny), 1}} {
		w, err := kernels.NewWeights(s, filter.CornerAligned(p.in, p.out, filter.AntiAliasSigma(p.in, p.out), filter.Reflect))
		if err != nil {
			return err
		}
		err = run(p.name, 4*p.outer*p.inner*int64(p.in+p.out), func() error { return w.Apply(s, b.Span, a.Span, dtype.Float32, p.outer, p.inner) })
		w.Release()
		if err != nil {
			return err
		}
	}
	if err := measureBytes(s, run, a.Span, b.Span); err != nil {
		return err
	}
	if err := measureScatter(s, run, a.Span, b.Span); err != nil {
		return err
	}
	return measurePlanes(s, run, a.Span, b.Span, ny, nx)
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
