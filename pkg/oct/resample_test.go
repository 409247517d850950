package oct

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
)

// values reads all of an array as float64.
func values(t *testing.T, a *zarr.Array) []float64 {
	t.Helper()
	n := a.DType().Size()
	for _, s := range a.Shape() {
		n *= s
	}
	b := make([]byte, n)
	if err := a.Read(ctx, a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	var v []float64
	dtype.Each(b, a.DType(), func(f float64) { v = append(v, f) })
	return v
}

func isotropic(um float64) Resampling {
	return Resampling{Resolution: [3]float64{um, um, um}, Prefetch: 8}
}

func TestResampleGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "resample") {
		t.Run(c.Name, func(t *testing.T) {
			var p struct {
				Resolution float64
				Levels     int `json:"n_levels"`
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				t.Fatal(err)
			}
			in := open(t, store.Folder(golden.Input(t, c)))
			out, err := Resample(ctx, in, store.Memory(), isotropic(p.Resolution), Layout{Levels: p.Levels}, small())
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Levels) != len(c.VoxelSize) {
				t.Fatalf("%d levels, want %d", len(out.Levels), len(c.VoxelSize))
			}
			if got := out.Levels[0].Array.Chunks(); !slices.Equal(got, c.Chunks) {
				t.Errorf("chunks %v, want %v", got, c.Chunks)
			}
			for k, level := range out.Levels {
				want := c.Arrays[fmt.Sprintf("level%d", k)]
				if !slices.Equal(level.Array.Shape(), want.Shape) || level.Array.DType() != want.Type {
					t.Fatalf("level %d: %v of shape %v, want %v of %v", k, level.Array.DType(), level.Array.Shape(), want.Type, want.Shape)
				}
				got := values(t, level.Array)
				var i, off, ties int
				dtype.Each(want.Data, want.Type, func(w float64) {
					d := math.Abs(got[i] - w)
					if !(d <= c.Tolerance.Abs+c.Tolerance.Rel*math.Abs(w)) {
						off++
					} else if k == 0 && want.Type.IsInteger() && d > 0 {
						ties++ // float32 on one side of a half, float64 on the other
					}
					i++
				})
				if float64(off) > c.Tolerance.Off*float64(i) {
					t.Errorf("level %d: %d of %d voxels differ", k, off, i)
				}
				if ties > i/1000 {
					t.Errorf("level %d: %d of %d voxels are rounded the other way", k, ties, i)
				}
				for d, v := range c.VoxelSize[k] {
					um, _, _ := ngff.Micrometres(out.Axes[d].Unit)
					if got := level.Scale[d] * um; math.Abs(got-v) > 1e-9*v {
						t.Errorf("level %d, axis %d: voxel size %v µm, want %v", k, d, got, v)
					}
				}
			}
		})
	}
}
