package nvcomp

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unsafe"

	"strata/pkg/dynlib"
	"strata/pkg/gpu"
)

// Format is a compressed format that the device decodes.
type Format int

// Formats, by nvCOMP's names. Pieces are whole Zstandard frames (RFC 8878), LZ4 blocks, and DEFLATE streams
// (RFC 1951) without wrapper.
const (
	Zstd Format = iota
	LZ4
	Deflate
	formats
)

func (f Format) String() string { return [...]string{"Zstd", "LZ4", "Deflate"}[f] }

// most returns the maximum sizes in bytes of pieces that nvCOMP decodes and encodes (zstd.h, lz4.h,
// deflate.h): sizes in its kernels have 32 bits.
func (f Format) most() (decoded, encoded int64) {
	if f == Deflate {
		return math.MaxInt32, 0
	}
	return math.MaxInt32, 16 << 20
}

// options are the options of a call, which C passes by value; what is not used must be
// zero. The first 32 bits of a decoder's are the backend.
type options [8]uint64

// A struct, as the ABIs tell it from an array.
type optionsByValue struct{ Words options }

// decodeOptions take the backend of CUDA kernels (NVCOMP_DECOMPRESS_BACKEND_CUDA): the
// decompression engines of newer devices need memory that is allocated for them.
var decodeOptions = optionsByValue{options{2}}

// encodeOptions are the defaults: bytes, no shuffling.
var encodeOptions optionsByValue

// alignments is nvcompAlignmentRequirements_t: in bytes, at least 1.
type alignments struct{ Input, Output, Temp uint64 }

type status int32

// decoder has the calls of a format ("*") by which pieces are decoded. Version 5 calls the
// second one GetTempSizeAsync, without its last argument, which it does not look at.
type decoder struct {
	Alignments func(o optionsByValue, a *alignments) status                                                                                                   `sym:"nvcompBatched*DecompressGetRequiredAlignments"`
	TempSize   func(n, largest uint64, o optionsByValue, temp *uint64, total uint64, stream uintptr) status                                                   `sym:"nvcompBatched*DecompressGetTempSize"`
	Decode     func(src, srcBytes, dstRoom, dstBytes uint64, n uint64, temp, tempBytes, dst uint64, o optionsByValue, statuses uint64, stream uintptr) status `sym:"nvcompBatched*DecompressAsync"`
}

type encoder struct {
	Alignments func(o optionsByValue, a *alignments) status                                                                                            `sym:"nvcompBatched*CompressGetRequiredAlignments"`
	TempSize   func(n, largest uint64, o optionsByValue, temp *uint64, total uint64, stream uintptr) status                                            `sym:"nvcompBatched*CompressGetTempSize"`
	Bound      func(largest uint64, o optionsByValue, most *uint64) status                                                                             `sym:"nvcompBatched*CompressGetMaxOutputChunkSize"`
	Encode     func(src, srcBytes, largest, n uint64, temp, tempBytes, dst, dstBytes uint64, o optionsByValue, statuses uint64, stream uintptr) status `sym:"nvcompBatched*CompressAsync"`
}

// Library is the opened nvCOMP. Its methods may be called concurrently.
type Library struct {
	version string
	decode  [formats]decoder
	encode  [formats]encoder // of formats that are written

	decodeAlign, encodeAlign [formats]alignments
}

// load opens the library, once for the process.
var load = sync.OnceValues(func() (*Library, error) {
	lib, err := dynlib.Open("STRATA_LIBNVCOMP", "libnvcomp.so.6", "libnvcomp.so.5")
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("nvCOMP cannot be opened: %s", text)
	}
	var f struct {
		GetProperties func(p unsafe.Pointer) status `sym:"nvcompGetProperties"`
	}
	if err := dynlib.Bind(lib, &f); err != nil {
		return nil, fmt.Errorf("nvCOMP cannot be used: %w", err)
	}
	var p [16]uint32 // nvcompProperties_t: version, version of CUDA; room for more
	if err := check("nvcompGetProperties", f.GetProperties(unsafe.Pointer(&p))); err != nil {
		return nil, err
	}
	v := p[0]
	text, err := gpu.NVCOMPVersion(v)
	if err != nil {
		return nil, err
	}
	l := &Library{version: text}
	for format := range formats {
		name := func(tag string) string {
			name := strings.Replace(tag, "*", format.String(), 1)
			if v/1000 == 5 && strings.HasSuffix(name, "GetTempSize") {
				name += "Async"
			}
			return name
		}
		err := dynlib.BindAs(lib, &l.decode[format], name)
		if err == nil {
			err = check(name("nvcompBatched*DecompressGetRequiredAlignments"), l.decode[format].Alignments(decodeOptions, &l.decodeAlign[format]))
		}
		if _, most := format.most(); err == nil && most > 0 {
			if err = dynlib.BindAs(lib, &l.encode[format], name); err == nil {
				err = check(name("nvcompBatched*CompressGetRequiredAlignments"), l.encode[format].Alignments(encodeOptions, &l.encodeAlign[format]))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("nvCOMP %s cannot be used: %w", l.version, err)
		}
	}
	return l, nil
})

// Open opens the library and tests it by decoding a frame of each format on the device, once per device. The
// error gives the reason why it cannot be used: missing, too old, made for a newer driver, or wrong results.
func Open(d *gpu.Device) (*Library, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	// Of all that is asked for sizes, only this asks the device.
	if _, err := l.EncodeTemp(d, Zstd, 1, 1<<16, 1<<16); err != nil {
		return nil, fmt.Errorf("nvCOMP %s does not work on %s: %w", l.version, d.Info.Name, err)
	}
	if err := d.Try(l, func() error { return l.try(d) }); err != nil {
		return nil, fmt.Errorf("nvCOMP %s cannot be used on %s: %w", l.version, d.Info.Name, err)
	}
	return l, nil
}

// Version returns the library's version, such as "6.0.0".
func (l *Library) Version() string { return l.version }

// DecodeAlignment returns the required alignment of pieces to decode: 4 for Deflate, 1 for the others, in
// versions 5 and 6. The output may have any address.
func (l *Library) DecodeAlignment(f Format) int64 { return int64(max(1, l.decodeAlign[f].Input)) }

// EncodeAlignment returns the required alignment of pieces to encode: 4 for Zstd, 1 for LZ4.
func (l *Library) EncodeAlignment(f Format) int64 { return int64(max(1, l.encodeAlign[f].Input)) }

// Error is a failed call of nvCOMP, or a failed piece.
type Error struct {
	Call string // as nvcomp.h names it; "" of a piece
	Code int    // nvcompStatus_t
}

func (e *Error) Error() string {
	text := texts[e.Code]
	if text == "" {
		text = "unknown error"
	}
	if e.Call != "" {
		return fmt.Sprintf("%s: %s (nvCOMP error %d)", e.Call, text, e.Code)
	}
	return fmt.Sprintf("%s (nvCOMP error %d)", text, e.Code)
}

// PieceError is a piece that could not be decoded or encoded.
type PieceError struct {
	Name   string // the piece's
	Format Format
	Err    error
}

func (e *PieceError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Name, e.Format, e.Err) }

// Unwrap returns the fault of the piece.
func (e *PieceError) Unwrap() error { return e.Err }

// texts are the values of nvcompStatus_t in words.
var texts = map[int]string{
	10:    "invalid value",
	11:    "not supported",
	12:    "cannot be decompressed",
	13:    "bad checksum",
	14:    "checksums cannot be verified",
	15:    "more than the expected bytes",
	16:    "wrong length of a header",
	17:    "misaligned",
	18:    "too large",
	19:    "cannot be compressed",
	20:    "wrong length of the input",
	21:    "too many pieces",
	22:    "too many parts of a piece",
	23:    "too few parts of a piece",
	24:    "the output is misaligned",
	1000:  "CUDA failed",
	10000: "internal error",
}

func check(call string, s status) error {
	if s == 0 {
		return nil
	}
	return &Error{call, int(s)}
}
