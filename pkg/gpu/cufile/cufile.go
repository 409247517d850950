// Package cufile binds NVIDIA's libcufile.so.0 (GPUDirect Storage), which reads files straight into a GPU's
// memory and writes them from there. It opens the library at run time.
//
// Where cuFile cannot move data straight, it would use host memory of its own ("compatibility mode"). This
// package prevents that, and [Open] returns the reason instead, because callers have better ways.
package cufile

import (
	"fmt"
	"os"
	"sync"

	"strata/pkg/dynlib"
	"strata/pkg/gpu"
)

// Unavailable reports why cuFile does not move data straight between files and a device. It is not a failure.
type Unavailable struct {
	Reason string
}

func (e *Unavailable) Error() string { return e.Reason }

func unavailable(format string, args ...any) error {
	return &Unavailable{fmt.Sprintf(format, args...)}
}

// Error is a failed call of cuFile.
type Error struct {
	Call string // as cufile.h names it
	Code int    // CUfileOpError; 1 is an error of the file system that the call does not specify
	CUDA int    // CUresult, if the code is that of a CUDA error
}

func (e *Error) Error() string {
	name := names[int32(e.Code)]
	switch {
	case e.Code == codeCUDA && e.CUDA != 0:
		return fmt.Sprintf("%s: %s (cuFile error %d, CUDA error %d)", e.Call, name, e.Code, e.CUDA)
	case e.Code == 1:
		return e.Call + ": input/output error"
	case name == "":
		return fmt.Sprintf("%s: cuFile error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (cuFile error %d)", e.Call, name, e.Code)
}

// OfFileSystem reports whether an error of [Driver.Register] would hit other files of the file system as
// well.
func (e *Error) OfFileSystem() bool {
	switch e.Code {
	case 5007, 5008, 5009, 5034: // not supported on platform, file, device; disabled
		return true
	}
	return false
}

func check(call string, f failure) error {
	if f.code() == 0 {
		return nil
	}
	return &Error{call, int(f.code()), int(f.cuda())}
}

var (
	lib struct {
		required
		parameters
		configurable bool // has parameters
		streams
		ordered bool // has streams
	}

	mu   sync.Mutex
	open int        // how many hold the driver
	now  properties // of the driver
	how  string     // it moves data
)

// load opens the library, once for the process.
var load = sync.OnceValue(func() error {
	quiet()
	l, err := dynlib.Open("STRATA_LIBCUFILE", "libcufile.so.0")
	if err != nil {
		return unavailable("cuFile's library cannot be opened: %v", err)
	}
	if err := dynlib.Bind(l, &lib.required); err != nil {
		return unavailable("cuFile's library is older than CUDA 12.0 or not cuFile's: %v", err)
	}
	lib.configurable = dynlib.Bind(l, &lib.parameters) == nil
	lib.ordered = dynlib.Bind(l, &lib.streams) == nil
	return nil
})

// quiet keeps the library from writing a file cufile.log into the working folder, unless
// the user has said where its log goes.
func quiet() {
	for _, name := range []string{"CUFILE_LOGFILE_PATH", "CUFILE_ENV_PATH_JSON"} {
		if _, set := os.LookupEnv(name); set {
			return
		}
	}
	_ = os.Setenv("CUFILE_LOGFILE_PATH", os.DevNull) // the library reads it by getenv
}

// Driver is the initialised cuFile for a device.
type Driver struct {
	device     *gpu.Device
	properties properties
	how        string
}

// Open initialises cuFile if it moves data straight between files and the device; otherwise the error is
// [Unavailable] with the reason. Close must be called before the device is closed.
func Open(d *gpu.Device) (*Driver, error) {
	if err := load(); err != nil {
		return nil, err
	}
	if err := modules(); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	if open == 0 {
		if err := d.CallAside(start); err != nil { // it takes up to a second
			return nil, err
		}
	}
	open++
	return &Driver{d, now, how}, nil
}

// start opens cuFile's driver and finds out how it moves data.
func start() error {
	if lib.configurable {
		// What follows would succeed in every case otherwise.
		_ = lib.SetBool(allowCompat, false)
	}
	if f := lib.DriverOpen(); f.code() != 0 {
		err := check("cuFileDriverOpen", f)
		if f.code() == codeNotInitialized {
			return unavailable("cuFile finds neither the kernel module nvidia-fs nor PCI peer-to-peer transfers: %v", err)
		}
		return unavailable("cuFile does not start: %v", err)
	}
	p := &now
	*p = properties{}
	err := check("cuFileDriverGetProperties", lib.GetProperties(p))
	how = ""
	switch {
	case err != nil:
		err = unavailable("cuFile does not say how it moves data: %v", err)
	case forced():
		err = unavailable("cuFile is told to use its compatibility mode (CUFILE_FORCE_COMPAT_MODE or cufile.json)")
	case p.nvfs.major|p.nvfs.minor != 0:
		how = fmt.Sprintf("nvidia-fs %d.%d", p.nvfs.major, p.nvfs.minor)
	case p.features>>featureP2P&1 != 0 || p.nvfs.status>>statusP2P&1 != 0:
		how = "PCI peer-to-peer transfers"
	default:
		err = unavailable("cuFile is in its compatibility mode: the kernel module nvidia-fs is not loaded")
	}
	if err != nil {
		_ = lib.DriverClose()
	}
	return err
}

// forced reports whether cuFile's configuration forbids moving data straight.
func forced() bool {
	var v byte
	return lib.configurable && lib.GetBool(forceCompat, &v).code() == 0 && v != 0
}

// How returns the mechanism that moves data, such as "nvidia-fs 2.20".
func (d *Driver) How() string { return d.how }

// Close shuts cuFile down. Handles must be closed.
func (d *Driver) Close() error {
	mu.Lock()
	defer mu.Unlock()
	if open--; open > 0 {
		return nil
	}
	err := d.device.Call(func() error { return check("cuFileDriverClose", lib.DriverClose()) })
	if d.device.Lost() != nil {
		return nil
	}
	return err
}

// Handle is a file registered with cuFile.
type Handle struct {
	handle uintptr
}

// Register registers a file that is open for direct I/O; it must stay open until the handle is closed. An
// error means that files like this one cannot be moved straight.
func (d *Driver) Register(fd uintptr) (*Handle, error) {
	h := &Handle{}
	desc := &descriptor{kind: handleOpaqueFD}
	desc.handle.fd = int32(fd)
	if err := check("cuFileHandleRegister", lib.HandleRegister(&h.handle, desc)); err != nil {
		return nil, err
	}
	return h, nil
}

// Close deregisters the file.
func (h *Handle) Close() { lib.HandleDeregister(h.handle) }

// Read reads into device memory from offset off of the file. It returns fewer bytes than the memory holds at
// the end of the file, and possibly elsewhere. b is the registered buffer that contains the memory, or nil.
// It must be called where the device's context is current: in [gpu.Stream.Queue].
func (h *Handle) Read(b *Buffer, dst gpu.Span, off int64) (int64, error) {
	base, at, err := b.base(dst)
	if err != nil {
		return 0, err
	}
	return moved("cuFileRead", lib.Read(h.handle, base, uint64(dst.Bytes()), off, at), dst.Bytes())
}

// Write writes device memory to the file at offset off, with the rules of Read.
func (h *Handle) Write(b *Buffer, src gpu.Span, off int64) (int64, error) {
	base, at, err := b.base(src)
	if err != nil {
		return 0, err
	}
	return moved("cuFileWrite", lib.Write(h.handle, base, uint64(src.Bytes()), off, at), src.Bytes())
}

func moved(call string, n, most int64) (int64, error) {
	switch {
	case n < 0:
		return 0, &Error{Call: call, Code: int(-n)}
	case n > most:
		return 0, fmt.Errorf("%s moved %d bytes of %d", call, n, most)
	}
	return n, nil
}
