package agarose

import (
	"math"
	"slices"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/tests/octtest"
)

// Means leave out what is not finite and count what is clipped as the limit, whatever the memory and the workers; each
// voxel is seen once.
func TestMeans(t *testing.T) {
	shape := []int{20, 9, 70}
	v := octtest.Made3(shape, func(i int) float32 { return float32(i * 7919 % 101) })
	v[3], v[700], v[1400] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
	for z := range 20 {
		v[z*630+5] = float32(math.NaN())
	}
	volume, err := blocks.Open(octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{20, 4, 70}}, v))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 630)
	for i := range want {
		sum, n := 0.0, 0
		for z := range 20 {
			if f := v[z*630+i]; f-f == 0 {
				sum += min(float64(f), 90)
				n++
			}
		}
		if n > 0 {
			want[i] = float32(sum / float64(n))
		}
	}
	for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 3, Mem: 64 << 20}, {Workers: 2, Mem: 400 << 10}} {
		seen := make([]int, res.Workers)
		got, err := Means(octtest.Ctx, volume, 90, res, func(b *blocks.Block) { seen[b.Worker] += b.Size[0] * b.Size[1] * b.Size[2] })
		if err != nil {
			t.Fatal(err)
		}
		octtest.SameBits(t, got, want)
		total := 0
		for _, n := range seen {
			total += n
		}
		if total != len(v) {
			t.Errorf("%d voxels were seen, want %d", total, len(v))
		}
	}
}

// Agarose is darker than the threshold, and has data.
func TestFind(t *testing.T) {
	means := []float32{0, 10, 10.2, 100, 10.5, -1, 101, 99}
	m := Find(means, 2, 4, 0)
	if want := []bool{false, true, true, false, true, false, false, false}; !slices.Equal(m.Lines, want) || m.Count != 3 || m.Coverage() != 3./8 || m.Few() {
		t.Errorf("%v, %d, threshold %v", m.Lines, m.Count, m.Threshold)
	}
	if m := Find([]float32{5, 5, 0, 5}, 2, 2, 0); !m.Few() || m.Count != 0 {
		t.Errorf("a constant image has the threshold %v", m.Threshold)
	}
	even := make([]float32, 32*32)
	for i := range even {
		even[i] = 7
	}
	if m := Find(even, 32, 32, 1); !m.Few() || m.Count != 0 {
		t.Errorf("a constant image that was smoothed has the threshold %v, %d are agarose", m.Threshold, m.Count)
	}
	if m := Find(make([]float32, 4), 2, 2, 3); !m.Few() || m.Count != 0 {
		t.Errorf("an empty image has the threshold %v", m.Threshold)
	}
}

// The memory that is planned holds what is allocated, and half of the default --mem has room for planes of 4000 × 4000
// A-lines and for the ranks that normalize counts besides.
func TestBytes(t *testing.T) {
	const ny, nx = 300, 400
	means := make([]float32, ny*nx)
	for i := range means {
		means[i] = float32(i % 2 * 90) // runs of one A-line
	}
	means[1] = 10
	planned := Bytes(&blocks.Volume{Shape: [3]int{1, ny, nx}}) - 4*ny*nx
	got := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			Find(means, ny, nx, 1)
		}
	}).AllocedBytesPerOp()
	if got > planned || got < 5*ny*nx {
		t.Errorf("%d bytes are allocated, %d are planned", got, planned)
	}
	if n := Bytes(&blocks.Volume{Shape: [3]int{330, 4000, 4000}}); n > 224<<20 {
		t.Errorf("%d MiB for planes of 4000 × 4000", n>>20)
	}
}
