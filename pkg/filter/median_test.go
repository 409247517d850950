package filter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
)

// A network sorts every list of zeros and ones, so it sorts all lists (Knuth's zero-one principle); pruned, it still
// puts the right value to the place that is wanted.
func TestNetworksSort(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {5, 1}, {7, 1}, {11, 1}, {2, 2}, {3, 3}, {2, 7}, {4, 4}, {5, 3}} {
		n, length := c[0], c[1]
		sorts, median := mergeLists(n, length), mergeLists(n, length)
		median.prune([]int{n * length / 2})
		if n*length > 4 && len(median.pairs) >= len(sorts.pairs) {
			t.Errorf("%d lists of %d: a median takes all %d comparators", n, length, len(sorts.pairs))
		}
		for ones := range int(math.Pow(float64(length+1), float64(n))) {
			var rows []uint8
			for range n { // lists of zeros, then ones
				for i := range length {
					rows = append(rows, uint8(min(1, (i+1)/(length+1-ones%(length+1)))))
				}
				ones /= length + 1
			}
			want := slices.Sorted(slices.Values(rows))
			picked := slices.Clone(rows)
			scalar(func() { compare(sorts, rows, 1, 1); compare(median, picked, 1, 1) })
			for place, wire := range sorts.order {
				if rows[wire] != want[place] {
					t.Fatalf("%d lists of %d: place %d of %v is %d", n, length, place, want, rows[wire])
				}
			}
			if k := n * length / 2; picked[median.order[k]] != want[k] {
				t.Fatalf("%d lists of %d: the median of %v is %d", n, length, want, picked[median.order[k]])
			}
		}
	}
}

func randomOf[T dtype.Element](r *rand.Rand, n int) []T {
	v := make([]T, n)
	raw := dtype.Bytes(v)
	for i := range raw {
		raw[i] = uint8(r.Uint32())
	}
	for i := range v { // and many that are equal
		if r.IntN(3) == 0 {
			v[i] = v[r.IntN(i+1)]
		}
	}
	return v
}

// medianOfWindow is the definition.
func medianOfWindow[T dtype.Element](src []T, wide, window [3]int, z, y, x int) T {
	var v []T
	for k := range window[0] {
		for j := range window[1] {
			v = append(v, src[((z+k)*wide[1]+y+j)*wide[2]+x:][:window[2]]...)
		}
	}
	slices.SortFunc(v, func(a, b T) int {
		switch {
		case a != a || b != b: // NaN is behind all others
			return btoi(a != a) - btoi(b != b)
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return v[len(v)/2]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func testMedian[T dtype.Element](t *testing.T) {
	r := rand.New(rand.NewPCG(7, uint64(dtype.Of[T]())))
	for _, window := range [][3]int{{1, 1, 1}, {1, 3, 3}, {1, 5, 5}, {3, 3, 3}, {3, 1, 1}, {1, 1, 7}, {1, 9, 9}, {5, 5, 5}, {1, 33, 33}, {9, 11, 11}} {
		shape := [3]int{1 + r.IntN(3), 1 + r.IntN(9), 1 + r.IntN(100)}
		wide, n := shape, 1
		for d := range wide {
			wide[d] += window[d] - 1
			n *= wide[d]
		}
		src := randomOf[T](r, n)
		if r.IntN(2) == 0 && dtype.Of[T]() == dtype.Float32 {
			for i := range src { // numbers that are not as rare as those of random bits
				src[i] = T(r.NormFloat64())
			}
		}
		m := NewMedianFilter[T](window)
		for _, run := range []func(func()){func(f func()) { f() }, scalar} {
			spoiled, got := slices.Clone(src), make([]T, shape[0]*shape[1]*shape[2])
			run(func() { m.Apply(got, spoiled, shape) })
			for i, v := range got {
				want := medianOfWindow(src, wide, window, i/shape[2]/shape[1], i/shape[2]%shape[1], i%shape[2])
				if v != want && (v == v || want == want) {
					t.Fatalf("%v of shape %v, voxel %d: %v, want %v", window, shape, i, v, want)
				}
			}
		}
		if m.Bytes(shape) <= 0 {
			t.Errorf("%v needs %d bytes", window, m.Bytes(shape))
		}
	}
}

func TestMedianFilter(t *testing.T) {
	t.Run("uint8", testMedian[uint8])
	t.Run("int8", testMedian[int8])
	t.Run("uint16", testMedian[uint16])
	t.Run("int16", testMedian[int16])
	t.Run("uint32", testMedian[uint32])
	t.Run("int32", testMedian[int32])
	t.Run("uint64", testMedian[uint64])
	t.Run("int64", testMedian[int64])
	t.Run("float32", testMedian[float32])
	t.Run("float64", testMedian[float64])
}

func benchmarkMedian[U uint8 | uint16](b *testing.B, window [3]int, network bool) {
	shape := [3]int{1, 256, 256}
	if window[0] > 1 {
		shape = [3]int{8, 64, 64}
	}
	n, voxels := 1, 1
	for d := range shape {
		n *= shape[d] + window[d] - 1
		voxels *= shape[d]
	}
	src, dst := randomOf[U](rand.New(rand.NewPCG(1, 2)), n), make([]U, voxels)
	apply := (&histogramMedian[U]{window: window}).apply
	if network {
		apply = newNetworkMedian[U](window).apply
	}
	for b.Loop() {
		apply(dst, src, shape)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(voxels), "ns/voxel")
}

// BenchmarkMedian compares both ways.
func BenchmarkMedian(b *testing.B) {
	for _, n := range []int{3, 5, 7, 9, 11, 15, 21} {
		for _, w := range [][3]int{{1, n, n}, {n, n, n}} {
			if w[0] > 9 {
				continue
			}
			for _, network := range []bool{true, false} {
				b.Run(fmt.Sprintf("uint8/%v/network=%v", w, network), func(b *testing.B) { benchmarkMedian[uint8](b, w, network) })
				b.Run(fmt.Sprintf("uint16/%v/network=%v", w, network), func(b *testing.B) { benchmarkMedian[uint16](b, w, network) })
			}
		}
	}
}
