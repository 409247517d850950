// Package nvml queries NVIDIA's management library, libnvidia-ml.so.1, for the GPUs of a machine and their
// users. The library comes with the driver and is opened at run time. No context is created on a device, so
// that queries take none of its memory.
//
//	facts, err := nvml.Read()
//	for _, d := range facts.Devices {
//		fmt.Println(d.UUID, d.Memory.Free)
//	}
//
// Facts that the library does not report for a device (a laptop has no ECC, a container may not query the
// mode of instances) are nil or empty values and no error.
//
// The library ignores CUDA_VISIBLE_DEVICES; [Visible] applies it.
package nvml

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unsafe"

	"strata/pkg/dynlib"
	"strata/pkg/gpu"
)

// Unavailable reports why the library gives no information. It is not a failure.
type Unavailable struct {
	Reason string
}

func (e *Unavailable) Error() string { return e.Reason }

func unavailable(format string, args ...any) error {
	return &Unavailable{fmt.Sprintf(format, args...)}
}

// Facts holds the library's information about a machine at one moment.
type Facts struct {
	Driver  string      // version: "550.54.15"
	CUDA    gpu.Version // newest CUDA that the driver knows; 0: unknown
	Devices []Device    // in the order of their places on the PCI bus
	Hidden  int         // devices that this process may not use: those of other jobs
}

// Device is a GPU. Pointers are nil for unknown facts.
type Device struct {
	Name        string
	UUID        string       // "GPU-…", as nvidia-smi prints it
	PCI         string       // PCI address as in /sys/bus/pci: "0000:07:00.0"
	Compute     int          // compute capability times ten; 0: unknown
	Memory      *Memory      // of the whole device, even if it has instances
	BAR1        *Memory      // the part of its memory that other devices on the bus can reach at once
	Mode        Mode         // compute mode: who may make contexts; "" if unknown
	ECC         *Switch      // error correction of its memory
	MIG         *Switch      // whether it is cut into instances
	Instances   []Instance   // of a device that is
	Link        *Link        // to the PCI bus
	Utilization *Utilization // over the last moments
	Persistence *bool        // the driver keeps the device initialised while nobody uses it
	Power       *float64     // watts
	Temperature *int         // degrees Celsius
	Processes   []Process    // with a context; nil: unknown
	Reason      string       // why it cannot be used, where it does not work; the rest may be empty then
}

// Memory is in bytes. Memory reserved by the driver is neither free nor used if the library reports it
// separately.
type Memory struct{ Total, Free, Used int64 }

// Mode says which processes or threads may create contexts on a device.
type Mode string

// The modes, in nvidia-smi's words.
const (
	Default          Mode = "default"           // everybody
	ExclusiveThread  Mode = "exclusive thread"  // one thread; of old drivers
	ExclusiveProcess Mode = "exclusive process" // one process at a time
	Prohibited       Mode = "prohibited"        // nobody
)

var modes = map[int32]Mode{modeDefault: Default, modeExclusiveThread: ExclusiveThread, modeProhibited: Prohibited, modeExclusiveProcess: ExclusiveProcess}

// Switch is an on/off setting: its current value, and its value after the next reset or restart.
type Switch struct{ Now, Next bool }

// Link is the generation of PCI Express and the number of lanes, now (an idle device saves power) and at most
// in this slot; 0: unknown.
type Link struct{ Generation, MostGeneration, Width, MostWidth int }

// Utilization is the percentage of time in which a kernel ran, or memory was read or written.
type Utilization struct{ GPU, Memory int }

// Process has a context on a device.
type Process struct {
	PID  int   // process id in this process's namespace or the host's: drivers differ
	Used int64 // bytes of the device; 0: unknown
}

// Instance is a part of a GPU that programs see as a device (MIG).
type Instance struct {
	Name         string // "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
	UUID         string // "MIG-…"
	GPU, Compute int    // its numbers: GPU instance, and compute instance of that; -1: unknown
	Memory       *Memory
	Processes    []Process // nil: unknown
}

var lib struct {
	required
	cuda        cudaVersion
	memory2     memoryInfo2
	capability  capability
	processes   processes
	instances   instances
	hasInstance bool
}

// Variable names a file to open instead of libnvidia-ml.so.1.
const Variable = "STRATA_LIBNVML"

// load opens the library, once for the process.
var load = sync.OnceValue(func() error {
	l, err := dynlib.Open(Variable, "libnvidia-ml.so.1")
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return unavailable("NVIDIA's management library cannot be opened: %s", text)
	}
	if err := dynlib.Bind(l, &lib.required); err != nil {
		return unavailable("the management library is older than CUDA 12.0 or not NVIDIA's: %v", err)
	}
	for _, table := range []any{&lib.cuda, &lib.memory2, &lib.capability, &lib.processes} {
		_ = dynlib.Bind(l, table) // what is not there stays nil
	}
	lib.hasInstance = dynlib.Bind(l, &lib.instances) == nil
	return nil
})

// mu allows one query at a time, because a query initialises the library and shuts it down.
var mu sync.Mutex

// Read queries everything. If the library cannot be queried, the error is [Unavailable] with the reason in
// one line.
func Read() (*Facts, error) {
	if err := load(); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	if r := lib.Init(); r != 0 {
		return nil, &Unavailable{initReason(r)}
	}
	defer func() { _ = lib.Shutdown() }() // what it told is told
	return read()
}

// initReason explains why the library cannot be initialised, and names the cure.
func initReason(r result) string {
	switch r {
	case codeVersionMismatch:
		return "the driver was updated and its kernel module is not reloaded yet: reboot, or unload the nvidia modules and load them again"
	case codeDriverNotLoaded:
		return "the driver's kernel module is not loaded, or this container was not given the devices (--nv)"
	case codeNoPermission:
		return "no permission to talk to the driver: /dev/nvidiactl must be readable and writable"
	}
	return check("nvmlInit_v2", r).Error()
}

func check(call string, r result) error {
	if r == 0 {
		return nil
	}
	text := "unknown error"
	if p := lib.ErrorString(r); p != nil {
		text = cString(p)
	}
	return unavailable("%s: %s (NVML error %d)", call, text, r)
}

func cString(p *byte) string {
	n := 0
	for n < 1024 && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// most is the maximum number of devices and instances of a machine, and of processes of a device; a larger
// count means that the library is broken.
const most = 4096

func read() (*Facts, error) {
	f := &Facts{Driver: text(lib.DriverVersion, versionBuffer)}
	var v int32
	if lib.cuda.Get != nil && lib.cuda.Get(&v) == 0 && v > 0 {
		f.CUDA = gpu.Version(v)
	}
	var n uint32
	if err := check("nvmlDeviceGetCount_v2", lib.Count(&n)); err != nil {
		return nil, err
	}
	if n > most {
		return nil, unavailable("nvmlDeviceGetCount_v2: %d devices", n)
	}
	for i := range n {
		var h uintptr
		switch r := lib.ByIndex(i, &h); r {
		case 0:
			f.Devices = append(f.Devices, describe(h))
		case codeNoPermission, codeOperatingSystem: // the second where a control group hides it
			f.Hidden++
		default:
			f.Devices = append(f.Devices, Device{Reason: broken("nvmlDeviceGetHandleByIndex_v2", r)})
		}
	}
	return f, nil
}

// text queries a text; it returns "" if there is none.
func text(ask func(p *byte, n uint32) result, size int) string {
	b := make([]byte, size)
	if ask(&b[0], uint32(size)) != 0 {
		return ""
	}
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// broken explains why a device cannot be used.
func broken(call string, r result) string {
	switch r {
	case codeLost:
		return "it is lost (fallen off the bus): look for Xid in the kernel's log, restart the machine"
	case codeResetRequired:
		return "it must be reset before it can be used: nvidia-smi --gpu-reset, or restart the machine"
	case codeInsufficientPower:
		return "its power cables are not attached"
	case codeIRQIssue:
		return "its interrupts do not arrive: restart the machine, look into the kernel's log"
	}
	return check(call, r).Error()
}

// question queries the properties of a device one by one.
type question struct {
	device uintptr
	reason string
}

// told reports whether a call has answered. It remembers an answer that the device does not work, and the
// last one.
func (q *question) told(ask func() result) bool {
	if q.reason != "" {
		return false
	}
	switch r := ask(); r {
	case 0:
		return true
	case codeLost, codeResetRequired, codeInsufficientPower, codeIRQIssue:
		q.reason = broken("", r)
	}
	return false
}

func describe(h uintptr) Device {
	q := &question{device: h}
	d := Device{Name: q.text(lib.Name), UUID: q.text(lib.UUID)}
	var p pciInfo
	if q.told(func() result { return lib.PCI(h, &p) }) {
		d.PCI = fmt.Sprintf("%04x:%02x:%02x.0", p.domain, p.bus, p.device)
	}
	var major, minor int32
	if lib.capability.Get != nil && q.told(func() result { return lib.capability.Get(h, &major, &minor) }) {
		d.Compute = int(major*10 + minor)
	}
	d.Memory = q.memory()
	var m memory
	if q.told(func() result { return lib.BAR1(h, &m) }) {
		d.BAR1 = &Memory{bytesOf(m.total), bytesOf(m.free), bytesOf(m.used)}
	}
	var now, next int32
	if q.told(func() result { return lib.Mode(h, &now) }) {
		d.Mode = modes[now]
	}
	if q.told(func() result { return lib.ECC(h, &now, &next) }) {
		d.ECC = &Switch{now != 0, next != 0}
	}
	d.MIG, d.Instances = q.instances()
	d.Link = q.link()
	var u utilization
	if q.told(func() result { return lib.Utilization(h, &u) }) {
		d.Utilization = &Utilization{int(u.gpu), int(u.memory)}
	}
	if q.told(func() result { return lib.Persistence(h, &now) }) {
		on := now != 0
		d.Persistence = &on
	}
	var n uint32
	if q.told(func() result { return lib.Power(h, &n) }) {
		watts := float64(n) / 1000
		d.Power = &watts
	}
	if q.told(func() result { return lib.Temperature(h, sensorGPU, &n) }) {
		c := int(int32(n))
		d.Temperature = &c
	}
	d.Processes = q.processes()
	if d.Reason = q.reason; d.Reason == "" && d.UUID == "" {
		d.Reason = "the management library does not report its UUID"
	}
	return d
}

func (q *question) text(ask func(device uintptr, p *byte, n uint32) result) (s string) {
	q.told(func() (r result) {
		s = text(func(p *byte, n uint32) result { r = ask(q.device, p, n); return r }, nameBuffer)
		return r
	})
	return s
}

// bytesOf converts a number of bytes to int64. It returns the maximum if the number is too large.
func bytesOf(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func (q *question) memory() *Memory {
	two := memory2{version: memory2Version}
	if lib.memory2.Get != nil && q.told(func() result { return lib.memory2.Get(q.device, &two) }) {
		return &Memory{bytesOf(two.total), bytesOf(two.free), bytesOf(two.used)}
	}
	var m memory
	if q.told(func() result { return lib.Memory(q.device, &m) }) {
		return &Memory{bytesOf(m.total), bytesOf(m.free), bytesOf(m.used)}
	}
	return nil
}

func (q *question) link() *Link {
	var l Link
	known := false
	for _, part := range []struct {
		ask func(device uintptr, v *uint32) result
		to  *int
	}{{lib.LinkNow, &l.Generation}, {lib.LinkMost, &l.MostGeneration}, {lib.WidthNow, &l.Width}, {lib.WidthMost, &l.MostWidth}} {
		var v uint32
		if q.told(func() result { return part.ask(q.device, &v) }) {
			*part.to, known = int(v), true
		}
	}
	if !known {
		return nil
	}
	return &l
}

func (q *question) processes() []Process {
	if lib.processes.Get == nil {
		return nil
	}
	list := make([]process, 64)
	for range 4 { // more may start in between
		n := uint32(len(list))
		var r result
		ok := q.told(func() result { r = lib.processes.Get(q.device, &n, &list[0]); return r })
		switch {
		case ok && int(n) <= len(list):
			all := make([]Process, n)
			for i, p := range list[:n] {
				all[i].PID = int(p.pid)
				if p.used != notAvailable {
					all[i].Used = bytesOf(p.used)
				}
			}
			return all
		case r != codeInsufficientSize || n > most:
			return nil
		}
		list = make([]process, n+64)
	}
	return nil
}

func (q *question) instances() (*Switch, []Instance) {
	var now, next, n uint32
	if !lib.hasInstance || !q.told(func() result { return lib.instances.Mode(q.device, &now, &next) }) {
		return nil, nil
	}
	mode := &Switch{now != 0, next != 0}
	if !mode.Now || !q.told(func() result { return lib.instances.Most(q.device, &n) }) {
		return mode, nil
	}
	var list []Instance
	for i := range min(n, most) {
		part := &question{}
		if r := lib.instances.ByIndex(q.device, i, &part.device); r != 0 {
			continue // codeNotFound: that place is free
		}
		s := Instance{Name: part.text(lib.Name), UUID: part.text(lib.UUID), GPU: -1, Compute: -1}
		var id uint32
		if part.told(func() result { return lib.instances.GPU(part.device, &id) }) {
			s.GPU = int(id)
		}
		if part.told(func() result { return lib.instances.Compute(part.device, &id) }) {
			s.Compute = int(id)
		}
		s.Memory, s.Processes = part.memory(), part.processes()
		if s.UUID != "" {
			list = append(list, s)
		}
	}
	return mode, list
}
