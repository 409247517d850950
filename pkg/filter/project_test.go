package filter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
)

func testAddPlanes[T dtype.Element](t *testing.T, value func(*rand.Rand) T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 150; n++ {
		planes := 1 + n%7
		src := make([]T, n*planes)
		for i := range src {
			src[i] = value(rng)
		}
		start := make([]float64, n)
		for i := range start {
			start[i] = rng.NormFloat64() * 1e3
		}
		want := append([]float64(nil), start...)
		bad := int64(0)
		for p := range planes {
			for i := range want {
				f := float64(src[p*n+i])
				if math.IsNaN(f) || math.IsInf(f, 0) {
					bad++
				}
				want[i] += f
			}
		}
		for _, avx := range []bool{false, useAVX2} {
			was := useAVX2
			useAVX2 = avx
			got := append([]float64(nil), start...)
			gotBad := AddPlanes(got, src)
			useAVX2 = was
			for i := range got {
				if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
					t.Fatalf("avx2 %v, n %d, element %d: %v, want %v", avx, n, i, got[i], want[i])
				}
			}
			if gotBad != bad {
				t.Fatalf("avx2 %v, n %d: %d non-finite values, want %d", avx, n, gotBad, bad)
			}
		}
	}
}

func TestAddPlanes(t *testing.T) {
	t.Run("float32", func(t *testing.T) {
		testAddPlanes(t, func(r *rand.Rand) float32 { return float32(r.NormFloat64() * math.Exp(r.Float64()*20)) })
	})
	t.Run("float32 with NaN and Inf", func(t *testing.T) {
		testAddPlanes(t, func(r *rand.Rand) float32 {
			return []float32{1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[r.IntN(5)]
		})
	})
	t.Run("uint16", func(t *testing.T) { testAddPlanes(t, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }) })
	t.Run("int16", func(t *testing.T) { testAddPlanes(t, func(r *rand.Rand) int16 { return int16(r.Uint32()) }) })
	t.Run("uint8", func(t *testing.T) { testAddPlanes(t, func(r *rand.Rand) uint8 { return uint8(r.Uint32()) }) })
	t.Run("int64", func(t *testing.T) { testAddPlanes(t, func(r *rand.Rand) int64 { return r.Int64() }) })
	t.Run("float64", func(t *testing.T) { testAddPlanes(t, func(r *rand.Rand) float64 { return r.NormFloat64() }) })
}

// A volume cut into pieces along Z gives the same bits as the whole.
func TestAddPlanesInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, planes = 37, 23
	src := make([]float32, n*planes)
	for i := range src {
		src[i] = rng.Float32() * 1000
	}
	whole, pieces := make([]float64, n), make([]float64, n)
	AddPlanes(whole, src)
	for z := 0; z < planes; {
		k := min(1+rng.IntN(5), planes-z)
		AddPlanes(pieces, src[z*n:(z+k)*n])
		z += k
	}
	parts := make([]float64, n)
	for from := 0; from < n; from += 20 { // columns, as several processors sum them
		AddStrided(parts[from:min(from+20, n)], src[from:], planes, n)
	}
	for i := range whole {
		if parts[i] != whole[i] {
			t.Fatalf("element %d: %v by columns, %v in one piece", i, parts[i], whole[i])
		}
		if whole[i] != pieces[i] {
			t.Fatalf("element %d: %v in one piece, %v in several", i, whole[i], pieces[i])
		}
	}
}

func TestMeanRoundsOnce(t *testing.T) {
	acc := []float64{1, 2, 10, math.NaN(), math.Inf(1)}
	got := make([]float32, len(acc))
	Mean(got, acc, 3)
	for i, a := range acc {
		if want := float32(a / 3); got[i] != want && want == want {
			t.Errorf("%v / 3 = %v, want %v", a, got[i], want)
		}
	}
	if got[3] == got[3] {
		t.Errorf("the mean of NaN is %v", got[3])
	}
}

func TestToUint16(t *testing.T) {
	src := []float32{-1, 0, 0.5, 1, 2, float32(math.NaN()), float32(math.Inf(1))}
	got := make([]uint16, len(src))
	ToUint16(got, src, 0, 1)
	want := []uint16{0, 0, 32768, 65535, 65535, 0, 65535}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v -> %d, want %d", src[i], got[i], want[i])
		}
	}
	half := []float32{0.5, 1.5, 2.5, 65534.5}
	ToUint16(got, half, 0, 65535)
	for i, want := range []uint16{0, 2, 2, 65534} {
		if got[i] != want {
			t.Errorf("%v -> %d, want %d: half rounds to even", half[i], got[i], want)
		}
	}
	ToUint16(got, src, 1, 1)
	if got[4] != 0 {
		t.Errorf("constant image: %v", got)
	}
}

func BenchmarkAddPlanes(b *testing.B) {
	// four planes of a 256² tile: a piece of 1 MiB of float32
	const n, planes = 256 * 256, 4
	for _, avx := range []bool{true, false} {
		b.Run(fmt.Sprintf("float32/avx2=%v", avx), func(b *testing.B) { benchAdd[float32](b, n, planes, avx) })
		b.Run(fmt.Sprintf("uint16/avx2=%v", avx), func(b *testing.B) { benchAdd[uint16](b, n, planes, avx) })
	}
}

func benchAdd[T dtype.Element](b *testing.B, n, planes int, avx bool) {
	was := useAVX2
	defer func() { useAVX2 = was }()
	useAVX2 = useAVX2 && avx
	acc, src := make([]float64, n), make([]T, n*planes)
	b.SetBytes(int64(len(dtype.Bytes(src))))
	for b.Loop() {
		AddPlanes(acc, src)
	}
}
