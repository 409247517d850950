package mem

import (
	"errors"
	"sync/atomic"
)

// ErrBudget is wrapped by errors about data that need more memory than the process may use.
var ErrBudget = errors.New("more than the memory budget")

// Assured is the minimum, in bytes, of the default limit on any machine that has as much memory.
const Assured = 512 << 20

var limit atomic.Int64

// SetLimit sets how many bytes the process's buffers may take together (--mem). Code that plans its buffers
// gets its share explicitly; [Limit] and [Unplanned] are for all other code.
func SetLimit(n int64) { limit.Store(n) }

// Limit returns how many bytes the process may use for buffers, or 0 if SetLimit was not called.
func Limit() int64 { return limit.Load() }

var caches atomic.Int64

// SetCaches sets the part of the limit that caches of data which could be read again take a share of. Where the limit
// is a large default, more would not make them faster by much.
func SetCaches(n int64) { caches.Store(n) }

// Caches returns the size set by SetCaches, or the limit if none was set.
func Caches() int64 {
	if n := caches.Load(); n > 0 {
		return n
	}
	return Limit()
}

// sharing describes memory that is shared with other programs on the machine.
type sharing struct {
	leave     int64
	available func() int64
}

var shared atomic.Pointer[sharing]

// Share makes [Pool.TryGet] leave so many bytes of the machine's memory to others: it takes new memory only while
// available returns more. available returns 0 if it does not know.
func Share(leave int64, available func() int64) { shared.Store(&sharing{leave, available}) }

// lookFrom is the size of buffers from which it pays to ask the system how much is available.
const lookFrom = 1 << 20

// spared reports whether the machine has n bytes of memory beyond the share that is left to other programs.
func spared(n int64) bool {
	s := shared.Load()
	if s == nil || n < lookFrom {
		return true
	}
	have := s.available()
	return have == 0 || have-n >= s.leave
}

// Unplanned returns the additional bytes, besides [Limit], for needs that no plan can know before the data
// are read: indexes of shards, archive members that are inflated whole, blocks larger than compressors
// choose. Each use takes a part.
func Unplanned() int64 { return max(128<<20, Limit()/16) }
