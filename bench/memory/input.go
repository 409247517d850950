package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// The chunk of which slices consist, which is also a tile, and its voxels.
var (
	chunk = [3]int{330, 200, 200}
	voxel = [3]float64{3.5, 10, 10} // µm
)

// extra is the number of A-lines of each frame of the raw tiles that the mirror's way back takes.
const extra = 20

// side is the size in voxels of the squares of even brightness of which a plane consists, so that results can be compressed, too.
const side = 50

// brightness is that of a voxel: water, then agarose in some squares and tissue in the others, which darken with depth.
func brightness(z, y, x int) float32 {
	square := (y/side)*7 + (x/side)*3
	surface := 20 + square%3
	switch {
	case z < surface:
		return float32(1 + square%2)
	case square%5 == 0:
		return float32(math.Round(20 * math.Exp(-float64(z-surface)/200)))
	}
	return float32(math.Round(float64(60+10*(square%4)+z/40*3%17) * math.Exp(-float64(z-surface)/200)))
}

// makeInput writes below dir: big.ome.zarr, a slice of about gb GB whose chunks are one file under many names; small.ome.zarr, one chunk; and
// raw, tiles with as many voxels. It returns the number of chunks along y and x.
func makeInput(ctx context.Context, dir string, gb float64) (n int, err error) {
	voxels := make([]float32, chunk[0]*chunk[1]*chunk[2])
	for i := range voxels {
		voxels[i] = brightness(i/chunk[2]/chunk[1], i/chunk[2]%chunk[1], i%chunk[2])
	}
	n = max(1, int(math.Ceil(math.Sqrt(gb*1e9/float64(4*len(voxels))))))
	for name, across := range map[string]int{"big": n, "small": 1} {
		if err := writeImage(ctx, filepath.Join(dir, name+".ome.zarr"), voxels, across); err != nil {
			return 0, err
		}
	}
	return n, writeRaw(filepath.Join(dir, "raw", "z00"), n)
}

// writeImage writes an image of one chunk, and makes it one of across × across by links to that chunk.
func writeImage(ctx context.Context, path string, voxels []float32, across int) error {
	codecs, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
	if err != nil {
		return err
	}
	w, err := ngff.Create(ctx, store.Folder(path), "", ngff.ImageSpec{Format: 3, Shape: chunk[:], Chunks: chunk[:], DType: dtype.Float32, Codecs: codecs,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: voxel[:], Workers: 1})
	if err != nil {
		return err
	}
	if err := w.WriteTile(ctx, make([]int, 3), chunk[:], dtype.Bytes(voxels)); err != nil {
		return err
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	settings := filepath.Join(path, "0", "zarr.json")
	text, err := os.ReadFile(settings)
	if err != nil {
		return err
	}
	var array map[string]any
	if err := json.Unmarshal(text, &array); err != nil {
		return fmt.Errorf("%s: %w", settings, err)
	}
	array["shape"] = []int{chunk[0], across * chunk[1], across * chunk[2]}
	if text, err = json.Marshal(array); err != nil {
		return err
	}
	if err := os.WriteFile(settings, text, 0o666); err != nil {
		return err
	}
	return links(across, filepath.Join(path, "0", "c", "0", "0", "0"), func(y, x int) string {
		return filepath.Join(path, "0", "c", "0", fmt.Sprint(y), fmt.Sprint(x))
	})
}

// links gives a file, the first of a grid, the names of all others.
func links(across int, file string, name func(y, x int) string) error {
	for i := 1; i < across*across; i++ {
		to := name(i/across, i%across)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.Link(file, to); err != nil {
			return err
		}
	}
	return nil
}

// writeRaw writes raw tiles, whose frames are one file under many names.
func writeRaw(dir string, across int) error {
	tile := func(y, x int) string { return filepath.Join(dir, fmt.Sprintf("tile_x%02d_y%02d_z00", y, x)) }
	for i := range across * across {
		y, x := i/across, i%across
		if err := os.MkdirAll(tile(y, x), 0o777); err != nil {
			return err
		}
		width := float64(chunk[1]) * voxel[1]
		text := fmt.Sprintf("nx: %d\nny: %d\nn_extra: %d\nn_repeat: 1\nwidth: %v\nheight: %v\ntop_z: 0\nbottom_z: %d\naxial_resolution: %v\nstage_x_pos_mm: %v\nstage_y_pos_mm: %v\nstage_z_pos_mm: 0\n",
			chunk[1], chunk[2], extra, width, float64(chunk[2])*voxel[2], chunk[0]-1, voxel[0], float64(y)*width/1000, float64(x)*width/1000)
		if err := os.WriteFile(filepath.Join(tile(y, x), "info.txt"), []byte(text), 0o666); err != nil {
			return err
		}
	}
	var frames strings.Builder
	line := make([]byte, 4*chunk[0])
	for x := range chunk[2] {
		for y := range chunk[1] + extra {
			for z := range chunk[0] {
				binary.LittleEndian.PutUint32(line[4*z:], math.Float32bits(brightness(z, min(y, chunk[1]-1), x)))
			}
			frames.Write(line)
		}
	}
	first := filepath.Join(tile(0, 0), "image_00000.bin")
	if err := os.WriteFile(first, []byte(frames.String()), 0o666); err != nil {
		return err
	}
	return links(across, first, func(y, x int) string { return filepath.Join(tile(y, x), "image_00000.bin") })
}
