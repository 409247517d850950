package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// Info describes a device.
type Info struct {
	Index     int     // among those that the process sees
	Name      string  // "NVIDIA A100-SXM4-80GB"
	UUID      string  // "GPU-…", as nvidia-smi prints it
	Memory    int64   // bytes
	Compute   int     // compute capability times ten: 80 is 8.0
	Driver    Version // newest CUDA that the driver knows
	Multiproc int     // streaming multiprocessors
	PCI       string  // PCI address as in /sys/bus/pci: "0000:07:00.0"
}

func (i Info) String() string {
	return fmt.Sprintf("%d: %s (%s, %.1f GiB, compute capability %d.%d)", i.Index, i.Name, i.UUID, float64(i.Memory)/(1<<30), i.Compute/10, i.Compute%10)
}

// leastCompute is the oldest device that the kernels are compiled for: Volta.
const leastCompute = 70

// Usable returns nil if the kernels can run on a device of this kind, and otherwise an [Unavailable] with the
// reason.
func (i Info) Usable() error {
	if i.Compute < leastCompute {
		return unavailable("%s has compute capability %d.%d, needed is 7.0 (Volta) or newer", i.Name, i.Compute/10, i.Compute%10)
	}
	return nil
}

// Attributes of a device (CUdevice_attribute, cuda.h 12.0).
const (
	attrMultiprocessors = 16
	attrPCIBus          = 33
	attrPCIDevice       = 34
	attrPCIDomain       = 50
	attrComputeMajor    = 75
	attrComputeMinor    = 76
)

// Devices lists the devices that the process sees. If there are none, the error is an [Unavailable] with the
// reason.
func Devices() ([]Info, error) {
	version, err := load()
	if err != nil {
		return nil, err
	}
	var n int32
	if err := check("cuDeviceGetCount", driver.DeviceGetCount(&n)); err != nil {
		return nil, unavailable("%v", err)
	}
	if n == 0 {
		return nil, unavailable("the NVIDIA driver sees no device (CUDA_VISIBLE_DEVICES, --nv and --gres decide what it sees)")
	}
	list := make([]Info, n)
	for i := range list {
		if list[i], err = describe(i, version); err != nil {
			return nil, unavailable("device %d: %v", i, err)
		}
	}
	return list, nil
}

func describe(index, version int) (Info, error) {
	i := Info{Index: index, Driver: Version(version)}
	var dev, major, minor, mp, domain, bus, slot int32
	var name [256]byte
	var uuid [16]byte
	var memory uint64
	for _, step := range []struct {
		call string
		do   func() result
	}{
		{"cuDeviceGet", func() result { return driver.DeviceGet(&dev, int32(index)) }},
		{"cuDeviceGetName", func() result { return driver.DeviceGetName(&name[0], int32(len(name)), dev) }},
		{"cuDeviceGetUuid_v2", func() result { return driver.DeviceGetUUID(&uuid, dev) }},
		{"cuDeviceTotalMem_v2", func() result { return driver.DeviceTotalMem(&memory, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&major, attrComputeMajor, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&minor, attrComputeMinor, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&mp, attrMultiprocessors, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&domain, attrPCIDomain, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&bus, attrPCIBus, dev) }},
		{"cuDeviceGetAttribute", func() result { return driver.DeviceGetAttribute(&slot, attrPCIDevice, dev) }},
	} {
		if err := check(step.call, step.do()); err != nil {
			return i, err
		}
	}
	i.Name, _, _ = strings.Cut(string(name[:]), "\x00")
	i.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	i.Memory, i.Compute, i.Multiproc = int64(memory), int(major*10+minor), int(mp)
	i.PCI = fmt.Sprintf("%04x:%02x:%02x.0", uint32(domain), uint32(bus), uint32(slot))
	return i, nil
}

// Choose finds the devices that id names: an index, a UUID or the beginning of one;
// "" names all.
func Choose(list []Info, id string) ([]Info, error) {
	if id == "" {
		return list, nil
	}
	if n, err := strconv.Atoi(id); err == nil {
		if n < 0 || n >= len(list) {
			return nil, unavailable("there is no device %d: there are 0 to %d", n, len(list)-1)
		}
		return list[n : n+1], nil
	}
	begin := strings.ToLower(id)
	if rest, ok := strings.CutPrefix(begin, "mig-"); ok { // as nvidia-smi prints that of an instance
		begin = "gpu-" + rest
	}
	for i, d := range list {
		if len(id) >= 8 && strings.HasPrefix(strings.ToLower(d.UUID), begin) {
			return list[i : i+1], nil
		}
	}
	return nil, unavailable("no device has the UUID %q (`nvidia-smi -L` lists them)", id)
}
