package czi

import (
	"fmt"

	"strata/pkg/dtype"
)

// PixelType identifies the pixel type of a sub-block.
type PixelType int32

// Pixel types. Samples of the Bgr types are interleaved, blue first.
const (
	Gray8       PixelType = 0
	Gray16      PixelType = 1
	Gray32Float PixelType = 2
	Bgr24       PixelType = 3
	Bgr48       PixelType = 4
	Bgr96Float  PixelType = 8
	Bgra32      PixelType = 9
	Gray32      PixelType = 12
	Gray64Float PixelType = 13
)

var pixelTypes = map[PixelType]struct {
	name    string
	elem    dtype.Type
	samples int
}{
	Gray8: {"Gray8", dtype.Uint8, 1}, Gray16: {"Gray16", dtype.Uint16, 1}, Gray32: {"Gray32", dtype.Uint32, 1},
	Gray32Float: {"Gray32Float", dtype.Float32, 1}, Gray64Float: {"Gray64Float", dtype.Float64, 1},
	Bgr24: {"Bgr24", dtype.Uint8, 3}, Bgr48: {"Bgr48", dtype.Uint16, 3}, Bgr96Float: {"Bgr96Float", dtype.Float32, 3},
	Bgra32: {"Bgra32", dtype.Uint8, 4},
}

// unread names types that exist but are not read.
var unread = map[PixelType]string{10: "Gray64ComplexFloat", 11: "Bgr192ComplexFloat"}

// String returns the type's name, such as "Gray16".
func (p PixelType) String() string {
	if t, ok := pixelTypes[p]; ok {
		return t.name
	}
	if name := unread[p]; name != "" {
		return name
	}
	return fmt.Sprintf("pixel type %d", int32(p))
}

// Elem returns the element type of a sample, or dtype.Invalid if the pixel type is not supported.
func (p PixelType) Elem() dtype.Type { return pixelTypes[p].elem }

// Samples returns the number of samples per pixel, or 0 if the pixel type is not supported.
func (p PixelType) Samples() int { return pixelTypes[p].samples }

// Bytes returns the size of a pixel in bytes, or 0 if the pixel type is not supported.
func (p PixelType) Bytes() int {
	switch p {
	case Gray8:
		return 1
	case Gray16:
		return 2
	case Bgr24:
		return 3
	}
	if t, ok := pixelTypes[p]; ok {
		return t.elem.Size() * t.samples
	}
	return 0
}

// Compression identifies the compression of a sub-block's pixels.
type Compression int32

// Compressions.
const (
	None   Compression = 0
	JPEG   Compression = 1
	LZW    Compression = 2
	JPEGXR Compression = 4
	Zstd0  Compression = 5 // a Zstandard frame
	Zstd1  Compression = 6 // a header, then a Zstandard frame of bytes that may have been put in another order
)

// String returns the name of a compression: "none", "jpeg", "lzw", "jpegxr", "zstd0" or "zstd1".
func (c Compression) String() string {
	switch c {
	case None:
		return "none"
	case JPEG:
		return "jpeg"
	case LZW:
		return "lzw"
	case JPEGXR:
		return "jpegxr"
	case Zstd0:
		return "zstd0"
	case Zstd1:
		return "zstd1"
	}
	switch {
	case c >= 1000:
		return fmt.Sprintf("raw data of a system (compression %d)", int32(c))
	case c >= 100:
		return fmt.Sprintf("raw data of a camera (compression %d)", int32(c))
	}
	return fmt.Sprintf("compression %d", int32(c))
}
