package filter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
)

func testRoll[T dtype.Element](t *testing.T, value func(*rand.Rand) T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, shape := range [][3]int{{17, 3, 150}, {5, 2, 9}, {1, 2, 3}, {40, 4, 128}} {
		for _, spread := range []float64{0, 1.5, 30, 1e7} {
			nz, ny, nx := shape[0], shape[1], shape[2]
			pitch := nx + 3
			shift := make([]float32, ny*pitch)
			for i := range shift {
				shift[i] = float32(rng.NormFloat64() * spread)
			}
			v := make([]T, nz*ny*nx)
			for i := range v {
				v[i] = value(rng)
			}
			line, want := make([]float32, nz), make([]T, len(v))
			for y := range ny {
				for x := range nx {
					s := shift[y*pitch+x]
					k, f := int(math.Floor(float64(s))), s-float32(math.Floor(float64(s)))
					for z := range nz {
						at := func(z int) float32 { return float32(v[(((z%nz)+nz)%nz*ny+y)*nx+x]) }
						line[z] = float32((1-f)*at(z+k)) + float32(f*at(z+k+1))
					}
					made := make([]T, nz)
					dtype.ConvertSlice(made, dtype.Bytes(line), dtype.Float32)
					for z := range nz {
						want[(z*ny+y)*nx+x] = made[z]
					}
				}
			}
			for _, avx := range []bool{false, useAVX2} {
				was := useAVX2
				useAVX2 = avx
				got := slices.Clone(v)
				Roll(&RollWorkspace{}, got, nz, ny, nx, 0, ny, shift, pitch)
				useAVX2 = was
				for i := range got {
					if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
						t.Fatalf("avx2 %v, shape %v, spread %g, element %d: %v, want %v", avx, shape, spread, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestRoll(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testRoll(t, func(r *rand.Rand) float32 { return r.Float32() * 1000 }) })
	t.Run("float32 with NaN", func(t *testing.T) { testRoll(t, func(r *rand.Rand) float32 { return awkward[r.IntN(len(awkward))] }) })
	t.Run("uint8", func(t *testing.T) { testRoll(t, func(r *rand.Rand) uint8 { return uint8(r.Uint32()) }) })
	t.Run("uint16", func(t *testing.T) { testRoll(t, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }) })
	t.Run("int16", func(t *testing.T) { testRoll(t, func(r *rand.Rand) int16 { return int16(r.Uint32()) }) })
	t.Run("int32", func(t *testing.T) { testRoll(t, func(r *rand.Rand) int32 { return int32(r.Uint32() >> 9) }) })
	t.Run("float64", func(t *testing.T) { testRoll(t, func(r *rand.Rand) float64 { return r.NormFloat64() }) })
}

// Rolled forth and back by whole voxels, a volume is what it was.
func TestRollThereAndBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	const nz, ny, nx = 19, 5, 33
	v, shift := make([]float32, nz*ny*nx), make([]float32, ny*nx)
	for i := range v {
		v[i] = rng.Float32()
	}
	for i := range shift {
		shift[i] = float32(rng.IntN(100) - 50)
	}
	got := slices.Clone(v)
	Roll(&RollWorkspace{}, got, nz, ny, nx, 0, ny, shift, nx)
	if slices.Equal(got, v) {
		t.Fatal("nothing moved")
	}
	for i := range shift {
		shift[i] = -shift[i]
	}
	Roll(&RollWorkspace{}, got, nz, ny, nx, 0, ny, shift, nx)
	if !slices.Equal(got, v) {
		t.Error("there and back is not the same")
	}
}

func TestOtsu(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		split  int
	}{
		{nil, 0}, {[]int64{5}, 0}, {[]int64{0, 9, 0}, 0}, {[]int64{3, 0, 0, 4}, 1}, {[]int64{10, 10, 0, 0, 10, 10}, 2}, {[]int64{100, 1, 1, 1, 100}, 2},
	} {
		if got := Otsu(c.counts); got != c.split {
			t.Errorf("%v splits at %d, want %d", c.counts, got, c.split)
		}
	}
	// against the definition
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		h := make([]int64, 2+rng.IntN(30))
		for i := range h {
			h[i] = rng.Int64N(100)
		}
		within := func(split int) (v float64) {
			for _, part := range [][2]int{{0, split}, {split, len(h)}} {
				var n, m float64
				for i := part[0]; i < part[1]; i++ {
					n, m = n+float64(h[i]), m+float64(h[i])*float64(i)
				}
				for i := part[0]; i < part[1] && n > 0; i++ {
					v += float64(h[i]) * (float64(i) - m/n) * (float64(i) - m/n)
				}
			}
			return v
		}
		best := math.Inf(1)
		for s := 1; s < len(h); s++ {
			best = min(best, within(s))
		}
		if got := Otsu(h); math.Abs(within(got)-best) > 1e-9*best+1e-9 {
			t.Fatalf("%v splits at %d with %v within the classes, the best has %v", h, got, within(got), best)
		}
	}
}

func BenchmarkRoll(b *testing.B) {
	const nz, ny, nx = 200, 256, 256
	shift := make([]float32, ny*nx)
	for y := range ny {
		for x := range nx {
			v, u := float64(y)/128-1, float64(x)/128-1
			shift[y*nx+x] = float32(8 * (0.55*v*v + 0.4*u*u - 0.3))
		}
	}
	b.Run("float32", func(b *testing.B) { benchRoll[float32](b, nz, ny, nx, shift) })
	b.Run("uint16", func(b *testing.B) { benchRoll[uint16](b, nz, ny, nx, shift) })
}

func benchRoll[T dtype.Element](b *testing.B, nz, ny, nx int, shift []float32) {
	v := make([]T, nz*ny*nx)
	w := &RollWorkspace{}
	b.SetBytes(int64(len(dtype.Bytes(v))))
	for b.Loop() {
		Roll(w, v, nz, ny, nx, 0, ny, shift, nx)
	}
}

func ExampleOtsu() {
	fmt.Println(Otsu([]int64{40, 10, 0, 1, 0, 20, 30}))
	// Output: 2
}
