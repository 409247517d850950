package volume

import (
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// mixer mixes planes, with the same bits on every machine.
type mixer interface {
	// Mix mixes moving planes into fixed ones; the first pair uses the mix's weight and gain with index at.
	Mix(m *Mix, at int, fixed, moving []Plane)
}

// Mix describes how planes are mixed. The moving planes are first multiplied by their gains and moved by (−DY,
// −DX), with their edges repeated.
type Mix struct {
	Part    oct.Rectangle
	Weights []float64 // by plane, of the moving one; nil: keep the plane with more voxels above 0, or the moving one if the numbers are equal
	Gains   []float32 // by plane
	DY, DX  int
}

func (h *host) Mix(m *Mix, at int, fixed, moving []Plane) {
	h.try(func() error {
		return h.each(len(fixed), len(h.own), func(_ *growing, i int) error {
			start := time.Now()
			m.mix(at+i, fixed[i], moving[i])
			h.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

// mix mixes the k-th plane.
func (m *Mix) mix(k int, fixed, moving Plane) {
	r, gain := m.Part, m.Gains[k]
	width := r.Width()
	moved := make([]float32, 0, width)
	row := func(y int) []float32 {
		src := moving.row(min(max(y-m.DY, r.Y0), r.Y1-1), r.X0, r.X1)
		if m.DX == 0 {
			return src
		}
		moved = moved[:0]
		for x := range width {
			moved = append(moved, src[min(max(x-m.DX, 0), width-1)])
		}
		return moved
	}
	if m.Weights != nil {
		for y := r.Y0; y < r.Y1; y++ {
			filter.Mix(fixed.row(y, r.X0, r.X1), row(y), m.Weights[k], gain)
		}
		return
	}
	here, there := 0, 0
	for y := r.Y0; y < r.Y1; y++ {
		here += positive(fixed.row(y, r.X0, r.X1))
		there += positive(row(y))
	}
	if there < here {
		return
	}
	for y := r.Y0; y < r.Y1; y++ {
		dst := fixed.row(y, r.X0, r.X1)
		for x, f := range row(y) {
			dst[x] = f * gain
		}
	}
}

func positive(v []float32) (n int) {
	for _, f := range v {
		if f > 0 {
			n++
		}
	}
	return n
}

func (d *device) Mix(m *Mix, at int, fixed, moving []Plane) {
	r := m.Part
	d.try(func() error {
		if d.mixing != m { // weights go up once
			if err := d.wait(); err != nil { // those of the mix before are not read any more
				return err
			}
			copy(d.table, dtype.Bytes(m.Weights))
			d.worker.Stream.Upload(d.weights, d.table[:8*len(m.Weights)])
			d.mixing = m
		}
		return eachPair(fixed, moving, r.Y0, r.X0, func(first, n int, a, b kernels.Planes) error {
			return eachAlike(m.Gains[at+first:][:n], func(k, n int, gain float32) error {
				if m.Weights == nil {
					return d.fuller(m, gain, n, behind(a, k), behind(b, k))
				}
				w := d.weights.From(8*int64(at+first+k), 8*int64(n))
				return kernels.Mix(d.worker.Stream, behind(a, k), behind(b, k), n, r.Height(), r.Width(), w, gain, m.DY, m.DX)
			})
		})
	})
}

// fuller keeps, for each pair of planes, the one with more voxels above 0.
func (d *device) fuller(m *Mix, gain float32, n int, fixed, moving kernels.Planes) error {
	stream, height, width := d.worker.Stream, m.Part.Height(), m.Part.Width()
	for k := range n {
		here, there := behind(fixed, k), behind(moving, k)
		v := there
		if m.DY != 0 || m.DX != 0 { // what its voxels are once it is moved
			v = kernels.Planes{At: d.sums[0], Pitch: width}
			if err := kernels.Scale(stream, v, there, 1, height, width, 1, m.DY, m.DX); err != nil {
				return err
			}
		}
		stream.Zero(d.counts)
		for i, p := range []kernels.Planes{here, v} {
			if err := kernels.CountCommon(stream, d.counts.From(8*int64(i), 8), p, p, 1, height, width); err != nil {
				return err
			}
		}
		stream.Download(d.numbers[:16], d.counts)
		if err := d.wait(); err != nil {
			return err
		}
		if n := dtype.Slice[uint64](d.numbers); n[1] < n[0] {
			continue
		}
		if err := kernels.Scale(stream, here, there, 1, height, width, gain, m.DY, m.DX); err != nil {
			return err
		}
	}
	return nil
}
