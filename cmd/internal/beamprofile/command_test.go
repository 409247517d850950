package beamprofile

import (
	"testing"

	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"beam-profile": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command),
		"linum-compensate-psf-model-free": clitest.Of(Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
