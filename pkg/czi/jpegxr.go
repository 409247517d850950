package czi

import (
	"context"
	"fmt"

	"strata/pkg/jpegxr"
)

// decodeJPEGXR fills dst with the pixels of a JPEG XR file, in CZI's order, and returns the number of its
// bytes. A picture of another size is cut off, or padded with zeros on the right and below.
func (t *tile) decodeJPEGXR(ctx context.Context, o *tools, dst, src []byte) (int, error) {
	h, err := jpegxr.ReadHeader(src)
	if err != nil {
		return 0, err
	}
	width, height, size := int(t.entry.sw), int(t.entry.sh), t.kind.pixel.Bytes()
	if h.Format != jpegXRFormats[t.kind.pixel] {
		return 0, fmt.Errorf("a picture of %s in a tile of %s", h.Format, t.kind.pixel)
	}
	if h.Width == width && h.Height == height {
		return len(dst), o.jpegxr.Decode(ctx, dst, width*size, src)
	}
	n := tileBytes(h.Width, h.Height, size)
	if most := 2*int64(len(dst)) + surplus; n == 0 || n > most {
		return 0, fmt.Errorf("a picture of %d × %d pixels in a tile of %d × %d", h.Width, h.Height, width, height)
	}
	other := make([]byte, n)
	if err := o.jpegxr.Decode(ctx, other, h.Width*size, src); err != nil {
		return 0, err
	}
	for y := range min(height, h.Height) {
		row := dst[y*width*size:][:width*size]
		clear(row[copy(row, other[y*h.Width*size:][:h.Width*size]):])
	}
	return min(height, h.Height) * width * size, nil
}

// jpegXRFormats maps pixel types to JPEG XR formats.
var jpegXRFormats = map[PixelType]jpegxr.PixelFormat{Gray8: jpegxr.Gray8, Gray16: jpegxr.Gray16, Gray32Float: jpegxr.Gray32Float,
	Bgr24: jpegxr.BGR24, Bgr48: jpegxr.BGR48, Bgr96Float: jpegxr.BGR96Float}
