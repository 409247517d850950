package zarr

import (
	"encoding/binary"
	"fmt"
	"math"
	"strata/pkg/zarr/codec"
)

const (
	// wholeIndex is the maximum number of entries of an index that is held as a whole.
	wholeIndex = 64 << 10
	// mostInner and mostInnerWritten are the maximum numbers of inner chunks of a shard for reading and for
	// writing, which needs the whole index in memory.
	mostInner        = 1 << 26
	mostInnerWritten = 1 << 22
)

type indexEntry struct{ offset, length uint64 }

const entryBytes = 16

// absent is both fields of the entry of an inner chunk that is not stored.
const absent = math.MaxUint64

// place returns where the entry's chunk lies in a shard of size bytes; ok is false if the chunk is not
// stored.
func (e indexEntry) place(size int64) (off, n int64, ok bool, err error) {
	if e.offset == absent && e.length == absent {
		return 0, 0, false, nil
	}
	if e.offset > uint64(size) || e.length > uint64(size)-e.offset {
		return 0, 0, false, fmt.Errorf("index says %d bytes at %d, the shard has %d bytes", e.length, e.offset, size)
	}
	return int64(e.offset), int64(e.length), true, nil
}

// ahead returns the length of the checksum that precedes the entries of a long index.
func (s *sharding) ahead() int64 {
	if len(s.indexChain) > 0 {
		if sum, ok := codec.ChecksumOf(s.indexChain[0]); ok && sum.AtStart {
			return sum.Size
		}
	}
	return 0
}

// appendEntries parses the decoded index in raw and appends its entries.
func (s *sharding) appendEntries(to []indexEntry, raw []byte) []indexEntry {
	order := binary.ByteOrder(binary.LittleEndian)
	if s.indexBig {
		order = binary.BigEndian
	}
	for ; len(raw) >= entryBytes; raw = raw[entryBytes:] {
		to = append(to, indexEntry{order.Uint64(raw), order.Uint64(raw[8:])})
	}
	return to
}

// place returns where the index lies in a shard of size bytes.
func (s *sharding) place(size int64) (off int64, err error) {
	if size < int64(s.indexSize) {
		return 0, fmt.Errorf("shard of %d bytes is shorter than its index of %d", size, s.indexSize)
	}
	if s.indexAtEnd {
		return size - int64(s.indexSize), nil
	}
	return 0, nil
}

// decodeIndex decodes an index that is held as a whole.
func (s *sharding) decodeIndex(c *codec.Scratch, stored []byte) ([]indexEntry, error) {
	raw := make([]byte, entryBytes*s.count)
	if err := s.indexChain.Decode(c, raw, stored); err != nil {
		return nil, err
	}
	return s.appendEntries(make([]indexEntry, 0, s.count), raw), nil
}

// encodeIndex returns the stored form of an index.
func (s *sharding) encodeIndex(c *codec.Scratch, entries []indexEntry) ([]byte, error) {
	raw := make([]byte, 0, entryBytes*len(entries))
	for _, e := range entries {
		raw = binary.LittleEndian.AppendUint64(raw, e.offset)
		raw = binary.LittleEndian.AppendUint64(raw, e.length)
	}
	if s.indexBig {
		swapBytes(raw, 8)
	}
	return s.indexChain.Encode(c, nil, raw)
}

// ordinal returns the number of the inner chunk that holds the element at start.
func (s *sharding) ordinal(origin, start []int) int {
	i := 0
	for d, n := range s.inner.shape {
		i = i*s.grid[d] + (start[d]-origin[d])/n
	}
	return i
}
