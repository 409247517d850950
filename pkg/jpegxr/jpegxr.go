// Package jpegxr decodes JPEG XR images (ITU-T T.832, ISO/IEC 29199-2) into the caller's memory. It is made
// for the tiles of CZI files.
//
// A [Decoder] is made once for each worker and reused; after the first tile of a kind it allocates nothing:
//
//	h, err := jpegxr.ReadHeader(src)
//	…
//	var d jpegxr.Decoder
//	err = d.Decode(ctx, dst, h.Width*h.Format.Size(), src)
//
// The caller compares the header with what it expects. Decode allocates memory for two rows of macroblocks,
// 32 rows of pixels, and before that refuses an image that does not fit into dst.
//
// # What is decoded
//
// Grey images of 8 and 16 bits and of 32-bit floats, colour images of 8 and 16 bits and of floats: spatial
// and frequency order, tiles (hard ones too), every overlap, quantizers for the image, for tiles and for
// macroblocks, 4:4:4, 4:2:2, 4:2:0 and grey inside, images that lack bands and trimmed flexbits, windows.
// Everything else is refused by name. docs/jpeg-xr.md describes the format.
//
// # Which pixels come out
//
// The standard defines the result bit by bit, and this package conforms to it. Samples are little endian.
// Colour samples come as B, G, R in all formats, as CZI wants them, also where the file's pixel format says
// R, G, B.
//
// # How it is fast
//
// Codes are looked up in tables by the next 8 bits, of which a window of 57 is kept in a register.
// Coefficients lie by their place in a block, so that neighbours in memory are coefficients of neighbouring
// blocks, and the transforms take eight blocks at a time (AVX2 on amd64). Programs built with the tag noasm,
// and other machines, take the scalar forms, which give the same bytes.
package jpegxr

import "fmt"

// PixelFormat identifies the pixel format of a decoded image.
type PixelFormat uint8

const (
	Gray8 PixelFormat = iota + 1
	Gray16
	Gray32Float
	BGR24      // 8 bits for each of blue, green and red
	BGR48      // 16 bits
	BGR96Float // 32-bit floats
)

var formats = [...]struct {
	name           string
	channels, size int
}{
	Gray8:       {"Gray8", 1, 1},
	Gray16:      {"Gray16", 1, 2},
	Gray32Float: {"Gray32Float", 1, 4},
	BGR24:       {"BGR24", 3, 3},
	BGR48:       {"BGR48", 3, 6},
	BGR96Float:  {"BGR96Float", 3, 12},
}

// String returns the format's name in this package.
func (f PixelFormat) String() string {
	if f >= Gray8 && int(f) < len(formats) {
		return formats[f].name
	}
	return fmt.Sprintf("PixelFormat(%d)", uint8(f))
}

// Channels returns 1 or 3.
func (f PixelFormat) Channels() int { return formats[f].channels }

// Size returns the number of bytes of a pixel.
func (f PixelFormat) Size() int { return formats[f].size }

// Header describes an image.
type Header struct {
	Width, Height int
	Format        PixelFormat
}

// ReadHeader reads and checks the container and the headers of an image, but not the data.
func ReadHeader(src []byte) (Header, error) {
	var f file
	if err := f.read(src); err != nil {
		return Header{}, fmt.Errorf("JPEG XR: %w", err)
	}
	return f.Header, nil
}
