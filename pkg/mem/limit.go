package mem

import (
	"errors"
	"sync/atomic"
)

// ErrBudget is wrapped when one piece of data needs more memory than the process may take for it.
var ErrBudget = errors.New("more than the memory budget")

var limit atomic.Int64

// SetLimit tells the process how many bytes its buffers may take together (--mem). Whoever
// plans its buffers is given its share of them; [Limit] and [Unplanned] are for the others.
func SetLimit(n int64) { limit.Store(n) }

// Limit returns the bytes that the process may take for buffers, 0 if it was told of none.
func Limit() int64 { return limit.Load() }

// Unplanned returns the bytes, besides those of [Limit], for what no plan can know before the
// data are read: the indexes of shards, the members of an archive that are inflated whole,
// blocks that are larger than any that compressors choose. Each takes its part of them.
func Unplanned() int64 { return max(128<<20, Limit()/16) }
