// Package race tells tests whether the race detector watches them.
package race

import (
	"runtime/debug"
	"slices"
)

// Enabled reports whether this program was built with -race.
func Enabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
