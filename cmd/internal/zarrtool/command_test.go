package zarrtool

import (
	"testing"

	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"zarr-tool": clitest.Of(Command), "linum-extract-pyramid-levels": clitest.Of(Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
