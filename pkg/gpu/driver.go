package gpu

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"strata/pkg/dynlib"
)

// oldestDriver is the oldest supported CUDA version, as cuDriverGetVersion returns it: we use its functions
// and PTX.
const oldestDriver = 12000

type result int32

// driver holds the functions of the driver API that are used, all of which cuda.h 12.0 declares. Handles and device
// addresses are integers to Go.
var driver struct {
	Init               func(flags uint32) result                                                                                           `sym:"cuInit"`
	DriverGetVersion   func(version *int32) result                                                                                         `sym:"cuDriverGetVersion"`
	DeviceGetCount     func(n *int32) result                                                                                               `sym:"cuDeviceGetCount"`
	DeviceGet          func(dev *int32, ordinal int32) result                                                                              `sym:"cuDeviceGet"`
	DeviceGetName      func(name *byte, n int32, dev int32) result                                                                         `sym:"cuDeviceGetName"`
	DeviceGetUUID      func(uuid *[16]byte, dev int32) result                                                                              `sym:"cuDeviceGetUuid_v2"`
	DeviceTotalMem     func(n *uint64, dev int32) result                                                                                   `sym:"cuDeviceTotalMem_v2"`
	DeviceGetAttribute func(v *int32, attribute int32, dev int32) result                                                                   `sym:"cuDeviceGetAttribute"`
	CtxSetFlags        func(dev int32, flags uint32) result                                                                                `sym:"cuDevicePrimaryCtxSetFlags_v2"`
	CtxRetain          func(ctx *uintptr, dev int32) result                                                                                `sym:"cuDevicePrimaryCtxRetain"`
	CtxRelease         func(dev int32) result                                                                                              `sym:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent      func(ctx uintptr) result                                                                                            `sym:"cuCtxSetCurrent"`
	MemGetInfo         func(free, total *uint64) result                                                                                    `sym:"cuMemGetInfo_v2"`
	MemAlloc           func(p *uint64, n uint64) result                                                                                    `sym:"cuMemAlloc_v2"`
	MemFree            func(p uint64) result                                                                                               `sym:"cuMemFree_v2"`
	MemHostAlloc       func(p *uintptr, n uint64, flags uint32) result                                                                     `sym:"cuMemHostAlloc"`
	MemFreeHost        func(p uintptr) result                                                                                              `sym:"cuMemFreeHost"`
	MemHostRegister    func(p unsafe.Pointer, n uint64, flags uint32) result                                                               `sym:"cuMemHostRegister_v2"`
	MemHostUnregister  func(p unsafe.Pointer) result                                                                                       `sym:"cuMemHostUnregister"`
	MemcpyHtoD         func(dst uint64, src unsafe.Pointer, n uint64, s uintptr) result                                                    `sym:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoH         func(dst unsafe.Pointer, src uint64, n uint64, s uintptr) result                                                    `sym:"cuMemcpyDtoHAsync_v2"`
	MemcpyDtoD         func(dst, src uint64, n uint64, s uintptr) result                                                                   `sym:"cuMemcpyDtoDAsync_v2"`
	MemsetD8           func(dst uint64, v uint8, n uint64, s uintptr) result                                                               `sym:"cuMemsetD8Async"`
	StreamCreate       func(s *uintptr, flags uint32) result                                                                               `sym:"cuStreamCreate"`
	StreamSynchronize  func(s uintptr) result                                                                                              `sym:"cuStreamSynchronize"`
	StreamDestroy      func(s uintptr) result                                                                                              `sym:"cuStreamDestroy_v2"`
	StreamWaitEvent    func(s, e uintptr, flags uint32) result                                                                             `sym:"cuStreamWaitEvent"`
	LaunchHostFunc     func(s, f, data uintptr) result                                                                                     `sym:"cuLaunchHostFunc"`
	EventCreate        func(e *uintptr, flags uint32) result                                                                               `sym:"cuEventCreate"`
	EventRecord        func(e, s uintptr) result                                                                                           `sym:"cuEventRecord"`
	EventSynchronize   func(e uintptr) result                                                                                              `sym:"cuEventSynchronize"`
	EventElapsedTime   func(ms *float32, from, to uintptr) result                                                                          `sym:"cuEventElapsedTime"`
	EventDestroy       func(e uintptr) result                                                                                              `sym:"cuEventDestroy_v2"`
	ModuleLoadData     func(m *uintptr, image *byte, n uint32, options *int32, values *uintptr) result                                     `sym:"cuModuleLoadDataEx"`
	ModuleGetFunction  func(f *uintptr, m uintptr, name string) result                                                                     `sym:"cuModuleGetFunction"`
	ModuleUnload       func(m uintptr) result                                                                                              `sym:"cuModuleUnload"`
	LaunchKernel       func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, s uintptr, args unsafe.Pointer, extra unsafe.Pointer) result `sym:"cuLaunchKernel"`
	GetErrorString     func(code result, text **byte) result                                                                               `sym:"cuGetErrorString"`
}

// load opens the driver's library and initialises it, once for the process.
var load = sync.OnceValues(func() (version int, err error) {
	setEnvironment()
	lib, err := dynlib.Open("STRATA_LIBCUDA", "libcuda.so.1")
	if err != nil {
		return 0, &Unavailable{"the NVIDIA driver's library cannot be opened: " + firstLine(err.Error()), true}
	}
	if err := dynlib.Bind(lib, &driver); err != nil {
		return 0, unavailable("the NVIDIA driver is older than CUDA 12.0: %v", err)
	}
	var v int32
	if r := driver.DriverGetVersion(&v); r != 0 {
		return 0, unavailable("%v", check("cuDriverGetVersion", r))
	}
	if v < oldestDriver {
		return int(v), unavailable("the NVIDIA driver is for CUDA %s, needed is 12.0 or newer", Version(v))
	}
	switch r := driver.Init(0); r {
	case 0:
	case codeNoDevice:
		return int(v), unavailable("the NVIDIA driver sees no device (CUDA_VISIBLE_DEVICES, --nv and --gres decide what it sees)")
	default:
		return int(v), unavailable("%v", check("cuInit", r))
	}
	return int(v), nil
})

// Version is a CUDA version as cuDriverGetVersion gives it: 12040 is 12.4.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

func check(call string, r result) error {
	if r == 0 {
		return nil
	}
	text := "unknown error"
	var p *byte
	if driver.GetErrorString(r, &p) == 0 && p != nil {
		text = cString(p)
	}
	return &Error{Call: call, Code: int(r), Text: text}
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
