package jpegxr

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"strata/pkg/dynlib"
)

// library is libjxrglue and, below it, libjpegxr, which decode and encode to compare with. No user needs them.
type library struct {
	glue
	core
}

type glue struct {
	CreateDecoder func(decoder **[11]uintptr) int64 `sym:"PKImageDecode_Create_WMP"`
	CreateEncoder func(encoder **[15]uintptr) int64 `sym:"PKImageEncode_Create_WMP"`
}

type core struct {
	CreateStream func(stream *uintptr, memory *byte, size uintptr) int64 `sym:"CreateWS_Memory"`
	CloseStream  func(stream *uintptr) int64                             `sym:"CloseWS_Memory"`
}

// theLibrary opens the libraries, once: the lower one first, so that the loader finds it for the other.
var theLibrary = sync.OnceValues(func() (*library, error) {
	l := &library{}
	low, err := dynlib.Open("STRATA_TEST_LIBJPEGXR", "libjpegxr.so.0")
	if err != nil {
		return nil, err
	}
	high, err := dynlib.Open("STRATA_TEST_LIBJXRGLUE", "libjxrglue.so.0")
	if err != nil {
		return nil, err
	}
	return l, errors.Join(dynlib.Bind(low, &l.core), dynlib.Bind(high, &l.glue))
})

func needLibrary(t testing.TB) *library {
	t.Helper()
	l, err := theLibrary()
	if err != nil {
		t.Skip("libjxrglue is not installed")
	}
	return l
}

// call calls a function whose address lies in an object of C, and returns its result, an ERR.
func call(f uintptr, a ...uintptr) error {
	if r, _, _ := purego.SyscallN(f, a...); int32(r) < 0 {
		return fmt.Errorf("error %d", int32(r))
	}
	return nil
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Offsets of functions in the objects, divided by the size of a pointer.
const (
	decoderInitialize, decoderCopy, decoderRelease = 0, 7, 10

	encoderInitialize, encoderSetFormat, encoderSetSize, encoderWrite, encoderRelease = 0, 2, 3, 7, 14
)

// decode decodes an image of known size, as R, G, B where the format says so.
func (l *library) decode(src []byte, h Header) (pixels []byte, err error) {
	src = append(bytes.Clone(src), make([]byte, 1<<16)...) // it reads further
	var stream uintptr
	if l.CreateStream(&stream, &src[0], uintptr(len(src))) < 0 {
		return nil, errors.New("no stream")
	}
	defer l.CloseStream(&stream)
	var d *[11]uintptr
	if l.CreateDecoder(&d) < 0 {
		return nil, errors.New("no decoder")
	}
	defer func() { _ = call(d[decoderRelease], address(&d)) }()
	if err := call(d[decoderInitialize], address(d), stream); err != nil {
		return nil, err
	}
	stride := h.Width * h.Format.Size()
	pixels = make([]byte, stride*h.Height+64)
	rect := [4]int32{0, 0, int32(h.Width), int32(h.Height)}
	err = call(d[decoderCopy], address(d), address(&rect), address(&pixels[0]), uintptr(stride))
	runtime.KeepAlive(src)
	return pixels[:stride*h.Height], err
}

// options are those of the library's encoder.
type options struct {
	Header
	guid                           byte // the last of the pixel format; 0: RGB of floats
	color, overlap, lacks, trimmed int
	frequency, hard, unscaled      bool
	index                          [9]byte // quantizers: of Y, and its LP and HP, then of U and V
	tilesX, tilesY                 []uint32
	mantissa                       byte
	bias                           int8
}

// encode encodes pixels.
func (l *library) encode(o options, pixels []byte) ([]byte, error) {
	var p [32880]byte // CWMIStrCodecParam
	le := binary.LittleEndian
	put := func(at int, v uint32) { le.PutUint32(p[at:], v) }
	flag := func(at int, v bool) {
		if v {
			p[at] = 1
		}
	}
	copy(p[4:], o.index[:])
	p[13] = 1
	put(16, uint32(o.color))
	put(20, 1)
	put(24, uint32(o.overlap))
	flag(28, o.frequency)
	put(32, uint32(o.Format.Channels()))
	put(44, uint32(o.lacks))
	p[48] = byte(o.trimmed)
	put(72, uint32(len(o.tilesX)))
	put(16460, uint32(len(o.tilesY)))
	for i, v := range o.tilesX {
		put(76+4*i, v)
	}
	for i, v := range o.tilesY {
		put(16464+4*i, v)
	}
	p[32848], p[32849] = o.mantissa, byte(o.bias)
	flag(32856, o.hard)
	flag(32868, o.unscaled)

	out := make([]byte, len(pixels)*4+1<<18)
	var stream uintptr
	if l.CreateStream(&stream, &out[0], uintptr(len(out))) < 0 {
		return nil, errors.New("no stream")
	}
	var e *[15]uintptr
	if l.CreateEncoder(&e) < 0 {
		return nil, errors.New("no encoder")
	}
	defer func() { _ = call(e[encoderRelease], address(&e)) }() // closes the stream, too
	if err := call(e[encoderInitialize], address(e), stream, address(&p), uintptr(len(p))); err != nil {
		return nil, err
	}
	guid := []byte("\x24\xc3\xdd\x6f\x03\x4e\xfe\x4b\xb1\x85\x3d\x77\x76\x8d\xc9" + string([]byte{o.guid}))
	if o.guid == 0 {
		guid = []byte("\x8f\xd7\xfe\xe3\xdb\xe8\xcf\x4a\x84\xc1\xe9\x7f\x61\x36\xb3\x27")
	}
	// a struct of 16 bytes goes in two registers
	if err := call(e[encoderSetFormat], address(e), uintptr(le.Uint64(guid)), uintptr(le.Uint64(guid[8:]))); err != nil {
		return nil, err
	}
	if err := call(e[encoderSetSize], address(e), uintptr(o.Width), uintptr(o.Height)); err != nil {
		return nil, err
	}
	if err := call(e[encoderWrite], address(e), uintptr(o.Height), address(&pixels[0]), uintptr(o.Width*o.Format.Size())); err != nil {
		return nil, err
	}
	runtime.KeepAlive(pixels)
	at := le.Uint32(out[4:])
	values := map[uint16]uint32{}
	for i := range int(le.Uint16(out[at:])) {
		entry := out[int(at)+2+12*i:]
		values[le.Uint16(entry)] = le.Uint32(entry[8:])
	}
	return out[:values[tagOffset]+values[tagOffset+1]], nil
}

// random returns options and pixels that are made of a seed.
func random(seed uint64) (o options, pixels []byte) {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(n int) int { return r.IntN(n) }
	kinds := []struct {
		f    PixelFormat
		guid byte
	}{{Gray8, 8}, {Gray16, 0xb}, {Gray32Float, 0x11}, {BGR24, 0xc}, {BGR24, 0xd}, {BGR48, 0x15}, {BGR96Float, 0}}
	k := kinds[pick(len(kinds))]
	side := func() int {
		switch pick(8) {
		case 0:
			return 1 + pick(4)
		case 1:
			return 16 * (1 + pick(5))
		case 2:
			return 1 + pick(400)
		}
		return 1 + pick(120)
	}
	o = options{Header: Header{side(), side(), k.f}, guid: k.guid, overlap: pick(3), frequency: pick(2) == 0, color: grey}
	if k.f.Channels() == 3 {
		o.color = pick(4)
		if k.f == BGR96Float {
			o.color = pick(2) * color444
		}
	}
	if (o.color == color420 || o.color == color422) && o.Width <= 16 {
		o.overlap = pick(2)
	}
	if pick(3) == 0 {
		o.lacks = pick(4)
	}
	if pick(4) == 0 {
		o.trimmed = pick(16)
	}
	o.unscaled = pick(4) == 0
	for i := range o.index {
		o.index[i] = 1
		if seed%3 != 0 && (i == 0 || pick(2) == 0) {
			o.index[i] = byte(1 + pick(1+pick(120)))
		}
	}
	mbs := func(n int) int { return (n + 15) / 16 }
	tiles := func(n int) (t []uint32) {
		for left := mbs(n) - 1; left > 0 && len(t) < 5 && pick(3) > 0; {
			v := 1 + pick(left)
			t, left = append(t, uint32(v)), left-v
		}
		return t
	}
	if pick(3) == 0 {
		o.tilesX, o.tilesY = tiles(o.Width), tiles(o.Height)
	}
	if pick(8) == 0 { // hard tiles: the library mixes up rows and columns of them
		n := 2 + pick(4)
		o.Width, o.Height, o.hard = 16*n-pick(16), 16*n-pick(16), true
		o.tilesX = tiles(o.Width)
		if (o.color == color420 || o.color == color422) && o.overlap == 2 { // at least two macroblocks across
			o.Width, o.Height, o.tilesX = 65+pick(16), 65+pick(16), []uint32{2 + uint32(pick(2))}
		}
		o.tilesY = o.tilesX
	}
	switch o.Format {
	case Gray16, BGR48:
		o.mantissa = byte(pick(4) * pick(3))
	case Gray32Float, BGR96Float:
		o.mantissa, o.bias = byte(5+pick(13)), int8(pick(140)-10)
	}
	return o, picture(o.Header, r)
}

// picture makes pixels: a slope, a wave and noise, or noise alone, or black and white.
func picture(h Header, r *rand.Rand) []byte {
	p := make([]byte, 0, h.Width*h.Height*h.Format.Size())
	kind, noise := r.IntN(5), math.Pow(2, -16*r.Float64())
	a, b := r.Float64()/20, r.Float64()/20
	for y := range h.Height {
		for x := range h.Width {
			for c := range h.Format.Channels() {
				v := 0.5 + 0.2*math.Sin(a*float64(x+9*c)) + 0.2*math.Cos(b*float64(y)) + noise*(r.Float64()-0.5)
				switch kind {
				case 0:
					v = r.Float64()
				case 1:
					v = float64(r.IntN(2))
				}
				v = min(max(v, 0), 1)
				switch h.Format.Size() / h.Format.Channels() {
				case 1:
					p = append(p, byte(v*255))
				case 2:
					p = binary.LittleEndian.AppendUint16(p, uint16(v*65535))
				default:
					p = binary.LittleEndian.AppendUint32(p, math.Float32bits(float32((v-0.3)*math.Pow(10, float64(kind)))))
				}
			}
		}
	}
	return p
}

// reverse turns R, G, B into B, G, R.
func (o options) reverse(p []byte) []byte {
	p = bytes.Clone(p)
	if n := o.Format.Size() / 3; o.Format.Channels() == 3 && o.guid != 0xc {
		for i := 0; i < len(p); i += 3 * n {
			r := [4]byte(append(p[i:i+n:i+n], 0, 0, 0, 0))
			copy(p[i:i+n], p[i+2*n:i+3*n])
			copy(p[i+2*n:], r[:n])
		}
	}
	return p
}

// TestLibrary: what the library encodes, in every mode that it has, is decoded to the pixels that the library decodes
// it to.
func TestLibrary(t *testing.T) {
	l := needLibrary(t)
	var d Decoder
	n := uint64(400)
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		o, pixels := random(seed)
		src, err := l.encode(o, pixels)
		if err != nil {
			t.Errorf("%d: %+v: encoding: %v", seed, o, err)
			continue
		}
		compare(t, l, &d, src, o, fmt.Sprintf("%d: %+v", seed, o))
	}
}

func compare(t *testing.T, l *library, d *Decoder, src []byte, o options, name string) {
	t.Helper()
	want, err := l.decode(src, o.Header)
	if err != nil {
		t.Errorf("%s: the library: %v", name, err)
		return
	}
	want = o.reverse(want)
	stride := o.Width * o.Format.Size()
	got := make([]byte, len(want))
	if h, err := ReadHeader(src); err != nil || h != o.Header {
		t.Errorf("%s: %+v, %v", name, h, err)
		return
	}
	if err := d.Decode(context.Background(), got, stride, src); err != nil {
		t.Errorf("%s: %v", name, err)
	} else if !bytes.Equal(got, want) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		t.Errorf("%s: other pixels, first in row %d at byte %d", name, i/stride, i%stride)
	}
}
