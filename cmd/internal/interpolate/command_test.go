package interpolate

import (
	"testing"

	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	program := clitest.Of(Command)
	clitest.Main(m, map[string]func(){"interpolate": program, "linum-interpolate-missing-slice": program, "zarr-tool": clitest.Of(zarrtool.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
