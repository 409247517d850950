package filter

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

func TestMapCoordinatesGolden(t *testing.T) {
	for _, g := range golden.Primitives(t, "map_coordinates") {
		in := g.Arrays["in"]
		points := dtype.Slice[float64](g.Arrays["points"].Data)
		for name, border := range map[string]Border{"constant": BorderConstant, "nearest": BorderNearest} {
			want := dtype.Slice[float32](g.Arrays[name].Data)
			got := make([]float32, len(want))
			MapCoordinates(got, NewSampler(dtype.Slice[float32](in.Data), in.Shape, border, 0), points)
			for i := range got {
				d := math.Abs(float64(got[i]) - float64(want[i]))
				if !(d <= g.Tolerance.Abs+g.Tolerance.Rel*math.Abs(float64(want[i]))) {
					t.Fatalf("%s, point %d: %v, want %v", name, i, got[i], want[i])
				}
			}
		}
	}
}

// sampleOracle interpolates axis after axis.
func sampleOracle(src []float32, shape []int, p []float64) float64 {
	if len(shape) == 0 {
		return float64(src[0])
	}
	n := len(src) / shape[0]
	c := min(max(p[0], 0), float64(shape[0]-1))
	k := math.Floor(c)
	at := func(k float64) float64 {
		i := min(int(k), shape[0]-1)
		return sampleOracle(src[i*n:(i+1)*n], shape[1:], p[1:])
	}
	return (1-(c-k))*at(k) + (c-k)*at(k+1)
}

func TestAffine(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ in, out []int }{
		{[]int{17}, []int{23}}, {[]int{9, 14}, []int{11, 8}}, {[]int{5, 7, 6}, []int{4, 9, 5}},
		{[]int{3, 4, 3, 5}, []int{2, 5, 3, 4}}, {[]int{1, 6}, []int{3, 5}}, {[]int{6, 8}, []int{7}}, {[]int{5, 5}, []int{2, 3, 4}},
	} {
		n := 1
		for _, s := range c.in {
			n *= s
		}
		src := make([]float32, n)
		for i := range src {
			src[i] = float32(rng.NormFloat64())
		}
		matrix, offset := make([][]float64, len(c.in)), make([]float64, len(c.in))
		for d := range matrix {
			offset[d] = rng.Float64()*4 - 2
			for range c.out {
				matrix[d] = append(matrix[d], rng.Float64()*2-0.7)
			}
		}
		total := 1
		for _, s := range c.out {
			total *= s
		}
		inside, outside := 0, 0
		for _, border := range []Border{BorderConstant, BorderNearest} {
			dst := make([]float32, total)
			Affine(dst, c.out, NewSampler(src, c.in, border, -77), matrix, offset)
			for i, got := range dst {
				index, r := make([]float64, len(c.out)), i
				for k := len(c.out) - 1; k >= 0; k-- {
					index[k] = float64(r % c.out[k])
					r /= c.out[k]
				}
				p, in := make([]float64, len(c.in)), true
				for d := range p {
					p[d] = offset[d]
					for k, m := range matrix[d] {
						p[d] += m * index[k]
					}
					in = in && p[d] >= 0 && p[d] <= float64(c.in[d]-1)
				}
				want := sampleOracle(src, c.in, p)
				if border == BorderConstant && !in {
					want = -77
					outside++
				} else {
					inside++
				}
				if math.Abs(float64(got)-want) > 1e-6 {
					t.Fatalf("%v to %v, border %d, index %v at %v: %v, want %v", c.in, c.out, border, index, p, got, want)
				}
			}
		}
		if inside == 0 {
			t.Errorf("%v to %v: %d inside, %d outside", c.in, c.out, inside, outside)
		}
	}
}

func TestSamplerAtOddPoints(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := NewSampler([]float32{1, 2, 3}, []int{3}, BorderConstant, 9)
	for c, want := range map[float64]float32{0: 1, 2: 3, 0.5: 1.5, -1e-9: 9, 2.0000001: 9, inf: 9, -inf: 9} {
		if got := s.At([]float64{c}); got != want {
			t.Errorf("at %v: %v, want %v", c, got, want)
		}
	}
	if got := s.At([]float64{nan}); got != 9 {
		t.Errorf("at NaN: %v", got)
	}
	s = NewSampler([]float32{1, 2, 3}, []int{3}, BorderNearest, 9)
	for c, want := range map[float64]float32{-5: 1, 1e300: 3, inf: 3, -inf: 1} {
		if got := s.At([]float64{c}); got != want {
			t.Errorf("nearest, at %v: %v, want %v", c, got, want)
		}
	}
	// a sample that is not needed does not count
	s = NewSampler([]float32{float32(nan), 2, 3}, []int{3}, BorderNearest, 9)
	if got := s.At([]float64{1}); got != 2 {
		t.Errorf("beside NaN: %v", got)
	}
	if got := NewSampler(nil, []int{0, 4}, BorderNearest, 5).At([]float64{0, 0}); got != 5 {
		t.Errorf("of nothing: %v", got)
	}
}
