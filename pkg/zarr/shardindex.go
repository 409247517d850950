package zarr

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/zarr/codec"
)

// shardIndex is the decoded index of a shard: for each inner chunk, in C order
// of stored dimensions, where its bytes lie in the shard.
type shardIndex struct {
	entries []indexEntry
}

type indexEntry struct{ offset, length uint64 }

// absent is both fields of the entry of an inner chunk that is not stored.
const absent = math.MaxUint64

// lookup returns the place of inner chunk i in a shard of size bytes; ok is
// false when it is not stored.
func (x *shardIndex) lookup(i int, size int64) (off, n int64, ok bool, err error) {
	e := x.entries[i]
	if e.offset == absent && e.length == absent {
		return 0, 0, false, nil
	}
	if e.offset > uint64(size) || e.length > uint64(size)-e.offset {
		return 0, 0, false, fmt.Errorf("index says %d bytes at %d, the shard has %d bytes", e.length, e.offset, size)
	}
	return int64(e.offset), int64(e.length), true, nil
}

// place is where the index lies in a shard of size bytes.
func (s *sharding) place(size int64) (off int64, err error) {
	if size < int64(s.indexSize) {
		return 0, fmt.Errorf("shard of %d bytes is shorter than its index of %d", size, s.indexSize)
	}
	if s.indexAtEnd {
		return size - int64(s.indexSize), nil
	}
	return 0, nil
}

// decodeIndex decodes the stored bytes of an index.
func (s *sharding) decodeIndex(c *codec.Scratch, stored []byte) (*shardIndex, error) {
	raw := make([]byte, 16*s.count)
	if err := s.indexChain.Decode(c, raw, stored); err != nil {
		return nil, err
	}
	if s.indexBig {
		swapBytes(raw, 8)
	}
	x := &shardIndex{entries: make([]indexEntry, s.count)}
	for i := range x.entries {
		x.entries[i] = indexEntry{binary.LittleEndian.Uint64(raw[16*i:]), binary.LittleEndian.Uint64(raw[16*i+8:])}
	}
	return x, nil
}

// encodeIndex is the stored form of an index.
func (s *sharding) encodeIndex(c *codec.Scratch, entries []indexEntry) ([]byte, error) {
	raw := make([]byte, 0, 16*len(entries))
	for _, e := range entries {
		raw = binary.LittleEndian.AppendUint64(raw, e.offset)
		raw = binary.LittleEndian.AppendUint64(raw, e.length)
	}
	if s.indexBig {
		swapBytes(raw, 8)
	}
	return s.indexChain.Encode(c, nil, raw)
}
