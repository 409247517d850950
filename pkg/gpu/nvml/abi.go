package nvml

// What follows is as nvml.h has it (12.9 and 13.5, which agree in it); abi_test.go compares
// it with the headers.

// result is nvmlReturn_t.
type result int32

// Results that are told apart.
const (
	codeNoPermission      = 4  // NVML_ERROR_NO_PERMISSION
	codeNotFound          = 6  // NVML_ERROR_NOT_FOUND
	codeInsufficientSize  = 7  // NVML_ERROR_INSUFFICIENT_SIZE
	codeInsufficientPower = 8  // NVML_ERROR_INSUFFICIENT_POWER
	codeDriverNotLoaded   = 9  // NVML_ERROR_DRIVER_NOT_LOADED
	codeIRQIssue          = 11 // NVML_ERROR_IRQ_ISSUE
	codeLost              = 15 // NVML_ERROR_GPU_IS_LOST
	codeResetRequired     = 16 // NVML_ERROR_RESET_REQUIRED
	codeOperatingSystem   = 17 // NVML_ERROR_OPERATING_SYSTEM
	codeVersionMismatch   = 18 // NVML_ERROR_LIB_RM_VERSION_MISMATCH
)

// memory is nvmlMemory_t, and nvmlBAR1Memory_t in another order.
type memory struct{ total, free, used uint64 }

// memory2 is nvmlMemory_v2_t, in which memory reserved by the driver does not count as used.
type memory2 struct {
	version                     uint32 // memory2Version
	_                           uint32
	total, reserved, free, used uint64
}

const memory2Version = 40 | 2<<24 // nvmlMemory_v2

// pciInfo is nvmlPciInfo_t.
type pciInfo struct {
	_                   [16]byte // "0000:07:00.0"
	domain, bus, device uint32
	_, _                uint32   // what it is
	busID               [32]byte // "00000000:07:00.0"
}

// process is nvmlProcessInfo_t.
type process struct {
	pid  uint32
	_    uint32
	used uint64 // notAvailable: unknown
	_, _ uint32 // instances
}

const notAvailable = 1<<64 - 1 // NVML_VALUE_NOT_AVAILABLE

// utilization is nvmlUtilization_t.
type utilization struct{ gpu, memory uint32 }

const (
	nameBuffer    = 96 // NVML_DEVICE_NAME_V2_BUFFER_SIZE
	uuidBuffer    = 96 // NVML_DEVICE_UUID_V2_BUFFER_SIZE
	versionBuffer = 80 // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

	sensorGPU = 0 // NVML_TEMPERATURE_GPU

	modeDefault          = 0 // NVML_COMPUTEMODE_DEFAULT
	modeExclusiveThread  = 1 // NVML_COMPUTEMODE_EXCLUSIVE_THREAD
	modeProhibited       = 2 // NVML_COMPUTEMODE_PROHIBITED
	modeExclusiveProcess = 3 // NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
)

// required are the functions without which the library cannot be used. A device is a
// handle, an integer to Go.
type required struct {
	Init          func() result                                        `sym:"nvmlInit_v2"`
	Shutdown      func() result                                        `sym:"nvmlShutdown"`
	ErrorString   func(code result) *byte                              `sym:"nvmlErrorString"`
	DriverVersion func(version *byte, n uint32) result                 `sym:"nvmlSystemGetDriverVersion"`
	Count         func(n *uint32) result                               `sym:"nvmlDeviceGetCount_v2"`
	ByIndex       func(index uint32, device *uintptr) result           `sym:"nvmlDeviceGetHandleByIndex_v2"`
	Name          func(device uintptr, p *byte, n uint32) result       `sym:"nvmlDeviceGetName"`
	UUID          func(device uintptr, p *byte, n uint32) result       `sym:"nvmlDeviceGetUUID"`
	PCI           func(device uintptr, p *pciInfo) result              `sym:"nvmlDeviceGetPciInfo_v3"`
	Memory        func(device uintptr, m *memory) result               `sym:"nvmlDeviceGetMemoryInfo"`
	BAR1          func(device uintptr, m *memory) result               `sym:"nvmlDeviceGetBAR1MemoryInfo"`
	Mode          func(device uintptr, mode *int32) result             `sym:"nvmlDeviceGetComputeMode"`
	ECC           func(device uintptr, now, next *int32) result        `sym:"nvmlDeviceGetEccMode"`
	LinkNow       func(device uintptr, generation *uint32) result      `sym:"nvmlDeviceGetCurrPcieLinkGeneration"`
	LinkMost      func(device uintptr, generation *uint32) result      `sym:"nvmlDeviceGetMaxPcieLinkGeneration"`
	WidthNow      func(device uintptr, lanes *uint32) result           `sym:"nvmlDeviceGetCurrPcieLinkWidth"`
	WidthMost     func(device uintptr, lanes *uint32) result           `sym:"nvmlDeviceGetMaxPcieLinkWidth"`
	Utilization   func(device uintptr, u *utilization) result          `sym:"nvmlDeviceGetUtilizationRates"`
	Persistence   func(device uintptr, on *int32) result               `sym:"nvmlDeviceGetPersistenceMode"`
	Power         func(device uintptr, mW *uint32) result              `sym:"nvmlDeviceGetPowerUsage"`
	Temperature   func(device uintptr, sensor int32, c *uint32) result `sym:"nvmlDeviceGetTemperature"`
}

// Functions that older libraries have not got, each by itself.
type (
	cudaVersion struct {
		Get func(version *int32) result `sym:"nvmlSystemGetCudaDriverVersion_v2"`
	}
	memoryInfo2 struct {
		Get func(device uintptr, m *memory2) result `sym:"nvmlDeviceGetMemoryInfo_v2"`
	}
	capability struct {
		Get func(device uintptr, major, minor *int32) result `sym:"nvmlDeviceGetCudaComputeCapability"`
	}
	processes struct {
		Get func(device uintptr, n *uint32, list *process) result `sym:"nvmlDeviceGetComputeRunningProcesses_v3"`
	}
	instances struct {
		Mode    func(device uintptr, now, next *uint32) result               `sym:"nvmlDeviceGetMigMode"`
		Most    func(device uintptr, n *uint32) result                       `sym:"nvmlDeviceGetMaxMigDeviceCount"`
		ByIndex func(device uintptr, index uint32, instance *uintptr) result `sym:"nvmlDeviceGetMigDeviceHandleByIndex"`
		GPU     func(instance uintptr, id *uint32) result                    `sym:"nvmlDeviceGetGpuInstanceId"`
		Compute func(instance uintptr, id *uint32) result                    `sym:"nvmlDeviceGetComputeInstanceId"`
	}
)
