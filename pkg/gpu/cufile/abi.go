package cufile

// What follows is as cufile.h has it (1.14 and 1.20, which agree in it); abi_test.go
// compares it with the headers.

// failure is CUfileError_t, a struct of two 32-bit numbers that is returned as one of 64: the
// code, and above it a CUresult.
type failure uint64

func (f failure) code() int32 { return int32(uint32(f)) }
func (f failure) cuda() int32 { return int32(uint32(f >> 32)) }

// descriptor is CUfileDescr_t. The file descriptor is the lower half of a union with a
// pointer.
type descriptor struct {
	kind   int32 // handleOpaqueFD
	_      int32
	handle struct {
		fd int32
		_  int32
	}
	ops uintptr
}

const handleOpaqueFD = 1 // CU_FILE_HANDLE_TYPE_OPAQUE_FD

// properties is CUfileDrvProps_t.
type properties struct {
	nvfs struct {
		major, minor    uint32
		pollThreshold   uint64
		maxDirectIO     uint64
		status, control uint32
	}
	features     uint32
	deviceCache  uint32
	bufferCache  uint32
	devicePinned uint32
	batchSize    uint32
	batchTimeout uint32
}

const (
	fixedStreams = 7 // CU_FILE_STREAM_FIXED_BUF_OFFSET, …_FILE_OFFSET, …_FILE_SIZE: known when queued

	statusP2P  = 11 // CU_FILE_NVME_P2P_SUPPORTED: a bit of nvfs.status
	featureP2P = 4  // CU_FILE_P2P_SUPPORTED: a bit of features, from 1.15 on

	allowCompat = 1 // CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE
	forceCompat = 2 // CUFILE_PARAM_FORCE_COMPAT_MODE
)

// required are the functions without which the library cannot be used.
type required struct {
	GetVersion       func(version *int32) failure                                                `sym:"cuFileGetVersion"`
	DriverOpen       func() failure                                                              `sym:"cuFileDriverOpen"`
	DriverClose      func() failure                                                              `sym:"cuFileDriverClose_v2"`
	GetProperties    func(p *properties) failure                                                 `sym:"cuFileDriverGetProperties"`
	HandleRegister   func(h *uintptr, d *descriptor) failure                                     `sym:"cuFileHandleRegister"`
	HandleDeregister func(h uintptr)                                                             `sym:"cuFileHandleDeregister"`
	Read             func(h uintptr, device uintptr, n uint64, off int64, deviceOff int64) int64 `sym:"cuFileRead"`
	Write            func(h uintptr, device uintptr, n uint64, off int64, deviceOff int64) int64 `sym:"cuFileWrite"`
	BufRegister      func(base uintptr, n uint64, flags int32) failure                           `sym:"cuFileBufRegister"`
	BufDeregister    func(base uintptr) failure                                                  `sym:"cuFileBufDeregister"`
}

// arguments holds the values that cuFile takes pointers to for a transfer on a stream; they must stay in
// place until it has run.
type arguments struct {
	bytes          uint64 // to move
	off, deviceOff int64
	done           int64 // bytes that were moved, or an error
}

// streams are functions that libraries older than CUDA 12.2 have not got.
type streams struct {
	StreamRegister   func(stream uintptr, flags uint32) failure                                                     `sym:"cuFileStreamRegister"`
	StreamDeregister func(stream uintptr) failure                                                                   `sym:"cuFileStreamDeregister"`
	ReadAsync        func(h, device uintptr, n *uint64, off, deviceOff *int64, done *int64, stream uintptr) failure `sym:"cuFileReadAsync"`
	WriteAsync       func(h, device uintptr, n *uint64, off, deviceOff *int64, done *int64, stream uintptr) failure `sym:"cuFileWriteAsync"`
}

// parameters are functions that older libraries have not got.
type parameters struct {
	SetBool func(parameter int32, v bool) failure  `sym:"cuFileSetParameterBool"`
	GetBool func(parameter int32, v *byte) failure `sym:"cuFileGetParameterBool"`
}

// names of the codes that are met, by cufile.h.
var names = map[int32]string{
	5001: "CU_FILE_DRIVER_NOT_INITIALIZED", 5002: "CU_FILE_DRIVER_INVALID_PROPS", 5003: "CU_FILE_DRIVER_UNSUPPORTED_LIMIT",
	5004: "CU_FILE_DRIVER_VERSION_MISMATCH", 5005: "CU_FILE_DRIVER_VERSION_READ_ERROR", 5006: "CU_FILE_DRIVER_CLOSING",
	5007: "CU_FILE_PLATFORM_NOT_SUPPORTED", 5008: "CU_FILE_IO_NOT_SUPPORTED", 5009: "CU_FILE_DEVICE_NOT_SUPPORTED",
	5010: "CU_FILE_NVFS_DRIVER_ERROR", 5011: "CU_FILE_CUDA_DRIVER_ERROR", 5012: "CU_FILE_CUDA_POINTER_INVALID",
	5013: "CU_FILE_CUDA_MEMORY_TYPE_INVALID", 5014: "CU_FILE_CUDA_POINTER_RANGE_ERROR", 5015: "CU_FILE_CUDA_CONTEXT_MISMATCH",
	5016: "CU_FILE_INVALID_MAPPING_SIZE", 5017: "CU_FILE_INVALID_MAPPING_RANGE", 5018: "CU_FILE_INVALID_FILE_TYPE",
	5019: "CU_FILE_INVALID_FILE_OPEN_FLAG", 5020: "CU_FILE_DIO_NOT_SET", 5022: "CU_FILE_INVALID_VALUE",
	5023: "CU_FILE_MEMORY_ALREADY_REGISTERED", 5024: "CU_FILE_MEMORY_NOT_REGISTERED", 5025: "CU_FILE_PERMISSION_DENIED",
	5026: "CU_FILE_DRIVER_ALREADY_OPEN", 5027: "CU_FILE_HANDLE_NOT_REGISTERED", 5028: "CU_FILE_HANDLE_ALREADY_REGISTERED",
	5029: "CU_FILE_DEVICE_NOT_FOUND", 5030: "CU_FILE_INTERNAL_ERROR", 5031: "CU_FILE_GETNEWFD_FAILED",
	5033: "CU_FILE_NVFS_SETUP_ERROR", 5034: "CU_FILE_IO_DISABLED", 5036: "CU_FILE_GPU_MEMORY_PINNING_FAILED",
	5038: "CU_FILE_ASYNC_NOT_SUPPORTED",
}

const (
	codeNotInitialized = 5001
	codeCUDA           = 5011
)
