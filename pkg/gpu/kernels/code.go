package kernels

import (
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"strata/pkg/gpu"
)

//go:embed code/*.zst
var packed embed.FS

// code is all kernels of this package.
var code = &gpu.Code{Machine: machine, PTX: func(name string) (string, error) {
	all, err := ptx()
	if err != nil {
		return "", err
	}
	return alone(all, name)
}}

// Load starts loading all kernels in the background. If there is no machine code for the device, the driver
// compiles each kernel when it is first needed.
func Load(d *gpu.Device) { d.Load(code) }

// Compiled waits for [Load]. An error gives the reason why there is no machine code for the device, so that
// the driver compiles kernels.
func Compiled(d *gpu.Device) error { return d.Loaded(code) }

// families lists the devices with machine code, and the oldest drivers that accept it. It also runs on
// devices of the same major version and a later minor one.
var families = []struct {
	compute int
	driver  gpu.Version
}{{70, 12000}, {80, 12000}, {90, 12000}, {100, 13000}, {120, 13000}}

// Precompiled reports whether there is machine code that a device's driver accepts.
func Precompiled(i gpu.Info) bool {
	_, err := family(i)
	return err == nil
}

// family names the machine code for a device.
func family(i gpu.Info) (string, error) {
	for _, f := range families {
		if f.compute/10 != i.Compute/10 || f.compute > i.Compute {
			continue
		}
		if i.Driver < f.driver {
			return "", fmt.Errorf("machine code for sm_%d needs a driver for CUDA %v, this is one for %v", f.compute, f.driver, i.Driver)
		}
		return fmt.Sprintf("sm_%d", f.compute), nil
	}
	return "", fmt.Errorf("there is no machine code for sm_%d", i.Compute)
}

// machine returns the machine code for a device.
func machine(i gpu.Info) ([]byte, error) {
	name, err := family(i)
	if err != nil {
		return nil, err
	}
	return unpack(name)
}

// unpack returns a file of the folder code.
func unpack(name string) ([]byte, error) {
	b, err := packed.ReadFile("code/" + name + ".zst")
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}

// ptx is the PTX of all kernels.
var ptx = sync.OnceValues(func() (string, error) {
	b, err := unpack("ptx")
	return string(b), err
})

const entry = ".visible .entry "

// alone extracts the PTX of one kernel from the PTX of all: the driver compiles slowly, and a program needs few
// kernels.
func alone(all, name string) (string, error) {
	head, _, _ := strings.Cut(all, entry)
	from := strings.Index(all, entry+name+"(")
	if from < 0 {
		return "", errors.New("it is not in the PTX")
	}
	kernel := all[from:]
	end := strings.Index(kernel, "\n}\n")
	if end < 0 {
		return "", errors.New("the PTX has no end")
	}
	return head + kernel[:end+3], nil
}

// Names returns the names of all kernels.
func Names() []string {
	all, err := ptx()
	if err != nil {
		return nil
	}
	var names []string
	for _, text := range strings.Split(all, entry)[1:] {
		name, _, _ := strings.Cut(text, "(")
		names = append(names, name)
	}
	return names
}

// Compile makes the driver compile a kernel as if there were no machine code for the device, to measure that.
func Compile(d *gpu.Device, name string) error {
	_, err := d.Kernel(compiled, name)
	return err
}

var compiled = &gpu.Code{PTX: code.PTX, Machine: func(gpu.Info) ([]byte, error) { return nil, errors.New("it is not asked for") }}
