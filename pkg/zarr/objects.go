package zarr

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// objectCache keeps some chunk files open, together with the shard indices read from them, so that reading
// the inner chunks of a shard one by one opens it once.
type objectCache struct {
	mu      sync.Mutex
	files   map[string]*file
	opening map[string]*opening
	clock   uint64
	indexed int64 // bytes of indices of all files here
}

const (
	maxOpenFiles  = 32       // of one array
	maxIndexBytes = 32 << 20 // of one array; the files in use are not closed for it
)

// file is an open chunk file with a reference count. It is closed when the cache has dropped it and its last
// user has released it.
type file struct {
	object store.Object
	key    string
	size   int64

	expected bool // not looked at; see [store.Expecter]

	users   int  // guarded by the cache's mu
	dropped bool // guarded by the cache's mu
	used    uint64
	bytes   int64 // of indices, as counted in the cache

	reading chan struct{} // holds one who reads an index
	mu      sync.Mutex
	indices map[place]*shardIndex // of the shard that is the file, and of those in it
}

// index returns the cached index of a shard, or nil if it was not read yet.
func (f *file) index(at place) *shardIndex {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.indices[at]
}

// open returns the file of a key, opening it if necessary. The caller calls release. With size ≥ 0, the file
// is remote and expected to have that size, and its existence is not checked.
func (c *objectCache) open(ctx context.Context, st store.Store, key []byte, size int64) (*file, error) {
	return c.openBy(ctx, key, size, func() {}, func(name string) (*file, error) { return newFile(ctx, st, name, size) })
}

// openBy is open with the given function to open the file. It calls found as soon as the file is open, another caller
// has begun to open it, or this call has begun to.
func (c *objectCache) openBy(ctx context.Context, key []byte, size int64, found func(), open func(name string) (*file, error)) (*file, error) {
	c.mu.Lock()
	for {
		if f := c.cached(string(key), size); f != nil {
			c.clock++
			f.used = c.clock
			f.users++
			c.mu.Unlock()
			found()
			return f, nil
		}
		o := c.opening[string(key)]
		if o == nil {
			break
		}
		// another opens it: what that finds holds for all who wait
		c.mu.Unlock()
		found()
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if o.err != nil && !errors.Is(o.err, context.Canceled) && !errors.Is(o.err, context.DeadlineExceeded) {
			return nil, o.err
		}
		c.mu.Lock()
	}
	name := string(key)
	o := &opening{done: make(chan struct{})}
	if c.opening == nil {
		c.opening = map[string]*opening{}
	}
	c.opening[name] = o
	c.mu.Unlock()
	found()

	f, err := open(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opening, name)
	o.err = err
	close(o.done)
	if err != nil {
		return nil, err
	}
	if c.files == nil {
		c.files = make(map[string]*file, maxOpenFiles+1)
		// objects of stores do not close themselves when they are dropped
		runtime.SetFinalizer(c, (*objectCache).clear)
	}
	c.clock++
	f.used = c.clock
	c.files[name] = f
	c.evict(f)
	return f, nil
}

// opening is a file that some goroutine is opening; others wait for it.
type opening struct {
	done chan struct{}
	err  error // when done is closed
}

func newFile(ctx context.Context, st store.Store, key string, size int64) (*file, error) {
	f := &file{key: key, users: 1, reading: make(chan struct{}, 1)}
	var err error
	far, ok := st.(store.Expecter)
	if f.expected = ok && size >= 0; f.expected {
		f.object, err = far.Expect(ctx, key, size)
	} else {
		f.object, err = st.Open(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	f.size = f.object.Size()
	return f, nil
}

// cached returns the file of a key if it is open. Callers that need the file's true size (size < 0) do not
// get one whose existence was never checked. mu is held.
func (c *objectCache) cached(key string, size int64) *file {
	f := c.files[key]
	if f != nil && f.expected && size < 0 {
		c.dropLocked(f)
		return nil
	}
	return f
}

// evict drops the least recently used files until the limits hold; keep stays.
func (c *objectCache) evict(keep *file) {
	for len(c.files) > maxOpenFiles || c.indexed > maxIndexBytes && len(c.files) > 1 {
		var oldest *file
		for _, f := range c.files {
			if f != keep && (oldest == nil || f.used < oldest.used) {
				oldest = f
			}
		}
		if oldest == nil {
			return
		}
		c.dropLocked(oldest)
	}
}

// account counts the bytes of an index that f has read.
func (c *objectCache) account(f *file, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.dropped {
		f.bytes += n
		c.indexed += n
		c.evict(f)
	}
}

// release ends one use of f.
func (c *objectCache) release(f *file) {
	c.mu.Lock()
	f.users--
	last := f.users == 0 && f.dropped
	c.mu.Unlock()
	if last {
		_ = f.object.Close() // it was only read
	}
}

// drop forgets a key; the next use opens it again.
func (c *objectCache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[key]; f != nil {
		c.dropLocked(f)
	}
}

func (c *objectCache) dropLocked(f *file) {
	delete(c.files, f.key)
	c.indexed -= f.bytes
	f.dropped = true
	if f.users == 0 {
		_ = f.object.Close() // it was only read
	}
}

// clear forgets all keys.
func (c *objectCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		c.dropLocked(f)
	}
}

// place locates a shard in a file.
type place struct{ off, n int64 }

// shardIndex holds the index of a shard: for each inner chunk, in C order of stored dimensions, the place of
// its bytes. A long index is not held as a whole; its pages are read on demand.
type shardIndex struct {
	count   int
	entries []meta.IndexEntry // nil: in pages

	mu    sync.Mutex
	pages map[int][]meta.IndexEntry // some, by their number
	order []int                     // of the pages, as they came
}

// bytes returns the maximum memory that the index needs.
func (x *shardIndex) bytes() int64 { return meta.EntryBytes * int64(min(x.count, meta.WholeIndex)) }
