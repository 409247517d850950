package gpu

import (
	"fmt"
	"unsafe"

	"strata/pkg/mem"
)

// Host is page-locked memory of [Device.Pinned] without waiting: when there is no more
// it is an error of [ErrMemory].
func (d *Device) Host(n int) (*mem.Buffer, error) {
	b, err := d.pinned.TryGet(n)
	if b == nil && err == nil {
		err = fmt.Errorf("%w: %d bytes of page-locked host memory do not fit into %d", ErrMemory, n, d.pinned.Limit())
	}
	return b, err
}

// hostPortable makes page-locked memory one for all contexts (cuda.h 12.0).
const hostPortable = 1

// allocHost and freeHost are what the pool of page-locked memory is made of.
func (d *Device) allocHost(n int) ([]byte, error) {
	var p uintptr
	err := d.do(func() error { return check("cuMemHostAlloc", driver.MemHostAlloc(&p, uint64(n), hostPortable)) })
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(address(p)), n), nil
}

func (d *Device) freeHost(b []byte) {
	// An error here is one of the context, which other calls report.
	_ = d.do(func() error {
		return check("cuMemFreeHost", driver.MemFreeHost(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
	})
}

// address is memory outside the Go heap as a pointer.
func address(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
