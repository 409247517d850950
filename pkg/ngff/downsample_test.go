package ngff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// naive computes one level voxel by voxel, straight from the formula of
// Downsample, with positions in float64 fractions instead of the package's taps.
func naive[T dtype.Element](src []T, shape []int, axes []Axis) ([]T, []int) {
	var v T
	wide := false
	switch any(v).(type) {
	case float64, int32, uint32, int64, uint64:
		wide = true
	}
	rnd := func(x float64) float64 {
		if wide {
			return x
		}
		return float64(float32(x))
	}
	out := slices.Clone(shape)
	scale := 1.0
	for d, a := range axes {
		if a.Type == TypeSpace {
			out[d] /= 2
			if shape[d]%2 == 0 {
				scale /= 2
			}
		}
	}
	total := 1
	for _, n := range out {
		total *= n
	}
	dst := make([]T, total)
	// sample interpolates axes from d on, at output index o; at holds the input
	// indices of the axes before d. The last axis is the innermost.
	var sample func(d int, o, at []int) float64
	sample = func(d int, o, at []int) float64 {
		if d == len(shape) {
			i := 0
			for k, n := range shape {
				i = i*n + at[k]
			}
			return rnd(float64(src[i]))
		}
		take := func(i int) float64 {
			at[d] = i
			return sample(d+1, o, at)
		}
		n, m := shape[d], out[d]
		switch {
		case axes[d].Type != TypeSpace:
			return take(o[d])
		case n%2 == 0:
			return rnd(take(2*o[d]) + take(2*o[d]+1))
		}
		num, den := (2*o[d]+1)*n-m, 2*m
		lo := num / den
		if num%den == 0 {
			return rnd(rnd(take(lo)*0.5) + rnd(take(lo)*0.5))
		}
		w0, w1 := rnd(float64(den-num%den)/float64(den)), rnd(float64(num%den)/float64(den))
		return rnd(rnd(take(lo)*w0) + rnd(take(lo+1)*w1))
	}
	o := make([]int, len(out))
	for i := range dst {
		r := i
		for d := len(out) - 1; d >= 0; d-- {
			o[d] = r % out[d]
			r /= out[d]
		}
		x := rnd(sample(0, o, make([]int, len(shape))) * scale)
		switch any(v).(type) {
		case float32, float64:
			dst[i] = T(x)
			continue
		}
		least, most := limits[T]()
		x = math.RoundToEven(x)
		switch {
		case x <= float64(least):
			dst[i] = least
		case x >= float64(most):
			dst[i] = most
		default:
			dst[i] = T(x)
		}
	}
	return dst, out
}

func limits[T dtype.Element]() (least, most T) {
	var v T
	switch p := any(&v).(type) {
	case *int8:
		*p = math.MinInt8
		return v, -(v + 1)
	case *int16:
		*p = math.MinInt16
		return v, -(v + 1)
	case *int32:
		*p = math.MinInt32
		return v, -(v + 1)
	case *int64:
		*p = math.MinInt64
		return v, -(v + 1)
	}
	return 0, v - 1
}

// noise fills elements with values that round in every way, extremes included.
func noise[T dtype.Element](n int, rng *rand.Rand) []T {
	s := make([]T, n)
	least, most := limits[T]()
	var v T
	_, f32 := any(v).(float32)
	_, f64 := any(v).(float64)
	for i := range s {
		switch {
		case f32 || f64:
			s[i] = T(rng.NormFloat64() * 1000)
		case rng.IntN(4) == 0:
			s[i] = []T{least, most, 0, most / 2}[rng.IntN(4)]
		default:
			s[i] = T(rng.Uint64())
		}
	}
	return s
}

func checkNaive[T dtype.Element](t *testing.T, shape []int, axes []Axis) {
	t.Helper()
	n := 1
	for _, v := range shape {
		n *= v
	}
	src := noise[T](n, rand.New(rand.NewPCG(1, uint64(n))))
	want, wantShape := naive(src, shape, axes)
	b, gotShape, err := Downsample(dtype.Of[T](), dtype.Bytes(src), shape, axes)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gotShape, wantShape) {
		t.Fatalf("shape %v became %v, want %v", shape, gotShape, wantShape)
	}
	if got := dtype.Slice[T](b); !slices.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("shape %v: element %d is %v, want %v", shape, i, got[i], want[i])
			}
		}
	}
}

func TestDownsampleAgainstFormula(t *testing.T) {
	for _, c := range []struct {
		names string
		shape []int
	}{
		{"yx", []int{8, 6}}, {"yx", []int{9, 6}}, {"yx", []int{8, 7}}, {"yx", []int{3, 3}}, {"yx", []int{2, 5}},
		{"zyx", []int{4, 6, 8}}, {"zyx", []int{5, 6, 8}}, {"zyx", []int{4, 7, 9}}, {"zyx", []int{11, 13, 17}}, {"zyx", []int{3, 2, 2}},
		{"cyx", []int{3, 5, 4}}, {"czyx", []int{2, 3, 4, 5}}, {"tcyx", []int{2, 3, 6, 6}}, {"tczyx", []int{2, 2, 3, 7, 4}},
	} {
		axes := SpaceAxes(c.names, "")
		t.Run(fmt.Sprint(c.names, c.shape), func(t *testing.T) {
			checkNaive[uint8](t, c.shape, axes)
			checkNaive[int8](t, c.shape, axes)
			checkNaive[uint16](t, c.shape, axes)
			checkNaive[int16](t, c.shape, axes)
			checkNaive[uint32](t, c.shape, axes)
			checkNaive[int32](t, c.shape, axes)
			checkNaive[uint64](t, c.shape, axes)
			checkNaive[int64](t, c.shape, axes)
			checkNaive[float32](t, c.shape, axes)
			checkNaive[float64](t, c.shape, axes)
		})
	}
}

// Half floats are computed in float32 and rounded once.
func TestDownsampleFloat16(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	shape, axes := []int{5, 6, 7}, SpaceAxes("zyx", "")
	half := make([]uint16, 5*6*7)
	wide := make([]float32, len(half))
	for i := range half {
		half[i] = dtype.Float16Bits(float32(rng.NormFloat64() * 100))
		wide[i] = dtype.Float16Value(half[i])
	}
	got, _, err := Downsample(dtype.Float16, dtype.Bytes(half), shape, axes)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := naive(wide, shape, axes)
	for i, h := range dtype.Slice[uint16](got) {
		if h != dtype.Float16Bits(want[i]) {
			t.Fatalf("element %d is %v, want %v", i, dtype.Float16Value(h), want[i])
		}
	}
}

// A voxel that is not a number, or infinite, reaches the outputs that it has a
// part in and no other, and a sample that another sits on exactly is alone.
func TestDownsampleNonFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	src := []float32{nan, inf, 5, nan, nan, nan} // 2 rows of 3: the middle sample of an axis of 3 counts
	src[4] = inf
	b, shape, err := Downsample(dtype.Float32, dtype.Bytes(src), []int{2, 3}, SpaceAxes("yx", ""))
	if err != nil || !slices.Equal(shape, []int{1, 1}) {
		t.Fatal(shape, err)
	}
	if v := dtype.Slice[float32](b)[0]; v != inf {
		t.Errorf("the mean of two infinities is %v", v)
	}
}

func TestDownsampleRefuses(t *testing.T) {
	zyx := SpaceAxes("zyx", "")
	for _, c := range []struct {
		t     dtype.Type
		n     int
		shape []int
		axes  []Axis
	}{
		{dtype.Bool, 8, []int{2, 2, 2}, zyx},
		{dtype.Complex64, 64, []int{2, 2, 2}, zyx},
		{dtype.Uint8, 8, []int{2, 4}, zyx},
		{dtype.Uint8, 7, []int{2, 2, 2}, zyx},
		{dtype.Uint8, 4, []int{1, 2, 2}, zyx},
		{dtype.Uint8, 8, []int{2, 2, 2}, SpaceAxes("yxc", "")},
		{dtype.Uint8, 8, []int{2, 2, 2}, SpaceAxes("tcx", "")},
	} {
		if _, _, err := Downsample(c.t, make([]byte, c.n), c.shape, c.axes); err == nil {
			t.Errorf("%v %v %v: no error", c.t, c.shape, c.axes)
		}
	}
}

func TestLevelShapes(t *testing.T) {
	for _, c := range []struct {
		names  string
		shape  []int
		levels int
		want   int
		last   []int
	}{
		{"zyx", []int{500, 4096, 4096}, 5, 5, []int{15, 128, 128}},
		{"zyx", []int{9, 100, 100}, 5, 3, []int{1, 12, 12}},
		{"zyx", []int{1, 100, 100}, 5, 0, []int{1, 100, 100}},
		{"tczyx", []int{1, 2, 8, 8, 8}, 9, 3, []int{1, 2, 1, 1, 1}},
		{"yx", []int{59, 79}, 5, 5, []int{1, 2}},
		{"yx", []int{59, 79}, 0, 0, []int{59, 79}},
	} {
		s := LevelShapes(c.shape, SpaceAxes(c.names, ""), c.levels)
		if len(s)-1 != c.want || !slices.Equal(s[len(s)-1], c.last) {
			t.Errorf("%v %v: %d levels, last %v; want %d, %v", c.names, c.shape, len(s)-1, s[len(s)-1], c.want, c.last)
		}
	}
}

// Every tile comes once, and blocks of 2×2×2 come together.
func TestTileOrder(t *testing.T) {
	axes := SpaceAxes("czyx", "")
	seen := map[[4]int]int{}
	n := 0
	for s := range TileOrder([]int{2, 10, 21, 33}, []int{1, 4, 5, 8}, axes) {
		seen[[4]int(s)] = n
		n++
	}
	if want := 2 * 3 * 5 * 5; n != want || len(seen) != want {
		t.Fatalf("%d tiles, %d different, want %d", n, len(seen), want)
	}
	// the block of tiles 2, 3 (y) × 2, 3 (x) × 0, 1 (z) of channel 1
	lo, hi := n, 0
	for z := range 2 {
		for y := 2; y < 4; y++ {
			for x := 2; x < 4; x++ {
				i := seen[[4]int{1, z * 4, y * 5, x * 8}]
				lo, hi = min(lo, i), max(hi, i)
			}
		}
	}
	if hi-lo != 7 {
		t.Errorf("a block of 8 tiles lies within %d", hi-lo+1)
	}
	for range TileOrder([]int{1, 10, 21, 33}, []int{1, 4, 5, 8}, axes) {
		break // stopping early must not go on
	}
}

// Levels of labels have the sample nearest to each output, and no value that the level above has not.
func TestLabelsTakeSamples(t *testing.T) {
	ctx := t.Context()
	for _, shape := range [][]int{{6, 8, 10}, {5, 9, 7}} {
		v := make([]uint64, shape[0]*shape[1]*shape[2])
		for i := range v {
			v[i] = 1<<60 + uint64(i*i)
		}
		st := store.Memory()
		w, err := Create(ctx, st, "", ImageSpec{Format: 3, Shape: shape, Chunks: []int{4, 4, 4}, DType: dtype.Uint64, Axes: SpaceAxes("zyx", "micrometer"),
			Scale: []float64{1, 1, 1}, Levels: 1, Label: &ImageLabel{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteTile(ctx, []int{0, 0, 0}, shape, dtype.Bytes(v)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
		im, err := Open(ctx, st, "")
		if err != nil || im.ImageLabel == nil {
			t.Fatal(im, err)
		}
		a := im.Levels[1].Array
		out := a.Shape()
		got := make([]uint64, out[0]*out[1]*out[2])
		if err := a.Read(ctx, zarr.Region{Start: []int{0, 0, 0}, Shape: out}, dtype.Bytes(got)); err != nil {
			t.Fatal(err)
		}
		near := func(i, d int) int { // of two that are as near, the first
			p := (float64(i)+0.5)*float64(shape[d])/float64(out[d]) - 0.5
			return int(math.Ceil(p - 0.5))
		}
		for k, x := range got {
			z, y, x0 := near(k/out[2]/out[1], 0), near(k/out[2]%out[1], 1), near(k%out[2], 2)
			if want := v[(z*shape[1]+y)*shape[2]+x0]; x != want {
				t.Fatalf("%v: voxel %d is %d, want that of %d,%d,%d, %d", shape, k, x, z, y, x0, want)
			}
		}
	}
}
