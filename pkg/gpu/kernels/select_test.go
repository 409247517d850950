//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/filter"
)

// selected runs the passes of p.
func selected(b *bench, p *Selector, add func() error) (values []float64, numbers []uint64) {
	b.t.Helper()
	p.Begin(b.stream)
	for range Passes {
		b.check(add())
		b.check(p.Next(b.stream))
	}
	return download[float64](b, p.Values), download[uint64](b, p.Numbers)
}

func TestSelectOfEach(t *testing.T) {
	b := open(t)
	const planes, ny, nx, pitch = 5, 4, 261, 270
	v := sample[float32](planes * ny * pitch)
	for i := range v {
		switch i / (ny * pitch) {
		case 1: // nothing positive
			v[i] = -v[i]
			if v[i] > 0 {
				v[i] = 0
			}
		case 2: // one value
			v[i] = 4
		case 3: // one voxel
			v[i] = 0
		}
	}
	v[3*ny*pitch+5] = 7
	a := Planes{upload(b, v), pitch, ny * pitch}
	for _, percent := range []float64{1, 50, 100} {
		p, err := NewSelector(b.device, percent, planes, true)
		b.check(err)
		for range 2 { // it can be used again
			values, numbers := selected(b, p, func() error { return p.Add(b.stream, a, a, planes, ny, nx) })
			for z := range planes {
				var in []float32
				for i, f := range v[z*ny*pitch:][:ny*pitch] {
					if i%pitch < nx && f > 0 && f <= math.MaxFloat32 {
						in = append(in, f)
					}
				}
				want := 0.0
				if len(in) > 0 {
					want = filter.Percentiles(in, percent)[0]
				}
				if values[z] != want || numbers[z] != uint64(len(in)) {
					t.Errorf("plane %d: percentile %v is %v of %d, the CPU has %v of %d", z, percent, values[z], numbers[z], want, len(in))
				}
			}
		}
		p.Release()
	}
}

func TestSelectOfAll(t *testing.T) {
	b := open(t)
	const planes, ny, nx = 3, 5, 140
	v, w := sample[float32](planes*ny*nx), sample[float32](planes*ny*nx + 1)[1:]
	a, c := Planes{upload(b, v), nx, ny * nx}, Planes{upload(b, w), nx, ny * nx}
	p, err := NewSelector(b.device, 50, 1, false)
	b.check(err)
	defer p.Release()
	for _, n := range []int{planes, 1} {
		var common []float32
		for i, f := range v[:n*ny*nx] {
			if f > 0 && w[i] > 0 {
				common = append(common, f)
			}
		}
		values, numbers := selected(b, p, func() error { // in two pieces
			if err := p.Add(b.stream, a, c, n-1, ny, nx); err != nil {
				return err
			}
			at := int64(4 * (n - 1) * ny * nx)
			return p.Add(b.stream, Planes{a.At.From(at, 4*ny*nx), nx, ny * nx}, Planes{c.At.From(at, 4*ny*nx), nx, ny * nx}, 1, ny, nx)
		})
		if want := filter.Percentiles(common, 50)[0]; values[0] != want || numbers[0] != uint64(len(common)) {
			t.Errorf("median %v of %d, the CPU has %v of %d", values[0], numbers[0], want, len(common))
		}
	}
}
