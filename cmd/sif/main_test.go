package main

import (
	"testing"

	"strata/pkg/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, map[string]func(){"sif": main}) }

func TestCommand(t *testing.T) { clitest.Check(t, command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
