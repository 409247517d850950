package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// The chunks of which a slice and a volume consist; that of a slice is also a tile.
var (
	sliceChunk  = [3]int{330, 200, 200}
	volumeChunk = [3]int{8, 256, 256} // as stack writes them
)

// micron is the size of voxels in µm.
const micron = 10.0

// extra is the number of A-lines of each frame of the raw tiles that the mirror's way back takes.
const extra = 20

// side is the size in voxels of the squares of even brightness of which a plane consists, so that results can be
// compressed, too.
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

// makeInput writes below dir: big.ome.zarr, a slice of about gb GB, and volume.ome.zarr, a volume with the proportions
// of a brain, whose chunks are one file under many names; small.ome.zarr, a chunk of the slice; raw, tiles with as many
// voxels as the slice; and files, the slice's tiles as TIFF files t0_0.tif and so on.
func makeInput(ctx context.Context, dir string, gb float64) error {
	n := int(math.Ceil(math.Sqrt(gb * 1e9 / bytesOf(sliceChunk))))
	side := math.Cbrt(gb * 1e9 / 4 * 8 / 5) // y and x; z is 5/8 of it
	volume := [3]int{int(math.Ceil(side * 5 / 8 / float64(volumeChunk[0]))), int(math.Ceil(side / float64(volumeChunk[1]))), int(math.Ceil(side / float64(volumeChunk[2])))}
	for _, image := range []struct {
		name        string
		chunk, grid [3]int
	}{{"big", sliceChunk, [3]int{1, n, n}}, {"small", sliceChunk, [3]int{1, 1, 1}}, {"volume", volumeChunk, volume}} {
		if err := writeImage(ctx, filepath.Join(dir, image.name+".ome.zarr"), image.chunk, image.grid); err != nil {
			return err
		}
	}
	if err := writeFiles(filepath.Join(dir, "files"), sliceChunk, n); err != nil {
		return err
	}
	return writeRaw(filepath.Join(dir, "raw", "z00"), sliceChunk, n)
}

// writeFiles writes a grid of tiles in TIFF files, stacks of pages, which are one file under many names.
func writeFiles(dir string, chunk [3]int, across int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := func(_, y, x int) string { return filepath.Join(dir, fmt.Sprintf("t%d_%d.tif", y, x)) }
	f, err := os.Create(name(0, 0, 0))
	if err != nil {
		return err
	}
	defer f.Close()
	w := tiff.NewWriter(f, false)
	page := tiff.PageSpec{Layout: tiff.Layout{Width: chunk[2], Height: chunk[1], Depth: 1, Samples: 1, Bits: 32, Type: dtype.Float32, TileWidth: chunk[2], TileHeight: chunk[1], TileDepth: 1,
		Compression: 1, Predictor: 1, Photometric: tiff.MinIsBlack, FillOrder: 1}}
	voxels := make([]float32, chunk[1]*chunk[2])
	for z := range chunk[0] {
		for i := range voxels {
			voxels[i] = brightness(z, i/chunk[2], i%chunk[2])
		}
		if err := w.Put(w.AddPage(page, -1), 0, dtype.Bytes(voxels)); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		return err
	}
	return links([3]int{1, across, across}, name)
}

func bytesOf(shape [3]int) float64 {
	return 4 * float64(shape[0]) * float64(shape[1]) * float64(shape[2])
}

// writeImage writes an image of one chunk, and makes it a grid of chunks by links to that chunk.
func writeImage(ctx context.Context, path string, chunk, grid [3]int) error {
	voxels := make([]float32, chunk[0]*chunk[1]*chunk[2])
	depth := 0
	if chunk == volumeChunk { // within the tissue
		depth = 60
	}
	for i := range voxels {
		voxels[i] = brightness(depth+i/chunk[2]/chunk[1], i/chunk[2]%chunk[1], i%chunk[2])
	}
	codecs, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
	if err != nil {
		return err
	}
	w, err := ngff.Create(ctx, store.Folder(path), "", ngff.ImageSpec{Format: 3, Shape: chunk[:], Chunks: chunk[:], DType: dtype.Float32, Codecs: codecs,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{micron, micron, micron}, Workers: 1})
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
	array["shape"] = []int{grid[0] * chunk[0], grid[1] * chunk[1], grid[2] * chunk[2]}
	if text, err = json.Marshal(array); err != nil {
		return err
	}
	if err := os.WriteFile(settings, text, 0o666); err != nil {
		return err
	}
	return links(grid, func(z, y, x int) string {
		return filepath.Join(path, "0", "c", fmt.Sprint(z), fmt.Sprint(y), fmt.Sprint(x))
	})
}

// links gives the first file of a grid the names of all others.
func links(grid [3]int, name func(z, y, x int) string) error {
	file := name(0, 0, 0)
	for i := 1; i < grid[0]*grid[1]*grid[2]; i++ {
		to := name(i/grid[2]/grid[1], i/grid[2]%grid[1], i%grid[2])
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
func writeRaw(dir string, chunk [3]int, across int) error {
	tile := func(y, x int) string { return filepath.Join(dir, fmt.Sprintf("tile_x%02d_y%02d_z00", y, x)) }
	for i := range across * across {
		y, x := i/across, i%across
		if err := os.MkdirAll(tile(y, x), 0o777); err != nil {
			return err
		}
		width := float64(chunk[1]) * micron
		text := fmt.Sprintf("nx: %d\nny: %d\nn_extra: %d\nn_repeat: 1\nwidth: %v\nheight: %v\ntop_z: 0\nbottom_z: %d\naxial_resolution: %v\nstage_x_pos_mm: %v\nstage_y_pos_mm: %v\nstage_z_pos_mm: 0\n",
			chunk[1], chunk[2], extra, width, float64(chunk[2])*micron, chunk[0]-1, micron, float64(y)*width/1000, float64(x)*width/1000)
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
	return links([3]int{1, across, across}, func(_, y, x int) string { return filepath.Join(tile(y, x), "image_00000.bin") })
}
