//go:build unix

package mem

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// inUse counts the bytes that Alloc gave and Free did not get back.
var inUse atomic.Int64

// InUse returns how many bytes of the process's buffers have not been freed yet, for tests that look for
// leaks.
func InUse() int64 { return inUse.Load() }

// Alloc returns n zeroed bytes outside the Go heap, page-aligned. Free them with Free.
func Alloc(n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	size := (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		// memory that the heap holds but does not use may be what is missing
		runtime.GC()
		debug.FreeOSMemory()
		if b, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
			return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
		}
	}
	if size >= hugePage {
		adviseHuge(b)
	}
	inUse.Add(int64(size))
	return b[:n], nil
}

// Free returns memory of Alloc to the system. b must begin where Alloc's result begins and must not be used
// afterwards.
func Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	// Munmap finds the mapping by its last byte: the slice's capacity is the mapping
	_ = unix.Munmap(b[:cap(b)])
	inUse.Add(-int64(cap(b)))
}
