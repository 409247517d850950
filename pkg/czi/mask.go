package czi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
)

// Mask marks the valid pixels of a sub-block, one bit each, the highest bit of a byte first.
type Mask struct {
	Width, Height int
	Stride        int // bytes of a row
	Bits          []byte
}

// Valid reports whether a pixel is valid. Pixels outside the mask are.
func (m *Mask) Valid(x, y int) bool {
	if x >= m.Width || y >= m.Height {
		return true
	}
	return m.Bits[y*m.Stride+x>>3]<<(x&7)&0x80 != 0
}

// maskID begins the chunk of an attachment that holds a mask: the GUID CBE3EA67-5BFC-492B-A16A-ECE378031448.
var maskID = []byte{0x67, 0xea, 0xe3, 0xcb, 0xfc, 0x5b, 0x2b, 0x49, 0xa1, 0x6a, 0xec, 0xe3, 0x78, 0x03, 0x14, 0x48}

const (
	chunkHeader = 20
	maskHeader  = 16
	mostChunks  = 64
)

// errInOrder reports that tiles cannot be drawn in parts: they must be drawn whole, from the lowest to the highest.
var errInOrder = errors.New("tiles are not opaque, or too many")

// Mask reads the mask of a sub-block, or returns nil if it has none.
func (f *File) Mask(ctx context.Context, i int) (*Mask, error) {
	t, err := f.tile(ctx, i)
	if err != nil {
		return nil, err
	}
	return t.mask(ctx)
}

// mask looks for the mask among the chunks of the attachment. What does not consist of chunks is any program's own.
func (t *tile) mask(ctx context.Context) (*Mask, error) {
	at, end := t.Attachment, t.Attachment+t.AttachmentBytes
	for range mostChunks {
		if end-at < chunkHeader {
			break
		}
		head, err := t.part(ctx, at, chunkHeader, "attachment")
		if err != nil {
			return nil, err
		}
		size := int64(int32(binary.LittleEndian.Uint32(head[16:])))
		at += chunkHeader
		if size < 0 || size > end-at {
			break
		}
		if bytes.Equal(head[:16], maskID) {
			b, err := t.part(ctx, at, size, "mask")
			if err != nil {
				return nil, err
			}
			return t.parseMask(b)
		}
		at += size
	}
	return nil, nil
}

func (t *tile) parseMask(b []byte) (*Mask, error) {
	if len(b) < maskHeader {
		return nil, t.errorf("mask: has %d bytes (at least %d)", len(b), maskHeader)
	}
	le := binary.LittleEndian
	w, h, kind, stride := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
	rest := b[maskHeader:]
	switch {
	case kind != 0:
		return nil, t.errorf("mask: representation %d is not supported (must be 0)", kind)
	case uint64(stride)*8 < uint64(w) || uint64(stride)*uint64(h) > uint64(len(rest)):
		return nil, t.errorf("mask: %d × %d pixels in rows of %d bytes do not fit into %d", w, h, stride, len(rest))
	}
	return &Mask{Width: int(w), Height: int(h), Stride: int(stride), Bits: rest}, nil
}
