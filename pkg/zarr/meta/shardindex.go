package meta

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/zarr/box"
	"strata/pkg/zarr/codec"
)

const (
	// WholeIndex is the maximum number of entries of an index that is kept in memory as a whole.
	WholeIndex = 64 << 10
	// mostInner and mostInnerWritten are the maximum numbers of inner chunks of a shard for reading and for
	// writing, which needs the whole index in memory.
	mostInner        = 1 << 26
	mostInnerWritten = 1 << 22
)

// IndexEntry is the entry of a shard's index for one inner chunk: where its bytes lie in the shard.
type IndexEntry struct{ Offset, Length uint64 }

// EntryBytes is the size of an entry in the index.
const EntryBytes = 16

// Absent is both fields of the entry of an inner chunk that is not stored.
const Absent = math.MaxUint64

// NotStored is the entry of an inner chunk that is not stored.
var NotStored = IndexEntry{Absent, Absent}

// Place returns where the entry's chunk lies in a shard of size bytes; ok is false if the chunk is not
// stored.
func (e IndexEntry) Place(size int64) (off, n int64, ok bool, err error) {
	if e == NotStored {
		return 0, 0, false, nil
	}
	if e.Offset > uint64(size) || e.Length > uint64(size)-e.Offset {
		return 0, 0, false, fmt.Errorf("index says %d bytes at %d, the shard has %d bytes", e.Length, e.Offset, size)
	}
	return int64(e.Offset), int64(e.Length), true, nil
}

// ChecksumAhead returns the length of the checksum that precedes the entries of a long index.
func (s *Sharding) ChecksumAhead() int64 {
	if len(s.IndexChain) > 0 {
		if sum, ok := codec.ChecksumOf(s.IndexChain[0]); ok && sum.AtStart {
			return sum.Size
		}
	}
	return 0
}

// AppendEntries parses the decoded index in raw and appends its entries.
func (s *Sharding) AppendEntries(to []IndexEntry, raw []byte) []IndexEntry {
	order := binary.ByteOrder(binary.LittleEndian)
	if s.indexBig {
		order = binary.BigEndian
	}
	for ; len(raw) >= EntryBytes; raw = raw[EntryBytes:] {
		to = append(to, IndexEntry{order.Uint64(raw), order.Uint64(raw[8:])})
	}
	return to
}

// IndexAt returns where the index lies in a shard of size bytes.
func (s *Sharding) IndexAt(size int64) (off int64, err error) {
	if size < int64(s.IndexSize) {
		return 0, fmt.Errorf("shard of %d bytes is shorter than its index of %d", size, s.IndexSize)
	}
	if s.IndexAtEnd {
		return size - int64(s.IndexSize), nil
	}
	return 0, nil
}

// DecodeIndex decodes an index that is held as a whole.
func (s *Sharding) DecodeIndex(c *codec.Scratch, stored []byte) ([]IndexEntry, error) {
	raw := make([]byte, EntryBytes*s.Count)
	if err := s.IndexChain.Decode(c, raw, stored); err != nil {
		return nil, err
	}
	return s.AppendEntries(make([]IndexEntry, 0, s.Count), raw), nil
}

// EncodeIndex returns the stored form of an index.
func (s *Sharding) EncodeIndex(c *codec.Scratch, entries []IndexEntry) ([]byte, error) {
	raw := make([]byte, 0, EntryBytes*len(entries))
	for _, e := range entries {
		raw = binary.LittleEndian.AppendUint64(raw, e.Offset)
		raw = binary.LittleEndian.AppendUint64(raw, e.Length)
	}
	if s.indexBig {
		box.SwapBytes(raw, 8)
	}
	return s.IndexChain.Encode(c, nil, raw)
}

// Ordinal returns the number of the inner chunk that holds the element at start.
func (s *Sharding) Ordinal(origin, start []int) int {
	i := 0
	for d, n := range s.Inner.Shape {
		i = i*s.Grid[d] + (start[d]-origin[d])/n
	}
	return i
}
