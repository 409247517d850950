package shifts

import (
	"testing"

	"strata/cmd/internal/phantom"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"shifts": clitest.Of(Command), "linum-estimate-xy-shift-from-metadata": clitest.Of(Command), "linum-detect-rehoming": clitest.Of(Command),
		"linum-analyze-shifts": clitest.Of(Command), "linum_detect_rehoming.py": clitest.Of(Command),
		"linum-analyze-acquisition-rotation": clitest.Of(Command), "linum-suggest-params": clitest.Of(Command),
		"phantom": clitest.Of(phantom.Command),
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
