package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/npy"
	"strata/pkg/phantom"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// truth is a phantom's description of itself.
type truth struct {
	phantom.Truth
	dir       string
	positions []float64 // of tiles: (slice, i, j, 2), (y, x) in px of the mosaics
}

func readTruth(dir string) (*truth, error) {
	t := &truth{dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &t.Truth); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "truth", "positions.npy"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := npy.ReadHeader(f)
	if err != nil {
		return nil, err
	}
	n := 1
	for _, s := range h.Shape {
		n *= s
	}
	raw := make([]byte, 8*n)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, err
	}
	t.positions = append(t.positions, dtype.Slice[float64](raw)...)
	return t, nil
}

// volume is an image in memory, with its voxel size and the position of its first voxel's centre in micrometres.
type volume struct {
	v        []float32
	n        [3]int
	voxel, o [3]float64
}

func (v *volume) plane(z int) []float32 { return v.v[z*v.n[1]*v.n[2]:][:v.n[1]*v.n[2]] }

func readVolume(ctx context.Context, path string) (*volume, error) {
	st, at, err := store.OpenURL(ctx, path)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	image, err := ngff.Open(ctx, st, at)
	if err != nil {
		return nil, err
	}
	level := image.Levels[0]
	a := level.Array
	shape := a.Shape()
	if len(shape) != 3 {
		return nil, fmt.Errorf("%s: shape %v", path, shape)
	}
	out := &volume{n: [3]int(shape), v: make([]float32, shape[0]*shape[1]*shape[2])}
	raw := make([]byte, len(out.v)*a.DType().Size())
	if err := a.Read(ctx, zarr.Region{Start: make([]int, 3), Shape: shape}, raw); err != nil {
		return nil, err
	}
	dtype.ConvertSlice(out.v, raw, a.DType())
	for d := range 3 {
		out.voxel[d] = image.VoxelSize[d]
		if level.Translation != nil {
			out.o[d] = level.Translation[d] / level.Scale[d] * image.VoxelSize[d]
		}
	}
	return out, nil
}

// slice returns a slice as an ideal microscope sees it. Its origin is its position in the block, with z below the
// mean of the block's surface.
func (t *truth) slice(ctx context.Context, k int) (*volume, error) {
	v, err := readVolume(ctx, filepath.Join(t.dir, "truth", fmt.Sprintf("slice_z%02d.ome.zarr", k)))
	if err != nil {
		return nil, err
	}
	c := &t.Config
	v.o = [3]float64{float64(k)*c.Cut - c.Water, float64(t.Canvas[k].Origin[0]) * c.Voxel[1], float64(t.Canvas[k].Origin[1]) * c.Voxel[2]}
	return v, nil
}

// at returns an interpolated voxel; ok is false outside.
func (v *volume) at(z, y, x float64) (float32, bool) {
	iz, iy, ix := int(z), int(y), int(x)
	if z < 0 || y < 0 || x < 0 || iz+1 >= v.n[0] || iy+1 >= v.n[1] || ix+1 >= v.n[2] {
		return 0, false
	}
	fz, fy, fx := float32(z-float64(iz)), float32(y-float64(iy)), float32(x-float64(ix))
	sum := float32(0)
	for k := range 8 {
		w := [2]float32{1 - fz, fz}[k>>2] * [2]float32{1 - fy, fy}[k>>1&1] * [2]float32{1 - fx, fx}[k&1]
		if w > 0 {
			sum += w * v.v[((iz+(k>>2))*v.n[1]+iy+(k>>1&1))*v.n[2]+ix+(k&1)]
		}
	}
	return sum, true
}
