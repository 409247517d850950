//go:build linux && !nocuda

package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"strata/pkg/mem"
)

// Large page-locked memory is the process's own, and the driver's where it cannot be locked; both
// serve copies, and both are given back.
func TestPinned(t *testing.T) {
	for name, own := range map[string]bool{"CUEMU_PINNED=1": true, "CUEMU_PINNED=1 CUEMU_FAIL=cuMemHostRegister_v2:1:2": false, "CUEMU_PINNED=1 CUEMU_FAIL=cuMemHostRegister_v2:1:801": false} {
		t.Run(strings.NewReplacer(" ", "_", "=", "_", ":", "_").Replace(name), func(t *testing.T) {
			if !apart(t, append(strings.Fields(name), fmt.Sprintf("STRATA_TEST_OWN=%v", own))...) {
				return
			}
			list, err := Devices()
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(list[0], Limits{Memory: 8 << 20, Pinned: 8 << 20})
			if err != nil {
				t.Fatal(err)
			}
			before := mem.InUse()
			s, err := d.Stream()
			if err != nil {
				t.Fatal(err)
			}
			streams := mem.InUse()
			h, err := d.Host(3 << 20)
			if err != nil {
				t.Fatal(err)
			}
			if own := os.Getenv("STRATA_TEST_OWN") == "true"; own != (mem.InUse() > streams) {
				t.Errorf("%d bytes of the process's memory", mem.InUse()-streams)
			}
			b, err := d.Memory().Get(3 << 20)
			if err != nil {
				t.Fatal(err)
			}
			h.B[1], h.B[3<<20-1] = 7, 9
			s.Upload(b.Span, h.B)
			s.Zero(b.From(1, 1))
			s.Download(h.B, b.Span)
			if err := s.Wait(); err != nil || h.B[1] != 0 || h.B[3<<20-1] != 9 {
				t.Errorf("%v, %d %d", err, h.B[1], h.B[3<<20-1])
			}
			h.Release()
			b.Release()
			if err := errors.Join(s.Close(), d.Close()); err != nil || mem.InUse() != before {
				t.Errorf("%v, %d bytes are left", err, mem.InUse()-before)
			}
		})
	}
}

// The node of a device's host memory is what the system says, and pages come from it.
func TestNode(t *testing.T) {
	busFolder = t.TempDir()
	defer func() { busFolder = "/sys/bus/pci/devices" }()
	for i, c := range []struct {
		text string
		want int
	}{{"0\n", 0}, {"3\n", 3}, {"-1\n", -1}, {"", -1}, {"4096\n", -1}} {
		pci := fmt.Sprintf("0000:%02d:00.0", i)
		if err := os.Mkdir(filepath.Join(busFolder, pci), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(busFolder, pci, "numa_node"), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := numaNode(pci); got != c.want {
			t.Errorf("%q: node %d, want %d", c.text, got, c.want)
		}
	}
	if got := numaNode("0000:99:00.0"); got != -1 {
		t.Errorf("a device that is not there: node %d", got)
	}
	b, err := mem.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(b)
	policy := func() (mode int32, nodes [16]uint64, err error) {
		const ofAddress = 2 // MPOL_F_ADDR
		_, _, e := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&nodes)), 1025, uintptr(unsafe.Pointer(&b[0])), ofAddress, 0)
		if e != 0 {
			err = e
		}
		return mode, nodes, err
	}
	place(b, -1)
	if mode, _, err := policy(); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return // this system does not place memory, which is not an error
	} else if err != nil || mode != 0 {
		t.Fatalf("policy %d, %v", mode, err)
	}
	place(b, 0)
	if mode, nodes, err := policy(); err != nil || mode != 1 || nodes[0] != 1 {
		t.Errorf("policy %d of nodes %b, %v", mode, nodes[0], err)
	}
	b[0] = 1
}

// The driver is told of hardware queues, and of a folder for what it compiles where the home folder takes
// nothing; what the user said stays.
func TestEnvironment(t *testing.T) {
	full := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(full, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	unset := func(names ...string) {
		for _, n := range names {
			t.Setenv(n, "")
			_ = os.Unsetenv(n)
		}
	}
	unset("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_CACHE_PATH")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	setEnvironment()
	if v, set := os.LookupEnv("CUDA_CACHE_PATH"); set || os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS") != "32" {
		t.Errorf("CUDA_CACHE_PATH=%q, %s connections", v, os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"))
	}
	for _, home := range []string{"", full} {
		unset("CUDA_CACHE_PATH")
		t.Setenv("HOME", home)
		setEnvironment()
		folder := os.Getenv("CUDA_CACHE_PATH")
		if info, err := os.Stat(folder); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("HOME=%s: CUDA_CACHE_PATH=%q, %v", home, folder, err)
		}
	}
	// A folder that others can write is not taken.
	folder := os.Getenv("CUDA_CACHE_PATH")
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	unset("CUDA_CACHE_PATH")
	setEnvironment()
	if v, set := os.LookupEnv("CUDA_CACHE_PATH"); set {
		t.Errorf("CUDA_CACHE_PATH=%q, which others can write", v)
	}
	t.Setenv("CUDA_CACHE_PATH", "/mine")
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8")
	setEnvironment()
	if os.Getenv("CUDA_CACHE_PATH") != "/mine" || os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS") != "8" {
		t.Error("what the user set was changed")
	}
}

// Errors of the Multi-Process Service end the context; what it says of too many clients does not.
func TestSticky(t *testing.T) {
	for _, code := range []int{46, 700, 719, 805, 806, 807, 810, 999} {
		if !errors.Is(&Error{Code: code}, ErrLost) {
			t.Errorf("%d is not sticky", code)
		}
	}
	for _, code := range []int{1, 2, 209, 221, 400, 600, 808, 809} {
		if errors.Is(&Error{Code: code}, ErrLost) {
			t.Errorf("%d is sticky", code)
		}
	}
}

// Only events that are made for it have a time.
func TestEventTimes(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		make func() (*Event, error)
		want bool
	}{{d.Event, false}, {d.TimedEvent, true}} {
		e, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		s.Record(e)
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Since(e); (err == nil) != c.want {
			t.Errorf("time of an event: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
