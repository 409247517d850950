//go:build !nocuda

package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
)

func TestPhaseSurface(t *testing.T) {
	b := open(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ ny, nx, dy, dx int }{{31, 40, 3, -7}, {24, 25, 0, 5}, {1, 60, 0, 9}, {50, 1, -4, 0}} {
		// two windows of one texture, the second dimmer and with holes
		const margin = 10
		width := c.nx + 2*margin
		texture := make([]float64, (c.ny+2*margin)*width)
		for i := range texture {
			texture[i] = rng.NormFloat64()
		}
		see := func(y, x int, gain float64) []float32 {
			v := make([]float32, 0, c.ny*c.nx)
			for r := range c.ny {
				for k := range c.nx {
					at := (margin+y+r)*width + margin + x + k
					v = append(v, float32(gain*(100+texture[at]+texture[at-1]+float64(r)/4)))
				}
			}
			return v
		}
		fixed, moving := see(0, 0, 1), see(c.dy, c.dx, 1e-3)
		if len(moving) > 500 {
			moving[77], fixed[300] = float32(math.NaN()), float32(math.Inf(1))
		}
		ny, nx := filter.SurfaceSize(c.ny, c.nx)
		start, want := sample[float32](40)[0], make([]float32, ny*nx)
		for i := range want {
			want[i] = start
		}
		sum := upload(b, want)
		if !filter.NewPhase().Surface(want, fixed, moving, c.ny, c.nx) {
			t.Fatalf("%+v: the CPU has no surface", c)
		}
		p, err := NewPhase(b.stream, c.ny, c.nx)
		b.check(err)
		ok, err := p.Surface(b.stream, sum, upload(b, fixed), upload(b, moving))
		b.check(err)
		if !ok {
			t.Fatalf("%+v: no surface", c)
		}
		highest, top := float32(0), 0
		for i, v := range want {
			if v-start > highest {
				highest, top = v-start, i
			}
		}
		if y, x := (c.dy+ny)%ny, (c.dx+nx)%nx; max(c.ny, c.nx) < 50 && top != y*nx+x {
			t.Errorf("%+v: the maximum is at (%d, %d)", c, top/nx, top%nx)
		}
		rounding := math.Abs(float64(start)) * 0x1p-23
		for i, v := range download[float32](b, sum) {
			if d := math.Abs(float64(v) - float64(want[i])); d > 1e-6*float64(highest)+rounding {
				t.Fatalf("%+v: element %d is %v, the CPU has %v: off by %g of the maximum", c, i, v, want[i], d/float64(highest))
			}
		}
		for name, none := range map[string][]float32{"constant": make([]float32, c.ny*c.nx), "NaN": nans(c.ny * c.nx)} {
			ok, err := p.Surface(b.stream, sum, upload(b, fixed), upload(b, none))
			b.check(err)
			if ok {
				t.Errorf("%s: a surface of a plane of %s", fmt.Sprint(c), name)
			}
		}
		p.Release()
	}
}

func nans(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.NaN())
	}
	return v
}
