package tilefiles

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/npy"
	"strata/pkg/zarr/store"
)

// mostPixels is the longest side of a tile: a longer one is a mistake.
const mostPixels = 1 << 20

// check reports sizes that no tile has.
func (h *Header) check() error {
	if min(h.Height, h.Width) < 1 || max(h.Height, h.Width) > mostPixels {
		return fmt.Errorf("%s: %d × %d pixels: want 1 to %d along each side", h.Path, h.Height, h.Width, mostPixels)
	}
	n := float64(h.Times) * float64(h.Channels) * float64(h.Planes) * float64(h.Height) * float64(h.Width) * float64(h.Type.Size())
	if n > math.MaxInt64/4 {
		return fmt.Errorf("%s: %d planes of %d × %d pixels are more than can be counted", h.Path, h.Planes, h.Height, h.Width)
	}
	return nil
}

const (
	pngMagic = "\x89PNG\r\n\x1a\n"
	npyMagic = "\x93NUMPY"
)

func isPNG(head []byte) bool   { return bytes.HasPrefix(head, []byte(pngMagic)) }
func isNumPy(head []byte) bool { return bytes.HasPrefix(head, []byte(npyMagic)) }

// mostDeflated is about how many bytes one byte of a deflated stream can become.
const mostDeflated = 1032

// pngEnd is the last chunk of a PNG file (PNG specification, 11.2.5 IEND).
const pngEnd = "\x00\x00\x00\x00IEND\xaeB`\x82"

// headerOfPNG reads the header of a PNG file (PNG specification, 11.2.2 IHDR). Palettes become RGB.
func headerOfPNG(ctx context.Context, o store.Object, head []byte, path, axes string) (*Header, error) {
	if len(head) < headBytes || string(head[12:16]) != "IHDR" {
		return nil, fmt.Errorf("%s: ends in its header: %d bytes", path, len(head))
	}
	h := &Header{Path: path, Format: PNG, Type: dtype.Uint8, Times: 1, Channels: 1, Planes: 1, Samples: 1}
	w, height := binary.BigEndian.Uint32(head[16:]), binary.BigEndian.Uint32(head[20:])
	h.Width, h.Height = int(min(w, math.MaxInt32)), int(min(height, math.MaxInt32))
	if head[24] == 16 {
		h.Type = dtype.Uint16
	}
	switch colour := head[25]; colour {
	case 0:
	case 2, 3:
		h.Channels = 3
	case 6:
		h.Channels = 4
	default:
		return nil, fmt.Errorf("%s: PNG of colour type %d is not supported: want grey, RGB, RGBA or a palette", path, colour)
	}
	h.Samples = h.Channels
	if err := h.check(); err != nil {
		return nil, err
	}
	stored := h.Channels // of a pixel
	if head[25] == 3 {
		stored = 1
	}
	if packed := int64(h.Height) * (int64(h.Width) * int64(stored) * int64(head[24]) / 8); packed > mostDeflated*o.Size() {
		return nil, fmt.Errorf("%s: %d × %d pixels cannot lie in %d bytes", path, h.Height, h.Width, o.Size())
	}
	end := make([]byte, len(pngEnd))
	if _, err := o.ReadAt(ctx, end, o.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if string(end) != pngEnd {
		return nil, fmt.Errorf("%s: is cut off: does not end with the chunk IEND", path)
	}
	return h, nil
}

// HeaderOfNumPy reads the header of a .npy file, and returns where its elements begin and whether they are big-endian.
// An array of two axes is (y, x); one of three is (z, y, x), or (c, y, x) or (y, x, c) as axes "cyx" or "yx" say.
func HeaderOfNumPy(ctx context.Context, o store.Object, path, axes string) (h *Header, data NumPyData, err error) {
	r := &fileReader{ctx: ctx, o: o}
	n, err := npy.ReadHeader(r)
	if err != nil {
		return nil, data, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "npy: "))
	}
	data = NumPyData{Offset: r.at, BigEndian: n.BigEndian}
	h = &Header{Path: path, Format: NumPy, Type: n.Type, Times: 1, Channels: 1, Planes: 1, Samples: 1}
	s := n.Shape
	switch {
	case n.Fortran && len(s) > 1:
		return nil, data, fmt.Errorf("%s: is in Fortran order: save numpy.ascontiguousarray of it", path)
	case len(s) == 2:
		h.Height, h.Width = s[0], s[1]
	case len(s) == 3 && axes == "yx" && s[2] <= 4:
		h.Height, h.Width, h.Channels, h.Samples = s[0], s[1], s[2], s[2]
	case len(s) == 3 && axes == "yx":
		return nil, data, badOption("axes", "yx: %s has the shape %v: want one plane, or up to 4 samples per pixel", path, s)
	case len(s) == 3 && axes == "cyx":
		h.Channels, h.Height, h.Width = s[0], s[1], s[2]
	case len(s) == 3:
		h.Planes, h.Height, h.Width = s[0], s[1], s[2]
	default:
		return nil, data, fmt.Errorf("%s: has the shape %v: want 2 axes (y, x) or 3", path, s)
	}
	if min(h.Planes, h.Channels) < 1 {
		return nil, data, fmt.Errorf("%s: has the shape %v: nothing is in it", path, s)
	}
	if err := h.check(); err != nil {
		return nil, data, err
	}
	want, err := n.Bytes()
	if err != nil {
		return nil, data, fmt.Errorf("%s: %w", path, err)
	}
	if have := o.Size() - r.at; have < int64(want) {
		return nil, data, fmt.Errorf("%s: is cut off: has %d bytes of elements, %v of %s take %d", path, have, s, n.Type, want)
	}
	return h, data, nil
}

// NumPyData says where the elements of a .npy file lie.
type NumPyData struct {
	Offset    int64
	BigEndian bool
}
