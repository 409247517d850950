package datasets

import (
	"encoding/json"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// A record says how large voxels are, in µm, and can be written up to the largest.
func TestDescribeImage(t *testing.T) {
	for _, c := range []struct {
		scale float64
		unit  string
		want  []float64
	}{{0.005, "millimeter", []float64{5, 5}}, {1, "meter", []float64{1e6, 1e6}}} {
		st := store.Memory()
		w, err := ngff.Create(t.Context(), st, "", ngff.ImageSpec{Shape: []int{4, 4}, Chunks: []int{4, 4}, DType: dtype.Uint8,
			Axes: ngff.SpaceAxes("yx", c.unit), Scale: []float64{c.scale, c.scale}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteTile(t.Context(), []int{0, 0}, []int{4, 4}, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		im, err := ngff.Open(t.Context(), st, "")
		if err != nil {
			t.Fatal(err)
		}
		d := DescribeImage(im, "image")
		if _, err := json.Marshal(d); err != nil || !slices.Equal(d.VoxelSize, c.want) {
			t.Errorf("%v %s: %v µm, %v", c.scale, c.unit, d.VoxelSize, err)
		}
	}
}
