package volume

import (
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// turner resamples planes by a rigid transform, with the same bits on every machine.
type turner interface {
	// Raw returns planes of ny × nx pixels to be resampled, as many as there is room for. Their content lasts until
	// the next Load into them.
	Raw(ny, nx int) []Plane
	// Turn resamples raw planes and stores the turn's part of each in the corresponding plane of to.
	Turn(to, raw []Plane, t Turn)
}

// Turn describes how planes of NY × NX pixels are resampled and where they go. Pixels outside them get the 1st
// percentile of the plane's positive values.
type Turn struct {
	Rigid  filter.Rigid
	Warp   *bspline.Warp // displacements on top of Rigid; nil: none. On the host only
	NY, NX int
	Part   oct.Rectangle // part of the destination that is written
	DY, DX int           // position of their origin in the destination
}

// outside is the percentile of a plane that fills its outside.
const outside = 1

func (h *host) Raw(ny, nx int) []Plane {
	return Planes(h.raw, len(h.raw)/int(max(1, h.canvas.RawArea)), ny, nx)
}

func (h *host) Turn(to, raw []Plane, t Turn) {
	if t.Warp != nil {
		h.warp(to, raw, t)
		return
	}
	h.try(func() error {
		return h.each(len(raw), len(h.own), func(scratch *growing, i int) error {
			b, err := scratch.get(4 * t.NY * t.NX)
			if err != nil {
				return err
			}
			start := time.Now()
			v, r := dtype.Slice[float32](b), t.Part
			fill := filter.PositivePercentile(raw[i].host, v, outside)
			t.Rigid.Resample(v, raw[i].host, t.NY, t.NX, 0, t.NY, fill)
			for y := r.Y0; y < r.Y1; y++ {
				copy(to[i].row(y, r.X0, r.X1), v[(y-t.DY)*t.NX+r.X0-t.DX:])
			}
			h.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

// warp is Turn for a transform with displacements. It computes the source position of each pixel once per row, for all
// planes.
func (h *host) warp(to, raw []Plane, t Turn) {
	fills := make([]float32, len(raw))
	h.try(func() error {
		return h.each(len(raw), len(h.own), func(scratch *growing, i int) error {
			b, err := scratch.get(4 * t.NY * t.NX)
			if err != nil {
				return err
			}
			start := time.Now()
			fills[i] = filter.PositivePercentile(raw[i].host, dtype.Slice[float32](b), outside)
			h.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
	h.try(func() error {
		r := t.Part
		return h.each(r.Height(), len(h.own), func(scratch *growing, i int) error {
			n := r.Width()
			b, err := scratch.get(16 * n)
			if err != nil {
				return err
			}
			start := time.Now()
			places := dtype.Slice[float64](b)
			xs, ys := places[:n], places[n:2*n]
			t.Warp.Places(xs, ys, t.Rigid, r.Y0+i-t.DY, r.X0-t.DX)
			for k, p := range raw {
				row := to[k].row(r.Y0+i, r.X0, r.X1)
				for x := range row {
					row[x] = filter.Linear(p.host, t.NY, t.NX, xs[x], ys[x], fills[k])
				}
			}
			h.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

func (d *device) Raw(ny, nx int) []Plane { return planesOn(d.raw, d.rawPlanes, ny, nx) }

func (d *device) Turn(to, raw []Plane, t Turn) {
	d.try(func() error {
		stream, n := d.worker.Stream, len(raw)
		from := kernels.Planes{At: raw[0].device, Pitch: t.NX, Stride: int64(t.NY) * int64(t.NX)}
		d.fills.Begin(stream)
		for range kernels.Passes {
			if err := d.fills.Add(stream, from, from, n, t.NY, t.NX); err != nil {
				return err
			}
			if err := d.fills.Next(stream); err != nil {
				return err
			}
		}
		box := kernels.Box{Y: t.Part.Y0 - t.DY, X: t.Part.X0 - t.DX, Height: t.Part.Height(), Width: t.Part.Width()}
		return eachRun(to, t.Part.Y0, t.Part.X0, func(first, n int, at kernels.Planes) error {
			fills := d.fills.Values.From(8*int64(first), 8*int64(n))
			return kernels.ResampleRigid(stream, at, raw[first].device, t.Rigid, n, t.NY, t.NX, box, fills)
		})
	})
}
