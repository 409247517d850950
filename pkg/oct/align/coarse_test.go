package align

import (
	"math"
	"slices"
	"strings"
	"testing"

	"strata/pkg/filter/mattes"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/tests/octtest"
)

// Voxels of a coarse volume are means of boxes, whatever the chunks, the workers and the memory.
func TestCoarse(t *testing.T) {
	shape := []int{21, 40, 37}
	value := func(i int) float32 {
		if i%11 == 0 {
			return float32(math.NaN())
		}
		return float32(i * 7919 % 1009)
	}
	for _, chunks := range [][]int{{21, 16, 16}, {8, 11, 37}, {5, 40, 9}} {
		im, _ := octtest.Made(t, shape, chunks, nil, nil, value)
		v, err := blocks.Open(im)
		if err != nil {
			t.Fatal(err)
		}
		c := coarse{v, [3]int{2, 4, 8}}
		if got := c.shape(); got != [3]int{10, 10, 4} {
			t.Fatalf("shape %v", got)
		}
		for _, res := range []oct.Resources{{Workers: 3, Mem: 8 << 20}, {Workers: 1, Mem: 1 << 19}} {
			got := make([]float32, 400)
			if err := c.read(octtest.Ctx, got, res); err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				z, y, x := i/40*2, i/4%10*4, i%4*8
				sum, n := 0.0, 0.0
				for dz := range 2 {
					for dy := range 4 {
						for dx := range 8 {
							if f := value(((z+dz)*40+y+dy)*37 + x + dx); f == f {
								sum, n = sum+float64(f), n+1
							}
						}
					}
				}
				if want := float32(sum / n); g != want {
					t.Fatalf("chunks %v, %d workers: voxel %d is %v, want %v", chunks, res.Workers, i, g, want)
				}
			}
		}
		if err := c.read(octtest.Ctx, make([]float32, 400), oct.Resources{Workers: 1, Mem: 1 << 8}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
			t.Errorf("too little memory: %v", err)
		}
	}
}

// An image without a pyramid, too large for memory, is registered by means of its voxels: nearly as well.
func TestWithoutAPyramid(t *testing.T) {
	in, to := imageOf(t, volumeShape, [3]float64{volumeUM, volumeUM, volumeUM}, 0, specimen), template(t)
	v, err := blocks.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	w, err := blocks.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	// A quarter of what both take: as much is needed for the samples.
	mem := int64(voxels(v.Shape)*16+voxels(w.Shape)*16)/4 + mattes.Bytes([3]int{}, [3]int{}, mattes.Options{})
	var first *Result
	for _, workers := range []int{1, 3} {
		var said []string
		r, err := Run(octtest.Ctx, in, to, nil, options(), oct.Layout{}, oct.Resources{Workers: workers, Mem: mem, Debug: func(m string) { said = append(said, m) }})
		if err != nil {
			t.Fatal(err)
		}
		if r.VoxelUM < 2*volumeUM || !slices.ContainsFunc(said, func(m string) bool { return strings.HasPrefix(m, "registering level 0 of the volume, ") }) {
			t.Errorf("voxels of %v µm, %q", r.VoxelUM, said)
		}
		if first == nil {
			first = r
		} else if r.Transform.Euler != first.Transform.Euler {
			t.Errorf("%+v by one worker, %+v by three", first.Transform.Euler, r.Transform.Euler)
		}
	}
	a, offset := first.Transform.Affine()
	b, want := truth.Affine()
	for _, from := range []mattes.Vec{{0.2, 0, 0}, {0, 0.2, 0}, {0, 0, 0.2}} {
		for d := range from {
			from[d] += truth.Centre[d]
		}
		p, q := a.Apply(from), b.Apply(from)
		for d := range p {
			if off := (p[d] + offset[d] - q[d] - want[d]) * 1000 / volumeUM; math.Abs(off) > 1 {
				t.Errorf("%.2f voxels off along axis %d", off, d)
			}
		}
	}
}
