package tilecodec

import (
	"fmt"
	"math"
	"strconv"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// Values of Format.Compression (tag 259).
const (
	None            = 1
	LZW             = 5
	JPEG            = 7
	Deflate         = 8
	PackBits        = 32773
	DeflateOld      = 32946
	JPEG2000YCbCr   = 33003 // of Aperio: components are Y, Cb and Cr
	JPEG2000RGB     = 33005 // of Aperio
	JPEG2000        = 34712
	LZMA            = 34925
	ZstdOld         = 34926
	Zstd            = 50000
	photometricYCC  = 6
	fillOrderLowest = 2
)

// unsupported has the names of compressions that are recognized but not decoded.
var unsupported = map[int]string{
	2: "CCITT RLE", 3: "CCITT Group 3 fax", 4: "CCITT Group 4 fax", 6: "old-style JPEG", 9: "JBIG", 10: "JBIG", 32766: "NeXT RLE",
	32771: "CCITT RLE, word-aligned", 32809: "ThunderScan RLE", 32908: "PixarFilm", 32909: "PixarLog", 32947: "Kodak DCS", 34661: "JBIG",
	34676: "SGI LogLuv", 34677: "SGI LogLuv 24", 34887: "LERC", 34892: "lossy JPEG of DNG", 34927: "WebP", 34933: "PNG", 34934: "JPEG XR",
	22610: "JPEG XR", 48124: "Jetraw", 50001: "WebP", 50002: "JPEG XL", 52546: "JPEG XL of DNG",
}

// Format describes how the samples of a tile or strip are stored. The fields are named after the tags of TIFF
// 6.0.
type Format struct {
	Compression int        `json:"compression"`          // tag 259; 0 is None
	Predictor   int        `json:"predictor,omitempty"`  // tag 317; 0 is PredictorNone
	Type        dtype.Type `json:"data_type"`            // of a decoded sample
	Bits        int        `json:"bits,omitempty"`       // tag 258, of a stored sample: 8 times the size of Type (0 is that), or 1, 2 or 4 with Uint8, 10, 12 or 14 with Uint16, 24 with types of 32 bits
	Samples     int        `json:"samples,omitempty"`    // samples per pixel in this tile, 1 of separate planes; 0 is 1
	Width       int        `json:"width"`                // pixels of a whole tile
	Height      int        `json:"height"`               //
	Depth       int        `json:"depth,omitempty"`      // tag 32998, of volumetric tiles; 0 is 1
	BigEndian   bool       `json:"big_endian,omitempty"` // the file's byte order
	FillOrder   int        `json:"fill_order,omitempty"` // tag 266; 2: pixels begin at the lowest bit of a byte
	Photometric int        `json:"photometric"`          // tag 262; of 6, YCbCr, tiles with 3 samples are converted to RGB
	Subsampling [2]int     `json:"subsampling,omitzero"` // tag 530, of YCbCr that is not JPEG; zeros are TIFF's default, 2 and 2
	Tables      []byte     `json:"tables,omitempty"`     // tag 347, JPEGTables

	Level   int `json:"level,omitempty"`   // of encoding: 1 to 9 for Deflate (0 is 6), up to 22 for Zstd (0 is 3)
	Quality int `json:"quality,omitempty"` // of encoding JPEG: 1 to 100 (0 is 75)
}

const (
	maxBytes      = 1 << 40        // of a tile that is not compressed
	maxCompressed = math.MaxUint32 // decoded
	maxSide       = math.MaxInt32  // pixels, of TIFF's 32-bit tags
	maxSamples    = math.MaxUint16 // of TIFF's 16-bit tag
	maxJPEGSide   = math.MaxUint16 // pixels of a frame
	defaultJPEG   = 75             // quality
	defaultZlib   = 6              // level
	defaultZstd   = 3              // level
)

// family returns Compression without its synonyms: None, LZW, JPEG, Deflate, PackBits, JPEG2000, LZMA or
// Zstd; 0 if it is not supported.
func (f *Format) family() int {
	switch f.Compression {
	case 0, None:
		return None
	case LZW, JPEG, PackBits, LZMA:
		return f.Compression
	case Deflate, DeflateOld:
		return Deflate
	case JPEG2000, JPEG2000YCbCr, JPEG2000RGB:
		return JPEG2000
	case Zstd, ZstdOld:
		return Zstd
	}
	return 0
}

// predictor returns Predictor if the compression has one, and otherwise PredictorNone.
func (f *Format) predictor() int {
	switch f.family() {
	case LZW, Deflate, LZMA, Zstd:
		return max(f.Predictor, PredictorNone)
	}
	return PredictorNone
}

func (f *Format) samples() int { return max(f.Samples, 1) }

// rows returns the number of rows of a tile, counted over all its planes.
func (f *Format) rows() int { return mem.Product(f.Height, max(f.Depth, 1)) }

// row returns the number of bytes of a decoded row.
func (f *Format) row() int { return mem.Product(f.Width, f.samples(), f.Type.Size()) }

// bits returns the number of bits of a stored sample.
func (f *Format) bits() int {
	if f.Bits == 0 {
		return 8 * f.Type.Size()
	}
	return f.Bits
}

// packed reports whether stored samples are not whole bytes.
func (f *Format) packed() bool { return f.bits() != 8*f.Type.Size() }

// storedRow returns the number of bytes of a row before it is compressed.
func (f *Format) storedRow() int {
	if !f.packed() {
		return f.row()
	}
	return (mem.Product(f.Width, f.samples(), f.bits()) + 7) / 8
}

// swap reports whether the bytes of stored samples are in another order than the machine's.
func (f *Format) swap() bool { return f.BigEndian && f.Type.SwapSize() > 1 && !f.packed() }

// Bytes returns the decoded size of a whole tile in bytes.
func (f *Format) Bytes() int { return mem.Product(f.row(), f.rows()) }

// Check returns an error, with the tag and its number, if tiles of the format cannot be decoded.
func (f *Format) Check() error {
	family := f.family()
	if family == 0 {
		if name := unsupported[f.Compression]; name != "" {
			return fmt.Errorf("compression %d (%s) is not supported", f.Compression, name)
		}
		return fmt.Errorf("compression %d is not supported (must be none, LZW, JPEG, Deflate, PackBits, JPEG 2000, LZMA or Zstd)", f.Compression)
	}
	if err := f.checkSize(family); err != nil {
		return err
	}
	if err := f.checkSamples(); err != nil {
		return err
	}
	if f.FillOrder < 0 || f.FillOrder > fillOrderLowest {
		return fmt.Errorf("fill order %d (must be 1 or 2)", f.FillOrder)
	}
	switch family {
	case JPEG:
		return f.checkJPEG()
	case JPEG2000:
		return f.checkJPEG2000()
	}
	if err := f.checkPredictor(); err != nil {
		return err
	}
	return f.checkYCC()
}

func (f *Format) checkSize(family int) error {
	if f.Width < 1 || f.Height < 1 || f.Depth < 0 || f.Width > maxSide || f.Height > maxSide || f.Depth > maxSide {
		return fmt.Errorf("a tile or strip of %d×%d pixels and depth %d (each must be at least 1, and below 2³¹)", f.Width, f.Height, max(f.Depth, 1))
	}
	if f.Samples < 0 || f.Samples > maxSamples {
		return fmt.Errorf("%d samples per pixel (must be 1 to %d)", f.Samples, maxSamples)
	}
	if !f.Type.IsNumber() && !f.Type.IsComplex() {
		return fmt.Errorf("samples of type %s are not supported", f.Type)
	}
	most := maxBytes
	if family != None {
		most = maxCompressed
	}
	if f.Bytes() > most {
		return fmt.Errorf("a tile or strip of %d×%d pixels, depth %d, with %d samples of %s is larger than %d bytes", f.Width, f.Height, max(f.Depth, 1),
			f.samples(), f.Type, most)
	}
	return nil
}

func (f *Format) checkSamples() error {
	if !f.packed() {
		return nil
	}
	switch bits := f.Bits; f.Type {
	case dtype.Uint8:
		if bits == 1 || bits == 2 || bits == 4 {
			return nil
		}
	case dtype.Uint16:
		if bits == 10 || bits == 12 || bits == 14 {
			return nil
		}
	case dtype.Uint32, dtype.Int32, dtype.Float32:
		if bits == 24 {
			return nil
		}
	}
	return fmt.Errorf("%d bits per sample of %s are not supported (must be %d; 1, 2 or 4 of uint8; 10, 12 or 14 of uint16; or 24 of types of 32 bits)", f.Bits, f.Type, 8*f.Type.Size())
}

func (f *Format) checkPredictor() error {
	switch p := f.predictor(); {
	case p == PredictorNone:
		return nil
	case p == PredictorHorizontal && (f.packed() || f.Type.IsComplex()):
		return fmt.Errorf("predictor 2 with samples of %d bits, %s, is not supported (must be 8, 16, 32 or 64, of one number)", f.bits(), f.Type)
	case p == PredictorFloat && f.packed():
		return fmt.Errorf("predictor 3 with samples of %d bits is not supported (must be 16, 32 or 64)", f.bits())
	case p == PredictorFloat && !f.Type.IsFloat():
		return fmt.Errorf("predictor 3, for floating point numbers, with samples of %s", f.Type)
	case p > PredictorFloat:
		return fmt.Errorf("predictor %d is not supported (must be 1, 2 or 3)", p)
	}
	return nil
}

// EncodedSize returns an upper bound for the encoded size of a tile in bytes.
func (f *Format) EncodedSize() (lo, hi int) {
	stored := mem.Product(f.storedRow(), f.rows())
	if f.ycc() {
		stored = f.yccBytes()
	}
	if f.family() == None {
		return stored, stored
	}
	// twice is more than any of the encoders makes of what it cannot compress; the rest is for headers
	return 1, mem.Sum(stored, stored, len(f.Tables), 64<<10)
}

// Name returns the name of a compression in listings, such as "deflate", or its number.
func Name(n int) string {
	names := map[int]string{
		1: "none", 2: "ccitt", 3: "ccitt-t4", 4: "ccitt-t6", 5: "lzw", 6: "old-jpeg", 7: "jpeg", 8: "deflate", 32773: "packbits", 32946: "deflate",
		33003: "jpeg2000", 33005: "jpeg2000", 34712: "jpeg2000", 34887: "lerc", 34892: "jpeg", 34925: "lzma", 34926: "zstd", 34933: "png", 34934: "jpeg-xr",
		50000: "zstd", 50001: "webp", 50002: "jpeg-xl",
	}
	if name := names[n]; name != "" {
		return name
	}
	return strconv.Itoa(n)
}
