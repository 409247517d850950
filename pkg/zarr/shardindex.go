package zarr

import (
	"encoding/binary"
	"fmt"

	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/meta"
)

const (
	// pageEntries is the number of entries of a page of a long index, of which heldPages are held.
	pageEntries = 4 << 10
	heldPages   = meta.WholeIndex / pageEntries
)

// lookup returns the place of inner chunk i in the shard s.
func (rd reader) lookup(sh *meta.Sharding, x *shardIndex, s span, i int) (off, n int64, ok bool, err error) {
	var e meta.IndexEntry
	if x.entries != nil {
		e = x.entries[i]
	} else if e, err = rd.paged(sh, x, s, i); err != nil {
		return 0, 0, false, err
	}
	if off, n, ok, err = e.Place(s.n); err != nil {
		err = &FormatError{Err: err}
	}
	return off, n, ok, err
}

// paged returns entry i of an index that is read in pages.
func (rd reader) paged(sh *meta.Sharding, x *shardIndex, s span, i int) (meta.IndexEntry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := i / pageEntries
	if p, ok := x.pages[k]; ok {
		return p[i%pageEntries], nil
	}
	off, err := sh.IndexAt(s.n)
	if err != nil {
		return meta.IndexEntry{}, &FormatError{Err: err}
	}
	m := rd.w.mark()
	defer rd.w.release(m)
	b, err := rd.bytes(s.sub(off+sh.ChecksumAhead()+int64(k)*pageEntries*meta.EntryBytes, meta.EntryBytes*int64(min(pageEntries, sh.Count-k*pageEntries))))
	if err != nil {
		return meta.IndexEntry{}, err
	}
	if x.pages == nil {
		x.pages = make(map[int][]meta.IndexEntry, heldPages)
	}
	var p []meta.IndexEntry
	if len(x.order) == heldPages {
		oldest := x.order[0]
		p, x.order = x.pages[oldest][:0], append(x.order[:0], x.order[1:]...)
		delete(x.pages, oldest)
	}
	p = sh.AppendEntries(p, b)
	x.pages[k], x.order = p, append(x.order, k)
	return p[i%pageEntries], nil
}

// readIndex reads the index of the shard s; of a long one it only verifies the checksum.
func (rd reader) readIndex(sh *meta.Sharding, s span) (*shardIndex, error) {
	off, err := sh.IndexAt(s.n)
	if err != nil {
		return nil, &FormatError{Err: err}
	}
	x := &shardIndex{count: sh.Count}
	s = s.sub(off, int64(sh.IndexSize))
	m := rd.w.mark()
	defer rd.w.release(m)
	if sh.Count > meta.WholeIndex {
		err = rd.verifyIndex(sh, s)
	} else {
		var stored []byte
		if stored, err = rd.bytes(s); err != nil {
			return nil, err
		}
		x.entries, err = sh.DecodeIndex(&rd.w.codec, stored)
	}
	if err != nil {
		return nil, asFormatError(fmt.Errorf("shard index: %w", err))
	}
	return x, nil
}

// verifyIndex verifies the checksum of a long index, if it has one, piece by piece.
func (rd reader) verifyIndex(sh *meta.Sharding, s span) error {
	if len(sh.IndexChain) == 0 {
		return nil
	}
	sum, _ := codec.ChecksumOf(sh.IndexChain[0])
	data, stored := s.sub(sh.ChecksumAhead(), s.n-sum.Size), s.sub(s.n-sum.Size, sum.Size)
	if sum.AtStart {
		stored = s.sub(0, sum.Size)
	}
	hash := sum.New()
	for at := int64(0); at < data.n; at += meta.PieceBytes {
		if err := rd.ctx.Err(); err != nil {
			return err
		}
		m := rd.w.mark()
		b, err := rd.bytes(data.sub(at, min(meta.PieceBytes, data.n-at)))
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
		return fmt.Errorf("%s: checksum of the data is %08x, the stored one %08x", sh.IndexChain[0].Name(), got, want)
	}
	return nil
}
