package explain

import (
	"testing"

	"strata/cmd/internal/aip"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/stitch"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"explain": clitest.Of(Command), "aip": clitest.Of(aip.Command), "phantom": clitest.Of(phantom.Command), "stitch": clitest.Of(stitch.Command),
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
