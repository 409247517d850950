package qcreport

import (
	"testing"

	"strata/cmd/internal/crop"
	"strata/cmd/internal/phantom"
	"strata/cmd/internal/register"
	"strata/cmd/internal/stack"
	"strata/cmd/internal/stitch"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"qc-report": clitest.Of(Command), "linum-generate-pipeline-report": clitest.Of(Command), "phantom": clitest.Of(phantom.Command),
		"stitch": clitest.Of(stitch.Command), "crop": clitest.Of(crop.Command), "register": clitest.Of(register.Command), "stack": clitest.Of(stack.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
