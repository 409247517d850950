package gpu

import (
	"fmt"
	"unsafe"

	"strata/pkg/mem"
)

// Host returns n bytes of page-locked memory from [Device.Pinned] without waiting; if there are too few, the
// error is [ErrMemory].
func (d *Device) Host(n int) (*mem.Buffer, error) {
	b, err := d.pinned.TryGet(n)
	if b == nil && err == nil {
		err = fmt.Errorf("%w: %d bytes of page-locked host memory do not fit into %d", ErrMemory, n, d.pinned.Limit())
	}
	return b, err
}

const (
	hostPortable = 1 // of page-locked memory: for all contexts (cuda.h 12.0)

	// leastRegistered is the minimum size in bytes of memory that is registered. Smaller pieces would share pages with
	// the driver's memory.
	leastRegistered = 2 << 20
)

// allocHost and freeHost implement the pool of page-locked memory. Large pieces are the process's own huge
// pages on the host's NUMA node of the device, which the calling goroutine clears and the driver then locks.
// Small pieces, and all pieces if the driver cannot lock those, are allocated by the driver.
func (d *Device) allocHost(n int) ([]byte, error) {
	if n >= leastRegistered {
		if b := d.registerHost(n); b != nil {
			return b, nil
		}
	}
	var p uintptr
	err := d.do(func() error { return check("cuMemHostAlloc", driver.MemHostAlloc(&p, uint64(n), hostPortable)) })
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(address(p)), n), nil
}

// registerHost returns nil where memory of the process's own cannot be locked.
func (d *Device) registerHost(n int) []byte {
	b, err := mem.Alloc(n)
	if err != nil {
		return nil
	}
	place(b, d.node)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0 // here, not within the driver's lock
	}
	err = d.do(func() error {
		return check("cuMemHostRegister_v2", driver.MemHostRegister(unsafe.Pointer(unsafe.SliceData(b)), uint64(n), hostPortable))
	})
	if err != nil {
		mem.Free(b)
		return nil
	}
	d.registered.Store(unsafe.SliceData(b), b)
	return b
}

func (d *Device) freeHost(b []byte) {
	p := unsafe.SliceData(b)
	// An error here is one of the context, which other calls report.
	if own, ok := d.registered.LoadAndDelete(p); ok {
		_ = d.do(func() error { return check("cuMemHostUnregister", driver.MemHostUnregister(unsafe.Pointer(p))) })
		mem.Free(own.([]byte))
		return
	}
	_ = d.do(func() error { return check("cuMemFreeHost", driver.MemFreeHost(uintptr(unsafe.Pointer(p)))) })
}

// address returns memory outside the Go heap as a pointer.
func address(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
