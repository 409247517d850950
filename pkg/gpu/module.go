package gpu

import (
	"errors"
	"fmt"
	"sync"

	"strata/pkg/work"
)

// Code holds a program's compiled kernels.
type Code struct {
	// Machine returns the machine code of all kernels for a device (a cubin), or the reason why there is
	// none.
	Machine func(Info) ([]byte, error)
	// PTX returns the PTX of one kernel alone, which the driver compiles in tens of milliseconds.
	PTX func(name string) (string, error)
}

// Kernel is a kernel that is loaded on a device.
type Kernel struct {
	name   string
	handle uintptr
}

// modules is a Code on a device.
type modules struct {
	code *Code
	load func() error // the machine code, once; why the driver has to compile instead

	mu      sync.Mutex
	machine uintptr   // the module of all kernels, 0 if there is none
	single  []uintptr // those of the kernels that the driver compiled
	kernels map[string]*Kernel
}

// Load starts loading the machine code of c in a thread of its own and returns at once. [Device.Kernel] waits
// for it.
func (d *Device) Load(c *Code) { d.modulesOf(c) }

// Loaded waits for [Device.Load]. An error gives the reason why the driver compiles the kernels of c instead.
func (d *Device) Loaded(c *Code) error { return d.modulesOf(c).load() }

func (d *Device) modulesOf(c *Code) *modules {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.modules[c]; m != nil {
		return m
	}
	m := &modules{code: c, kernels: map[string]*Kernel{}}
	d.modules[c] = m
	m.load = work.Async(func() error { return d.note(m.loadMachine(d)) })
	return m
}

// loadMachine loads the machine code on a thread of its own.
func (m *modules) loadMachine(d *Device) (err error) {
	image, err := m.code.Machine(d.Info)
	if err != nil {
		return err
	}
	t := newThread()
	defer t.end()
	t.do(func() {
		if err = check("cuCtxSetCurrent", driver.CtxSetCurrent(d.ctx)); err != nil {
			return
		}
		err = loadModule(&m.machine, image)
		_ = driver.CtxSetCurrent(0)
	})
	return err
}

func loadModule(m *uintptr, image []byte) error {
	return check("cuModuleLoadDataEx", driver.ModuleLoadData(m, &image[0], 0, nil, nil))
}

// Kernel returns the kernel with the given name, from the machine code of c or compiled by the driver at the
// first call.
func (d *Device) Kernel(c *Code, name string) (*Kernel, error) {
	m := d.modulesOf(c)
	why := m.load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	k := &Kernel{name: name}
	err := m.find(d, k)
	if err != nil && why != nil {
		err = fmt.Errorf("%w; the driver compiles it since %w", err, why)
	}
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	m.kernels[name] = k
	return k, nil
}

// find looks a kernel up in the machine code, or has it compiled; under the lock.
func (m *modules) find(d *Device, k *Kernel) error {
	if m.machine != 0 {
		return d.do(func() error { return lookUp(k, m.machine) })
	}
	text, err := m.code.PTX(k.name)
	if err != nil {
		return err
	}
	return d.do(func() error {
		var module uintptr
		if err := loadModule(&module, append([]byte(text), 0)); err != nil {
			return err
		}
		err := lookUp(k, module)
		if err != nil {
			_ = driver.ModuleUnload(module)
			return err
		}
		m.single = append(m.single, module)
		return nil
	})
}

func lookUp(k *Kernel, module uintptr) error {
	return check("cuModuleGetFunction", driver.ModuleGetFunction(&k.handle, module, k.name))
}

// close unloads all, on the device's thread.
func (m *modules) close(d *Device) (err error) {
	_ = m.load()
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.single
	if m.machine != 0 {
		all = append(all, m.machine)
	}
	for _, module := range all {
		err = errors.Join(err, d.do(func() error { return check("cuModuleUnload", driver.ModuleUnload(module)) }))
	}
	m.machine, m.single, m.kernels = 0, nil, map[string]*Kernel{}
	return err
}
