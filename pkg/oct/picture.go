package oct

import (
	"bufio"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/zarr"
)

// PNGPercentiles are the percentiles that the PNG of an AIP maps to black and white.
var PNGPercentiles = [2]float64{0.1, 99.9}

// WritePNG writes a 2-D float32 array as a 16-bit greyscale PNG, with lo…hi mapped to 0…65535 (see
// [filter.ToUint16]). It holds the given number of rows in memory. If pixel, the size of a pixel in µm, is not 0
// and the picture is wide enough, a strip with a scale bar follows below the last row.
func WritePNG(ctx context.Context, dst io.Writer, a *zarr.Array, rows int, lo, hi, pixel float64) error {
	ny, nx := a.Shape()[0], a.Shape()[1]
	b := &bands{ctx: ctx, array: a, ny: ny, nx: nx, lo: lo, hi: hi,
		values: make([]float32, rows*nx), grey: make([]uint16, rows*nx), first: -1}
	var err error
	if b.strip, err = newStrip(nx, pixel); err != nil {
		return err
	}
	out := bufio.NewWriterSize(dst, 1<<20)
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(out, b); err != nil {
		return fmt.Errorf("encode PNG: %w", err)
	}
	if b.err != nil {
		return b.err
	}
	return out.Flush()
}

// BandRows returns how many rows of a 2-D float32 array to read at a time for its picture: a row of chunks, so that
// each chunk is decoded once. For a very wide array it is as many as a quarter of mem holds, counting each row twice in
// float32 and once in grey.
func BandRows(a *zarr.Array, mem int64) int {
	ny, nx := a.Shape()[0], a.Shape()[1]
	return int(max(1, min(int64(a.Chunks()[0]), int64(ny), mem/4/(int64(nx)*(4+4+2)))))
}

// bands is an image that reads its rows when the encoder requests them, from top to bottom. It keeps the first
// error, because image.Image cannot return one.
type bands struct {
	ctx    context.Context
	array  *zarr.Array
	ny, nx int
	lo, hi float64
	values []float32
	grey   []uint16
	first  int // row of the band in memory; -1: none
	strip  *strip
	err    error
}

func (b *bands) ColorModel() color.Model { return color.Gray16Model }
func (b *bands) Bounds() image.Rectangle { return image.Rect(0, 0, b.nx, b.ny+b.strip.height()) }

func (b *bands) At(x, y int) color.Color {
	if y >= b.ny {
		return b.strip.at(x, y-b.ny)
	}
	rows := len(b.grey) / b.nx
	if first := y - y%rows; first != b.first {
		b.load(first, min(rows, b.ny-first))
	}
	return color.Gray16{Y: b.grey[(y-b.first)*b.nx+x]}
}

func (b *bands) load(first, rows int) {
	b.first = first
	if b.err != nil {
		return
	}
	v := b.values[:rows*b.nx]
	r := zarr.Region{Start: []int{first, 0}, Shape: []int{rows, b.nx}}
	if b.err = b.array.Read(b.ctx, r, dtype.Bytes(v)); b.err == nil {
		filter.ToUint16(b.grey[:len(v)], v, b.lo, b.hi)
	}
}
