//go:build !nocuda

package cufile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"strata/pkg/gpu"
	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// Sizes, offsets and numbers are those of NVIDIA's headers, where those are:
// STRATA_TEST_CUFILE is a list of folders that hold include/cufile.h and lib/libcufile.so.0,
// STRATA_TEST_CUDA_INCLUDE one that holds cuda.h.
func TestLayout(t *testing.T) {
	roots, cuda := filepath.SplitList(os.Getenv("STRATA_TEST_CUFILE")), os.Getenv("STRATA_TEST_CUDA_INCLUDE")
	if len(roots) == 0 || cuda == "" {
		t.Skip("STRATA_TEST_CUFILE and STRATA_TEST_CUDA_INCLUDE do not name NVIDIA's headers")
	}
	var d descriptor
	var p properties
	program := &strings.Builder{}
	program.WriteString("#include <stddef.h>\n#include <cufile.h>\n")
	same := func(c string, v any) {
		fmt.Fprintf(program, "_Static_assert((%s) == %v, \"%s is not %v\");\n", c, v, c, v)
	}
	same("sizeof(CUfileError_t)", unsafe.Sizeof(failure(0)))
	same("offsetof(CUfileError_t, cu_err)", 4)
	same("sizeof(CUfileHandle_t)", unsafe.Sizeof(uintptr(0)))
	same("sizeof(CUfileDescr_t)", unsafe.Sizeof(d))
	same("offsetof(CUfileDescr_t, type)", unsafe.Offsetof(d.kind))
	same("offsetof(CUfileDescr_t, handle.fd)", unsafe.Offsetof(d.handle))
	same("offsetof(CUfileDescr_t, fs_ops)", unsafe.Offsetof(d.ops))
	same("sizeof(((CUfileDescr_t *)0)->handle)", unsafe.Sizeof(d.handle))
	same("sizeof(CUfileDrvProps_t)", unsafe.Sizeof(p))
	for field, at := range map[string]uintptr{
		"nvfs.major_version": unsafe.Offsetof(p.nvfs.major), "nvfs.minor_version": unsafe.Offsetof(p.nvfs.minor),
		"nvfs.poll_thresh_size": unsafe.Offsetof(p.nvfs.pollThreshold), "nvfs.max_direct_io_size": unsafe.Offsetof(p.nvfs.maxDirectIO),
		"nvfs.dstatusflags": unsafe.Offsetof(p.nvfs.status), "nvfs.dcontrolflags": unsafe.Offsetof(p.nvfs.control),
		"fflags": unsafe.Offsetof(p.features), "max_device_cache_size": unsafe.Offsetof(p.deviceCache),
		"per_buffer_cache_size": unsafe.Offsetof(p.bufferCache), "max_device_pinned_mem_size": unsafe.Offsetof(p.devicePinned),
		"max_batch_io_size": unsafe.Offsetof(p.batchSize), "max_batch_io_timeout_msecs": unsafe.Offsetof(p.batchTimeout),
	} {
		same("offsetof(CUfileDrvProps_t, "+field+")", at)
	}
	same("CU_FILE_HANDLE_TYPE_OPAQUE_FD", handleOpaqueFD)
	same("CU_FILE_NVME_P2P_SUPPORTED", statusP2P)
	same("CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE", allowCompat)
	same("CUFILE_PARAM_FORCE_COMPAT_MODE", forceCompat)
	same("CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | CU_FILE_STREAM_FIXED_FILE_SIZE", fixedStreams)
	var a arguments
	same("sizeof(size_t)", unsafe.Sizeof(a.bytes))
	same("sizeof(bool)", 1)
	for code, name := range names {
		same(name, code)
	}
	// As purego calls them: the parameters' sizes and the result's.
	program.WriteString("CUfileError_t (*v)(int *) = cuFileGetVersion, (*o)(void) = cuFileDriverOpen, (*c)(void) = cuFileDriverClose_v2;\n" +
		"CUfileError_t (*p)(CUfileDrvProps_t *) = cuFileDriverGetProperties, (*r)(CUfileHandle_t *, CUfileDescr_t *) = cuFileHandleRegister;\n" +
		"void (*d)(CUfileHandle_t) = cuFileHandleDeregister;\n" +
		"ssize_t (*rd)(CUfileHandle_t, void *, size_t, off_t, off_t) = cuFileRead;\n" +
		"ssize_t (*wr)(CUfileHandle_t, const void *, size_t, off_t, off_t) = cuFileWrite;\n" +
		"CUfileError_t (*sb)(CUFileBoolConfigParameter_t, bool) = cuFileSetParameterBool, (*gb)(CUFileBoolConfigParameter_t, bool *) = cuFileGetParameterBool;\n" +
		"CUfileError_t (*br)(const void *, size_t, int) = cuFileBufRegister, (*bd)(const void *) = cuFileBufDeregister;\n" +
		"CUfileError_t (*sr)(CUstream, unsigned) = cuFileStreamRegister, (*sd)(CUstream) = cuFileStreamDeregister;\n" +
		"CUfileError_t (*ra)(CUfileHandle_t, void *, size_t *, off_t *, off_t *, ssize_t *, CUstream) = cuFileReadAsync;\n" +
		"CUfileError_t (*wa)(CUfileHandle_t, void *, size_t *, off_t *, off_t *, ssize_t *, CUstream) = cuFileWriteAsync;\n" +
		"_Static_assert(sizeof(CUFileBoolConfigParameter_t) == 4 && sizeof(off_t) == 8 && sizeof(ssize_t) == 8, \"sizes of parameters\");\n")
	for _, root := range roots {
		include := filepath.Join(root, "include")
		text := program.String()
		header, err := os.ReadFile(filepath.Join(include, "cufile.h"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(header), "CU_FILE_P2P_SUPPORTED") {
			text += fmt.Sprintf("_Static_assert(CU_FILE_P2P_SUPPORTED == %d, \"P2P\");\n", featureP2P)
		}
		file := filepath.Join(t.TempDir(), "layout.c")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("g++", "-x", "c", "-std=gnu11", "-Werror=incompatible-pointer-types", "-fsyntax-only", "-I"+cuda, "-I"+include, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", root, err, out)
		}
	}
}

// The real libraries have every function that is bound, tell their version and take
// parameters; without the kernel module they say so, end, and leave no log file.
func TestReal(t *testing.T) {
	if os.Getenv("STRATA_TEST_APART") != "" {
		realLibrary(t)
		return
	}
	roots := filepath.SplitList(os.Getenv("STRATA_TEST_CUFILE"))
	if len(roots) == 0 {
		t.Skip("STRATA_TEST_CUFILE does not name NVIDIA's libraries")
	}
	for _, root := range roots {
		c := exec.Command(os.Args[0], "-test.run=^TestReal$", "-test.v", "-test.timeout=60s")
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "STRATA_TEST_APART=1", "STRATA_LIBCUFILE="+filepath.Join(root, "lib", "libcufile.so.0"))
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("%s: %v", root, err)
		}
		if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
			t.Errorf("%v, left behind: %v", err, left)
		}
	}
}

func realLibrary(t *testing.T) {
	if err := load(); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(lib.required)
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			t.Errorf("%s is not bound", v.Type().Field(i).Name)
		}
	}
	var version int32
	if f := lib.GetVersion(&version); f.code() != 0 || version < 1070 {
		t.Errorf("version %d, error %d", version, f.code())
	}
	if !lib.configurable || !lib.ordered {
		t.Fatal("parameters or streams are not bound")
	}
	for _, on := range []bool{true, false} {
		var is byte
		if f := lib.SetBool(allowCompat, on); f.code() != 0 {
			t.Errorf("set: error %d", f.code())
		}
		if f := lib.GetBool(allowCompat, &is); f.code() != 0 || (is != 0) != on {
			t.Errorf("get: %v, error %d", is, f.code())
		}
	}
	d := device(t)
	_, err := Open(d)
	if err == nil {
		t.Fatal("moves data to a device that is none")
	}
	t.Logf("version %s: %v", gpu.Version(version), err)
}
