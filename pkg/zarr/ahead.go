package zarr

import (
	"sync"

	"strata/pkg/zarr/store"
)

// Reading from a store that is far away waits for answers most of the time. A call
// then has more chunks on their way than it has workers: further goroutines fetch,
// and decode when it is their turn, so that as many decode as there are workers.
// What they hold is bounded, for all arrays of the process together.

// aheadBytes is the scratch memory that goroutines beyond the workers may take.
const aheadBytes = 64 << 20

// ahead is what is left of it.
var ahead = pool{free: aheadBytes}

type pool struct {
	mu   sync.Mutex
	free int64
}

// take takes memory for as many as want goroutines, and says for how many it was enough.
func (p *pool) take(each int64, want int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(min(int64(want), p.free/max(each, 1)))
	p.free -= int64(n) * each
	return n
}

func (p *pool) give(each int64, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += int64(n) * each
}

// requests is how many requests are worth having on their way to the array's store;
// 0: it is near.
func requests(st store.Store) int {
	if far, ok := st.(store.Distant); ok {
		return far.Requests()
	}
	return 0
}

// turns lets as many goroutines decode at a time as there are workers.
type turns chan struct{}

func (t turns) begin() {
	if t != nil {
		t <- struct{}{}
	}
}

func (t turns) end() {
	if t != nil {
		<-t
	}
}
