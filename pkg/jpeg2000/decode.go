// Package jpeg2000 decodes JPEG 2000 (ITU-T T.800), the format of the tiles of some Aperio slide scanners,
// with libopenjp2, which is opened at run time: no cgo, nothing to link.
//
//	err := jpeg2000.Decode(tile, stored, jpeg2000.Config{Width: 256, Height: 256, Components: 3, Size: 1})
//
// The library is written in C and its input is untrusted, so this package reads the headers first: it refuses
// images of another size than the caller expects, and headers that would make the library use much more
// memory than the image needs. The library's messages are suppressed, since they do not name a place.
package jpeg2000

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"strata/pkg/mem"
)

// Config describes the image that the caller expects.
type Config struct {
	Width, Height, Components int
	Size                      int // bytes of a sample in dst: 1, 2 or 4, the native byte order
}

// maxWork is the maximum number of bytes that the library may need beyond a multiple of the decoded size.
const maxWork = 16 << 20

// check compares the headers with the expected image.
func (c Config) check(h *Header, stream []byte) error {
	if h.Width != c.Width || h.Height != c.Height || len(h.Components) != c.Components {
		return fmt.Errorf("JPEG 2000: the image has %d×%d pixels and %d components, expected are %d×%d and %d", h.Width, h.Height, len(h.Components), c.Width,
			c.Height, c.Components)
	}
	for i, k := range h.Components {
		if k.Bits > 8*c.Size {
			return fmt.Errorf("JPEG 2000: component %d has %d bits, expected are at most %d", i, k.Bits, 8*c.Size)
		}
	}
	work, err := h.work(stream)
	if err != nil {
		return err
	}
	if decoded := mem.Product(c.Width, c.Height, c.Components, 4); work/16 > mem.Sum(decoded, maxWork/16) {
		return fmt.Errorf("JPEG 2000: %d tiles, and precincts and layers that need some %d bytes for an image of %d", h.Tiles, work, decoded)
	}
	return nil
}

// Available returns nil if images can be decoded, and otherwise an error that names what is missing.
func Available() error {
	_, err := theLibrary()
	return err
}

// Decode decodes the image in src, a codestream or a JP2 file, to rows of pixels in dst, without colour
// conversion; components with fewer samples than pixels are repeated. It is safe for concurrent use. The
// library needs four bytes per sample, at times eight.
func Decode(dst, src []byte, c Config) error {
	l, err := theLibrary()
	if err != nil {
		return err
	}
	stream, err := codestream(src)
	if err != nil {
		return err
	}
	h, err := readSIZ(stream)
	if err != nil {
		return err
	}
	if err := c.check(&h, stream); err != nil {
		return err
	}
	if need := mem.Product(c.Width, c.Height, c.Components, c.Size); len(dst) < need {
		return fmt.Errorf("JPEG 2000: %d bytes of memory for an image of %d", len(dst), need)
	}
	return l.decode(dst, stream, c, &h)
}

// decode runs the library.
func (l *library) decode(dst, stream []byte, c Config, h *Header) error {
	id := addSource(stream)
	defer removeSource(id)
	s := l.CreateStream(uintptr(max(min(len(stream), 1<<20), 1<<10)), 1)
	if s == 0 {
		return errors.New("JPEG 2000: libopenjp2 makes no stream")
	}
	defer l.DestroyStream(s)
	l.SetRead(s, l.read)
	l.SetSkip(s, l.skip)
	l.SetSeek(s, l.seek)
	l.SetData(s, id, 0)
	l.SetLength(s, uint64(len(stream)))
	codec := l.CreateCodec(formatJ2K)
	if codec == 0 {
		return errors.New("JPEG 2000: libopenjp2 makes no decoder")
	}
	defer l.DestroyCodec(codec)
	var parameters opjParameters
	l.Defaults(unsafe.Pointer(&parameters))
	var image *opjImage
	defer func() {
		if image != nil {
			l.DestroyImage(image)
		}
	}()
	if l.Setup(codec, unsafe.Pointer(&parameters)) == 0 || l.ReadHeader(s, codec, &image) == 0 || image == nil {
		return errors.New("JPEG 2000: libopenjp2 cannot read the header")
	}
	if l.Decode(codec, s, image) == 0 {
		return errors.New("JPEG 2000: libopenjp2 cannot decode the image")
	}
	return image.copyTo(dst, c, h)
}

// copyTo brings the components to dst.
func (m *opjImage) copyTo(dst []byte, c Config, h *Header) error {
	if int(m.Components) != c.Components || m.Comps == nil {
		return fmt.Errorf("JPEG 2000: libopenjp2 decodes %d components of %d", m.Components, c.Components)
	}
	for i, k := range unsafe.Slice(m.Comps, c.Components) {
		dx, dy := h.Components[i].DX, h.Components[i].DY
		w, rows := (c.Width+dx-1)/dx, (c.Height+dy-1)/dy
		if int(k.Width) != w || int(k.Height) != rows || k.Data == nil {
			return fmt.Errorf("JPEG 2000: libopenjp2 decodes %d×%d samples of component %d, of %d×%d", k.Width, k.Height, i, w, rows)
		}
		samples := unsafe.Slice(k.Data, w*rows)
		for y := range c.Height {
			row := samples[y/dy*w:][:w]
			out := dst[y*c.Width*c.Components*c.Size:][:c.Width*c.Components*c.Size]
			putRow(out[i*c.Size:], row, c, dx)
		}
	}
	return nil
}

// putRow writes the samples of a component to every place of it in the row that begins at out.
func putRow(out []byte, row []int32, c Config, dx int) {
	step := c.Components * c.Size
	for x := range c.Width {
		v := row[x/dx]
		switch at := x * step; c.Size {
		case 1:
			out[at] = byte(v)
		case 2:
			binary.LittleEndian.PutUint16(out[at:], uint16(v))
		default:
			binary.LittleEndian.PutUint32(out[at:], uint32(v))
		}
	}
}
