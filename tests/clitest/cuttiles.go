package clitest

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/npy"
	"strata/pkg/tiff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// CutTiles is a program of scripts: cuttiles MOSAIC DIR NAME [STEP] writes each tile of a mosaic grid (z, y, x) to a
// file of its own, as a microscope does. NAME says how it is called, with {row} {col} {index} {x_um} {y_um}, and in
// which format: .tif, .npy, or .png, which takes the first plane. STEP is the distance of tiles as a fraction of their
// length, 1 by default.
func CutTiles() {
	if err := cutTiles(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cuttiles:", err)
		os.Exit(1)
	}
}

func cutTiles(ctx context.Context, args []string) error {
	im, err := ngff.Open(ctx, store.Folder(args[0]), "")
	if err != nil {
		return err
	}
	step := 1.0
	if len(args) > 3 {
		if step, err = strconv.ParseFloat(args[3], 64); err != nil {
			return err
		}
	}
	a := im.Levels[0].Array
	shape, tile := a.Shape(), a.Chunks()
	tile[0] = shape[0]
	data := make([]byte, mem.Product(append(tile, a.DType().Size())...))
	nx := shape[2] / tile[2]
	for k := range shape[1] / tile[1] * nx {
		i, j := k/nx, k%nx
		if err := a.Read(ctx, zarr.Region{Start: []int{0, i * tile[1], j * tile[2]}, Shape: tile}, data); err != nil {
			return err
		}
		um := func(n, d int) string {
			return strconv.FormatFloat(math.Round(float64(n)*step*float64(tile[d])*im.VoxelSize[d]*1000)/1000, 'f', -1, 64)
		}
		name := strings.NewReplacer("{row}", strconv.Itoa(i), "{col}", strconv.Itoa(j), "{index}", strconv.Itoa(k), "{y_um}", um(i, 1), "{x_um}", um(j, 2)).Replace(args[2])
		if err := writeTile(filepath.Join(args[1], name), a.DType(), tile, [3]float64(im.VoxelSize), data); err != nil {
			return err
		}
	}
	return nil
}

// writeTile writes the voxels of a tile in the format that the name of a file says.
func writeTile(path string, t dtype.Type, shape []int, voxel [3]float64, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	switch filepath.Ext(path) {
	case ".npy":
		if err := npy.WriteHeader(f, npy.Header{Type: t, Shape: shape}); err != nil {
			return err
		}
		_, err = f.Write(data)
	case ".png":
		err = writePicture(f, t, shape, data)
	default:
		err = writeStack(f, t, shape, voxel, data)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// writePicture writes the first plane as a grey PNG.
func writePicture(w io.Writer, t dtype.Type, shape []int, data []byte) error {
	r := image.Rect(0, 0, shape[2], shape[1])
	if t == dtype.Uint8 {
		return png.Encode(w, &image.Gray{Pix: data[:r.Dx()*r.Dy()], Stride: r.Dx(), Rect: r})
	}
	grey := image.NewGray16(r)
	for k := range r.Dx() * r.Dy() {
		binary.BigEndian.PutUint16(grey.Pix[2*k:], binary.NativeEndian.Uint16(data[2*k:]))
	}
	return png.Encode(w, grey)
}

// writeStack writes a stack of pages, as ImageJ does where the size along z is known.
func writeStack(f io.WriterAt, t dtype.Type, shape []int, voxel [3]float64, data []byte) error {
	w := tiff.NewWriter(f, false)
	plane := mem.Product(shape[1], shape[2], t.Size())
	for z := range shape[0] {
		s := tiff.PageSpec{XUM: voxel[2], YUM: voxel[1], Layout: tiff.Layout{Width: shape[2], Height: shape[1], Depth: 1, Samples: 1, Bits: 8 * t.Size(), Type: t,
			TileWidth: shape[2], TileHeight: shape[1], TileDepth: 1, Compression: 1, Predictor: 1, Photometric: tiff.MinIsBlack, FillOrder: 1}}
		if z == 0 {
			s.Description = fmt.Sprintf("ImageJ=1.53k\nimages=%d\nslices=%d\nunit=cm\nspacing=%g\n", shape[0], shape[0], voxel[0]/1e4)
		}
		if err := w.Put(w.AddPage(s, -1), 0, data[z*plane:][:plane]); err != nil {
			return err
		}
	}
	return w.Close()
}
