package gpu

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"strata/pkg/dynlib"
)

// Library is a shared library that the GPU path uses.
type Library struct {
	Name    string // file name without folders, as given to the loader
	File    string // where it was found; "" if it was not opened
	Version string // version that the library reports; "" if it was not opened or reports none
	Reason  string // why it cannot be used; "" if it can
}

// Libraries opens the libraries that are loaded at run time and returns their versions: the driver, required
// for any GPU; cuFile, which reads files straight into the device; and nvCOMP, which decodes there. It does
// not touch a device.
func Libraries() []Library {
	return []Library{
		DriverLibrary(),
		describeLibrary("STRATA_LIBCUFILE", cuFileVersion, "libcufile.so.0"),
		NVCOMPLibrary(),
	}
}

// DriverLibrary returns the entry of the driver alone, the first of [Libraries].
func DriverLibrary() Library { return describeLibrary("STRATA_LIBCUDA", driverVersion, "libcuda.so.1") }

// NVCOMPLibrary returns the entry of nvCOMP alone.
func NVCOMPLibrary() Library {
	return describeLibrary("STRATA_LIBNVCOMP", nvcompVersion, "libnvcomp.so.6", "libnvcomp.so.5")
}

// describeLibrary opens the first of the names that can be opened. version asks a
// library for its version, and gives the address of one of its functions.
func describeLibrary(variable string, version func(lib uintptr) (string, uintptr, error), names ...string) Library {
	l := Library{Name: names[0]}
	if file := os.Getenv(variable); file != "" {
		names = []string{file}
	}
	var reasons []string
	for _, name := range names {
		lib, err := dynlib.Open("", name)
		if err != nil {
			reasons = append(reasons, firstLine(err.Error()))
			continue
		}
		l.Name, l.File = filepath.Base(name), name
		var function uintptr
		l.Version, function, err = version(lib)
		if file := fileOf(function); file != "" {
			l.File = file
		}
		if err != nil {
			l.Reason = firstLine(err.Error())
		}
		return l
	}
	l.Reason = strings.Join(reasons, "; ")
	return l
}

func driverVersion(lib uintptr) (string, uintptr, error) {
	var f struct {
		GetVersion func(version *int32) result `sym:"cuDriverGetVersion"`
	}
	if err := dynlib.Bind(lib, &f); err != nil {
		return "", 0, err
	}
	var v int32
	if r := f.GetVersion(&v); r != 0 {
		return "", dynlib.Symbol(lib, "cuDriverGetVersion"), fmt.Errorf("cuDriverGetVersion: CUDA error %d", r)
	}
	if v < oldestDriver {
		return Version(v).String(), dynlib.Symbol(lib, "cuDriverGetVersion"), fmt.Errorf("the driver is for CUDA %s, needed is 12.0 or newer", Version(v))
	}
	return Version(v).String(), dynlib.Symbol(lib, "cuDriverGetVersion"), nil
}

// cuFileVersion asks only for the version: opening cuFile's driver needs a device.
func cuFileVersion(lib uintptr) (string, uintptr, error) {
	var f struct {
		// CUfileError_t is a struct of two 32-bit numbers, which is returned as one of 64.
		GetVersion func(version *int32) uint64 `sym:"cuFileGetVersion"`
	}
	if err := dynlib.Bind(lib, &f); err != nil {
		return "", 0, fmt.Errorf("cuFile is older than 1.7: %w", err)
	}
	at := dynlib.Symbol(lib, "cuFileGetVersion")
	var v int32
	if e := f.GetVersion(&v); uint32(e) != 0 {
		return "", at, fmt.Errorf("cuFileGetVersion: error %d", uint32(e))
	}
	return Version(v).String(), at, nil
}

func nvcompVersion(lib uintptr) (string, uintptr, error) {
	var f struct {
		GetProperties func(p unsafe.Pointer) int32 `sym:"nvcompGetProperties"`
	}
	if err := dynlib.Bind(lib, &f); err != nil {
		return "", 0, err
	}
	at := dynlib.Symbol(lib, "nvcompGetProperties")
	var p [16]uint32 // nvcompProperties_t: version, version of CUDA; room for more
	if e := f.GetProperties(unsafe.Pointer(&p)); e != 0 {
		return "", at, fmt.Errorf("nvcompGetProperties: error %d", e)
	}
	text, err := NVCOMPVersion(p[0])
	return text, at, err
}

// oldestNVCOMP is nvCOMP 5.1: 5.0 decodes some blocks of Zstandard, some offsets of LZ4 and large batches wrongly.
const oldestNVCOMP = 5100

// NVCOMPVersion formats the version number that nvcompGetProperties returns. It returns an error if that version is too
// old.
func NVCOMPVersion(v uint32) (text string, err error) {
	text = fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
	if v < oldestNVCOMP {
		err = fmt.Errorf("nvCOMP is %s, needed is 5.1 or newer", text)
	}
	return text, err
}

// fileOf returns the file from which the loader took a function.
func fileOf(address uintptr) string {
	f, err := os.Open("/proc/self/maps")
	if err != nil || address == 0 {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); { // "55d0-55f0 r-xp 00000000 08:01 1234    /usr/lib/x.so"
		span, rest, _ := strings.Cut(s.Text(), " ")
		from, to, _ := strings.Cut(span, "-")
		low, err1 := strconv.ParseUint(from, 16, 64)
		high, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || uint64(address) < low || uint64(address) >= high {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
	}
	return ""
}
