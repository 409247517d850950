package codec

import (
	"encoding/binary"
	"fmt"
)

// bloscFrame is the header of a Blosc container, checked against the length of
// the data and of the expected output.
type bloscFrame struct {
	src       []byte // the container, without what may follow it
	compress  byte   // compressor format: 0 blosclz, 1 lz4 (and lz4hc), 2 snappy, 3 zlib, 4 zstd
	stored    bool   // the data follow the header as they are
	shuffle   BloscShuffle
	split     bool // blocks are one stream per byte of an element
	typesize  int
	size      int // of the decoded data
	blocksize int
	blocks    int
}

// flags of header byte 2
const (
	bloscByteShuffle = 1 << 0
	bloscStored      = 1 << 1
	bloscBitShuffle  = 1 << 2
	bloscDontSplit   = 1 << 4
	bloscFormatShift = 5
)

// bloscVersion is the format version of c-blosc 1; version 1 differs in nothing
// that is read here.
const bloscVersion = 2

func openBlosc(src []byte, size int) (f bloscFrame, err error) {
	if len(src) < bloscHeader {
		return f, errShort(len(src))
	}
	if v := src[0]; v < 1 || v > bloscVersion {
		return f, fmt.Errorf("format version %d at byte 0 (must be 1 or %d)", v, bloscVersion)
	}
	flags := src[2]
	f = bloscFrame{
		compress: flags >> bloscFormatShift, stored: flags&bloscStored != 0, split: flags&bloscDontSplit == 0, typesize: int(src[3]),
		size:      int(int32(binary.LittleEndian.Uint32(src[4:]))),
		blocksize: int(int32(binary.LittleEndian.Uint32(src[8:]))),
	}
	stored := int(int32(binary.LittleEndian.Uint32(src[12:])))
	switch {
	case f.size != size:
		return f, fmt.Errorf("decoded size %d at byte 4, want %d", f.size, size)
	case stored < bloscHeader || stored > len(src):
		return f, fmt.Errorf("encoded size %d at byte 12, the data have %d", stored, len(src))
	case f.typesize == 0:
		return f, fmt.Errorf("element size 0 at byte 3")
	}
	f.src = src[:stored]
	return f, nil
}

func (b *bloscCodec) Decode(s *Scratch, dst, src []byte) (int, error) { return 0, ErrReadOnly }

func (b *bloscCodec) Encode(s *Scratch, dst, src []byte) ([]byte, error) { return nil, ErrReadOnly }

type bloscScratch struct{}
