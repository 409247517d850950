package register

import (
	"testing"

	"strata/cmd/internal/crop"
	"strata/cmd/internal/normalize"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/stack"
	"strata/cmd/internal/stitch"
	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"register": clitest.Of(Command), "linum-register-pairwise": clitest.Of(Command), "linum-analyze-registration-transforms": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command), "stack": clitest.Of(stack.Command),
		"phantom": clitest.Of(phantom.Command), "stitch": clitest.Of(stitch.Command), "crop": clitest.Of(crop.Command), "normalize": clitest.Of(normalize.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
