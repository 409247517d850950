// Package jpeg decodes 8-bit JPEG streams (ITU-T T.81) into the caller's memory and encodes baseline ones. It
// is made for the tiles of TIFF and CZI images: thousands of small streams of one kind, often without tables,
// which TIFF keeps once in its tag JPEGTables.
//
// A [Decoder] is made once for each worker and reused; after the first tile of a kind it allocates nothing:
//
//	var d jpeg.Decoder
//	rows, err := d.Decode(ctx, dst, tables, stream, jpeg.Config{Width: 256, Height: 256, Components: 3, Color: jpeg.ToRGB})
//
// The caller gives the expected frame. A stream with another width, another number of components or more rows
// is refused before memory is allocated for it, so that a damaged tile costs no more than a sound one.
//
// # What is decoded
//
// Baseline, extended sequential and progressive frames, Huffman coded, of 1, 3 or 4 components of 8 bits;
// every sampling factor from 1 to 4; restart intervals; interleaved and separate scans; streams with and
// without JFIF and Adobe markers. Arithmetic coding, lossless and hierarchical frames and 12-bit samples are
// refused by name.
//
// # Which pixels come out
//
// T.81 leaves open the rounding of the inverse DCT and the upsampling of components. This package does both
// like libjpeg by default (accurate integer DCT; "fancy" triangle filter where a component has half the
// samples in a direction, repetition elsewhere); the pixels equal those of libjpeg-turbo bit by bit. The
// exceptions are sampling factors that libjpeg refuses (3:2), where the nearest sample is repeated, and
// coefficients that no encoder makes.
//
// # Damaged streams
//
// Where libjpeg fills undecodable parts with grey, this package returns an error that names the row of MCUs
// and the byte. Earlier rows may have been written to dst.
//
// # How it is fast
//
// Stuffed zero bytes are taken out of the entropy-coded data once, in pieces, so that the bit reader loads
// eight bytes at a time without looking at them. One look-up gives the length of a Huffman code together with
// that of the number that follows, and the run of zeros in front; blocks without AC coefficients skip the
// DCT. On amd64 the decoder of blocks uses BMI2; DCT, upsampling and colour conversion AVX2. Programs built
// with the tag noasm, and other machines, take the scalar forms, which give the same bytes.
//
// On machines without that assembly, libturbojpeg decodes frames of one scan if it is installed: it is opened
// at run time, and [Variable] turns it off, or on everywhere. It gets no stream whose markers are refused
// here, and after its errors and warnings this package decodes again to describe the fault.
//
// An MCU (minimum coded unit) is the unit of a scan: in a scan of one component an 8×8 block, otherwise the
// blocks of all components that cover the same pixels.
package jpeg

import "fmt"

// Color selects the colours that a decoder returns and an encoder takes.
type Color uint8

const (
	AsStored Color = iota // components as they are in the stream
	// ToRGB converts YCbCr streams to RGB (full range, ITU-R BT.601, as in JFIF). Three components are YCbCr
	// unless, without a JFIF marker, an Adobe marker with transform 0 or, without that too, components named
	// R, G and B say otherwise. Four components with Adobe's transform 2 (YCCK) become CMYK. Others stay
	// unchanged.
	ToRGB
)

// Header describes the frame of a stream.
type Header struct {
	Width, Height, Components int
	Progressive               bool
	Adobe                     int      // colour transform of the Adobe marker: 0 none, 1 YCbCr, 2 YCCK; -1: no marker
	Sampling                  [][2]int // horizontal and vertical sampling factor of each component
}

// ReadHeader reads the markers of a stream up to its first scan. It checks the frame, not the tables.
func ReadHeader(src []byte) (Header, error) {
	var p parser
	if _, _, err := p.firstScan(src); err != nil {
		return Header{}, fmt.Errorf("jpeg: %w", err)
	}
	f := &p.frame
	h := Header{Width: f.width, Height: f.height, Components: f.n, Progressive: f.progressive, Adobe: f.adobe}
	for _, c := range f.comps[:f.n] {
		h.Sampling = append(h.Sampling, [2]int{c.h, c.v})
	}
	return h, nil
}

// Config describes the frame that the caller expects.
type Config struct {
	Width, Height, Components int
	Color                     Color
	Stride                    int // bytes between rows of dst; 0: Width*Components
}

// check compares the frame with the expected one, and dst with the size that the frame needs. It returns the
// stride.
func (c Config) check(f *frame, dst []byte) (int, error) {
	if f.n != c.Components {
		return 0, fmt.Errorf("the frame has %d components, expected are %d", f.n, c.Components)
	}
	if f.width != c.Width || f.height > c.Height {
		return 0, fmt.Errorf("the frame has %d×%d pixels, expected are %d×%d", f.width, f.height, c.Width, c.Height)
	}
	row, stride := f.width*f.n, c.Stride
	if stride == 0 {
		stride = row
	}
	if stride < row {
		return 0, fmt.Errorf("a stride of %d bytes for rows of %d", stride, row)
	}
	if (len(dst)-row)/stride < f.height-1 || len(dst) < row {
		return 0, fmt.Errorf("%d bytes of memory for %d rows of %d, %d apart", len(dst), f.height, row, stride)
	}
	return stride, nil
}
