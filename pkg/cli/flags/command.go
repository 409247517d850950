// Package flags describes commands and their flags, and parses command lines.
//
// A [Command] is data. [Parse] makes of it the commands and flags of github.com/urfave/cli, which parses, dispatches
// and suggests; what linumpy's scripts and habits write another way is rewritten before, by one pure function: flags
// anywhere, --a-b for --a_b, --no-x, and lists of numbers as further words. The result is a [Line].
package flags

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Command describes a binary, or one sub-command of a binary.
type Command struct {
	Name        string    // as typed: "aip", "info"
	Usage       string    // one line, lower case, without a full stop
	Description string    // what it does, in a paragraph or a few; may be empty
	Args        []Arg     // positional arguments, in order
	Flags       []Flag    // its own flags
	Shared      Shared    // which groups of common flags it has; Stage: all
	Defaults    Defaults  // other defaults of common flags, by name: {"n_levels": "0"}
	Hints       Hints     // what common flags mean here, by name
	Examples    []Example // shown at the end of the help
	Aliases     []Alias   // names of programs whose place it can take

	// Gone are flags of programs that it can take the place of which would change the result
	// if they were ignored: by name, what to give instead.
	Gone map[string]string

	// Run does the work; package run makes it of a program's function.
	Run Action

	// Commands are sub-commands. A command has Commands or Run, or both. If it has both, a first word that names a
	// sub-command is the sub-command, and any other first word is an argument.
	Commands []*Command

	original string // its own name, and
	alias    *Alias // what is different, where it runs under another one
	group    bool   // of programs, each with a page of the manual; see [Group]
	make     func() *Command
	by       string // what is typed before its name: "strata " where a group started it
}

// Arg describes a positional argument. Arguments are required unless Optional
// (only after all required ones); the last may stand for one or more (Many), and
// may be the command line of another program (Rest): from its first word on
// nothing is a flag of this one.
type Arg struct {
	Name     string // upper case: "IN"
	Usage    string // what it is, without a full stop
	Optional bool
	Many     bool
	Rest     bool // with Many
}

// Example is one line of the examples in the help.
type Example struct {
	Command string // "aip in.ome.zarr out.ome.zarr --png out.png"
	Usage   string // what it does; may be empty
}

// Typed returns the command line of an example of the command of path, which may begin with the group that started it.
func (e *Example) Typed(path string) string {
	if group, own, ok := strings.Cut(path, " "); ok && strings.HasPrefix(e.Command, own+" ") {
		return group + " " + e.Command
	}
	return e.Command
}

// Defaults replaces defaults of common flags for one command.
type Defaults map[string]string

// Hints replace parts of the help of common flags for one command.
type Hints map[string]Hint

// Hint replaces the name of a flag's value, and the default that the help shows. An empty field changes nothing.
type Hint struct{ Value, Note string }

// Check says what is wrong with the description of a command: names used
// twice, defaults that do not parse, arguments in an impossible order. Tests of
// a binary call it (clitest does); Main does not, to start fast.
func (c *Command) Check() error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("command "+c.Name+": "+format, args...))
	}
	if c.Name == "" || c.Usage == "" {
		complain("a name and a usage are needed")
	}
	if strings.HasSuffix(c.Usage, ".") {
		complain("usage ends in a full stop")
	}
	if c.Run == nil && len(c.Commands) == 0 {
		complain("want either Run or Commands, or both")
	}
	if c.Run == nil && len(c.Commands) > 0 && (len(c.Args) > 0 || len(c.Flags) > 0 || c.Shared != 0) {
		complain("arguments and flags belong to its sub-commands")
	}
	for i, a := range c.Args {
		if a.Many && i != len(c.Args)-1 {
			complain("argument %s stands for many but is not the last", a.Name)
		}
		if a.Rest && !a.Many {
			complain("argument %s is another program's command line but stands for one word", a.Name)
		}
		if i > 0 && c.Args[i-1].Optional && !a.Optional {
			complain("required argument %s comes after an optional one", a.Name)
		}
	}
	if c.Run != nil {
		seen := map[string]bool{}
		for _, f := range c.All() {
			if f.Name != canonical(f.Name) {
				complain("flag --%s is not spelled with underscores", f.Name)
			}
			for _, name := range f.names() {
				if name != "" && seen[name] {
					complain("flag %s is defined twice", dashed(name))
				}
				seen[name] = true
			}
			if len(f.Short) > 1 {
				complain("short flag -%s has more than one letter", f.Short)
			}
			if err := f.newValue().err; err != nil {
				complain("default of --%s: %w", f.Name, err)
			}
		}
		for name := range c.Defaults {
			if c.Flag(name) == nil {
				complain("Defaults names the unknown flag --%s", name)
			}
		}
		for name := range c.Hints {
			if c.Flag(name) == nil {
				complain("Hints names the unknown flag --%s", name)
			}
		}
	}
	for i := range c.Aliases {
		errs = append(errs, c.Aliases[i].check(c))
	}
	for i, sub := range c.Commands {
		if slices.ContainsFunc(c.Commands[:i], func(o *Command) bool { return o.Name == sub.Name }) {
			complain("sub-command %s is defined twice", sub.Name)
		}
		errs = append(errs, sub.Check())
	}
	return errors.Join(errs...)
}

// All returns all flags of a command: its own, then the common ones.
func (c *Command) All() []Flag {
	own := slices.Clone(c.Flags)
	for _, f := range Common(c.Shared) {
		if d, ok := c.Defaults[f.Name]; ok {
			f.Default, f.Note = d, ""
		}
		if h, ok := c.Hints[f.Name]; ok {
			f.Value, f.Note = cmp.Or(h.Value, f.Value), cmp.Or(h.Note, f.Note)
		}
		own = append(own, f)
	}
	if c.alias != nil {
		own = c.alias.change(own)
	}
	return own
}

// Flag finds a flag by any of its names, canonically spelled; nil if there is none.
func (c *Command) Flag(name string) *Flag {
	for _, f := range c.All() {
		if slices.Contains(f.names(), name) {
			return &f
		}
	}
	return nil
}

// sub finds a sub-command by its name; nil if there is none.
func (c *Command) sub(name string) *Command {
	for i, s := range c.Commands {
		if s.Name == name {
			c.Commands[i] = s.whole()
			return c.Commands[i]
		}
	}
	return nil
}

// path returns the words that a user types to start the command.
func (c *Command) path() string { return c.by + c.Name }

// limits are the least and the largest number of positional arguments; most
// is -1 when there is no largest.
func (c *Command) limits() (least, most int) {
	for _, a := range c.Args {
		if !a.Optional {
			least++
		}
		most++
		if a.Many {
			return least, -1
		}
	}
	return least, most
}

// Synopsis is the command with its arguments: "aip IN OUT".
func (c *Command) Synopsis(path string) string {
	var b strings.Builder
	b.WriteString(path)
	for _, a := range c.Args {
		name := a.Name
		if a.Many {
			name += "..."
		}
		if a.Optional {
			name = "[" + name + "]"
		}
		b.WriteString(" " + name)
	}
	return b.String()
}
