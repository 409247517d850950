package iobench

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"strata/pkg/bench"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/pkg/work"
)

// A Bench describes what is measured, and holds the resources for it.
type Bench struct {
	Data     *Data
	Settings settings.Settings
	Threads  int         // that move parts at the same time
	Block    int64       // bytes of a part, whole pages
	Random   bool        // parts are read in random order, and the system is told so
	Device   *gpu.Device // nil: there is none, and
	NoDevice string      // why

	buffers [][]byte // of the threads
}

// A Mover moves parts of files. Threads call Move concurrently, each with its number.
type Mover interface {
	Move(ctx context.Context, thread int, p Part) error
	// Close ends the mover and returns a remark: which data did not move in the way that its name says, and why.
	Close() (remark string, err error)
}

// Taker is implemented by movers that may take another way than their own.
type Taker interface{ Took() string }

// Cached is implemented by movers that read through the page cache.
type Cached interface{ Cached() }

// Fresh is implemented by movers that hold pages of what they read, which the page cache cannot drop until Rest.
// The method Fresh makes them usable again.
type Fresh interface {
	Fresh() error
	Rest() error
}

// Sample is the result of one round of a measurement.
type Sample struct {
	Bytes int64
	Took  time.Duration
}

// Rate returns the bytes per second.
func (s Sample) Rate() float64 { return float64(s.Bytes) / max(s.Took.Seconds(), 1e-9) }

// Pass selects what a round moves: parts from First on, at most Count and at least one for each thread; each
// thread takes the next remaining part.
type Pass struct {
	Write        bool
	First, Count int64
	Limit        time.Duration       // after which no more are begun; 0: none
	Order        func(i int64) int64 // which part the i-th is, of i from First on; nil: i, again from 0 after the last
	Sections     []Section           // of each thread: instead of First and Count, each moves along a part of the data that is its own
	Times        []*bench.Histogram  // of each thread; nil: they are not kept
}

// Section selects what one thread moves: parts of its equal share of the data, from First on, and again from the
// share's beginning after its end.
type Section struct {
	First, Count int64
	Done         int64 // number of moved parts, set by a round
}

// parts yields the parts of a thread's section; share is the number of parts in each thread's share of the data.
func (s *Section) parts(thread int, share int64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := range s.Count {
			if !yield(int(int64(thread)*share + (s.First+k)%share)) {
				return
			}
		}
	}
}

// Round moves parts and returns how many. Written data is on its device when it returns.
func (b *Bench) Round(ctx context.Context, m Mover, pass Pass) (Sample, int64, error) {
	var bytes, moved atomic.Int64
	all := b.Data.Count(b.Block)
	order := pass.Order
	if order == nil {
		order = func(i int64) int64 { return i % all }
	}
	first, count := pass.First, pass.Count
	if pass.Sections != nil {
		first, count = 0, int64(b.Threads) // each has parts of its own
	}
	began := time.Now()
	err := work.Share(ctx, b.Threads, int(count), func(ctx context.Context, thread int, parts iter.Seq[int]) error {
		n := int64(0)
		defer func() { moved.Add(n) }()
		if pass.Sections != nil {
			s := &pass.Sections[thread]
			parts = s.parts(thread, max(all/int64(b.Threads), 1))
			defer func() { s.Done = n }()
		}
		for i := range parts {
			i := first + int64(i)
			p := b.Data.At(order(i), b.Block)
			if pass.Write {
				stamp(b.buffers[thread][:p.N], uint64(i))
			}
			from := time.Now()
			if err := m.Move(ctx, thread, p); err != nil {
				return err
			}
			to := time.Now()
			n++
			if pass.Times != nil {
				pass.Times[thread].Add(to.Sub(from))
			}
			bytes.Add(p.N)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case pass.Limit > 0 && to.Sub(began) >= pass.Limit:
				return nil
			}
		}
		return nil
	})
	if err == nil && pass.Write {
		err = Sync(b.Data.Files[0].Path)
	}
	return Sample{bytes.Load(), time.Since(began)}, moved.Load(), err
}

// stamp changes the content of a buffer in each page, because some storage keeps identical data only once.
func stamp(b []byte, n uint64) {
	for i := 0; i+8 <= len(b); i += Page {
		binary.LittleEndian.PutUint64(b[i:], n<<20|uint64(i/Page))
	}
}

// Sync waits until a file is on its device.
func Sync(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Drop drops the files from the page cache, and returns what percentage of the first remains in it, if that is
// known.
func (b *Bench) Drop() (percent *int64) {
	for _, f := range b.Data.Files {
		dropCached(f.Path)
	}
	share, known := CachedShare(b.Data.Files[0].Path, b.Data.Files[0].Bytes)
	if !known {
		return nil
	}
	n := int64(share*100 + 0.5)
	return &n
}

// Allocate gives each thread a buffer with incompressible content.
func (b *Bench) Allocate() error {
	random := rand.New(rand.NewPCG(1, 2))
	for range b.Threads {
		m, err := mem.Alloc(int(b.Block))
		if err != nil {
			return err
		}
		for i := 0; i+8 <= len(m); i += 8 {
			binary.LittleEndian.PutUint64(m[i:], random.Uint64())
		}
		b.buffers = append(b.buffers, m)
	}
	return nil
}

// Free releases the buffers.
func (b *Bench) Free() {
	for _, m := range b.buffers {
		mem.Free(m)
	}
	b.buffers = nil
}

// dropCached asks the system to drop a file from the page cache. It does so only for data that has reached the
// device.
func dropCached(path string) {
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		_ = filelayer.DropCached(f, 0, 0) // what stays is told
	}
}

// CachedShare returns the fraction of the first n bytes of a file that is in the page cache, and whether the
// system tells.
func CachedShare(path string, n int64) (share float64, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < n || n < Page {
		return 0, false
	}
	in, err := filelayer.Cached(f, 0, n)
	return float64(in) / float64(n), err == nil
}
