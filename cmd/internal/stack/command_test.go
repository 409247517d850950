package stack

import (
	"testing"

	"strata/cmd/internal/crop"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/stitch"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"stack": clitest.Of(Command), "phantom": clitest.Of(phantom.Command), "stitch": clitest.Of(stitch.Command), "crop": clitest.Of(crop.Command), "linum-stack-motor-only": clitest.Of(Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
