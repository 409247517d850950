package tile

import (
	"context"
	"math"
	"math/big"
	"testing"

	"strata/pkg/dtype"
)

// typed is a source of any type: one axis of pixels.
type typed[S dtype.Element] struct {
	Image
	pixels []S
}

func (s typed[S]) LoadTile(_ context.Context, _ int, index []int, dst []byte) error {
	copy(dtype.Slice[S](dst), s.pixels[index[0]*s.Tile[0]:])
	return nil
}

// exact is the rule in arbitrary precision: the nearest integer, ties to even,
// then the nearest that the type holds.
func exact(v float64, lo, hi *big.Int) *big.Int {
	if math.IsNaN(v) {
		return new(big.Int)
	}
	if math.IsInf(v, 1) {
		return hi
	}
	if math.IsInf(v, -1) {
		return lo
	}
	i, _ := big.NewFloat(math.RoundToEven(v)).Int(nil)
	return clamp(i, lo, hi)
}

func clamp(i, lo, hi *big.Int) *big.Int {
	if i.Cmp(lo) < 0 {
		return lo
	}
	if i.Cmp(hi) > 0 {
		return hi
	}
	return i
}

func limits(t dtype.Type) (lo, hi *big.Int) {
	bits := uint(8 * t.Size())
	one := big.NewInt(1)
	if t >= dtype.Uint8 {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, bits), one)
	}
	top := new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(top), new(big.Int).Sub(top, one)
}

func toBig[V dtype.Element](v V) *big.Int {
	if dtype.Of[V]() == dtype.Uint64 {
		return new(big.Int).SetUint64(uint64(v))
	}
	return big.NewInt(int64(v))
}

// through sends pixels through a loader, by way of the cache or past it.
func through[S, T dtype.Element](t *testing.T, pixels []S, radius int) []T {
	t.Helper()
	n := len(pixels)
	src := typed[S]{Image{[]int{n}, []int{n}, []string{"x"}, dtype.Of[S]()}, pixels}
	l, err := New[T](src, Radius(radius))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v, err := l.View(t.Context(), 0, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	return append([]T{}, v.Center()[:n]...)
}

func convertCase[S, T dtype.Element](t *testing.T, pixels []S) {
	t.Helper()
	from, to := dtype.Of[S](), dtype.Of[T]()
	for _, radius := range []int{0, 1} {
		got := through[S, T](t, pixels, radius)
		for i, v := range pixels {
			if to.IsFloat() {
				if want := T(v); got[i] != want && want == want {
					t.Errorf("%s %v became %s %v, want %v", from, v, to, got[i], want)
				}
				continue
			}
			lo, hi := limits(to)
			var want *big.Int
			if from.IsFloat() {
				want = exact(float64(v), lo, hi)
			} else {
				want = clamp(toBig(v), lo, hi)
			}
			if toBig(got[i]).Cmp(want) != 0 {
				t.Errorf("%s %v became %s %v, want %v", from, v, to, got[i], want)
			}
		}
	}
}

func convertTo[T dtype.Element](t *testing.T) {
	convertCase[int8, T](t, []int8{math.MinInt8, -1, 0, 1, math.MaxInt8})
	convertCase[int16, T](t, []int16{math.MinInt16, -129, -128, -1, 0, 1, 127, 128, 255, 256, math.MaxInt16})
	convertCase[int32, T](t, []int32{math.MinInt32, -32769, -1, 0, 1, 255, 65535, 65536, math.MaxInt32})
	convertCase[int64, T](t, []int64{math.MinInt64, math.MinInt32 - 1, -1, 0, 1, math.MaxUint32 + 1, math.MaxInt64})
	convertCase[uint8, T](t, []uint8{0, 1, 127, 128, 255})
	convertCase[uint16, T](t, []uint16{0, 1, 255, 256, 32767, 32768, 65535})
	convertCase[uint32, T](t, []uint32{0, 1, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32})
	convertCase[uint64, T](t, []uint64{0, 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64})
	convertCase[float32, T](t, []float32{-1e30, -0.6, -0.5, 0, 0.5, 1.5, 2.5, 254.5, 255.5, 1e30,
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1 << 31, 1 << 32, 1 << 63})
	convertCase[float64, T](t, []float64{-1e300, -128.5, -129.5, -0.5, 0.5, 1.5, 2.5, 65534.5, 65535.5, 1e300,
		math.NaN(), math.Inf(1), math.Inf(-1), 1 << 62, 1 << 63, 1 << 64, 9223372036854774784, -9223372036854775808})
}

func TestConversionsRoundToEvenAndSaturate(t *testing.T) {
	convertTo[int8](t)
	convertTo[int16](t)
	convertTo[int32](t)
	convertTo[int64](t)
	convertTo[uint8](t)
	convertTo[uint16](t)
	convertTo[uint32](t)
	convertTo[uint64](t)
	convertTo[float32](t)
	convertTo[float64](t)
}
