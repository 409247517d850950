package zarr

import (
	"sync"

	"strata/pkg/zarr/store"
)

// Reading from a store that is far away waits for answers most of the time. A call
// then has more chunks on their way than it has workers: further goroutines fetch,
// and decode when it is their turn, with the memory of a worker. What they hold is
// bounded, for all arrays of the process together; shards are opened before their
// first chunk is wanted.

const (
	// AheadBytes is the default limit, in bytes, on encoded chunks held by goroutines that fetch ahead of the
	// workers. [SetAhead] changes it.
	AheadBytes = 96 << 20
	// perRequest is the number of chunks of shards that are awaited at a time per request in flight:
	// neighbours are requested together.
	perRequest = 4
)

// ahead is the memory for it, of the process.
var ahead = pool{size: AheadBytes, free: AheadBytes}

type pool struct {
	mu         sync.Mutex
	size, free int64
}

// SetAhead limits the bytes that all arrays of the process together fetch ahead from remote stores. Programs
// with less memory to spare than [AheadBytes] call it.
func SetAhead(n int64) {
	ahead.mu.Lock()
	defer ahead.mu.Unlock()
	ahead.free += n - ahead.size
	ahead.size = n
}

// take reserves memory for up to want goroutines of each bytes and returns for how many it was enough.
func (p *pool) take(each int64, want int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(max(0, min(int64(want), p.free/max(each, 1))))
	p.free -= int64(n) * each
	return n
}

func (p *pool) give(each int64, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += int64(n) * each
}

// requests returns how many concurrent requests the array's store can use; 0 means that the store is local.
func requests(st store.Store) int {
	if far, ok := st.(store.Distant); ok {
		return far.Requests()
	}
	return 0
}
