//go:build !linux

package filelayer

import (
	"os"

	"strata/pkg/settings"
)

// drives returns nil: there is no cuFile on this system.
func drives(*os.File, settings.Mode) error { return nil }
