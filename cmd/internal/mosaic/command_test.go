package mosaic

import (
	"testing"

	"strata/cmd/internal/aip"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/resample"
	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"mosaic": clitest.Of(Command), "linum-create-mosaic-grid-3d": clitest.Of(Command), "aip": clitest.Of(aip.Command),
		"resample": clitest.Of(resample.Command), "phantom": clitest.Of(phantom.Command), "zarr-tool": clitest.Of(zarrtool.Command), "cuttiles": clitest.CutTiles,
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
