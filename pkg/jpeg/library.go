package jpeg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"strata/pkg/dynlib"
)

// Variable names the environment variable with the path of libturbojpeg, which then decodes in place of this
// package; "off" disables it. If it is not set, the library decodes, if installed, on machines for which this
// package has no assembly.
const Variable = "STRATA_LIBJPEG"

// library is libturbojpeg, by its API of versions 1.2 to 3.
type library struct {
	Init       func() uintptr                                                                                                `sym:"tjInitDecompress"`
	Decompress func(handle uintptr, src *byte, n uintptr, dst *byte, width, stride, height int32, format, flags int32) int32 `sym:"tjDecompress2"`
	Destroy    func(handle uintptr) int32                                                                                    `sym:"tjDestroy"`
}

const (
	formatRGB  = 0 // TJPF_RGB
	formatGrey = 6
	formatCMYK = 11

	flagAccurate = 4096 // TJFLAG_ACCURATEDCT
	flagStop     = 8192 // TJFLAG_STOPONWARNING, which versions before 2.1 do not know
)

// theLibrary is the library that decodes, nil: this package does.
var theLibrary = sync.OnceValues(chooseLibrary)

func chooseLibrary() (*library, error) {
	name := os.Getenv(Variable)
	if name == "off" || name == "" && haveAVX2 && haveBMI2 { // measured: the assembly is as fast or faster
		return nil, nil
	}
	l, err := openLibrary()
	if err != nil && name == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	return l, nil
}

func openLibrary() (*library, error) {
	handle, err := dynlib.Open(Variable, "libturbojpeg.so.0", "libturbojpeg.so")
	if err != nil {
		return nil, err
	}
	l := &library{}
	return l, dynlib.Bind(handle, l)
}

// session is a decoder of the library with memory for its arguments.
type session struct {
	library *library
	handle  uintptr
	stream  []byte
}

func (l *library) open() (*session, error) {
	s := &session{library: l, handle: l.Init()}
	if s.handle == 0 {
		return nil, errors.New("libturbojpeg makes no decoder")
	}
	runtime.AddCleanup(s, func(handle uintptr) { l.Destroy(handle) }, s.handle)
	return s, nil
}

// Limits of what the library is given: its time cannot be cut short, and its input is a copy.
const (
	maxLibraryPixels = 1 << 24
	maxLibraryInput  = 1 << 16 // and four bytes for each that comes out
)

// byLibrary decodes a stream, of which the header of the only scan has been read, by the library. It says whether that
// went without error or warning; if not, this package's decoder finds out what is wrong. What that refuses for its
// headers, tables or size never comes here, nor do restart intervals, where the library does not see data that are left
// over. A run of zeros beyond the end of a block is the damage that it lets pass.
func (d *Decoder) byLibrary(ctx context.Context, tables, src []byte, color Color) (bool, error) {
	l, err := theLibrary()
	if l == nil || err != nil {
		return false, err
	}
	f := &d.parser.frame
	if d.parser.restart > 0 || f.width*f.height > maxLibraryPixels || len(src)+len(tables) > maxLibraryInput+4*f.width*f.height*f.n || d.stride > 1<<30 {
		return false, nil
	}
	for _, c := range f.comps[:f.n] {
		// Old versions enlarge columns in another way, and whole numbers are all that it takes.
		if c.expand == fancyY || f.hmax%c.h != 0 || f.vmax%c.v != 0 {
			return false, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if d.session == nil {
		if d.session, err = l.open(); err != nil {
			return false, err
		}
	}
	s := d.session
	s.stream = join(s.stream[:0], tables, src, f, color)
	format := [...]int32{1: formatGrey, 3: formatRGB, 4: formatCMYK}[f.n]
	r := l.Decompress(s.handle, &s.stream[0], uintptr(len(s.stream)), &d.dst[0], int32(f.width), int32(d.stride), int32(f.height), format, flagAccurate|flagStop)
	runtime.KeepAlive(s)
	return r == 0, nil
}

// join appends to dst one stream made of tables and src, which are known to be sound up to the scan. In it an Adobe
// marker in place of the application's says which colours there are: none to convert if they stay as stored.
func join(dst, tables, src []byte, f *frame, color Color) []byte {
	transform := byte(0)
	if color == ToRGB && f.isYCC() {
		transform = 1
		if f.n == 4 {
			transform = 2
		}
	}
	dst = append(dst, 0xFF, markSOI, 0xFF, markAPP14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform)
	copySegments := func(src []byte, which func(marker byte) bool) int {
		for pos := 2; ; {
			marker, _, next, err := segment(src, pos)
			if err != nil || marker == markEOI || marker == markSOS {
				return pos
			}
			if which(marker) {
				dst = append(dst, src[pos:next]...)
			}
			pos = next
		}
	}
	if tables != nil {
		copySegments(tables, func(marker byte) bool { return marker == markDQT || marker == markDHT })
	}
	pos := copySegments(src, func(marker byte) bool { return marker < markAPP0 })
	return append(dst, src[pos:]...)
}
