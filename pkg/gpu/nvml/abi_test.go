//go:build !nocuda

package nvml

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// Sizes, offsets, numbers and prototypes are those of NVIDIA's headers, where those are:
// STRATA_TEST_NVML_INCLUDE is a list of folders that hold nvml.h.
func TestLayout(t *testing.T) {
	folders := filepath.SplitList(os.Getenv("STRATA_TEST_NVML_INCLUDE"))
	if len(folders) == 0 {
		t.Skip("STRATA_TEST_NVML_INCLUDE does not name NVIDIA's headers")
	}
	program := &strings.Builder{}
	program.WriteString("#include <stddef.h>\n#include <nvml.h>\n")
	same := func(c string, v any) {
		fmt.Fprintf(program, "_Static_assert((%s) == %v, \"%s is not %v\");\n", c, v, c, v)
	}
	var m memory
	var m2 memory2
	var p pciInfo
	var c process
	var u utilization
	for name, size := range map[string]uintptr{
		"nvmlMemory_t": unsafe.Sizeof(m), "nvmlBAR1Memory_t": unsafe.Sizeof(m), "nvmlMemory_v2_t": unsafe.Sizeof(m2), "nvmlPciInfo_t": unsafe.Sizeof(p),
		"nvmlProcessInfo_t": unsafe.Sizeof(c), "nvmlUtilization_t": unsafe.Sizeof(u), "nvmlDevice_t": unsafe.Sizeof(uintptr(0)),
		"nvmlReturn_t": unsafe.Sizeof(result(0)), "nvmlEnableState_t": 4, "nvmlComputeMode_t": 4, "nvmlTemperatureSensors_t": 4, "unsigned int": 4,
	} {
		same("sizeof("+name+")", size)
	}
	for field, at := range map[string]uintptr{
		"nvmlMemory_t, total": unsafe.Offsetof(m.total), "nvmlMemory_t, free": unsafe.Offsetof(m.free), "nvmlMemory_t, used": unsafe.Offsetof(m.used),
		"nvmlBAR1Memory_t, bar1Total": unsafe.Offsetof(m.total), "nvmlBAR1Memory_t, bar1Free": unsafe.Offsetof(m.free), "nvmlBAR1Memory_t, bar1Used": unsafe.Offsetof(m.used),
		"nvmlMemory_v2_t, version": unsafe.Offsetof(m2.version), "nvmlMemory_v2_t, total": unsafe.Offsetof(m2.total), "nvmlMemory_v2_t, reserved": unsafe.Offsetof(m2.reserved),
		"nvmlMemory_v2_t, free": unsafe.Offsetof(m2.free), "nvmlMemory_v2_t, used": unsafe.Offsetof(m2.used),
		"nvmlPciInfo_t, domain": unsafe.Offsetof(p.domain), "nvmlPciInfo_t, bus": unsafe.Offsetof(p.bus), "nvmlPciInfo_t, device": unsafe.Offsetof(p.device),
		"nvmlPciInfo_t, busId": unsafe.Offsetof(p.busID), "nvmlProcessInfo_t, pid": unsafe.Offsetof(c.pid), "nvmlProcessInfo_t, usedGpuMemory": unsafe.Offsetof(c.used),
		"nvmlUtilization_t, gpu": unsafe.Offsetof(u.gpu), "nvmlUtilization_t, memory": unsafe.Offsetof(u.memory),
	} {
		same("offsetof("+field+")", at)
	}
	for name, value := range map[string]int{
		"NVML_ERROR_NO_PERMISSION": codeNoPermission, "NVML_ERROR_NOT_FOUND": codeNotFound, "NVML_ERROR_INSUFFICIENT_SIZE": codeInsufficientSize,
		"NVML_ERROR_INSUFFICIENT_POWER": codeInsufficientPower, "NVML_ERROR_DRIVER_NOT_LOADED": codeDriverNotLoaded, "NVML_ERROR_IRQ_ISSUE": codeIRQIssue,
		"NVML_ERROR_GPU_IS_LOST": codeLost, "NVML_ERROR_RESET_REQUIRED": codeResetRequired, "NVML_ERROR_OPERATING_SYSTEM": codeOperatingSystem,
		"NVML_ERROR_LIB_RM_VERSION_MISMATCH": codeVersionMismatch, "nvmlMemory_v2": memory2Version, "NVML_DEVICE_NAME_V2_BUFFER_SIZE": nameBuffer,
		"NVML_DEVICE_UUID_V2_BUFFER_SIZE": uuidBuffer, "NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE": versionBuffer, "NVML_TEMPERATURE_GPU": sensorGPU,
		"NVML_COMPUTEMODE_DEFAULT": modeDefault, "NVML_COMPUTEMODE_EXCLUSIVE_THREAD": modeExclusiveThread,
		"NVML_COMPUTEMODE_PROHIBITED": modeProhibited, "NVML_COMPUTEMODE_EXCLUSIVE_PROCESS": modeExclusiveProcess,
	} {
		same(name, value)
	}
	same("(unsigned long long)NVML_VALUE_NOT_AVAILABLE", "18446744073709551615ULL")
	// As purego calls them: what the parameters are.
	for _, table := range []any{lib.required, lib.cuda, lib.memory2, lib.capability, lib.processes, lib.instances} {
		for f := range reflect.TypeOf(table).Fields() {
			fmt.Fprintf(program, "%s;\n", prototype(f))
		}
	}
	for _, folder := range folders {
		file := filepath.Join(t.TempDir(), "layout.c")
		if err := os.WriteFile(file, []byte(program.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("g++", "-x", "c", "-std=gnu11", "-Werror=incompatible-pointer-types", "-fsyntax-only", "-I"+folder, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", folder, err, out, program)
		}
	}
}

// prototype is a pointer to what a function of a table is in C, set to NVIDIA's. Enumerations
// are unsigned to the compiler, which tells them apart from int.
func prototype(f reflect.StructField) string {
	name := f.Tag.Get("sym")
	words := map[reflect.Type]string{
		reflect.TypeFor[uintptr](): "nvmlDevice_t", reflect.TypeFor[*uintptr](): "nvmlDevice_t *", reflect.TypeFor[uint32](): "unsigned int",
		reflect.TypeFor[*uint32](): "unsigned int *", reflect.TypeFor[*int32](): "int *", reflect.TypeFor[*byte](): "char *", reflect.TypeFor[result](): "nvmlReturn_t",
		reflect.TypeFor[*memory](): "nvmlMemory_t *", reflect.TypeFor[*memory2](): "nvmlMemory_v2_t *", reflect.TypeFor[*pciInfo](): "nvmlPciInfo_t *",
		reflect.TypeFor[*process](): "nvmlProcessInfo_t *", reflect.TypeFor[*utilization](): "nvmlUtilization_t *", reflect.TypeFor[int32](): "nvmlTemperatureSensors_t",
	}
	switch name {
	case "nvmlDeviceGetComputeMode":
		words[reflect.TypeFor[*int32]()] = "nvmlComputeMode_t *"
	case "nvmlDeviceGetEccMode", "nvmlDeviceGetPersistenceMode":
		words[reflect.TypeFor[*int32]()] = "nvmlEnableState_t *"
	case "nvmlDeviceGetBAR1MemoryInfo":
		words[reflect.TypeFor[*memory]()] = "nvmlBAR1Memory_t *"
	}
	var in []string
	for p := range f.Type.Ins() {
		in = append(in, words[p])
	}
	if len(in) == 0 {
		in = []string{"void"}
	}
	out := words[f.Type.Out(0)]
	if name == "nvmlErrorString" {
		out = "const char *"
	}
	return fmt.Sprintf("%s (*p_%s)(%s) = %s", out, name, strings.Join(in, ", "), name)
}

// A real library, where STRATA_TEST_LIBNVML names one, has every function that is bound, and
// says without a driver what is missing.
func TestReal(t *testing.T) {
	file := os.Getenv("STRATA_TEST_LIBNVML")
	if file == "" {
		t.Skip("STRATA_TEST_LIBNVML does not name NVIDIA's library")
	}
	if os.Getenv("STRATA_TEST_APART") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestReal$", "-test.v", "-test.timeout=60s")
		c.Env = append(os.Environ(), "STRATA_TEST_APART=1", Variable+"="+file)
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	f, err := Read()
	for _, table := range []any{lib.required, lib.cuda, lib.memory2, lib.capability, lib.processes, lib.instances} {
		v := reflect.ValueOf(table)
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				t.Errorf("%s is not bound", v.Type().Field(i).Tag.Get("sym"))
			}
		}
	}
	if err != nil {
		t.Logf("tells nothing: %v", err)
		return
	}
	t.Logf("%+v", f)
}
