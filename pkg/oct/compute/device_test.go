//go:build !nocuda

package compute

import (
	"testing"

	"strata/pkg/oct"
	"strata/tests/octtest"
)

func init() {
	machines["device"] = func(t *testing.T) *oct.Resources {
		return &oct.Resources{Workers: 2, Mem: 64 << 20, Device: octtest.Device(t, 32<<20)}
	}
}
