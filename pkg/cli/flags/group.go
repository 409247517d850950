package flags

// Member is one of several programs in one file. It holds the program's name, one-line description and aliases, so that
// only the command of the requested program has to be built.
type Member struct {
	Name    string
	Usage   string
	Aliases []string // names of other programs whose place it takes
	Command func() *Command
}

// Group returns the command of several programs in one file. It builds a member's command only when that member is
// named.
func Group(name, usage string, members []Member) *Command {
	g := &Command{Name: name, Usage: usage, group: true}
	for _, m := range members {
		g.Commands = append(g.Commands, &Command{Name: m.Name, Usage: m.Usage, make: m.Command})
	}
	return g
}

// IsGroup reports whether the command is several programs in one file.
func (c *Command) IsGroup() bool { return c.group }

// whole returns the command, which is made if it is a member that was not asked for yet.
func (c *Command) whole() *Command {
	if c.make == nil {
		return c
	}
	return c.make()
}

// Whole returns the sub-commands. It builds those of a group.
func (c *Command) Whole() []*Command {
	for i := range c.Commands {
		c.Commands[i] = c.Commands[i].whole()
	}
	return c.Commands
}

// Called builds the command of the member with the given name or alias, or returns nil if there is none. group is the
// text that is typed before the name: "strata " or "".
func Called(argv0, group string, members []Member) *Command {
	for _, m := range members {
		called := SameName(argv0, m.Name)
		for _, a := range m.Aliases {
			called = called || SameName(argv0, a)
		}
		if called {
			c := m.Command()
			c.by = group
			return c
		}
	}
	return nil
}
