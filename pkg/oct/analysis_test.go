package oct

import (
	"runtime"
	"strings"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/registration"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A pyramid from voxels of any size is refused before anything is made of it, if the memory does not hold it; otherwise
// its writer counts what it takes, weights included.
func TestAnalysisBudget(t *testing.T) {
	a := DefaultAnalysis()
	layout := Layout{Levels: 9}
	for _, c := range []struct {
		shape []int
		voxel [3]float64
		mem   int64
		ok    bool
	}{
		{[]int{16, 64, 64}, [3]float64{3.5, 2, 1}, 128 << 20, true},
		{[]int{16, 64, 64}, [3]float64{3.5, 2, 1000}, 128 << 20, true},
		{[]int{16, 64, 64}, [3]float64{3.5, 2, 1e6}, 128 << 20, false},
		{[]int{16, 64, 64}, [3]float64{3.5, 2, 1e9}, 16 << 30, false},
		{[]int{16, 64, 64}, [3]float64{1e9, 1e9, 1e9}, 16 << 30, true}, // finer than all levels: none is made
		{[]int{16, 64, 64}, [3]float64{1, 1e6, 1e6}, 16 << 30, false},
		{[]int{16, 64, 64}, [3]float64{1e-300, 1e-300, 1e-300}, 128 << 20, true},
		{[]int{16, 64, 64}, [3]float64{1, 1, 1e300}, 16 << 30, false},
		{[]int{1 << 30, 1, 1}, [3]float64{1e-3, 1, 1}, 128 << 20, false}, // a Gaussian of a million planes
	} {
		res := &Resources{Workers: 2, Mem: c.mem}
		spec := ngff.ImageSpec{Format: 3, Shape: c.shape, Chunks: AnalysisChunk, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: c.voxel[:]}
		var levels [][]int
		var err error
		if took := allocated(func() { levels, err = a.Apply(&spec, c.voxel, "brain", layout, res) }); took > 1<<20 {
			t.Errorf("%v voxels of %v: %d bytes allocated to say %v", c.shape, c.voxel, took, err)
		}
		if (err == nil) != c.ok || err != nil && (!strings.HasPrefix(err.Error(), "brain: a pyramid of [") || !strings.Contains(err.Error(), "--mem grants")) {
			t.Errorf("%v voxels of %v: %v", c.shape, c.voxel, err)
		}
		if err != nil || c.shape[0] > 1<<20 {
			continue
		}
		var w *ngff.PlaneWriter
		took := allocated(func() { w, err = ngff.CreatePlanes(t.Context(), store.Memory(), "", spec, levels) })
		if units.CheckVoxel(c.voxel[0]) != nil { // no image has such voxels, however little memory they take
			if err == nil || !strings.Contains(err.Error(), "voxel size") {
				t.Errorf("%v voxels of %v: %v", c.shape, c.voxel, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v voxels of %v: %v", c.shape, c.voxel, err)
			continue
		}
		if took > uint64(w.Bytes())+1<<20 || ngff.LeastPlanesBytes(c.shape, levels) > w.Bytes() {
			t.Errorf("%v voxels of %v: %d bytes allocated, the writer counts %d, asked for were %d", c.shape, c.voxel, took, w.Bytes(), ngff.LeastPlanesBytes(c.shape, levels))
		}
		w.Abort()
	}
}

// Positions in micrometres that a voxel size turns into more pixels than a number holds, or than any slice has, are
// refused.
func TestRecordFar(t *testing.T) {
	for _, c := range []struct {
		voxel, x float64
		ok       bool
	}{{2, 120, true}, {2, 1e12, true}, {0.5, 1e12, false}, {1e-300, 1e12, false}, {1e-300, 0, true}} {
		m := &Mosaic{Image: &ngff.Image{VoxelSize: []float64{2, c.voxel, c.voxel}}, Shape: [3]int{4, 8, 8}, Chunk: [3]int{4, 8, 8}, Where: "scan"}
		err := m.Record(&registration.TilePositions{Name: "p.csv", Tiles: []registration.TilePosition{{Position: [2]float64{0, c.x}}}}, Resources{})
		if (err == nil) != c.ok || err != nil && !strings.HasPrefix(err.Error(), "p.csv: tile (0, 0) lies ") {
			t.Errorf("%v µm by voxels of %v: %v", c.x, c.voxel, err)
		}
	}
}
