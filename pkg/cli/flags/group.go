package flags

// Member is a program of several that are one file. Its name, its one-liner and the names that it also goes by stand
// here, so that of all programs only the one that is asked for is made.
type Member struct {
	Name    string
	Usage   string
	Aliases []string // names of other programs whose place it takes
	Command func() *Command
}

// Group returns the command of a program that is several. A member is made when it is named.
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

// Whole returns the sub-commands; those of a group are made.
func (c *Command) Whole() []*Command {
	for i := range c.Commands {
		c.Commands[i] = c.Commands[i].whole()
	}
	return c.Commands
}

// Called makes the member that goes by a name, or has it as an alias; nil if there is none. group is what is typed
// before it: "strata ", or nothing.
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
