package cli

import (
	"os"
	"strings"
)

// MainOf is Main of one program that is several: all commands of a group. Started
// by a link of a command's name, or an alias of it, it is that command; under its
// own name the command is the first argument.
func MainOf(group *Command) {
	os.Args = group.dispatch(os.Args)
	if c := group.member(os.Args[0]); c != nil {
		Main(c)
	}
	if len(os.Args) > 1 && isFlag(os.Args[1]) && !aboutGroup(os.Args[1]) {
		os.Exit(printError(os.Stderr, group.Name, Usage("%s: the command comes first (%s --help lists them)", os.Args[1], group.Name)))
	}
	group.group = true
	Main(group)
}

// dispatch removes the group's own name from a command line that names a member
// behind it: "strata aip IN" is "aip IN", in the run's record too.
func (c *Command) dispatch(argv []string) []string {
	if c.member(argv[0]) == nil && len(argv) > 1 && c.member(argv[1]) != nil {
		return argv[1:]
	}
	return argv
}

// member is the command of a group that goes by a name; nil if there is none.
func (c *Command) member(argv0 string) *Command {
	for _, m := range c.Commands {
		if sameName(argv0, m.Name) || m.aliasOf(argv0) != nil {
			return m
		}
	}
	return nil
}

// aboutGroup: flags that say something of the program itself.
func aboutGroup(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	switch canonical(strings.TrimLeft(name, "-")) {
	case "h", "help", "version", "completion", "man":
		return true
	}
	return false
}
