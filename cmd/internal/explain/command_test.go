package explain

import (
	"testing"

	"strata/tests/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"explain": clitest.Of(Command)}) }

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }
