package zarr

import (
	"runtime"
	"sync"
	"sync/atomic"

	"strata/pkg/mem"
	"strata/pkg/work"
)

const (
	// populateLeast is the minimum size of a result whose memory is populated while its first chunks are being read.
	populateLeast = 1 << 20
	// populateBytes is the number of bytes that are populated at a time.
	populateBytes = 2 << 20
)

// populating populates the memory of a result while the call waits for its first chunk, if processors are idle.
type populating struct {
	over     atomic.Bool  // a chunk has arrived
	taken    atomic.Int64 // bytes that goroutines have begun with
	touching sync.WaitGroup
	failed   atomic.Pointer[error]
}

// populate starts with up to n goroutines on the memory of dst, from its beginning.
func (p *populating) populate(dst []byte, n int) {
	if len(dst) < populateLeast {
		return
	}
	for range min(n, 1+(len(dst)-1)/populateBytes) {
		work.Go(&p.touching, func() error {
			for !p.over.Load() {
				end := int(p.taken.Add(populateBytes))
				if end-populateBytes >= len(dst) || !mem.Populate(dst[end-populateBytes:min(end, len(dst))]) {
					return nil
				}
				runtime.Gosched() // those that send requests go first
			}
			return nil
		}, func(err error) {
			if err != nil {
				p.failed.Store(&err)
			}
		})
	}
}

// end waits until nothing touches the result any more. It returns panics only.
func (p *populating) end() error {
	p.over.Store(true)
	p.touching.Wait()
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}
