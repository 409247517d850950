package flatfield

import (
	"testing"

	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	run := clitest.Of(Command)
	clitest.Main(m, map[string]func(){"flatfield": run, "linum-fix-illumination-3d": run, "linum_fix_illumination_basic": run})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
