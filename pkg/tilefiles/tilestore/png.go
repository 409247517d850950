package tilestore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"strata/pkg/dtype"
	"strata/pkg/tilefiles"
	"strata/pkg/zarr/store"
)

// pngFile reads a PNG file.
type pngFile struct {
	store.Object
	path   string
	header *tilefiles.Header
}

func (f *pngFile) close() error { return f.Close() }

// read decodes the picture. Its samples are those of the file; the colours of a palette are RGB.
func (f *pngFile) read(ctx context.Context, _ piece, dst []byte) error {
	im, err := png.Decode(bufio.NewReaderSize(&objectReader{ctx: ctx, o: f.Object}, 1<<16))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	h := f.header
	if b := im.Bounds(); b.Dx() != h.Width || b.Dy() != h.Height {
		return fmt.Errorf("%s: %w", f.path, store.ErrChanged)
	}
	pix, stride, samples, wide := pixels(im)
	switch {
	case pix == nil:
		return f.slowly(im, dst)
	case wide != (h.Type == dtype.Uint16) || samples < h.Samples:
		return fmt.Errorf("%s: is decoded to %T", f.path, im)
	}
	size := h.Type.Size()
	n := h.Width * h.Height * size
	for y := range h.Height {
		row := pix[y*stride:]
		for s := range h.Samples {
			to := dst[s*n+y*h.Width*size:][:h.Width*size]
			for x := range h.Width {
				from := row[(x*samples+s)*size:]
				if wide { // big-endian
					binary.NativeEndian.PutUint16(to[2*x:], binary.BigEndian.Uint16(from))
				} else {
					to[x] = from[0]
				}
			}
		}
	}
	return nil
}

// pixels returns the samples of a picture as image/png keeps them, so many per pixel, and whether they have 16 bits.
// They are nil for a palette.
func pixels(im image.Image) (pix []byte, stride, samples int, wide bool) {
	switch im := im.(type) {
	case *image.Gray:
		return im.Pix, im.Stride, 1, false
	case *image.Gray16:
		return im.Pix, im.Stride, 1, true
	case *image.RGBA:
		return im.Pix, im.Stride, 4, false
	case *image.NRGBA: // also grey and RGB of which one value is transparent
		return im.Pix, im.Stride, 4, false
	case *image.RGBA64:
		return im.Pix, im.Stride, 4, true
	case *image.NRGBA64:
		return im.Pix, im.Stride, 4, true
	}
	return nil, 0, 0, false
}

// slowly takes the colours of a palette.
func (f *pngFile) slowly(im image.Image, dst []byte) error {
	p, ok := im.(*image.Paletted)
	if !ok || f.header.Samples != 3 || f.header.Type != dtype.Uint8 {
		return fmt.Errorf("%s: is decoded to %T", f.path, im)
	}
	var table [256][3]byte
	for i, c := range p.Palette {
		v := color.NRGBAModel.Convert(c).(color.NRGBA)
		table[i] = [3]byte{v.R, v.G, v.B}
	}
	n := f.header.Width * f.header.Height
	for y := range f.header.Height {
		for x, index := range p.Pix[y*p.Stride:][:f.header.Width] {
			for s, v := range table[index] {
				dst[s*n+y*f.header.Width+x] = v
			}
		}
	}
	return nil
}

// objectReader reads an object from its beginning.
type objectReader struct {
	ctx context.Context
	o   store.Object
	at  int64
}

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.o.ReadAt(r.ctx, p, r.at)
	if r.at += int64(n); n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}
