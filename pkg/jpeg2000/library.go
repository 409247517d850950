package jpeg2000

import (
	"fmt"
	"sync"
	"unsafe"

	"strata/pkg/dynlib"
)

// Variable names the environment variable with the path of libopenjp2, for systems whose loader does not find
// it.
const Variable = "STRATA_LIBOPENJP2"

// library is libopenjp2, by its API of version 2.
type library struct {
	calls
	read, skip, seek uintptr // callbacks
}

type calls struct {
	CreateStream  func(buffer uintptr, isInput int32) uintptr          `sym:"opj_stream_create"`
	SetRead       func(stream, callback uintptr)                       `sym:"opj_stream_set_read_function"`
	SetSkip       func(stream, callback uintptr)                       `sym:"opj_stream_set_skip_function"`
	SetSeek       func(stream, callback uintptr)                       `sym:"opj_stream_set_seek_function"`
	SetData       func(stream, data, free uintptr)                     `sym:"opj_stream_set_user_data"`
	SetLength     func(stream uintptr, length uint64)                  `sym:"opj_stream_set_user_data_length"`
	DestroyStream func(stream uintptr)                                 `sym:"opj_stream_destroy"`
	CreateCodec   func(format int32) uintptr                           `sym:"opj_create_decompress"`
	Defaults      func(parameters unsafe.Pointer)                      `sym:"opj_set_default_decoder_parameters"`
	Setup         func(codec uintptr, parameters unsafe.Pointer) int32 `sym:"opj_setup_decoder"`
	ReadHeader    func(stream, codec uintptr, image **opjImage) int32  `sym:"opj_read_header"`
	Decode        func(codec, stream uintptr, image *opjImage) int32   `sym:"opj_decode"`
	DestroyImage  func(image *opjImage)                                `sym:"opj_image_destroy"`
	DestroyCodec  func(codec uintptr)                                  `sym:"opj_destroy_codec"`
}

// formatJ2K is OPJ_CODEC_J2K: a codestream.
const formatJ2K = 0

// opjParameters has room for opj_dparameters_t, which has some 8300 bytes, most for names of files.
type opjParameters [16 << 10]byte

// opjImage is opj_image_t.
type opjImage struct {
	X0, Y0, X1, Y1 uint32
	Components     uint32
	ColorSpace     int32
	Comps          *opjComponent
	Profile        *byte
	ProfileLength  uint32
}

// opjComponent is opj_image_comp_t.
type opjComponent struct {
	DX, DY, Width, Height, X0, Y0 uint32
	Bits, BPP, Signed             uint32
	Resolutions, Factor           uint32
	Data                          *int32
	Alpha                         uint16
}

// theLibrary opens the library, once.
var theLibrary = sync.OnceValues(func() (*library, error) {
	handle, err := dynlib.Open(Variable, "libopenjp2.so.7")
	if err == nil {
		l := &library{}
		if err = dynlib.Bind(handle, &l.calls); err == nil {
			l.read, l.skip, l.seek = dynlib.CallbackOf(readSource), dynlib.CallbackOf(skipSource), dynlib.CallbackOf(seekSource)
			return l, nil
		}
	}
	return nil, fmt.Errorf("JPEG 2000 needs libopenjp2 (Debian: libopenjp2-7): %w", err)
})

// source is the codestream that a call reads.
type source struct {
	src []byte
	at  int64
}

// sources has those of the calls at work, by the number that stands for them in C.
var sources struct {
	sync.Mutex
	last    uintptr
	present map[uintptr]*source
}

func addSource(src []byte) uintptr {
	sources.Lock()
	defer sources.Unlock()
	if sources.present == nil {
		sources.present = map[uintptr]*source{}
	}
	sources.last++
	sources.present[sources.last] = &source{src: src}
	return sources.last
}

func removeSource(id uintptr) {
	sources.Lock()
	defer sources.Unlock()
	delete(sources.present, id)
}

func findSource(id uintptr) *source {
	sources.Lock()
	defer sources.Unlock()
	return sources.present[id]
}

// The callbacks, as openjpeg.h declares them: what reads returns the number of bytes, -1 at the end; what skips, the
// number of bytes; what seeks, whether it could.

func readSource(buffer unsafe.Pointer, n, id uintptr) uintptr {
	s := findSource(id)
	if s == nil || s.at >= int64(len(s.src)) {
		return ^uintptr(0)
	}
	k := copy(unsafe.Slice((*byte)(buffer), n), s.src[s.at:])
	s.at += int64(k)
	return uintptr(k)
}

func skipSource(n int64, id uintptr) uintptr {
	s := findSource(id)
	if s == nil || n < 0 || s.at+n < 0 || s.at+n > int64(len(s.src)) {
		return ^uintptr(0)
	}
	s.at += n
	return uintptr(n)
}

func seekSource(at int64, id uintptr) uintptr {
	s := findSource(id)
	if s == nil || at < 0 || at > int64(len(s.src)) {
		return 0
	}
	s.at = at
	return 1
}
