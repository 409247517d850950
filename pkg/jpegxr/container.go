package jpegxr

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const wanted = "want 8-bit, 16-bit or 32-bit float grey, or BGR or RGB of 8 or 16 bits or 32-bit floats, without alpha"

// guids has the pixel formats that are decoded, by their GUIDs in the order of the file.
var guids = func() map[string]PixelFormat {
	const family = "\x24\xc3\xdd\x6f\x03\x4e\xfe\x4b\xb1\x85\x3d\x77\x76\x8d\xc9"
	return map[string]PixelFormat{
		family + "\x08": Gray8,
		family + "\x0b": Gray16,
		family + "\x11": Gray32Float,
		family + "\x0c": BGR24,
		family + "\x0d": BGR24, // R, G, B
		family + "\x15": BGR48, // R, G, B
		"\x8f\xd7\xfe\xe3\xdb\xe8\xcf\x4a\x84\xc1\xe9\x7f\x61\x36\xb3\x27": BGR96Float, // R, G, B
	}
}()

// Tags of the directory.
const (
	tagPixelFormat = 0xbc01
	tagOrientation = 0xbc02
	tagOffset      = 0xbcc0
	tagAlphaOffset = 0xbcc2
)

// read reads the container and the headers of the codestream.
func (f *file) read(src []byte) error {
	f.open(src)
	offset, err := f.readContainer(src)
	if err != nil {
		return err
	}
	return f.readHeaders(offset)
}

// readContainer returns where the codestream lies.
func (f *file) readContainer(src []byte) (offset int, err error) {
	if len(src) < 8 || src[0] != 'I' || src[1] != 'I' || src[2] != 0xbc {
		return 0, fmt.Errorf("byte 0: %q is no JPEG XR file, which begins with %q", src[:min(len(src), 4)], "II\xbc\x01")
	}
	if src[3] > 1 {
		return 0, fmt.Errorf("byte 3: version %d of the container is not supported: want 0 or 1", src[3])
	}
	le := binary.LittleEndian
	at := uint64(le.Uint32(src[4:]))
	if at+2 > uint64(len(src)) {
		return 0, fmt.Errorf("byte 4: the directory is said to be at byte %d of %d", at, len(src))
	}
	n := uint64(le.Uint16(src[at:]))
	if at+2+12*n > uint64(len(src)) {
		return 0, fmt.Errorf("byte %d: a directory of %d entries goes beyond the end, byte %d", at, n, len(src))
	}
	values := map[uint16]uint64{}
	for e := src[at+2 : at+2+12*n]; len(e) > 0; e = e[12:] {
		if tag := le.Uint16(e); tag >= tagPixelFormat && tag <= tagAlphaOffset {
			values[tag] = uint64(le.Uint32(e[8:]))
		}
	}
	return f.interpret(src, at, values)
}

// interpret takes over the entries of the directory at a byte of src.
func (f *file) interpret(src []byte, at uint64, values map[uint16]uint64) (offset int, err error) {
	guid, ok := values[tagPixelFormat]
	if !ok || guid+16 > uint64(len(src)) {
		return 0, fmt.Errorf("byte %d: the directory names no pixel format within the file", at)
	}
	if f.Format, ok = guids[string(src[guid:guid+16])]; !ok {
		return 0, fmt.Errorf("byte %d: pixel format %x is not supported: %s", guid, src[guid:guid+16], wanted)
	}
	if o := values[tagOrientation]; o != 0 {
		return 0, fmt.Errorf("byte %d: orientation %d is not supported: want 0", at, o)
	}
	if values[tagAlphaOffset] != 0 {
		return 0, fmt.Errorf("byte %d: an alpha plane is not supported: %s", at, wanted)
	}
	start := values[tagOffset]
	if start == 0 || start >= uint64(len(src)) {
		return 0, fmt.Errorf("byte %d: the codestream is said to be at byte %d of %d", at, start, len(src))
	}
	if !bytes.HasPrefix(src[start:], []byte("WMPHOTO\x00")) {
		return 0, fmt.Errorf("byte %d: no codestream, which begins with WMPHOTO", start)
	}
	return int(start), nil
}
