package zarr

import (
	"encoding/binary"
	"fmt"

	"strata/pkg/zarr/codec"
)

const (
	// pageEntries is the number of entries of a page of a long index, of which heldPages are held.
	pageEntries = 4 << 10
	heldPages   = wholeIndex / pageEntries
)

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
