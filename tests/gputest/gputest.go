// Package gputest opens the device that tests work on: the double of a GPU, or one that
// STRATA_LIBCUDA leads to.
package gputest

import (
	"os"
	"strings"
	"testing"

	"strata/pkg/gpu"
)

// Device opens the first device for the time of a test.
func Device(t testing.TB, l gpu.Limits) *gpu.Device {
	t.Helper()
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
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

// Stream makes a stream of a device for the time of a test.
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

// FaultVariable names the variable of the double that a test's process sets by [Fault]: "CUEMU_FAIL=…".
const FaultVariable = "STRATA_TEST_DOUBLE"

// Fault lets the double fail from now on as [FaultVariable] says: what was called before does not count.
func Fault() {
	if name, value, ok := strings.Cut(os.Getenv(FaultVariable), "="); ok {
		_ = os.Setenv(name, value)
	}
}

// HoldsBack tells whether the device is the double as it usually is, whose streams run nothing before somebody waits
// for them: tests that look at what is not there yet ask.
func HoldsBack(d *gpu.Device) bool {
	for _, knob := range []string{"CUEMU_EAGER", "CUEMU_INTERLEAVE", "CUEMU_RACES", "CUEMU_CLOCK"} {
		if v := os.Getenv(knob); v != "" && v != "0" {
			return false
		}
	}
	return d.Info.Name == "CUEMU"
}

// NeedDouble skips a test that asks for what only the double does, where the tests run
// on a device.
func NeedDouble(t testing.TB) {
	t.Helper()
	if list, err := gpu.Devices(); err == nil && list[0].Name != "CUEMU" {
		t.Skip("needs the double of a device")
	}
}
