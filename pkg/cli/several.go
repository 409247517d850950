package cli

import (
	"os"

	"strata/pkg/cli/flags"
	"strata/pkg/cli/run"
)

// MainOf is Main of a program that contains all members of a group. A link with a member's name or alias starts that
// command; under the program's own name, the first argument names it.
func MainOf(name, usage string, members []Member) {
	c, args := started(name, os.Args, members)
	if len(args) < len(os.Args) {
		run.StartedBy(os.Args[0])
	}
	os.Args = args
	if c != nil {
		Main(c)
	}
	if len(os.Args) > 1 && flags.IsFlag(os.Args[1]) && !flags.IsAbout(os.Args[1]) {
		os.Exit(run.PrintError(os.Stderr, name, Usage("%s: the command comes first (%s --help lists them)", os.Args[1], name)))
	}
	Main(flags.Group(name, usage, members))
}

// started is the member that a command line starts, nil if none, and the command line without the name of the
// group: "strata aip IN" is "aip IN", in the run's record too.
func started(group string, argv []string, members []Member) (*Command, []string) {
	if !flags.SameName(argv[0], group) {
		if c := flags.Called(argv[0], "", members); c != nil {
			return c, argv
		}
	}
	if len(argv) > 1 && !flags.IsFlag(argv[1]) {
		if c := flags.Called(argv[1], group+" ", members); c != nil {
			return c, argv[1:]
		}
	}
	return nil, argv
}
