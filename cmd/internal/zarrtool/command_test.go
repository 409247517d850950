package zarrtool

import (
	"testing"

	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	mains := map[string]func(){"zarr-tool": clitest.Of(Command)}
	for _, a := range Command().Aliases {
		mains[a.Name] = clitest.Of(Command)
	}
	clitest.Main(m, mains)
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
