package squashfs

import (
	"encoding/binary"
	"io"
)

// metaBlock is a metadata block, unpacked.
type metaBlock struct {
	data []byte
	next int64 // place of the block behind it
}

// cachedBlocks is the number of metadata blocks that are kept.
const cachedBlocks = 64

func (s *Reader) readAt(p []byte, at int64) error {
	if at < 0 || uint64(at)+uint64(len(p)) > s.super.BytesUsed {
		return bad("byte %d: %d bytes from there lie behind its end", at, len(p))
	}
	if _, err := s.r.ReadAt(p, at); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// block reads the metadata block at a place.
func (s *Reader) block(at int64) (metaBlock, error) {
	if b, ok := s.meta[at]; ok {
		return b, nil
	}
	var head [2]byte
	if err := s.readAt(head[:], at); err != nil {
		return metaBlock{}, err
	}
	n := binary.LittleEndian.Uint16(head[:])
	packed := n&0x8000 == 0
	n &= 0x7fff
	if n == 0 || n > metaSize {
		return metaBlock{}, bad("byte %d: a metadata block of %d bytes", at, n)
	}
	raw := make([]byte, n)
	if err := s.readAt(raw, at+2); err != nil {
		return metaBlock{}, err
	}
	if packed {
		plain := make([]byte, metaSize)
		k, err := s.unpack(plain, raw)
		if err != nil {
			return metaBlock{}, bad("byte %d: metadata block: %v", at, err)
		}
		raw = plain[:k]
	}
	if len(s.meta) >= cachedBlocks {
		clear(s.meta)
	}
	b := metaBlock{raw, at + 2 + int64(n)}
	s.meta[at] = b
	return b, nil
}

// cursor reads metadata from a given place across blocks.
type cursor struct {
	s      *Reader
	at     int64 // of the block
	offset int   // in it
}

func (c *cursor) read(p []byte) error {
	for len(p) > 0 {
		b, err := c.s.block(c.at)
		if err != nil {
			return err
		}
		if c.offset > len(b.data) || c.offset == len(b.data) && len(b.data) < metaSize {
			return bad("byte %d: metadata ends early", c.at)
		}
		n := copy(p, b.data[c.offset:])
		p = p[n:]
		if c.offset += n; c.offset == len(b.data) {
			c.at, c.offset = b.next, 0
		}
	}
	return nil
}

// number reads an unsigned number of the given number of bytes.
func (c *cursor) number(size int) (uint64, error) {
	var p [8]byte
	err := c.read(p[:size])
	return binary.LittleEndian.Uint64(p[:]), err
}

// numbers reads several, of the given sizes in bytes.
func (c *cursor) numbers(sizes ...int) ([]uint64, error) {
	out := make([]uint64, len(sizes))
	for i, size := range sizes {
		v, err := c.number(size)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// element reads n bytes of the element of a table that is kept in metadata
// blocks, with a list of their places at a known place.
func (s *Reader) element(table uint64, index, n int) ([]byte, error) {
	perBlock := metaSize / n
	var place [8]byte
	if err := s.readAt(place[:], int64(table)+int64(index/perBlock)*8); err != nil {
		return nil, err
	}
	out := make([]byte, n)
	c := cursor{s, int64(binary.LittleEndian.Uint64(place[:])), index % perBlock * n}
	return out, c.read(out)
}
