package mask

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// volumeOf writes a volume and opens it.
func volumeOf(t *testing.T, spec ngff.ImageSpec, raw []byte) *blocks.Volume {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(octtest.Ctx, make([]int, 3), spec.Shape, raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	v, err := blocks.Open(octtest.Open(t, st))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The mask is that of scipy and scikit-image, and the same with little memory and several workers.
func TestGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "mask") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				Smoothing float64
				Largest   bool
				Fill      Fill
				Median    int
			}
			var f struct {
				Threshold  float64
				Components int
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.File, &f); err != nil {
				t.Fatal(err)
			}
			in, want := c.Arrays["input"], c.Arrays["expected"].Data
			v := volumeOf(t, ngff.ImageSpec{Shape: in.Shape, Chunks: []int{4, 16, 16}, DType: in.Type, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: c.VoxelSize[0]}, in.Data)
			o := Options{p.Smoothing, math.NaN(), p.Largest, p.Fill, p.Median}
			least := int64(1 << 20)
			for ; ; least += least / 8 {
				_, err := Find(octtest.Ctx, v, o, oct.Resources{Workers: 1, Mem: least})
				if err == nil {
					break
				}
				if !strings.Contains(err.Error(), "--mem grants") {
					t.Fatal(err)
				}
			}
			var first *Result
			for _, res := range []oct.Resources{octtest.Small(), {Workers: 1, Mem: least}, {Workers: 3, Mem: least + least/8}} {
				r, err := Find(octtest.Ctx, v, o, res)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = r
				} else if !bytes.Equal(r.Voxels, first.Voxels) || r.Threshold != first.Threshold {
					t.Errorf("%d workers, %d KiB: another mask", res.Workers, res.Mem>>10)
				}
			}
			if off := math.Abs(first.Threshold/f.Threshold - 1); off > c.Tolerance.Rel {
				t.Errorf("threshold %v, want %v", first.Threshold, f.Threshold)
			}
			o.Threshold = f.Threshold
			r, err := Find(octtest.Ctx, v, o, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			if p.Smoothing == 0 && r.Components != f.Components {
				t.Errorf("%d components, want %d", r.Components, f.Components)
			}
			off, count := 0, int64(0)
			for i, b := range r.Voxels {
				count += int64(b)
				if b != want[i] {
					off++
				}
			}
			if float64(off) > c.Tolerance.Off*float64(len(want)) || p.Smoothing == 0 && off > 0 || count != r.Count {
				t.Errorf("%d of %d voxels differ; %d are 1, the result says %d", off, len(want), count, r.Count)
			}
		})
	}
}

// What has no mask is bad input; voxels that are not finite are outside; too little memory is an error.
func TestRefused(t *testing.T) {
	shape := []int{4, 8, 8}
	spec := ngff.ImageSpec{Shape: shape, Chunks: shape, DType: dtype.Float32, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{10, 10, 10}}
	values := make([]float32, 256)
	o := Options{Threshold: math.NaN(), Fill: Volume, Median: 1, Largest: true}
	for _, fill := range []float32{0, 7} {
		for i := range values {
			values[i] = fill
		}
		_, err := Find(octtest.Ctx, volumeOf(t, spec, dtype.Bytes(values)), o, octtest.Small())
		if err == nil || !strings.Contains(err.Error(), "one value") {
			t.Errorf("all %v: %v", fill, err)
		}
	}
	values[5], values[100] = float32(math.NaN()), float32(math.Inf(1))
	values[200] = 90
	v := volumeOf(t, spec, dtype.Bytes(values))
	r, err := Find(octtest.Ctx, v, o, octtest.Small())
	if err != nil || r.Count != 1 || r.Voxels[200] != 1 {
		t.Errorf("%v, %v", r, err)
	}
	o.Threshold = 1000
	if _, err := Find(octtest.Ctx, v, o, octtest.Small()); err == nil || !strings.Contains(err.Error(), "no specimen found") {
		t.Errorf("nothing reaches the threshold: %v", err)
	}
	if _, err := Find(octtest.Ctx, v, o, oct.Resources{Workers: 1, Mem: 4 << 10}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("little memory: %v", err)
	}
}
