package commonspace

import (
	"testing"

	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	program := clitest.Of(Command)
	clitest.Main(m, map[string]func(){"common-space": program, "linum-align-mosaics-3d-from-shifts": program, "zarr-tool": clitest.Of(zarrtool.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
