package normalize

import (
	"testing"

	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"normalize": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command),
		"linum-normalize-intensities-per-slice": clitest.Of(Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
