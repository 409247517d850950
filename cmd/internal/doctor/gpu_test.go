//go:build !nocuda

package doctor

import (
	"testing"

	"strata/tests/clitest"
	"strata/tests/cudaemu"
)

// With the double of the driver, which scripts find below $ROOT.
func TestScriptsGPU(t *testing.T) {
	if _, err := cudaemu.Build(); err != nil {
		t.Fatal(err)
	}
	clitest.Scripts(t, "testdata/gpu")
}
