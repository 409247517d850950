package filelayer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The parts of io_uring's interface (linux/io_uring.h) that are used.
type (
	submissionOffsets struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	completionOffsets struct {
		head, tail, mask, entries, overflow, entriesAt, flags, _ uint32
		_                                                        uint64
	}
	ringParameters struct {
		submissions, completions, flags, _, _, features, _ uint32
		_                                                  [3]uint32
		submission                                         submissionOffsets
		completion                                         completionOffsets
	}
	submission struct {
		opcode, flags   uint8
		priority        uint16
		fd              int32
		off, addr       uint64
		length, rwFlags uint32
		user            uint64
		_               [3]uint64
	}
	completion struct {
		user   uint64
		result int32
		_      uint32
	}
)

const (
	ringRead     = 22
	mostBusy     = 100 // milliseconds
	ringWait     = 1   // of enter: for completions
	submissionAt = 0
	completionAt = 0x8000000
	entriesAt    = 0x10000000
)

// ring is a queue of the system (io_uring) that reads are put into, so that a device always
// has the next. It belongs to one goroutine.
type ring struct {
	fd             int
	areas          [][]byte
	taken, tail    *uint32 // of submissions: by the system, and put there
	done, added    *uint32 // of completions: taken, and put there by the system
	mask, doneMask uint32
	entries        []submission
	order          []uint32
	completions    []completion
	queued         int // not told to the system yet
}

// newRing makes a queue of n entries, a power of two.
func newRing(n int) (*ring, error) {
	var p ringParameters
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(n), uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, fmt.Errorf("io_uring: %w", e)
	}
	r := &ring{fd: int(fd)}
	area := func(at int64, size uintptr) []byte {
		b, err := unix.Mmap(r.fd, at, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return nil
		}
		r.areas = append(r.areas, b)
		return b
	}
	s := area(submissionAt, uintptr(p.submission.array+4*p.submissions))
	c := area(completionAt, uintptr(p.completion.entriesAt)+uintptr(p.completions)*unsafe.Sizeof(completion{}))
	entries := area(entriesAt, uintptr(p.submissions)*unsafe.Sizeof(submission{}))
	if len(r.areas) < 3 {
		r.close()
		return nil, errors.New("io_uring: its memory cannot be mapped")
	}
	word := func(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }
	r.taken, r.tail, r.mask = word(s, p.submission.head), word(s, p.submission.tail), *word(s, p.submission.mask)
	r.done, r.added, r.doneMask = word(c, p.completion.head), word(c, p.completion.tail), *word(c, p.completion.mask)
	r.order = unsafe.Slice(word(s, p.submission.array), p.submissions)
	r.completions = unsafe.Slice((*completion)(unsafe.Pointer(&c[p.completion.entriesAt])), p.completions)
	r.entries = unsafe.Slice((*submission)(unsafe.Pointer(&entries[0])), p.submissions)
	return r, nil
}

// read queues a read of b from offset off of a file. A free entry must exist; b must stay in place until the
// read has ended.
func (r *ring) read(fd int, b []byte, off int64, user uint64) {
	tail := *r.tail
	i := tail & r.mask
	r.entries[i] = submission{opcode: ringRead, fd: int32(fd), off: uint64(off), addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: uint32(len(b)), user: user}
	r.order[i] = i
	atomic.StoreUint32(r.tail, tail+1)
	r.queued++
}

// enter submits queued reads and waits for the given number to end.
func (r *ring) enter(wait int) error {
	if wait == 0 && r.queued == 0 {
		return nil
	}
	flags := uintptr(0)
	if wait > 0 {
		flags = ringWait
	}
	for busy := 0; ; {
		n, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.queued), uintptr(wait), flags, 0, 0)
		switch {
		case e == unix.EINTR:
			continue
		case (e == unix.EAGAIN || e == unix.EBUSY) && busy < mostBusy: // it is short of memory
			busy++
			time.Sleep(time.Millisecond)
			continue
		case e != 0:
			return fmt.Errorf("io_uring: %w", e)
		}
		if r.queued -= int(n); r.queued == 0 {
			return nil
		}
	}
}

// takeBack passes reads that the system has not accepted to f and withdraws them.
func (r *ring) takeBack(f func(user uint64)) {
	for i := atomic.LoadUint32(r.taken); i != *r.tail; i++ {
		f(r.entries[r.order[i&r.mask]].user)
	}
	atomic.StoreUint32(r.tail, atomic.LoadUint32(r.taken))
	r.queued = 0
}

// ended gives each read that has ended to f, with how many bytes it moved or the negative
// of an error's number.
func (r *ring) ended(f func(user uint64, result int32)) {
	for head := *r.done; head != atomic.LoadUint32(r.added); head++ {
		c := r.completions[head&r.doneMask]
		atomic.StoreUint32(r.done, head+1)
		f(c.user, c.result)
	}
}

// close gives the queue back. No read is under way.
func (r *ring) close() {
	for _, b := range r.areas {
		_ = unix.Munmap(b) // it was mapped
	}
	_ = unix.Close(r.fd)
}
