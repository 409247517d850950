package dtype

import (
	"math"
	"math/big"
	"testing"
)

var convertible = []Type{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float16, Float32, Float64}

// exact is the rule in arbitrary precision: clamp, round half to even, NaN to 0.
func exact(v *big.Float, to Type) *big.Int {
	lo, hi := new(big.Int), new(big.Int)
	bits := uint(8 * to.Size())
	if to >= Uint8 {
		hi.Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1))
	} else {
		hi.Sub(new(big.Int).Lsh(big.NewInt(1), bits-1), big.NewInt(1))
		lo.Neg(new(big.Int).Lsh(big.NewInt(1), bits-1))
	}
	floor, _ := v.Int(nil) // toward zero
	frac := new(big.Float).Sub(v, new(big.Float).SetInt(floor))
	half := frac.Abs(frac).Cmp(big.NewFloat(0.5))
	if half > 0 || (half == 0 && floor.Bit(0) == 1) {
		floor.Add(floor, big.NewInt(int64(v.Sign())))
	}
	if floor.Cmp(lo) < 0 {
		return lo
	}
	if floor.Cmp(hi) > 0 {
		return hi
	}
	return floor
}

func TestConvertBetweenAllTypes(t *testing.T) {
	values := []float64{0, 1, -1, 0.5, 1.5, 2.5, -0.5, -1.5, 127, 128, -128, -129, 255, 256, 32767.5, 65535, 65536, 1e6, -1e6, 2147483647, 4294967296, 9.3e18, -9.3e18, 1.9e19}
	for _, from := range convertible {
		// the values as the source type holds them, by a conversion that is
		// tested against exact in the round before
		src := make([]byte, len(values)*from.Size())
		if err := Convert(src, from, Bytes(values), Float64); err != nil {
			t.Fatal(err)
		}
		var held []float64
		Each(src, from, func(x float64) { held = append(held, x) })
		for _, to := range convertible {
			dst := make([]byte, len(values)*to.Size())
			if err := Convert(dst, to, src, from); err != nil {
				t.Fatal(err)
			}
			var got []float64
			Each(dst, to, func(x float64) { got = append(got, x) })
			for i, v := range held {
				var want float64
				switch {
				case to == Float64:
					want = v
				case to == Float32:
					want = float64(float32(v))
				case to == Float16:
					want = float64(Float16Value(Float16Bits(float32(v))))
				case math.IsInf(v, 0):
					continue // only from float16, whose largest number is small
				default:
					source := big.NewFloat(v)
					if from == Int64 {
						source = new(big.Float).SetInt64(Slice[int64](src)[i])
					} else if from == Uint64 {
						source = new(big.Float).SetUint64(Slice[uint64](src)[i])
					}
					want, _ = new(big.Float).SetInt(exact(source, to)).Float64()
				}
				if got[i] != want {
					t.Errorf("%v %v as %v is %v, want %v", from, v, to, got[i], want)
				}
			}
		}
	}
}

func TestConvertSpecialValues(t *testing.T) {
	src := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	dst := make([]int16, 3)
	if err := Convert(Bytes(dst), Int16, Bytes(src), Float32); err != nil {
		t.Fatal(err)
	}
	if dst[0] != 0 || dst[1] != math.MaxInt16 || dst[2] != math.MinInt16 {
		t.Errorf("NaN, +Inf, -Inf as int16: %v", dst)
	}
	if err := Convert(make([]byte, 8), Int16, make([]byte, 8), Complex64); err == nil {
		t.Error("complex numbers were converted")
	}
	if err := Convert(make([]byte, 3), Int16, make([]byte, 8), Float32); err == nil {
		t.Error("a buffer that is too short was accepted")
	}
	n := 0
	Each([]byte{1, 0}, Bool, func(x float64) { n += int(x) })
	Each(make([]byte, 16), Complex128, func(float64) { n += 100 })
	if n != 1 {
		t.Errorf("Each counted %d", n)
	}
}
