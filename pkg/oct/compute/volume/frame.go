package volume

import (
	"time"

	"strata/pkg/filter"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// framer works on a part of planes and on its surroundings, with the same bits on every machine.
type framer interface {
	// Clear sets planes to zero outside the rectangle covered, which is about to be overwritten and whose content
	// becomes undefined.
	Clear(planes []Plane, covered oct.Rectangle)
	// Scale multiplies a part of each plane by the plane's gain.
	Scale(planes []Plane, part oct.Rectangle, gains []float32)
}

func (h *host) Clear(planes []Plane, covered oct.Rectangle) {
	ny, nx := h.canvas.Image.Shape[1], h.canvas.Image.Shape[2]
	if len(planes) == 0 || covered == oct.Rect(0, ny, 0, nx) {
		return
	}
	h.try(func() error {
		return h.each(len(planes), len(h.own), func(_ *growing, i int) error {
			v, at := planes[i].host, 0
			for y := covered.Y0; y < covered.Y1; y++ {
				clear(v[at:max(at, y*nx+covered.X0)])
				at = y*nx + covered.X1
			}
			clear(v[at:])
			return nil
		})
	})
}

func (h *host) Scale(planes []Plane, part oct.Rectangle, gains []float32) {
	h.try(func() error {
		return h.each(len(planes), len(h.own), func(_ *growing, i int) error {
			if gains[i] == 1 {
				return nil
			}
			start := time.Now()
			for y := part.Y0; y < part.Y1; y++ {
				row := planes[i].row(y, part.X0, part.X1)
				filter.Combine(row, row, 0, gains[i:i+1])
			}
			h.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

func (d *device) Clear(planes []Plane, covered oct.Rectangle) {
	ny, nx := d.canvas.Image.Shape[1], d.canvas.Image.Shape[2]
	if covered == oct.Rect(0, ny, 0, nx) {
		return
	}
	d.try(func() error {
		for _, p := range planes {
			d.worker.Stream.Zero(p.device.From(0, 4*int64(d.canvas.area())))
		}
		return nil
	})
}

func (d *device) Scale(planes []Plane, part oct.Rectangle, gains []float32) {
	d.try(func() error {
		return eachRun(planes, part.Y0, part.X0, func(first, n int, at kernels.Planes) error {
			return eachAlike(gains[first:first+n], func(k, n int, gain float32) error {
				if gain == 1 {
					return nil
				}
				return kernels.Brighten(d.worker.Stream, behind(at, k), n, part.Height(), part.Width(), gain)
			})
		})
	})
}

// behind returns the planes from the k-th on.
func behind(p kernels.Planes, k int) kernels.Planes {
	skip := 4 * int64(k) * p.Stride
	p.At = p.At.From(skip, p.At.Bytes()-skip)
	return p
}

// eachAlike calls f for each run of equal consecutive factors: n of them from the k-th on.
func eachAlike(gains []float32, f func(k, n int, gain float32) error) error {
	for k := 0; k < len(gains); {
		n := 1
		for k+n < len(gains) && gains[k+n] == gains[k] {
			n++
		}
		if err := f(k, n, gains[k]); err != nil {
			return err
		}
		k += n
	}
	return nil
}
