package zarr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"strata/pkg/mem"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
)

// ErrMissing is wrapped by errors of reads that hit a chunk that is not stored, if [Missing.Refuse] is set.
var ErrMissing = errors.New("the chunk is not stored")

// Missing collects the chunks that reads find not stored; their elements have the fill value. Arrays opened
// with the same [NoteMissing] share it. Each chunk counts once, however often it is read. Methods may be
// called concurrently.
type Missing struct {
	// Refuse turns the read of a chunk that is not stored into a [*FormatError] that wraps [ErrMissing],
	// unless the array's [Account] allows for chunks left out: then nobody knows which ones.
	Refuse bool

	mu     sync.Mutex
	arrays map[*shared]*absentees
	pages  int
}

// NoteMissing makes reads record in m the chunks that are not stored.
func NoteMissing(m *Missing) Option { return func(o *options) { o.missing = m } }

// Absent describes the chunks of one array that are not stored.
type Absent struct {
	Array  *Array
	Chunks int64 // number of chunks that are not stored
	More   bool  // there are more than Chunks: too many to count
	First  []int // grid index of the first of them
}

// absentees records the missing chunks of one array in a bitmap that is allocated page by page.
type absentees struct {
	Absent
	pages map[uint64]*[pageBits / 64]uint64
	least uint64 // the number of First
}

const (
	pageBits = 1 << 15
	maxPages = 2048 // 8 MiB in all
)

// List returns the missing chunks of each array, sorted by location.
func (m *Missing) List() []Absent {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Absent
	for _, x := range m.arrays {
		a := x.Absent
		a.First = slices.Clone(a.First)
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Absent) int { return cmp.Compare(a.Array.Location(), b.Array.Location()) })
	return list
}

// Lost returns how many of the missing chunks the array's [Account] counts as stored; ok is false if there is
// no account.
func (x *Absent) Lost() (n int64, ok bool) {
	acc, ok := x.Array.Account()
	if !ok {
		return 0, false
	}
	return max(x.Chunks-(acc.Chunks-acc.Stored), 0), true
}

// All reports whether every chunk of the array is missing.
func (x *Absent) All() bool {
	n := 1
	for d, c := range x.Array.Chunks() {
		n = mem.Product(n, box.CeilDiv(x.Array.meta.Shape[d], c))
	}
	return x.Chunks >= int64(n)
}

// String returns how many chunks are missing, whether they were once stored, and where the first one should
// be.
func (x *Absent) String() string {
	n, lost, known := x.Chunks, int64(0), false
	if lost, known = x.Lost(); lost > 0 {
		n = lost
	}
	text := fmt.Sprintf("%d chunks", n)
	switch {
	case x.More:
		text = "more than " + text
	case n == 1:
		text = "1 chunk"
	}
	if known {
		text += " that the array's writer stored"
	}
	verb, first := " are missing, the first is ", x.Array.chunkLocation(x.First)
	switch {
	case known && lost < x.Chunks:
		verb = fmt.Sprintf(", of %d that are not there, are missing; the first of these is ", x.Chunks)
	case n == 1 && !x.More:
		verb = " is missing: "
	}
	return text + verb + first
}

// chunkLocation names a chunk of the grid of Chunks by its file and, in a shard, its index.
func (a *Array) chunkLocation(index []int) string {
	if a.meta.Pipeline.Shard == nil {
		return a.st.Location(a.ChunkKey(index))
	}
	return fmt.Sprintf("%s: chunk %v", a.st.Location(a.ChunkKey(a.fileOf(index))), index)
}

// fileOf returns the index of the chunk file that holds a chunk of the grid of Chunks.
func (a *Array) fileOf(index []int) []int {
	file := make([]int, len(index))
	for d, n := range a.Chunks() {
		file[d] = index[d] * n / a.meta.Chunks[d]
	}
	return file
}

// note counts one chunk of the grid of Chunks.
func (m *Missing) note(a *Array, index []int) error {
	if m.Refuse {
		if acc, ok := a.Account(); !ok || acc.Stored == acc.Chunks {
			err := &FormatError{Path: a.st.Location(a.ChunkKey(a.fileOf(index))), Err: ErrMissing}
			if a.meta.Pipeline.Shard != nil {
				err.Field = fmt.Sprintf("chunk %v", index)
			}
			return err
		}
	}
	n := uint64(0)
	for d, c := range a.Chunks() {
		n = n*uint64(box.CeilDiv(a.meta.Shape[d], c)) + uint64(index[d])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.arrays[a.shared]
	if x == nil {
		if m.arrays == nil {
			m.arrays = map[*shared]*absentees{}
		}
		x = &absentees{Absent: Absent{Array: a}, pages: map[uint64]*[pageBits / 64]uint64{}}
		m.arrays[a.shared] = x
	}
	page := x.pages[n/pageBits]
	if page == nil {
		if m.pages == maxPages {
			x.More = true
			return nil
		}
		m.pages++
		page = new([pageBits / 64]uint64)
		x.pages[n/pageBits] = page
	}
	word, bit := &page[n%pageBits/64], uint64(1)<<(n%64)
	if *word&bit != 0 {
		return nil
	}
	*word |= bit
	x.Chunks++
	a.opts.meter.AddMissing(1)
	if x.First == nil || n < x.least {
		x.First, x.least = slices.Clone(index), n
	}
	return nil
}

// noteBox counts the chunks that a box of the array touches.
func (m *Missing) noteBox(a *Array, start, shape []int) error {
	unit := a.Chunks()
	index := make([]int, len(unit))
	for d, n := range unit {
		if shape[d] == 0 {
			return nil
		}
		index[d] = start[d] / n
	}
	for {
		if err := m.note(a, index); err != nil {
			return err
		}
		d := len(index) - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] <= (start[d]+shape[d]-1)/unit[d] {
				break
			}
			index[d] = start[d] / unit[d]
		}
		if d < 0 {
			return nil
		}
	}
}

// Account returns the account in the array's attributes; ok is false if there is none or it does not fit the
// chunk grid.
func (a *Array) Account() (acc Account, ok bool) {
	raw := a.Attributes()[AccountKey]
	n, counted := meta.GridCount(a.meta.Shape, a.Chunks())
	if raw == nil || !counted || json.Unmarshal(raw, &acc) != nil {
		return Account{}, false
	}
	if acc.Chunks != n || acc.Stored < 0 || acc.Stored > n {
		return Account{}, false
	}
	return acc, true
}

// WriteAccount writes the number of stored chunks to the array's attributes. It expects that each chunk was
// written exactly once, through a or an array derived from it by With. Arrays with nested shards do not count
// their chunks; for them it removes the account.
func (a *Array) WriteAccount(ctx context.Context) error {
	attrs := map[string]any{}
	for k, v := range a.Attributes() {
		attrs[k] = v
	}
	delete(attrs, AccountKey)
	nested := a.meta.Pipeline.Shard != nil && !a.meta.Pipeline.Streams()
	if n, ok := meta.GridCount(a.meta.Shape, a.Chunks()); ok && !nested {
		attrs[AccountKey] = Account{Chunks: n, Stored: n - a.omitted.Load()}
	}
	return a.SetAttributes(ctx, attrs)
}
