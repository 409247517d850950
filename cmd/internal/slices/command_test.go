package slices

import (
	"testing"

	"strata/cmd/internal/phantom"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"slices": clitest.Of(Command), "linum-generate-slice-config": clitest.Of(Command), "linum-assess-slice-quality": clitest.Of(Command),
		"linum-auto-exclude-slices": clitest.Of(Command), "phantom": clitest.Of(phantom.Command),
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
