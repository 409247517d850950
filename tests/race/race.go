// Package race tells tests whether the race detector is active.
package race

import (
	"runtime/debug"
	"slices"
	"testing"
)

// Enabled reports whether this program was built with -race.
func Enabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Leave skips a test under the race detector. It is for tests that take seconds and start no goroutines that other
// tests do not start as well: under the race detector computing takes ten times as long, and programs take a
// second to start.
func Leave(t testing.TB) {
	t.Helper()
	if Enabled() {
		t.Skip("left to the run without the race detector")
	}
}
