// Package gputest opens the device for tests: the software double of a GPU, or the device that STRATA_LIBCUDA
// leads to.
package gputest

import (
	"os"
	"strings"
	"sync"
	"testing"

	"strata/pkg/gpu"
)

// Device opens the first device until the test ends.
func Device(t testing.TB, l gpu.Limits) *gpu.Device {
	t.Helper()
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	Hold(t)
	d, err := gpu.Open(list[0], l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// held holds the first device.
var held = sync.OnceValues(func() (*gpu.Device, error) {
	list, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	return gpu.Open(list[0], gpu.Limits{})
})

// Hold keeps the context of a real device until the process ends, so that it is made once for all tests: that takes
// most of a second. The double makes it in no time, and looks for leaks when it is released, in each test.
func Hold(t testing.TB) {
	t.Helper()
	if list, err := gpu.Devices(); err != nil || list[0].Name == double {
		return
	}
	if _, err := held(); err != nil {
		t.Fatal(err)
	}
}

// double is the name of the double's devices.
const double = "CUEMU"

// Stream opens a stream of a device until the test ends.
func Stream(t testing.TB, d *gpu.Device) *gpu.Stream {
	t.Helper()
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// FaultVariable is the environment variable with an assignment for the double, "CUEMU_FAIL=…", that [Fault] puts
// into effect.
const FaultVariable = "STRATA_TEST_DOUBLE"

// Fault makes the double fail from now on as [FaultVariable] describes; earlier calls do not count.
func Fault() {
	if name, value, ok := strings.Cut(os.Getenv(FaultVariable), "="); ok {
		_ = os.Setenv(name, value)
	}
}

// HoldsBack reports whether the device is the double in its usual mode, in which streams run nothing until
// somebody waits for them. Tests that check for missing results ask for it.
func HoldsBack(d *gpu.Device) bool {
	for _, knob := range []string{"CUEMU_EAGER", "CUEMU_INTERLEAVE", "CUEMU_RACES", "CUEMU_CLOCK"} {
		if v := os.Getenv(knob); v != "" && v != "0" {
			return false
		}
	}
	return d.Info.Name == double
}

// NeedDouble skips a test that needs the double if the tests run on a real device.
func NeedDouble(t testing.TB) {
	t.Helper()
	if list, err := gpu.Devices(); err == nil && list[0].Name != double {
		t.Skip("needs the double of a device")
	}
}
