package filter

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

func TestPhaseShiftGolden(t *testing.T) {
	for _, g := range golden.Primitives(t, "phase_correlation") {
		fixed := dtype.Slice[float32](g.Arrays["fixed"].Data)
		noise := dtype.Slice[float32](g.Arrays["noise"].Data)
		shape := g.Arrays["moved"].Shape
		n := shape[1] * shape[2]
		shift := dtype.Slice[int64](g.Arrays["shift"].Data)
		for k := range shape[0] {
			moved := dtype.Slice[float32](g.Arrays["moved"].Data)[k*n:][:n]
			noisy := make([]float32, n)
			for i := range noisy {
				noisy[i] = moved[i] + noise[i]
			}
			for name, m := range map[string][]float32{"clean": moved, "noisy": noisy} {
				dy, dx := PhaseShift(fixed, m, shape[1], shape[2])
				if int64(dy) != shift[2*k] || int64(dx) != shift[2*k+1] {
					t.Errorf("%s %d: shift (%d, %d), want %v", name, k, dy, dx, shift[2*k:2*k+2])
				}
			}
		}
	}
}

// texture is smoothed noise that is defined everywhere.
func texture(seed uint64, height, width, smooth int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float64, height*width)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	for range smooth {
		w := append([]float64(nil), v...)
		for y := range height {
			for x := range width {
				s := 0.0
				for d := range 9 {
					s += w[(y+d/3-1+height)%height*width+(x+d%3-1+width)%width]
				}
				v[y*width+x] = s / 9
			}
		}
	}
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(10 + v[i])
	}
	return out
}

func window(v []float32, width, y, x, ny, nx int) []float32 {
	out := make([]float32, 0, ny*nx)
	for r := range ny {
		out = append(out, v[(y+r)*width+x:][:nx]...)
	}
	return out
}

func TestPhaseShiftLargeAndOddSizes(t *testing.T) {
	const height, width = 260, 300
	for seed, smooth := range []int{0, 1, 4} {
		v := texture(uint64(seed), height, width, smooth)
		p := NewPhase()
		for _, c := range []struct{ ny, nx, dy, dx int }{
			{64, 64, 5, -9}, {53, 127, -20, 31}, {40, 200, 0, 120}, {200, 41, -130, 3}, {97, 101, 60, 58}, {128, 1, 7, 0}, {1, 128, 0, -7},
		} {
			fixed := window(v, width, 50, 90, c.ny, c.nx)
			y, x := 50+c.dy, 90+c.dx
			if y < 0 {
				continue
			}
			moving := window(v, width, (y+height)%height%(height-c.ny+1), x, c.ny, c.nx)
			if y+c.ny > height || x+c.nx > width {
				continue
			}
			if dy, dx := p.Shift(fixed, moving, c.ny, c.nx); dy != c.dy || dx != c.dx {
				t.Errorf("smooth %d, %d × %d: shift (%d, %d), want (%d, %d)", smooth, c.ny, c.nx, dy, dx, c.dy, c.dx)
			}
		}
	}
}

func TestPhaseShiftOfNothing(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	v := texture(3, 32, 48, 1)
	for name, m := range map[string][]float32{
		"zero": make([]float32, 32*48), "NaN": filled(32*48, nan), "infinite": filled(32*48, inf), "constant": filled(32*48, 7),
	} {
		for _, pair := range [][2][]float32{{v, m}, {m, v}, {m, m}} {
			if dy, dx := PhaseShift(pair[0], pair[1], 32, 48); dy != 0 || dx != 0 {
				t.Errorf("%s: shift (%d, %d)", name, dy, dx)
			}
		}
	}
	if dy, dx := PhaseShift(nil, nil, 0, 5); dy != 0 || dx != 0 {
		t.Errorf("empty: shift (%d, %d)", dy, dx)
	}
	if dy, dx := PhaseShift([]float32{1}, []float32{2}, 1, 1); dy != 0 || dx != 0 {
		t.Errorf("a pixel: shift (%d, %d)", dy, dx)
	}
	// some holes do no harm
	big := texture(5, 80, 80, 2)
	fixed, moving := window(big, 80, 8, 9, 50, 50), window(big, 80, 12, 4, 50, 50)
	for i := 0; i < len(fixed); i += 37 {
		fixed[i], moving[(i*5)%len(moving)] = nan, inf
	}
	if dy, dx := PhaseShift(fixed, moving, 50, 50); dy != 4 || dx != -5 {
		t.Errorf("with holes: shift (%d, %d), want (4, -5)", dy, dx)
	}
}

func filled(n int, v float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func BenchmarkPhaseShift(b *testing.B) {
	for _, n := range []int{256, 1200} {
		v := texture(1, n, n, 1)
		b.Run(map[int]string{256: "256", 1200: "1200"}[n], func(b *testing.B) {
			p := NewPhase()
			for b.Loop() {
				p.Shift(v, v, n, n)
			}
		})
	}
}

// Looked for near a displacement, that is found, and none beyond.
func TestMatchNear(t *testing.T) {
	const ny, nx = 48, 60
	rng := rand.New(rand.NewPCG(4, 4))
	block := make([]float32, 2*ny*2*nx)
	for i := range block {
		block[i] = rng.Float32()
	}
	cut := func(y, x int) []float32 {
		out := make([]float32, 0, ny*nx)
		for r := range ny {
			out = append(out, block[(y+r)*2*nx+x:][:nx]...)
		}
		return out
	}
	p := NewPhase()
	fixed := cut(20, 20)
	for _, d := range [][2]int{{0, 0}, {17, 3}, {-12, 20}, {5, -15}} {
		moving := cut(20+d[0], 20+d[1])
		for _, off := range [][2]int{{0, 0}, {4, -4}, {-3, 2}} {
			m := p.MatchNear(fixed, moving, ny, nx, [2]int{d[0] + off[0], d[1] + off[1]}, 4)
			if m.DY != d[0] || m.DX != d[1] || m.Correlation < 0.99 {
				t.Errorf("displaced by %v, expected %v off: found %+v", d, off, m)
			}
		}
		at := [2]int{d[0] + 6, d[1]}
		if m := p.MatchNear(fixed, moving, ny, nx, at, 4); max(abs(m.DY-at[0]), abs(m.DX-at[1])) > 4 {
			t.Errorf("%+v was found more than 4 px from %v", m, at)
		}
	}
}
