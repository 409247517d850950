package ngff

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr/store"
)

// centroid is the centre of mass of a level, in the unit of its scale, by its metadata. The border of what no value
// falls on is zero.
func centroid(t *testing.T, l *Level) (c [3]float64) {
	t.Helper()
	shape := l.Array.Shape()
	raw := make([]byte, 4*shape[0]*shape[1]*shape[2])
	if err := l.Array.Read(t.Context(), l.Array.Bounds(), raw); err != nil {
		t.Fatal(err)
	}
	var mass float64
	for i := range len(raw) / 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		mass += v
		for d, n := range [3]int{i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]} {
			at := float64(n) * l.Scale[d]
			if l.Translation != nil {
				at += l.Translation[d]
			}
			c[d] += v * at
		}
	}
	for d := range c {
		c[d] /= mass
	}
	return c
}

// ball is a smooth object in a volume, a little away from its centre.
func ball(shape []int) []float32 {
	v := make([]float32, 0, shape[0]*shape[1]*shape[2])
	for z := range shape[0] {
		for y := range shape[1] {
			for x := range shape[2] {
				r := 0.0
				for d, at := range [3]int{z, y, x} {
					e := (float64(at) - 0.52*float64(shape[d])) / (0.1 * float64(shape[d]))
					r += e * e
				}
				v = append(v, float32(1000*math.Exp(-r/2)))
			}
		}
	}
	return v
}

// An object has the same place on all levels, whatever the shape of the image: within a tenth of a voxel of level 0.
func TestLevelsLieInTheSamePlace(t *testing.T) {
	voxel := []float64{3.5, 2, 0.7}
	for _, shape := range [][]int{{48, 64, 96}, {47, 65, 97}, {53, 61, 103}, {49, 47, 127}} {
		for _, translation := range [][]float64{nil, {-100, 20, 3}} {
			spec := ImageSpec{Shape: shape, Chunks: []int{16, 16, 16}, DType: dtype.Float32, Axes: SpaceAxes("zyx", "micrometer"),
				Scale: voxel, Translation: translation, Levels: 2}
			values := ball(shape)
			raw := make([]byte, 0, 4*len(values))
			for _, v := range values {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			st := store.Memory()
			w, err := Create(t.Context(), st, "steps", spec)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abort()
			if err := w.WriteTile(t.Context(), []int{0, 0, 0}, shape, raw); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			// a pyramid for analysis, whose first level is made, too
			p, err := CreatePlanes(t.Context(), st, "analysis", spec, AnalysisLevels(shape, voxel, []float64{4, 6, 8}, true))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Abort()
			if err := p.Write(t.Context(), slices.Collect(slices.Chunk(values, shape[1]*shape[2]))); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want [3]float64
			for d := range want {
				want[d] = 0.52 * float64(shape[d]) * voxel[d]
				if translation != nil {
					want[d] += translation[d]
				}
			}
			for _, path := range []string{"steps", "analysis"} {
				im, err := Open(t.Context(), st, path)
				if err != nil {
					t.Fatal(err)
				}
				if len(im.Levels) < 3 {
					t.Fatalf("%d levels", len(im.Levels))
				}
				for k := range im.Levels {
					got := centroid(t, &im.Levels[k])
					for d := range got {
						if math.Abs(got[d]-want[d]) > 0.1*voxel[d] {
							t.Errorf("%s of %v: on level %d it lies at %s, want %s", path, shape, k, fmt.Sprint(got), fmt.Sprint(want))
							break
						}
					}
				}
			}
		}
	}
}
