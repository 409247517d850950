package zarr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrMissing is wrapped by reads of a chunk that is not stored, where a [Missing] refuses that.
var ErrMissing = errors.New("the chunk is not stored")

// Missing collects the chunks that reads find not stored, whose elements have the fill value. Arrays
// that are opened with [NoteMissing] share one; each chunk counts once, however often and by whatever
// way it is read. Its methods may be called from any goroutine.
type Missing struct {
	// Refuse makes the read of such a chunk a [*FormatError] that wraps [ErrMissing], unless the
	// array's [Account] says that some chunks are left out: nobody knows then which.
	Refuse bool

	mu     sync.Mutex
	arrays map[*shared]*absentees
	pages  int
}

// NoteMissing has reads note the chunks that are not stored.
func NoteMissing(m *Missing) Option { return func(o *options) { o.missing = m } }

// Absent is what was found missing of an array.
type Absent struct {
	Array  *Array
	Chunks int64 // that are not stored
	More   bool  // more than that: they were too many to count
	First  []int // the first of them in the grid of [Array.Chunks]
}

// absentees are the missing chunks of one array: a bit for each, by pages.
type absentees struct {
	Absent
	pages map[uint64]*[pageBits / 64]uint64
	least uint64 // the number of First
}

const (
	pageBits = 1 << 15
	maxPages = 2048 // 8 MiB in all
)

// List returns what is missing, by the arrays' locations.
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

// Lost returns how many of the missing chunks were stored once, by the array's [Account]; ok is false
// where it has none.
func (x *Absent) Lost() (n int64, ok bool) {
	acc, ok := x.Array.Account()
	if !ok {
		return 0, false
	}
	return max(x.Chunks-(acc.Chunks-acc.Stored), 0), true
}

// String says how many chunks are missing, whether they were stored once, and where the first would lie.
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

// chunkLocation names a chunk of the grid of Chunks: its file and, where that is a shard, its index.
func (a *Array) chunkLocation(index []int) string {
	if a.meta.pipe.shard == nil {
		return a.st.Location(a.ChunkKey(index))
	}
	return fmt.Sprintf("%s: chunk %v", a.st.Location(a.ChunkKey(a.fileOf(index))), index)
}

// fileOf returns the chunk file that holds a chunk of the grid of Chunks.
func (a *Array) fileOf(index []int) []int {
	file := make([]int, len(index))
	for d, n := range a.Chunks() {
		file[d] = index[d] * n / a.meta.chunks[d]
	}
	return file
}

// note counts a chunk of the grid of Chunks.
func (m *Missing) note(a *Array, index []int) error {
	if m.Refuse {
		if acc, ok := a.Account(); !ok || acc.Stored == acc.Chunks {
			err := &FormatError{Path: a.st.Location(a.ChunkKey(a.fileOf(index))), Err: ErrMissing}
			if a.meta.pipe.shard != nil {
				err.Field = fmt.Sprintf("chunk %v", index)
			}
			return err
		}
	}
	n := uint64(0)
	for d, c := range a.Chunks() {
		n = n*uint64(ceilDiv(a.meta.shape[d], c)) + uint64(index[d])
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
