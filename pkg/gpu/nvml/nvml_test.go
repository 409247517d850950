//go:build !nocuda

package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/gpu"
)

// needDouble skips a test that asks for what only the double does, where the tests run on a
// machine's library.
func needDouble(t *testing.T) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("needs the double of the library")
	}
}

// machine makes the double tell what text says.
func machine(t *testing.T, text string) {
	t.Helper()
	needDouble(t)
	file := filepath.Join(t.TempDir(), "nvml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CUEMU_NVML", file)
}

const server = `
driver 550.54.15
cuda 12040
gpu
name NVIDIA A100-SXM4-80GB
uuid GPU-11111111-2222-3333-4444-555555555555
pci 1 c7 0
memory 85899345920 10737418240 643825664
bar1 137438953472 3145728
mode 3
ecc 1 0
mig 0 1
pcie 1 4 8 16
utilization 97 12
persistence 1
power 61500
temperature 31
capability 8 0
process 4711 10737418240
process 4712
gpu
name NVIDIA GeForce RTX 2080
uuid GPU-aaaaaaaa-2222-3333-4444-555555555555
pci 0 2 0
memory 8589934592 0
`

func ptr[T any](v T) *T { return &v }

// Everything that the library tells comes through; what it does not tell is nil.
func TestRead(t *testing.T) {
	machine(t, server)
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	want := &Facts{Driver: "550.54.15", CUDA: 12040, Devices: []Device{{
		Name: "NVIDIA A100-SXM4-80GB", UUID: "GPU-11111111-2222-3333-4444-555555555555", PCI: "0001:c7:00.0", Compute: 80,
		Memory: &Memory{85899345920, 85899345920 - 10737418240 - 643825664, 10737418240}, BAR1: &Memory{137438953472, 137438953472 - 3145728, 3145728},
		Mode: ExclusiveProcess, ECC: &Switch{true, false}, MIG: &Switch{false, true}, Link: &Link{1, 4, 8, 16}, Utilization: &Utilization{97, 12},
		Persistence: ptr(true), Power: ptr(61.5), Temperature: ptr(31), Processes: []Process{{4711, 10737418240}, {4712, 0}},
	}, {
		Name: "NVIDIA GeForce RTX 2080", UUID: "GPU-aaaaaaaa-2222-3333-4444-555555555555", PCI: "0000:02:00.0", Memory: &Memory{8589934592, 8589934592, 0},
	}}}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
}

// What the driver shows is what the library knows, on the doubles and on machines.
func TestAgreesWithDriver(t *testing.T) {
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		u, ok := Find(f.Devices, d.UUID, d.PCI)
		if !ok || u.Space() == nil {
			t.Errorf("driver %+v, library %+v", d, f.Devices)
			continue
		}
		t.Logf("%+v", *u.Device)
		if !SameUUID(d.UUID, u.ID()) || d.PCI != u.PCI || d.Name != u.Title() || d.Compute != u.Compute || d.Driver != f.CUDA {
			t.Errorf("driver %+v, library %+v", d, *u.Device)
		}
		// The library counts what the driver keeps for itself.
		if total := u.Space().Total; d.Memory > total || d.Memory < total/10*9 {
			t.Errorf("memory: driver %d, library %d", d.Memory, total)
		}
	}
}

const instanced = `
driver 550.54.15
gpu
name NVIDIA A100-SXM4-80GB
uuid GPU-11111111-2222-3333-4444-555555555555
pci 0 7 0
memory !4
mig 1 1
mig
name NVIDIA A100-SXM4-80GB MIG 3g.40gb
uuid MIG-a0000000-0000-0000-0000-000000000001
memory 42949672960 1073741824
ids 2 0
process 77 1073741824
mig
name NVIDIA A100-SXM4-80GB MIG 1g.10gb
uuid MIG-b0000000-0000-0000-0000-000000000002
memory 10737418240 0
processes
gpu
name NVIDIA A100-SXM4-80GB
uuid GPU-99999999-2222-3333-4444-555555555555
pci 0 8 0
mig 1 1
`

func TestInstances(t *testing.T) {
	machine(t, instanced)
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Devices) != 2 || f.Devices[0].Memory != nil || !f.Devices[1].MIG.Now || f.Devices[1].Instances != nil {
		t.Fatalf("%+v", f.Devices)
	}
	want := []Instance{{
		Name: "NVIDIA A100-SXM4-80GB MIG 3g.40gb", UUID: "MIG-a0000000-0000-0000-0000-000000000001", GPU: 2, Compute: 0,
		Memory: &Memory{42949672960, 41875931136, 1073741824}, Processes: []Process{{77, 1073741824}},
	}, {
		Name: "NVIDIA A100-SXM4-80GB MIG 1g.10gb", UUID: "MIG-b0000000-0000-0000-0000-000000000002", GPU: -1, Compute: -1,
		Memory: &Memory{10737418240, 10737418240, 0}, Processes: []Process{},
	}}
	if got := f.Devices[0].Instances; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	all := Units(f.Devices)
	if len(all) != 3 || all[0].ID() != want[0].UUID || all[1].Title() != want[1].Name || all[1].Space().Total != 10737418240 || len(all[0].Users()) != 1 || all[2].ID() != f.Devices[1].UUID {
		t.Errorf("units %+v", all)
	}
	// As the driver shows an instance to pkg/gpu.
	if u, ok := Find(f.Devices, "GPU-b0000000-0000-0000-0000-000000000002", "0000:07:00.0"); !ok || u.Instance != &f.Devices[0].Instances[1] {
		t.Errorf("found %v %v", u, ok)
	}
}

// A library that does not start says what would be right.
func TestNoStart(t *testing.T) {
	needDouble(t)
	for fail, want := range map[string]string{
		"nvmlInit_v2:1:18":            "the driver was updated and its kernel module is not reloaded yet: reboot, or unload the nvidia modules and load them again",
		"nvmlInit_v2:1:9":             "the driver's kernel module is not loaded, or this container was not given the devices (--nv)",
		"nvmlInit_v2:1:4":             "no permission to talk to the driver: /dev/nvidiactl must be readable and writable",
		"nvmlInit_v2:1:999":           "nvmlInit_v2: Unknown Error (NVML error 999)",
		"nvmlDeviceGetCount_v2:1:999": "nvmlDeviceGetCount_v2: Unknown Error (NVML error 999)",
	} {
		t.Run(fail, func(t *testing.T) {
			if !apart(t, "CUEMU_FAIL="+fail) {
				return
			}
			_, err := Read()
			var no *Unavailable
			if !errors.As(err, &no) || no.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// A broken device does not hide the others.
func TestFaults(t *testing.T) {
	machine(t, "gpu\nhandle !15\ngpu\nname A\nuuid GPU-1\nmemory !16\ngpu\nhandle !4\ngpu\nname C\nuuid GPU-3\nmemory 10 0\npower !999\nprocess 1 5\ngpu\nname D\n"+
		"gpu\nuuid GPU-5\nmemory !8\ngpu\nuuid GPU-6\nbar1 !11\ngpu\nhandle !17\ngpu\nhandle !999")
	f, err := Read()
	if err != nil || len(f.Devices) != 7 || f.Hidden != 2 {
		t.Fatal(f, err)
	}
	for i, want := range []string{"it is lost (fallen off the bus)", "it must be reset", "", "the management library does not report its UUID",
		"its power cables", "its interrupts", "nvmlDeviceGetHandleByIndex_v2: Unknown Error (NVML error 999)"} {
		if got := f.Devices[i].Reason; !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("device %d: %q, want %q", i, got, want)
		}
	}
	if d := f.Devices[2]; d.Name != "C" || d.Power != nil || d.Memory.Free != 10 || len(d.Processes) != 1 {
		t.Errorf("%+v", d)
	}
}

// More processes than there is room for at first.
func TestManyProcesses(t *testing.T) {
	machine(t, "gpu\nuuid GPU-1\n"+strings.Repeat("process 5 1\n", 300))
	f, err := Read()
	if err != nil || len(f.Devices[0].Processes) != 300 || f.Devices[0].Processes[299] != (Process{5, 1}) {
		t.Error(f, err)
	}
	machine(t, "gpu\nuuid GPU-1\n"+strings.Repeat("process 5 1\n", most+1))
	if f, err := Read(); err != nil || f.Devices[0].Processes != nil {
		t.Error("takes more processes than there can be", err)
	}
}

// A library of a driver that knows less.
func TestOldLibrary(t *testing.T) {
	old := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	const source = "../../../tests/cudaemu/double/nvml/nvml.cpp"
	if _, err := os.Stat(source); err != nil {
		t.Skip("needs the double's source")
	}
	if os.Getenv("STRATA_TEST_APART") == "" {
		if out, err := exec.Command("g++", "-std=c++17", "-DNVML_DOUBLE_OLD", "-shared", "-fPIC", "-o", old, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	machine(t, server)
	if !apart(t, Variable+"="+old, "CUEMU_NVML="+os.Getenv("CUEMU_NVML")) {
		return
	}
	f, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	d := f.Devices[0]
	if f.CUDA != 0 || f.Driver != "550.54.15" || d.Compute != 0 || d.MIG != nil || d.Processes != nil || d.Mode != ExclusiveProcess {
		t.Errorf("%+v", f)
	}
	if *d.Memory != (Memory{85899345920, 85899345920 - 10737418240 - 643825664, 10737418240 + 643825664}) {
		t.Errorf("%+v", d.Memory)
	}
}

func TestNoLibrary(t *testing.T) {
	for file, want := range map[string]string{
		"/nonexistent/libnvidia-ml.so": "NVIDIA's management library cannot be opened: /nonexistent/libnvidia-ml.so",
		"libc.so.6":                    "the management library is older than CUDA 12.0 or not NVIDIA's: it has no nvmlInit_v2",
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if !apart(t, Variable+"="+file) {
				return
			}
			if _, err := Read(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// apart tells whether this is the process of its own, with the environment, that a test
// runs in; elsewhere it starts that.
func apart(t *testing.T, environment ...string) bool {
	t.Helper()
	if os.Getenv("STRATA_TEST_APART") != "" {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	c.Env = append(append(os.Environ(), "STRATA_TEST_APART=1"), environment...)
	if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
