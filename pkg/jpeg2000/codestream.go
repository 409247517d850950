package jpeg2000

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/mem"
)

// Markers of a codestream (ITU-T T.800, annex A).
const (
	markSOC = 0xff4f
	markSIZ = 0xff51
	markCOD = 0xff52
	markCOC = 0xff53
	markSOT = 0xff90
	markSOD = 0xff93
	markEOC = 0xffd9
)

// Component describes how the samples of a component are stored.
type Component struct {
	Bits   int // of a sample
	Signed bool
	DX, DY int // pixels of the image for one sample, across and down
}

// Header holds the content of a codestream's SIZ marker.
type Header struct {
	Width, Height int
	Tiles         int // that the codestream divides the image into
	Components    []Component
}

// codestream returns the codestream of src, which is one or a JP2 file with one in it.
func codestream(src []byte) ([]byte, error) {
	if len(src) >= 2 && binary.BigEndian.Uint16(src) == markSOC {
		return src, nil
	}
	if len(src) < 12 || string(src[4:8]) != "jP  " {
		return nil, errors.New("JPEG 2000: neither a codestream nor a JP2 file")
	}
	for at := 0; len(src)-at >= 8; { // boxes (annex I)
		length, head := uint64(binary.BigEndian.Uint32(src[at:])), 8
		if length == 1 && len(src)-at >= 16 {
			length, head = binary.BigEndian.Uint64(src[at+8:]), 16
		} else if length == 0 {
			length = uint64(len(src) - at)
		}
		if length < uint64(head) || length > uint64(len(src)-at) {
			return nil, fmt.Errorf("JPEG 2000: a box of %d bytes at byte %d of %d", length, at, len(src))
		}
		end := at + int(length)
		if string(src[at+4:at+8]) == "jp2c" {
			return src[at+head : end], nil
		}
		at = end
	}
	return nil, errors.New("JPEG 2000: a JP2 file without a codestream")
}

func readSIZ(src []byte) (Header, error) {
	const fixed = 2 + 2 + 38 // SOC, SIZ, and the segment up to the components
	be := binary.BigEndian
	if len(src) < fixed || be.Uint16(src[2:]) != markSIZ {
		return Header{}, errors.New("JPEG 2000: no SIZ marker at byte 2")
	}
	segment := src[4:]
	n := int(be.Uint16(segment[36:]))
	if length := int(be.Uint16(segment)); n == 0 || length != 38+3*n || length > len(segment) {
		return Header{}, fmt.Errorf("JPEG 2000: a SIZ marker of %d bytes for %d components", length, n)
	}
	field := func(i int) int64 { return int64(be.Uint32(segment[4+4*i:])) }
	width, height, x0, y0 := field(0), field(1), field(2), field(3)
	tileWidth, tileHeight, tileX0, tileY0 := field(4), field(5), field(6), field(7)
	if x0 != 0 || y0 != 0 || tileX0 != 0 || tileY0 != 0 {
		return Header{}, fmt.Errorf("JPEG 2000: image and tiles begin at (%d, %d) and (%d, %d), supported is 0", x0, y0, tileX0, tileY0)
	}
	if width == 0 || height == 0 || tileWidth == 0 || tileHeight == 0 {
		return Header{}, fmt.Errorf("JPEG 2000: %d×%d pixels in tiles of %d×%d", width, height, tileWidth, tileHeight)
	}
	h := Header{Width: int(width), Height: int(height)}
	h.Tiles = mem.Product(int((width+tileWidth-1)/tileWidth), int((height+tileHeight-1)/tileHeight))
	for i := range n {
		b := segment[38+3*i:]
		c := Component{Bits: int(b[0]&0x7f) + 1, Signed: b[0]&0x80 != 0, DX: int(b[1]), DY: int(b[2])}
		if c.Bits > 38 || c.DX == 0 || c.DY == 0 {
			return Header{}, fmt.Errorf("JPEG 2000: component %d has %d bits and subsampling %d×%d", i, c.Bits, c.DX, c.DY)
		}
		h.Components = append(h.Components, c)
	}
	return h, nil
}

// work estimates the bytes that the library takes for its own structures: for each tile, and in it for each precinct of
// each resolution level of each component, with two more for each quality layer. Coding styles are in the main header
// and in those of tile-parts; the worst counts for all.
func (h *Header) work(src []byte) (int, error) {
	most := 0
	err := eachSegment(src, func(marker int, body []byte) error {
		style, ok := h.style(marker, body)
		if !ok {
			return fmt.Errorf("JPEG 2000: marker %04x of %d bytes", marker, len(body))
		}
		most = max(most, style)
		return nil
	})
	return mem.Sum(most, mem.Product(h.Tiles, 8192+2048*len(h.Components))), err
}

// style returns the work of a coding style, 0 of other markers. Layers stand in COD alone; those of COC are
// taken for few, which costs two bytes each where they are not.
func (h *Header) style(marker int, body []byte) (work int, ok bool) {
	layers := 1
	scod := 0
	switch marker {
	case markCOD:
		if len(body) < 10 {
			return 0, false
		}
		scod, layers, body = int(body[0]), int(binary.BigEndian.Uint16(body[2:])), body[5:]
	case markCOC:
		skip := 1
		if len(h.Components) > 256 {
			skip = 2
		}
		if len(body) < skip+6 {
			return 0, false
		}
		scod, body = int(body[skip]), body[skip+1:]
	default:
		return 0, true
	}
	levels := int(body[0])
	if levels > 32 {
		return 0, false
	}
	across, down := 15, 15
	if scod&1 != 0 {
		if len(body) < 5+levels+1 {
			return 0, false
		}
		for _, p := range body[5 : 5+levels+1] {
			across, down = min(across, int(p&15)), min(down, int(p>>4))
		}
	}
	precincts := mem.Product(h.Width>>across+h.Tiles, h.Height>>down+h.Tiles)
	return mem.Product(precincts, levels+1, len(h.Components), 512+2*layers), true
}

// eachSegment calls f for the marker segments of the main header and of those of the tile-parts that can be found.
func eachSegment(src []byte, f func(marker int, body []byte) error) error {
	be := binary.BigEndian
	end := 0 // of the tile-part
	for at := 2; len(src)-at >= 4; {
		marker, length := int(be.Uint16(src[at:])), int(be.Uint16(src[at+2:]))
		if marker == markSOD {
			if end <= at {
				return fmt.Errorf("JPEG 2000: a SOD marker at byte %d, outside of a tile-part", at)
			}
			at = end
			continue
		}
		if marker == markEOC {
			return nil
		}
		if marker < 0xff00 || length < 2 || length > len(src)-at-2 {
			return fmt.Errorf("JPEG 2000: no marker at byte %d of %d", at, len(src))
		}
		body := src[at+4 : at+2+length]
		if marker == markSOT {
			if len(body) != 8 {
				return fmt.Errorf("JPEG 2000: a SOT marker of %d bytes at byte %d", len(body), at)
			}
			end = len(src)
			if n := int(be.Uint32(body[2:])); n != 0 {
				end = at + min(n, len(src)-at)
			}
			if end < at+2+length {
				return fmt.Errorf("JPEG 2000: a tile-part that ends at byte %d, before its header", end)
			}
		}
		if err := f(marker, body); err != nil {
			return err
		}
		at += 2 + length
	}
	return nil
}
