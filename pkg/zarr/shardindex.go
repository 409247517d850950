package zarr

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"strata/pkg/zarr/codec"
)

// shardIndex holds the index of a shard: for each inner chunk, in C order of stored dimensions, the place of
// its bytes. A long index is not held as a whole; its pages are read on demand.
type shardIndex struct {
	count   int
	entries []indexEntry // nil: in pages

	mu    sync.Mutex
	pages map[int][]indexEntry // some, by their number
	order []int                // of the pages, as they came
}

const (
	// wholeIndex is the maximum number of entries of an index that is held as a whole.
	wholeIndex = 64 << 10
	// pageEntries is the number of entries of a page of a longer one, of which heldPages are held.
	pageEntries = 4 << 10
	heldPages   = wholeIndex / pageEntries
	// mostInner and mostInnerWritten are the maximum numbers of inner chunks of a shard for reading and for
	// writing, which needs the whole index in memory.
	mostInner        = 1 << 26
	mostInnerWritten = 1 << 22
)

type indexEntry struct{ offset, length uint64 }

const entryBytes = 16

// absent is both fields of the entry of an inner chunk that is not stored.
const absent = math.MaxUint64

// bytes returns the maximum memory that the index needs.
func (x *shardIndex) bytes() int64 { return entryBytes * int64(min(x.count, wholeIndex)) }

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

// lookup returns the place of inner chunk i in the shard s.
func (rd reader) lookup(sh *sharding, x *shardIndex, s span, i int) (off, n int64, ok bool, err error) {
	var e indexEntry
	if x.entries != nil {
		e = x.entries[i]
	} else if e, err = rd.paged(sh, x, s, i); err != nil {
		return 0, 0, false, err
	}
	if off, n, ok, err = e.place(s.n); err != nil {
		err = &FormatError{Err: err}
	}
	return off, n, ok, err
}

// paged returns entry i of an index that is read in pages.
func (rd reader) paged(sh *sharding, x *shardIndex, s span, i int) (indexEntry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := i / pageEntries
	if p, ok := x.pages[k]; ok {
		return p[i%pageEntries], nil
	}
	off, err := sh.place(s.n)
	if err != nil {
		return indexEntry{}, &FormatError{Err: err}
	}
	m := rd.w.mark()
	defer rd.w.release(m)
	b, err := rd.bytes(s.sub(off+sh.ahead()+int64(k)*pageEntries*entryBytes, entryBytes*int64(min(pageEntries, sh.count-k*pageEntries))))
	if err != nil {
		return indexEntry{}, err
	}
	if x.pages == nil {
		x.pages = make(map[int][]indexEntry, heldPages)
	}
	var p []indexEntry
	if len(x.order) == heldPages {
		oldest := x.order[0]
		p, x.order = x.pages[oldest][:0], append(x.order[:0], x.order[1:]...)
		delete(x.pages, oldest)
	}
	p = sh.appendEntries(p, b)
	x.pages[k], x.order = p, append(x.order, k)
	return p[i%pageEntries], nil
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

// readIndex reads the index of the shard s; of a long one it only verifies the checksum.
func (rd reader) readIndex(sh *sharding, s span) (*shardIndex, error) {
	off, err := sh.place(s.n)
	if err != nil {
		return nil, &FormatError{Err: err}
	}
	x := &shardIndex{count: sh.count}
	s = s.sub(off, int64(sh.indexSize))
	m := rd.w.mark()
	defer rd.w.release(m)
	if sh.count > wholeIndex {
		err = rd.verifyIndex(sh, s)
	} else {
		var stored []byte
		if stored, err = rd.bytes(s); err != nil {
			return nil, err
		}
		x.entries, err = sh.decodeIndex(&rd.w.codec, stored)
	}
	if err != nil {
		return nil, asFormatError(fmt.Errorf("shard index: %w", err))
	}
	return x, nil
}

// verifyIndex verifies the checksum of a long index, if it has one, piece by piece.
func (rd reader) verifyIndex(sh *sharding, s span) error {
	if len(sh.indexChain) == 0 {
		return nil
	}
	sum, _ := codec.ChecksumOf(sh.indexChain[0])
	data, stored := s.sub(sh.ahead(), s.n-sum.Size), s.sub(s.n-sum.Size, sum.Size)
	if sum.AtStart {
		stored = s.sub(0, sum.Size)
	}
	hash := sum.New()
	for at := int64(0); at < data.n; at += pieceBytes {
		if err := rd.ctx.Err(); err != nil {
			return err
		}
		m := rd.w.mark()
		b, err := rd.bytes(data.sub(at, min(pieceBytes, data.n-at)))
		if err != nil {
			return err
		}
		_, _ = hash.Write(b) // never fails
		rd.w.release(m)
	}
	b, err := rd.bytes(stored)
	if err != nil {
		return err
	}
	if got, want := hash.Sum32(), binary.LittleEndian.Uint32(b); got != want {
		return fmt.Errorf("%s: checksum of the data is %08x, the stored one %08x", sh.indexChain[0].Name(), got, want)
	}
	return nil
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
