package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"strata/pkg/mem"
	"strata/pkg/work"
)

// Device is a GPU that this process uses. Its methods may be called concurrently.
type Device struct {
	Info Info

	thread *thread
	dev    int32
	ctx    uintptr
	memory *Pool
	pinned *mem.Pool

	node       int      // of the host's memory that is beside the device; -1: not known
	registered sync.Map // *byte → []byte: page-locked memory that is the process's own

	tried  sync.Map       // any → func() error: see Try
	beside sync.WaitGroup // see Beside

	mu      sync.Mutex
	modules map[*Code]*modules
	lost    atomic.Pointer[Error]

	up, down, across                    atomic.Int64
	straightUp, straightDown, fallbacks atomic.Int64
}

// Limits limits the memory that a process holds of a device.
type Limits struct {
	Memory int64 // bytes of device memory; 0: nine tenths of the free memory
	Pinned int64 // bytes of page-locked host memory
}

// Open retains the primary context of a device and makes pools within the limits. It allocates nothing and
// loads no kernel yet. The caller calls Close.
func Open(info Info, l Limits) (*Device, error) {
	if _, err := load(); err != nil {
		return nil, err
	}
	if err := info.Usable(); err != nil {
		return nil, err
	}
	d := &Device{Info: info, thread: newThread(), modules: map[*Code]*modules{}}
	var free, total uint64
	err := d.do(func() error {
		if err := check("cuDeviceGet", driver.DeviceGet(&d.dev, int32(info.Index))); err != nil {
			return err
		}
		// Threads that wait for the device sleep; another part of the process may have
		// set other flags, which does no harm.
		const blockingSync = 4
		_ = driver.CtxSetFlags(d.dev, blockingSync)
		if err := check("cuDevicePrimaryCtxRetain", driver.CtxRetain(&d.ctx, d.dev)); err != nil {
			return err
		}
		err := check("cuCtxSetCurrent", driver.CtxSetCurrent(d.ctx))
		if err == nil {
			err = check("cuMemGetInfo_v2", driver.MemGetInfo(&free, &total))
		}
		if err != nil {
			_ = driver.CtxRelease(d.dev)
		}
		return err
	})
	if err != nil {
		d.thread.end()
		return nil, unavailable("%s: %v", info.Name, err)
	}
	if l.Memory <= 0 {
		l.Memory = int64(free / 10 * 9)
	}
	d.memory = newPool(d, l.Memory)
	d.node = numaNode(info.PCI)
	d.pinned = mem.NewPoolOf(l.Pinned, d.allocHost, d.freeHost)
	return d, nil
}

// Close frees memory and kernels and releases the context. Streams must be closed, and buffers released.
func (d *Device) Close() error {
	d.beside.Wait()
	d.pinned.Close()
	err := d.memory.close()
	d.mu.Lock()
	for _, m := range d.modules {
		err = errors.Join(err, m.close(d))
	}
	d.modules = map[*Code]*modules{}
	d.mu.Unlock()
	err = errors.Join(err, d.do(func() error {
		_ = driver.CtxSetCurrent(0)
		return check("cuDevicePrimaryCtxRelease_v2", driver.CtxRelease(d.dev))
	}))
	d.thread.end()
	return d.givenBack(err)
}

// givenBack returns the error of releasing a resource. With a lost context nothing can or need be released:
// whoever lost it has the error.
func (d *Device) givenBack(err error) error {
	if _ = d.note(err); d.lost.Load() != nil {
		return nil
	}
	return err
}

// Try calls f on the first call with a given key on the device and returns that result for all later calls.
// It tests once whether a library works.
func (d *Device) Try(key any, f func() error) error {
	once, _ := d.tried.LoadOrStore(key, sync.OnceValue(f))
	return once.(func() error)()
}

// Beside runs f, which uses the device, in the background. The caller must not depend on its result; Close waits for
// it.
func (d *Device) Beside(f func()) {
	work.Go(&d.beside, func() error { f(); return nil }, func(error) {})
}

// Call lets another library use the device: it calls f on the device's thread, where the context is current.
func (d *Device) Call(f func() error) error { return d.do(f) }

// CallAside works like Call on a thread of its own, so that f, which may take long, holds up nothing else on the
// device.
func (d *Device) CallAside(f func() error) (err error) {
	t := newThread()
	defer t.end()
	t.do(func() {
		if err = check("cuCtxSetCurrent", driver.CtxSetCurrent(d.ctx)); err == nil {
			err = f()
		}
	})
	return d.note(err)
}

// do runs f on the device's thread.
func (d *Device) do(f func() error) (err error) {
	d.thread.do(func() { err = f() })
	return d.note(err)
}

// note remembers an error that makes the context unusable, and adds the device's name to it.
func (d *Device) note(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && sticky(e.Code) {
		d.lost.CompareAndSwap(nil, e)
	}
	return err
}

// Lost returns the error that ended the context, or nil.
func (d *Device) Lost() error {
	if e := d.lost.Load(); e != nil {
		return fmt.Errorf("%s: %w", d.Info.Name, e)
	}
	return nil
}

// Free returns how many bytes of the device are free at this moment.
func (d *Device) Free() (int64, error) {
	var free, total uint64
	err := d.do(func() error { return check("cuMemGetInfo_v2", driver.MemGetInfo(&free, &total)) })
	return int64(free), err
}

// Memory returns the device's memory within the limit that Open was given.
func (d *Device) Memory() *Pool { return d.memory }

// Pinned returns the pool of page-locked host memory, within the limit given to Open. Copies use only this
// host memory.
func (d *Device) Pinned() *mem.Pool { return d.pinned }

// Traffic returns how many bytes were copied to the device, from it, and within it, by any code of the
// process.
func (d *Device) Traffic() (up, down, across int64) {
	return d.up.Load(), d.down.Load(), d.across.Load()
}

// CountStraight counts bytes that another library moved between files and the device without a copy on a
// stream; they cross the bus like copies.
func (d *Device) CountStraight(up, down int64) {
	d.straightUp.Add(up)
	d.straightDown.Add(down)
	d.up.Add(up)
	d.down.Add(down)
}

// CountFallback counts a piece that should have moved straight and went through host memory.
func (d *Device) CountFallback() { d.fallbacks.Add(1) }

// Straight returns how many bytes of [Device.Traffic] moved to and from the device without passing through host memory,
// and how many pieces went through host memory although they should not have.
func (d *Device) Straight() (up, down, fallbacks int64) {
	return d.straightUp.Load(), d.straightDown.Load(), d.fallbacks.Load()
}
