package filter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

func TestSeparableGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "uniform2d") {
		in := p.Arrays["in"]
		for key, want := range p.Arrays {
			var n int
			if _, err := fmt.Sscanf(key, "n%d", &n); err != nil {
				continue
			}
			got := make([]float32, in.Shape[0]*in.Shape[1])
			Separable(got, floats(in), in.Shape[0], in.Shape[1], windowTaps(max(n, 0)))
			near(t, key, got, numbers(want), p.Tolerance.Rel, p.Tolerance.Abs)
		}
	}
}

// The derivative's weights, taken from the search itself, against scipy's.
func TestDerivativeGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "gaussian1d") {
		in := p.Arrays["in"]
		for key, want := range p.Arrays {
			if !strings.HasSuffix(key, "_o1") || strings.HasPrefix(key, "kernel") {
				continue
			}
			sigma, err := strconv.ParseFloat(key[1:len(key)-3], 64)
			if err != nil {
				t.Fatal(key, err)
			}
			s := &InterfaceSearch{SigmaZ: sigma, SigmaXY: 1}
			lines, n := in.Shape[0], in.Shape[1]
			volume := make([]float32, n*lines) // an A-line of each line
			for y, v := range floats(in) {
				volume[y%n*lines+y/n] = v
			}
			depth, peak := make([]int32, lines), make([]float32, lines)
			Interfaces(s, &Workspace{}, depth, peak, Slab[float32]{Data: volume, Planes: n, PlaneStride: lines, RowStride: lines},
				s.Windows(0, 1, 1), s.Windows(0, lines, lines))
			w := numbers(want)
			for y := range lines {
				most := slices.Max(w[y*n : (y+1)*n])
				if math.Abs(float64(peak[y])-most) > p.Tolerance.Abs+p.Tolerance.Rel*math.Abs(most) {
					t.Errorf("%s, line %d: largest gradient %v, want %v", key, y, peak[y], most)
				}
				z := slices.Index(w[y*n:(y+1)*n], most)
				if want := int32(math.Ceil(float64(z) + 0.5*sigma)); depth[y] != want {
					t.Errorf("%s, line %d: interface %d, want %d", key, y, depth[y], want)
				}
			}
		}
	}
}

// slowInterfaces is the definition, in float64, one A-line at a time: the
// gradients of the planes that may be the interface.
func slowInterfaces[T dtype.Element](s *InterfaceSearch, v []T, nz, ny, nx int) (gradients [][]float64) {
	kernel := GaussianKernel(s.SigmaZ, 1)
	r := len(kernel) / 2
	n := s.Window()
	smooth := make([]float64, nz)
	for y := range ny {
		for x := range nx {
			for z := range nz {
				smooth[z] = 0
				for dy := -(n / 2); dy < n-n/2; dy++ {
					for dx := -(n / 2); dx < n-n/2; dx++ {
						m := math.Abs(float64(v[(z*ny+Reflect.Index(y+dy, ny))*nx+Reflect.Index(x+dx, nx)]))
						if math.IsNaN(m) || math.IsInf(m, 0) {
							m = 0
						}
						if s.Clip > 0 {
							m = min(m, float64(s.Clip))
						}
						if s.Log && m > 0 {
							m = math.Log(m)
						}
						smooth[z] += m / float64(n*n)
					}
				}
			}
			limit := nz
			if s.Planes > 0 {
				limit = min(limit, s.Planes)
			}
			line := make([]float64, limit)
			for z := range line {
				for j, k := range kernel {
					line[z] += k * smooth[Reflect.Index(z+j-r, nz)]
				}
			}
			gradients = append(gradients, line)
		}
	}
	return gradients
}

func testInterfaces[T dtype.Element](t *testing.T, value func(r *rand.Rand, z int) T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i, s := range []InterfaceSearch{
		{SigmaXY: 3, SigmaZ: 2}, {SigmaXY: 4.9, SigmaZ: 1.5, Log: true}, {SigmaXY: 0, SigmaZ: 0.6, Clip: 70},
		{SigmaXY: 9, SigmaZ: 30}, {SigmaXY: 3, SigmaZ: 2, Planes: 7}, {SigmaXY: 2, SigmaZ: 1e-3},
	} {
		for _, shape := range [][3]int{{23, 9, 35}, {40, 21, 8}, {3, 5, 6}, {1, 1, 1}, {12, 2, 600}} {
			nz, ny, nx := shape[0], shape[1], shape[2]
			v := make([]T, nz*ny*nx)
			for k := range v {
				v[k] = value(rng, k/(ny*nx))
			}
			all := func() ([]int32, []float32) {
				depth, peak := make([]int32, ny*nx), make([]float32, ny*nx)
				Interfaces(&s, &Workspace{}, depth, peak, Slab[T]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx},
					s.Windows(0, ny, ny), s.Windows(0, nx, nx))
				return depth, peak
			}
			depth, peak := all()
			for k, g := range slowInterfaces(&s, v, nz, ny, nx) {
				most := slices.Max(g)
				tolerance := 2e-5*math.Abs(most) + 2e-3
				if math.Abs(float64(peak[k])-most) > tolerance {
					t.Fatalf("search %d, shape %v, A-line %d: largest gradient %v, want %v", i, shape, k, peak[k], most)
				}
				// the plane found is the first of the largest, but for rounding
				at := int(depth[k]) - int(math.Ceil(0.5*s.SigmaZ))
				if g[at] < most-tolerance || at > 0 && slices.Max(g[:at]) > g[at]+tolerance {
					t.Fatalf("search %d, shape %v, A-line %d: interface %d, gradients %v", i, shape, k, depth[k], g)
				}
			}
			was := useAVX2
			useAVX2 = false
			d, p := all()
			useAVX2 = was
			if !slices.Equal(d, depth) || !sameFloats(p, peak) {
				t.Fatalf("search %d, shape %v: scalar and AVX2 differ", i, shape)
			}
			testPieces(t, &s, v, shape, depth, peak, rng)
		}
	}
}

// testPieces makes the same interfaces from random rectangles, from magnitudes,
// and with rows and columns swapped.
func testPieces[T dtype.Element](t *testing.T, s *InterfaceSearch, v []T, shape [3]int, depth []int32, peak []float32, rng *rand.Rand) {
	nz, ny, nx := shape[0], shape[1], shape[2]
	ready, swapped := make([]float32, len(v)), make([]float32, len(v))
	Magnitudes(s, ready, v)
	for z := range nz {
		for y := range ny {
			for x := range nx {
				swapped[(z*nx+x)*ny+y] = ready[(z*ny+y)*nx+x]
			}
		}
	}
	w := &Workspace{}
	for range 4 {
		y0, x0 := rng.IntN(ny), rng.IntN(nx)
		h, wd := 1+rng.IntN(ny-y0), 1+rng.IntN(nx-x0)
		rows, cols := s.Windows(y0, y0+h, ny), s.Windows(x0, x0+wd, nx)
		for kind := range 3 {
			d, p := make([]int32, h*wd), make([]float32, h*wd)
			switch kind {
			case 0:
				Interfaces(s, w, d, p, Slab[T]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx}, rows, cols)
			case 1:
				Interfaces(s, w, d, p, Slab[float32]{Data: ready, Planes: nz, PlaneStride: ny * nx, RowStride: nx, Ready: true}, rows, cols)
			case 2:
				Interfaces(s, w, d, p, Slab[float32]{Data: swapped, Planes: nz, PlaneStride: ny * nx, RowStride: ny, Ready: true, Swapped: true}, cols, rows)
			}
			for y := range h {
				for x := range wd {
					at := y*wd + x
					if kind == 2 {
						at = x*h + y
					}
					to := (y0+y)*nx + x0 + x
					if d[at] != depth[to] || math.Float32bits(p[at]) != math.Float32bits(peak[to]) {
						t.Fatalf("kind %d, rectangle at %d, %d of %d × %d: A-line %d, %d is %d (%v), in the whole %d (%v)",
							kind, y0, x0, h, wd, y, x, d[at], p[at], depth[to], peak[to])
					}
				}
			}
		}
	}
}

func sameFloats(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestInterfaces(t *testing.T) {
	t.Run("float32", func(t *testing.T) {
		testInterfaces(t, func(r *rand.Rand, z int) float32 { return float32((r.Float64() - 0.3) * 100 * float64(1+z%9)) })
	})
	t.Run("float32 with NaN", func(t *testing.T) {
		testInterfaces(t, func(r *rand.Rand, z int) float32 {
			if k := r.IntN(20); k < 3 {
				return []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[k]
			}
			return float32(r.Float64() * 100 * float64(1+z%9))
		})
	})
	t.Run("uint8", func(t *testing.T) { testInterfaces(t, func(r *rand.Rand, _ int) uint8 { return uint8(r.Uint32()) }) })
	t.Run("uint16", func(t *testing.T) { testInterfaces(t, func(r *rand.Rand, _ int) uint16 { return uint16(r.Uint32()) }) })
	t.Run("int16", func(t *testing.T) { testInterfaces(t, func(r *rand.Rand, _ int) int16 { return int16(r.Uint32()) }) })
	t.Run("int64", func(t *testing.T) {
		testInterfaces(t, func(r *rand.Rand, _ int) int64 { return int64(r.Uint32()>>20) - 1<<11 })
	})
	t.Run("float64", func(t *testing.T) { testInterfaces(t, func(r *rand.Rand, _ int) float64 { return r.NormFloat64() }) })
}

// A volume without a gradient has its interface where the search begins.
func TestInterfaceOfFlatVolumes(t *testing.T) {
	for _, value := range []float32{0, 7.3} {
		v := make([]float32, 30*9*9)
		for i := range v {
			v[i] = value
		}
		s := &InterfaceSearch{SigmaXY: 3, SigmaZ: 2}
		depth, peak := make([]int32, 81), make([]float32, 81)
		Interfaces(s, &Workspace{}, depth, peak, Slab[float32]{Data: v, Planes: 30, PlaneStride: 81, RowStride: 9}, s.Windows(0, 9, 9), s.Windows(0, 9, 9))
		for i := range depth {
			if depth[i] != 1 || peak[i] != 0 {
				t.Fatalf("volume of %v: interface %d, gradient %v; want 1, 0", value, depth[i], peak[i])
			}
		}
	}
}

// A step up at plane 10 has its first maximum at 9.
func TestInterfaceOfAStep(t *testing.T) {
	v := make([]float32, 40)
	for z := 10; z < 40; z++ {
		v[z] = 100
	}
	s := &InterfaceSearch{SigmaXY: 1, SigmaZ: 2}
	depth := make([]int32, 1)
	Interfaces(s, &Workspace{}, depth, nil, Slab[float32]{Data: v, Planes: 40, PlaneStride: 1, RowStride: 1}, []int{0}, []int{0})
	if depth[0] != 10 {
		t.Errorf("interface %d, want ⌈9 + 0.5·2⌉ = 10", depth[0])
	}
}

func BenchmarkInterfaces(b *testing.B) {
	const nz, ny, nx = 200, 256, 256
	v := make([]float32, nz*ny*nx)
	for i := range v {
		v[i] = float32(i * 7919 % 4096)
	}
	for _, log := range []bool{false, true} {
		b.Run(fmt.Sprintf("log=%v", log), func(b *testing.B) {
			s := &InterfaceSearch{SigmaXY: 3, SigmaZ: 2, Log: log}
			rows := s.Windows(1, ny-1, ny)
			depth := make([]int32, len(rows)*len(rows))
			w := &Workspace{}
			b.SetBytes(int64(len(v) * 4))
			for b.Loop() {
				Interfaces(s, w, depth, nil, Slab[float32]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx}, rows, rows)
			}
		})
	}
}
