package filter

import (
	"fmt"
	"math"
	"testing"
)

// exactDiffusion solves the same equation by many plain sweeps in float64.
func exactDiffusion(height, width int, others []Rect) []float64 {
	covered := func(y, x int) bool {
		for _, o := range others {
			if y >= o.Y0 && y < o.Y1 && x >= o.X0 && x < o.X1 {
				return true
			}
		}
		return false
	}
	u := make([]float64, height*width)
	for i := range u {
		if !covered(i/width, i%width) {
			u[i] = 1
		}
	}
	for range 20000 {
		change := 0.0
		for y := range height {
			for x := range width {
				if !covered(y, x) {
					continue
				}
				sum, n := 0.0, 0.0
				for _, d := range [][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
					v, w := y+d[0], x+d[1]
					if v >= 0 && v < height && w >= 0 && w < width {
						sum, n = sum+u[v*width+w], n+1
					} else if covered(v, w) {
						n++
					}
				}
				if n > 0 {
					old := u[y*width+x]
					u[y*width+x] += 1.8 * (sum/n - old)
					change = max(change, math.Abs(u[y*width+x]-old))
				}
			}
		}
		if change < 1e-10 {
			break
		}
	}
	return u
}

func diffusionCases() map[string]struct {
	h, w   int
	others []Rect
} {
	type c = struct {
		h, w   int
		others []Rect
	}
	grid := func(h, w, sy, sx int) []Rect {
		var out []Rect
		for i := -1; i <= 1; i++ {
			for j := -1; j <= 1; j++ {
				if i != 0 || j != 0 {
					out = append(out, Rect{0, 0, h, w}.Moved(i*sy+j, j*sx-i))
				}
			}
		}
		return out
	}
	return map[string]c{
		"side by side":     {40, 60, []Rect{{0, 45, 40, 105}}},
		"oblique":          {64, 64, []Rect{{7, 50, 71, 114}}},
		"corner":           {50, 50, []Rect{{0, 40, 50, 90}, {40, 0, 90, 50}, {40, 40, 90, 90}}},
		"inside a grid":    {96, 128, grid(96, 128, 77, 102)},
		"odd":              {67, 101, grid(67, 101, 50, 81)},
		"wide overlap":     {80, 80, []Rect{{0, 20, 80, 100}}},
		"within the other": {30, 30, []Rect{{10, 10, 20, 20}}},
		"alone":            {9, 7, nil},
		"flat":             {1, 50, []Rect{{0, 40, 1, 90}}},
		"a pixel of it":    {20, 20, []Rect{{19, 19, 30, 30}}},
	}
}

func TestDiffusionSolvesLaplace(t *testing.T) {
	for name, c := range diffusionCases() {
		got := make([]float32, c.h*c.w)
		Diffusion(got, c.h, c.w, c.others)
		want := exactDiffusion(c.h, c.w, c.others)
		worst, at := 0.0, 0
		for i := range got {
			if d := math.Abs(float64(got[i]) - want[i]); d > worst {
				worst, at = d, i
			}
		}
		t.Logf("%-16s worst %.4f", name, worst)
		if !(worst <= 0.005) {
			t.Errorf("%s: weight %v at (%d, %d), exactly %v", name, got[at], at/c.w, at%c.w, want[at])
		}
	}
}

// The other tile's weight is what is missing to 1; across a straight overlap the
// weight is a ramp.
func TestDiffusionOfTwoTiles(t *testing.T) {
	const h, w = 60, 80
	for _, d := range [][2]int{{0, 64}, {48, 0}, {5, 60}, {-9, 62}, {40, 50}} {
		a, b := make([]float32, h*w), make([]float32, h*w)
		tile := Rect{0, 0, h, w}
		Diffusion(a, h, w, []Rect{tile.Moved(d[0], d[1])})
		Diffusion(b, h, w, []Rect{tile.Moved(-d[0], -d[1])})
		r := tile.intersect(tile.Moved(d[0], d[1]))
		for y := r.Y0; y < r.Y1; y++ {
			for x := r.X0; x < r.X1; x++ {
				p, q := a[y*w+x], b[(y-d[0])*w+x-d[1]]
				if s := p + q; s < 0.98 || s > 1.02 {
					t.Fatalf("%v: weights %v and %v at (%d, %d)", d, p, q, y, x)
				}
				if d == [2]int{0, 64} {
					if want := float32(w-x) / float32(w-63); math.Abs(float64(p-want)) > 0.005 {
						t.Fatalf("weight %v at column %d of a straight overlap, want %v", p, x, want)
					}
				}
			}
		}
	}
}

func TestDiffusionOfATileThatIsNowhereAlone(t *testing.T) {
	got, want := make([]float32, 30*20), make([]float32, 30*20)
	Diffusion(got, 30, 20, []Rect{{-5, -5, 40, 40}})
	Feather(want, 30, 20)
	for i := range got {
		if d := got[i] - want[i]/(14.5*9.5); d > 1e-6 || d < -1e-6 {
			t.Fatalf("weight %d: %v", i, got[i])
		}
	}
}

func TestFeatherIsARamp(t *testing.T) {
	const h, w, step = 40, 50, 35
	a := make([]float32, h*w)
	Feather(a, h, w)
	for y := range h {
		for x := step; x < w; x++ {
			p, q := a[y*w+x], a[y*w+x-step]
			want := (float32(w-x) - 0.5) / (w - step)
			if d := p/(p+q) - want; d > 1e-5 || d < -1e-5 {
				t.Fatalf("(%d, %d): weight %v, want %v", y, x, p/(p+q), want)
			}
		}
	}
}

func BenchmarkDiffusion(b *testing.B) {
	for _, n := range []int{256, 1024} {
		var others []Rect
		for k := range 9 {
			if k != 4 {
				others = append(others, Rect{0, 0, n, n}.Moved((k/3-1)*n*4/5, (k%3-1)*n*4/5))
			}
		}
		dst := make([]float32, n*n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Diffusion(dst, n, n, others)
			}
		})
	}
}
