package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Member is a program of several that are one file: its name, and what makes its command. Of all programs only
// the one that is started is made.
type Member struct {
	Name    string
	Command func() *Command
}

// MainOf is Main of one program that is several: all members of a group. Started
// by a link of a member's name, or an alias of it, it is that command; under its
// own name the command is the first argument.
func MainOf(group *Command, members []Member) {
	c, args := started(group.Name, os.Args, members)
	if len(args) < len(os.Args) {
		startedBy = os.Args[0]
	}
	os.Args = args
	if c != nil {
		Main(c)
	}
	if len(os.Args) > 1 && isFlag(os.Args[1]) && !aboutGroup(os.Args[1]) {
		os.Exit(printError(os.Stderr, group.Name, Usage("%s: the command comes first (%s --help lists them)", os.Args[1], group.Name)))
	}
	group.Commands, group.group = Commands(members), true
	Main(group)
}

// startedBy is the name by which the group was started whose argument names this program; "" without one.
var startedBy string

// commandLine returns the words with which this process was started.
func commandLine() []string {
	if startedBy == "" {
		return os.Args
	}
	return append([]string{startedBy}, os.Args...)
}

// Self returns the words that start this program again as it was started: its file, and behind that of a group its name. Another
// program may have the same name alone.
func Self() ([]string, error) {
	words := slices.Clone(commandLine())
	words = words[:len(words)-len(os.Args)+1]
	file, err := exec.LookPath(words[0])
	if err != nil {
		return nil, err
	}
	words[0] = file
	return words, nil
}

// Commands makes the commands of all members.
func Commands(members []Member) []*Command {
	all := make([]*Command, len(members))
	for i, m := range members {
		all[i] = m.Command()
	}
	return all
}

// started is the member that a command line starts, nil if none, and the command line without the name of the
// group: "strata aip IN" is "aip IN", in the run's record too.
func started(group string, argv []string, members []Member) (*Command, []string) {
	if !sameName(argv[0], group) {
		if c := member(argv[0], members); c != nil {
			return c, argv
		}
	}
	if len(argv) > 1 && !isFlag(argv[1]) {
		if c := member(argv[1], members); c != nil {
			c.by = group + " "
			return c, argv[1:]
		}
	}
	return nil, argv
}

// member is the command that goes by a name, or has it as an alias; nil if there is none.
func member(argv0 string, members []Member) *Command {
	for _, m := range members {
		if sameName(argv0, m.Name) {
			return m.Command()
		}
	}
	for _, m := range members {
		if c := m.Command(); c.aliasOf(argv0) != nil {
			return c
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
