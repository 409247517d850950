package filelayer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"strata/pkg/mem"
)

// Memory that does not lie as direct I/O wants is copied from or to a buffer that does
// (of the pool, within its budget), from leastCopied bytes on; less goes through the page cache. A buffer has at
// most mostCopied bytes.
const (
	leastCopied = 64 << 10
	mostCopied  = 4 << 20
	leastAside  = 2 << 20  // a huge page: devices take memory that lies in one piece up to twice as fast
	mostAside   = 64 << 20 // of a pool
)

// mover moves bytes between memory and a file: an [os.File], or in tests one that fails.
type mover interface {
	io.ReaderAt
	io.WriterAt
}

// moveAll moves all of b to or from offset off, and returns how many bytes it moved before the end of the
// file or another error.
func moveAll(m mover, write bool, b []byte, off int64) (done int, err error) {
	for done < len(b) {
		n := 0
		if write {
			n, err = m.WriteAt(b[done:], off+int64(done))
		} else {
			n, err = m.ReadAt(b[done:], off+int64(done))
		}
		done += n
		switch {
		case err == nil && n > 0, done == len(b):
		case errors.Is(err, syscall.EINTR): // Go's own calls end without; a file system's may not
		case err != nil:
			return done, err
		case write:
			return done, io.ErrShortWrite
		default:
			return done, io.EOF
		}
	}
	return done, nil
}

// directly moves the beginning of b to or from offset off of the file: whole pages past the page cache, and
// bytes before the first of them through it. It returns how many bytes it moved, 0 if all must go through the
// page cache; [File.DirectIO] returns the reason.
func (f *File) directly(b []byte, off int64, write bool) int {
	pages, ok := f.directPages(b, off, write)
	head := pages.head
	if !ok {
		return 0
	}
	if head > 0 {
		if n, err := moveAll(f.through, write, b[:head], off); err != nil {
			return n
		}
	}
	b = b[head : head+pages.size]
	var n int
	var err error
	if pages.aligned {
		n, err = moveAll(f.past, write, b, off+head)
	} else if n, err = f.copied(b, off+head, write); err == nil {
		f.count(realigned, int64(n))
	}
	if err != nil && err != io.EOF {
		// The rest goes through the cache, and shows by its error what is wrong with the file.
		f.refuse(fmt.Errorf("direct I/O failed at byte %d: %w", off+head+int64(n), bare(err)))
	}
	n = n / page * page
	f.count(direct, int64(n))
	return int(head) + n
}

// wholePages are the pages of a transfer that lie in it as a whole.
type wholePages struct {
	head    int64 // bytes before the first of them
	size    int64 // bytes
	aligned bool  // their memory is aligned for direct I/O
}

// directPages returns the range of b, a transfer at file offset off, that consists of whole pages. It reports whether
// these should bypass the page cache.
func (f *File) directPages(b []byte, off int64, write bool) (p wholePages, ok bool) {
	p.head, p.size = aligned(off, int64(len(b)))
	if p.size == 0 || f.noDirect.Load() {
		return p, false
	}
	f.openDirect()
	p.aligned = (int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))+p.head)%f.memory == 0
	return p, f.past != nil && (p.aligned || p.size >= leastCopied) && (write || !f.holds(off+p.head, p.size))
}

// copied moves whole pages past the page cache through aligned buffers.
func (f *File) copied(b []byte, off int64, write bool) (done int, err error) {
	aside, err := f.pool.aside.Get(context.Background(), max(min(len(b), f.pool.asideSize), leastAside))
	if err != nil {
		return 0, err
	}
	defer aside.Release()
	for done < len(b) {
		piece := aside.B[:min(len(b)-done, len(aside.B))]
		if write {
			copy(piece, b[done:])
		}
		n, err := moveAll(f.past, write, piece, off+int64(done))
		if !write {
			copy(b[done:], piece[:n])
		}
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// holds reports whether the page cache holds more than half of a part of the file, which is then read faster
// from there. If the system does not say, it returns false.
func (f *File) holds(off, n int64) bool {
	if !f.told {
		return false
	}
	in, err := cachedPages(f.file, off, n)
	return err == nil && in > n/2
}

// refuse ends direct I/O of the file. The first reason counts.
func (f *File) refuse(why error) {
	f.whyNot.CompareAndSwap(nil, &why)
	f.noDirect.Store(true)
}

// openDirect opens the file once more, for direct I/O.
func (f *File) openDirect() {
	f.opening.Do(func() {
		f.memory = page
		d, err := openDirect(f.file, f.mode)
		switch {
		case err != nil:
			why := "it cannot be opened for direct I/O"
			if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
				why = "the file system has no direct I/O"
			}
			f.refuse(fmt.Errorf("%s: %w", why, bare(err)))
			return
		case keepsInMemory(f.file):
			f.refuse(errors.New("the file system keeps files in memory: there is nothing to go past"))
		default:
			f.past = d
		}
		f.direct, f.memory = d, memoryAlign(f.file)
		f.told = told(f.file)
	})
}

// DirectIO reports whether whole pages of the file can bypass the page cache, or why not. [settings.Settings]
// control whether they do; [Stats] counts how many did.
func (f *File) DirectIO() (possible bool, reason string) {
	if f.source != nil {
		return false, errSource.Error()
	}
	if err := f.enter(); err != nil {
		return false, err.Error()
	}
	defer f.requests.Done()
	f.openDirect()
	if why := f.whyNot.Load(); why != nil {
		return false, (*why).Error()
	}
	return true, fmt.Sprintf("memory at multiples of %d bytes", f.memory)
}

// newAside returns the pool's memory for data copied on the way past the page cache, as much as its threads
// have in flight, within a limit, and how many bytes move at once.
func newAside(threads int, task int64) (*mem.Pool, int) {
	size := int(max(min(task, mostCopied)/page*page, leastAside))
	return mem.NewPool(max(min(int64(threads)*queueBytes, mostAside), int64(mem.Size(size)))), size
}

// told reports whether the system tells this process what the page cache holds of a file; see [Cached].
func told(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && tells(f, info)
}
