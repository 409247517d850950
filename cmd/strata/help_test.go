package main

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"strata/pkg/cli"
	"strata/pkg/cli/flags"
	"strata/tests/clitest"
)

// The help of -h fits a screen of 24 lines and 80 columns, whatever the program; only usage and examples, which are
// typed as they stand, may be wider.
func TestHelpFitsAScreen(t *testing.T) {
	program := clitest.Program(t, "strata")
	var look func(path []string, c *cli.Command)
	look = func(path []string, c *cli.Command) {
		out, err := exec.Command(program, append(path[:len(path):len(path)], "-h")...).Output()
		if err != nil {
			t.Fatalf("%v -h: %v", path, err)
		}
		lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if len(lines) > 24 {
			t.Errorf("%v -h has %d lines:\n%s", path, len(lines), out)
		}
		examples := false
		for _, line := range lines {
			examples = line == "Examples:" || examples && line != ""
			if utf8.RuneCountInString(line) > 80 && !examples && !strings.Contains(line, "[flags]") {
				t.Errorf("%v -h: wider than a screen: %s", path, line)
			}
		}
		for _, f := range c.Flags {
			if !f.Hidden && c.Run != nil && !strings.Contains(string(out), f.Name) && !strings.Contains(string(out), " more\n") {
				t.Errorf("%v -h does not name --%s", path, f.Name)
			}
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, " --help") {
			t.Errorf("%v -h ends with %q: want the way to all options", path, last)
		}
		for _, sub := range c.Commands {
			look(append(path[:len(path):len(path)], sub.Name), sub)
		}
	}
	all := flags.Group("strata", "all programs", members)
	all.Whole()
	look(nil, all)
}
