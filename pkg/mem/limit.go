package mem

import (
	"errors"
	"sync/atomic"
)

// ErrBudget is wrapped by errors about data that need more memory than the process may use.
var ErrBudget = errors.New("more than the memory budget")

var limit atomic.Int64

// SetLimit sets how many bytes the process's buffers may take together (--mem). Code that plans its buffers
// gets its share explicitly; [Limit] and [Unplanned] are for all other code.
func SetLimit(n int64) { limit.Store(n) }

// Limit returns how many bytes the process may use for buffers, or 0 if SetLimit was not called.
func Limit() int64 { return limit.Load() }

// Unplanned returns the additional bytes, besides [Limit], for needs that no plan can know before the data
// are read: indexes of shards, archive members that are inflated whole, blocks larger than compressors
// choose. Each use takes a part.
func Unplanned() int64 { return max(128<<20, Limit()/16) }
