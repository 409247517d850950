package qcreport

import (
	"testing"

	"strata/pkg/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"qc-report": clitest.Of(Command), "linum-generate-pipeline-report": clitest.Of(Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
