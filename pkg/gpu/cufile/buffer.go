package cufile

import (
	"fmt"

	"strata/pkg/gpu"
)

// Buffer is device memory registered with cuFile: it stays mapped for transfers, which otherwise go through
// cuFile's own memory. It occupies as much of the device's window for other devices (BAR1).
type Buffer struct {
	device *gpu.Device
	memory gpu.Span
}

// RegisterBuffer registers device memory. The memory must not be freed before the buffer is closed.
func (d *Driver) RegisterBuffer(s gpu.Span) (*Buffer, error) {
	err := d.device.Call(func() error {
		return check("cuFileBufRegister", lib.BufRegister(uintptr(s.Address()), uint64(s.Bytes()), 0))
	})
	if err != nil {
		return nil, err
	}
	return &Buffer{d.device, s}, nil
}

// Close deregisters the memory. Transfers to and from it must have ended.
func (b *Buffer) Close() error {
	err := b.device.Call(func() error { return check("cuFileBufDeregister", lib.BufDeregister(uintptr(b.memory.Address()))) })
	if b.device.Lost() != nil {
		return nil
	}
	return err
}

// base returns how to describe memory to cuFile: by the beginning of its buffer, or by its own.
func (b *Buffer) base(s gpu.Span) (base uintptr, at int64, err error) {
	if b == nil {
		return uintptr(s.Address()), 0, nil
	}
	at = int64(s.Address() - b.memory.Address())
	if s.Address() < b.memory.Address() || at > b.memory.Bytes()-s.Bytes() {
		return 0, 0, fmt.Errorf("%d bytes at %#x are not of the buffer of %d at %#x", s.Bytes(), s.Address(), b.memory.Bytes(), b.memory.Address())
	}
	return uintptr(b.memory.Address()), at, nil
}

// MostRegistered returns the maximum number of bytes that cuFile's configuration allows to register
// (max_device_pinned_mem_size_kb).
func (d *Driver) MostRegistered() int64 { return int64(d.properties.devicePinned) << 10 }

// OfMemory reports whether an error of [Driver.RegisterBuffer] would hit other memory as well: nothing more
// can be mapped.
func (e *Error) OfMemory() bool { return e.Code == 5036 || e.Code == 5010 || e.Code == 5009 }
