// Package race tells tests whether the race detector watches them.
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

// Leave skips a test under the race detector: one that starts no goroutines, or none that no other test starts, and
// takes seconds. Computing takes ten times as long there, and programs take a second to start.
func Leave(t testing.TB) {
	t.Helper()
	if Enabled() {
		t.Skip("left to the run without the race detector")
	}
}
