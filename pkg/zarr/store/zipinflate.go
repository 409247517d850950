package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/klauspost/compress/flate"

	"strata/pkg/mem"
)

// packedPiece and farPiece are the amounts of a deflated member that are read at a time, from a file and from
// a server.
const (
	packedPiece = 256 << 10
	farPiece    = 4 << 20
)

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflate fills dst with the content of a deflated member, which it reads in pieces.
func (s *ZipStore) inflate(ctx context.Context, m *member, dst []byte, off int64) error {
	size := int64(packedPiece)
	if s.requests > 0 {
		size = farPiece
	}
	packed := &packedReader{ctx: ctx, file: s.file, off: off, left: m.packed}
	src := bufio.NewReaderSize(packed, int(min(max(m.packed, 1), size)))
	z := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(z)
	if err := z.(flate.Resetter).Reset(src, nil); err != nil {
		return err
	}
	const piece = 1 << 20
	n := 0
	var end [1]byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		into := dst[n:min(n+piece, len(dst))]
		if len(into) == 0 {
			into = end[:]
		}
		k, err := z.Read(into)
		if n == len(dst) && k > 0 {
			return fmt.Errorf("damaged member: it inflates to more than the %d bytes that the zip directory says", len(dst))
		}
		n += k
		switch {
		case packed.err != nil:
			return packed.err
		case err == io.EOF && n < len(dst):
			return fmt.Errorf("damaged member: it inflates to %d bytes, the zip directory says %d", n, len(dst))
		case err == io.EOF && int64(src.Buffered())+packed.left > 0:
			return fmt.Errorf("damaged member: %d bytes follow the end of its data", int64(src.Buffered())+packed.left)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("damaged member: after %d bytes: %w", n, err)
		}
	}
}

// packedReader reads the compressed bytes of a member. It remembers the file's read error.
type packedReader struct {
	ctx       context.Context
	file      Object
	off, left int64
	err       error
}

func (r *packedReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.left)]
	if r.err = readFull(r.ctx, r.file, p, r.off); r.err != nil {
		return 0, r.err
	}
	r.off += int64(len(p))
	r.left -= int64(len(p))
	return len(p), nil
}

// inflated is a deflated member. The first read inflates its content, which is dropped when others need the
// memory. Fields after the first blank line are protected by the lock of [residents].
type inflated struct {
	zip    *ZipStore
	member *member
	key    string
	turn   chan struct{} // holds who inflates it

	data   []byte // nil: not in memory
	users  int    // reads from data
	used   uint64 // when it was read last
	closed bool
}

// residents are the deflated members of the process that lie in memory.
var residents = roster{changed: make(chan struct{})}

// roster keeps members in memory up to a total number of bytes.
type roster struct {
	mu      sync.Mutex
	list    []*inflated
	bytes   int64 // of those on the list and those being inflated
	clock   uint64
	changed chan struct{} // closed when a member is not used any more
}

// inflatedBytes returns the memory limit for deflated members: half of the process's limit, which stages
// leave free (see [ZipStore.Reserves]).
func inflatedBytes() int64 {
	if n := mem.Caches(); n > 0 {
		return max(n/2, 64<<20)
	}
	return 1 << 30
}

// Reserves returns how many bytes of the process's memory reading parts of the zip file may take.
func (s *ZipStore) Reserves() int64 { return min(s.inflates, inflatedBytes()) }

func (o *inflated) Size() int64 { return o.member.size }

func (o *inflated) Close() error {
	residents.mu.Lock()
	defer residents.mu.Unlock()
	o.closed = true
	residents.dropUnused(o)
	return nil
}

func (o *inflated) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	data, err := o.hold(ctx)
	if err != nil {
		return 0, err
	}
	defer o.release()
	return (&memoryObject{data: data, where: o.zip.Location(o.key)}).ReadAt(ctx, p, off)
}

// hold returns the content, which stays in memory until release.
func (o *inflated) hold(ctx context.Context) ([]byte, error) {
	if data, err := o.resident(); data != nil || err != nil {
		return data, err
	}
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if data, err := o.resident(); data != nil || err != nil { // another has inflated it
		return data, err
	}
	size := o.member.size
	if err := residents.take(ctx, size); err != nil {
		return nil, err
	}
	data, err := mem.Alloc(int(max(size, 1)))
	if err == nil {
		data = data[:size]
		if _, err = o.zip.get(ctx, o.member, o.key, data, -1); err != nil {
			mem.Free(data)
		}
	}
	r := &residents
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.give(size)
		return nil, err
	}
	r.clock++
	o.data, o.users, o.used = data, 1, r.clock
	r.list = append(r.list, o)
	return data, nil
}

// resident returns the content if it is in memory.
func (o *inflated) resident() ([]byte, error) {
	r := &residents
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.closed {
		return nil, &fs.PathError{Op: "read", Path: o.zip.Location(o.key), Err: fs.ErrClosed}
	}
	if o.data == nil {
		return nil, nil
	}
	r.clock++
	o.users, o.used = o.users+1, r.clock
	return o.data, nil
}

// release ends one use of the content.
func (o *inflated) release() {
	r := &residents
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.users--; o.users > 0 {
		return
	}
	if o.closed {
		r.dropUnused(o)
	}
	r.wake()
}

// take waits for room for n more bytes and drops the members read longest ago.
func (r *roster) take(ctx context.Context, n int64) error {
	for {
		r.mu.Lock()
		for r.bytes+n > inflatedBytes() && r.dropOldest() {
		}
		if r.bytes+n <= inflatedBytes() {
			r.bytes += n
			r.mu.Unlock()
			return nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give returns memory that take reserved; mu is held.
func (r *roster) give(n int64) {
	r.bytes -= n
	r.wake()
}

// wake lets waiting goroutines look again; mu is held.
func (r *roster) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// dropOldest drops the member read longest ago that nobody is reading; mu is held.
func (r *roster) dropOldest() bool {
	var oldest *inflated
	for _, o := range r.list {
		if o.users == 0 && (oldest == nil || o.used < oldest.used) {
			oldest = o
		}
	}
	return oldest != nil && r.dropUnused(oldest)
}

// dropUnused drops a member that is in memory and that nobody is reading; mu is held.
func (r *roster) dropUnused(o *inflated) bool {
	if o.data == nil || o.users > 0 {
		return false
	}
	for i, other := range r.list {
		if other == o {
			r.list = append(r.list[:i], r.list[i+1:]...)
			break
		}
	}
	mem.Free(o.data)
	o.data = nil
	r.give(o.member.size)
	return true
}

// tooLargeToInflate returns an error for a member too large to be inflated for reading parts of it.
func (s *ZipStore) tooLargeToInflate(m *member, key string) error {
	if m.size <= inflatedBytes() {
		return nil
	}
	return fmt.Errorf("%s: to read parts of a deflated member it is inflated to %d bytes: %w of %d; make the zip file without compression (zip -0), or give more --mem",
		s.Location(key), m.size, mem.ErrBudget, inflatedBytes())
}
