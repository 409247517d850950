package squashfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFormat is wrapped by errors that the image causes.
var ErrFormat = errors.New("not a whole squashfs 4.0 image")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

const (
	magic        = "hsqs"
	superSize    = 96
	metaSize     = 8192
	maxBlockSize = 1 << 20
	noTable      = ^uint64(0)
)

// superblock is the first 96 bytes of an image.
type superblock struct {
	Magic       [4]byte
	Inodes      uint32
	ModTime     uint32
	BlockSize   uint32
	Fragments   uint32
	Compression uint16
	BlockLog    uint16
	Flags       uint16
	IDs         uint16
	Major       uint16
	Minor       uint16
	RootInode   uint64
	BytesUsed   uint64
	IDTable     uint64
	XattrTable  uint64
	InodeTable  uint64
	DirTable    uint64
	FragTable   uint64
	ExportTable uint64
}

// Reader reads one image.
type Reader struct {
	r       io.ReaderAt
	super   superblock
	unpack  decompressor
	meta    map[int64]metaBlock // by place; emptied when it is full
	frag    []byte              // the fragment block that was read last
	fragAt  int64
	scratch []byte
}

// Open reads the superblock of an image of size bytes.
func Open(r io.ReaderAt, size int64) (*Reader, error) {
	s := &Reader{r: r, meta: map[int64]metaBlock{}, fragAt: -1}
	if err := binary.Read(io.NewSectionReader(r, 0, superSize), binary.LittleEndian, &s.super); err != nil {
		return nil, bad("its head is cut off: %v", err)
	}
	b := &s.super
	switch {
	case string(b.Magic[:]) != magic:
		return nil, bad("it begins with %q, not %q", b.Magic[:], magic)
	case b.Major != 4 || b.Minor != 0:
		return nil, bad("it is of version %d.%d", b.Major, b.Minor)
	case b.BlockSize < 4096 || b.BlockSize > maxBlockSize || b.BlockLog > 20 || b.BlockSize != 1<<b.BlockLog:
		return nil, bad("blocks of %d bytes", b.BlockSize)
	case b.BytesUsed > uint64(size):
		return nil, bad("it is cut off: %d bytes, of which %d are there", b.BytesUsed, size)
	case b.InodeTable >= b.BytesUsed || b.DirTable >= b.BytesUsed || b.Fragments > 0 && b.FragTable >= b.BytesUsed:
		return nil, bad("a table lies behind its end")
	}
	var err error
	s.unpack, err = newDecompressor(b.Compression)
	return s, err
}

// Size returns the length of the image in bytes without padding.
func (s *Reader) Size() int64 { return int64(s.super.BytesUsed) }
