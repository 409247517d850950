package flags

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// option adapts a flag to urfave/cli: a generic flag whose value parses the typed text.
type option struct {
	urfave.GenericFlag
	value *value
	typed []string // how the flag was spelled each time, in order
	err   error    // what is wrong with what was typed
}

// newOption makes the option of a flag that was typed so.
func newOption(f *Flag, typed []string) *option {
	o := &option{value: f.newValue(), typed: typed}
	o.GenericFlag = urfave.GenericFlag{Name: f.Name, Usage: f.Usage, Category: f.Section, Hidden: f.Hidden, DefaultText: f.Default, Value: o.value}
	o.Aliases = f.names()[1:]
	return o
}

// Apply adds the option to the library's flags under its name only, because [rewrite] has replaced aliases.
func (o *option) Apply(set *flag.FlagSet) error {
	set.Var(o, o.Name, o.Usage)
	return nil
}

// Set takes a value, and remembers how it was typed if it is wrong.
func (o *option) Set(text string) error {
	err := o.value.Set(text)
	if err != nil && o.err == nil {
		o.err = wrong("flag %s: %w", o.typed[0], err)
	}
	if len(o.typed) > 1 {
		o.typed = o.typed[1:]
	}
	return err
}

// gone is the value of a flag of another program that would change the result if it were ignored. It says what to give
// instead.
type gone func() error

// Set refuses every value.
func (g gone) Set(string) error { return g() }

func (g gone) String() string { return "" }

// IsSet reports whether the flag was given.
func (o *option) IsSet() bool { return o.value.set }

// String returns the value as it could be typed.
func (v *value) String() string {
	var items []string
	for _, item := range v.items {
		items = append(items, fmt.Sprint(item))
	}
	return strings.Join(items, ",")
}

// Parse parses the words of a command line after the program's name, and calls act. If the words are wrong, it returns
// an [Error] instead. If the words ask for help, it prints help in spite of errors, because help shows what would be
// right.
func Parse(root *Command, words []string, act func(*Line) error) error {
	o, err := rewrite(root, words)
	if err == nil {
		t := &tree{root: root, order: o, act: act}
		err = t.app().RunContext(context.Background(), append([]string{root.Name}, o.tokens()...))
	}
	var mistake *Error
	if errors.As(err, &mistake) {
		if help := wantsHelp(words); help != NoHelp {
			return act(&Line{Root: root, Command: o.cmd, Path: o.path, Help: help})
		}
	}
	return err
}

// tree makes the library's commands of a command line's.
type tree struct {
	root  *Command
	order *order
	act   func(*Line) error

	refused error // by a flag that is gone
}

// app returns the program for the library.
func (t *tree) app() *urfave.App {
	top := t.command(t.root, t.root.path(), t.order.names)
	return &urfave.App{
		Name: top.Name, HelpName: top.HelpName, Usage: top.Usage, ArgsUsage: top.ArgsUsage, Description: top.Description,
		Flags: top.Flags, Commands: top.Subcommands, Action: top.Action, OnUsageError: top.OnUsageError,
		HideHelp: true, HideVersion: true, Suggest: true,
		ExitErrHandler: func(*urfave.Context, error) {}, // Main ends the process, when all is cleaned up
	}
}

// command converts a command to the library's form. It converts completely only the sub-command that is next in names.
func (t *tree) command(c *Command, path string, names []string) *urfave.Command {
	var options []*option
	known := c.All()
	typed := map[string][]string{}
	for _, f := range t.order.found {
		if f.flag != nil {
			typed[f.flag.Name] = append(typed[f.flag.Name], f.typed)
		}
	}
	out := &urfave.Command{Name: c.Name, HelpName: path, Usage: c.Usage, Description: c.Description, ArgsUsage: strings.TrimPrefix(c.Synopsis(""), " "), HideHelp: true}
	for i := range known {
		o := newOption(&known[i], typed[known[i].Name])
		options, out.Flags = append(options, o), append(out.Flags, o)
	}
	for name, instead := range c.Gone {
		out.Flags = append(out.Flags, &urfave.GenericFlag{Name: name, Hidden: true, Value: gone(func() error {
			t.refused = wrong("unknown flag %s: give %s (%s --help tells more)", t.order.unknown, instead, path)
			return t.refused
		})})
	}
	if !t.order.leaf || len(names) > 0 {
		for _, s := range c.Commands {
			sub := &urfave.Command{Name: s.Name, Usage: s.Usage, HideHelp: true}
			if len(names) > 0 && s.Name == names[0] {
				sub = t.command(s, path+" "+s.Name, names[1:])
			}
			out.Subcommands = append(out.Subcommands, sub)
		}
	}
	out.OnUsageError = func(_ *urfave.Context, err error, _ bool) error { return t.usage(path, out, options, err) }
	out.Action = func(ctx *urfave.Context) error {
		l := &Line{Root: t.root, Command: c, Path: path, Help: t.order.help, values: map[string]*value{}, args: ctx.Args().Slice(), behind: t.order.behind}
		for _, o := range options {
			l.values[o.Name] = o.value
		}
		if c.Run == nil && len(c.Commands) > 0 && len(l.args) > 0 {
			return t.noCommand(c, path, out, l.args[0])
		}
		return t.act(l)
	}
	return out
}

// usage returns the error for a wrong flag.
func (t *tree) usage(path string, of *urfave.Command, options []*option, err error) error {
	for _, o := range options {
		if o.err != nil {
			return o.err
		}
	}
	typed := t.order.unknown
	if typed == "" {
		return wrong("%w", err)
	}
	if t.refused != nil {
		return t.refused
	}
	name := canonical(strings.TrimPrefix(strings.TrimPrefix(typed, "-"), "-"))
	if near := urfave.SuggestFlag(of.Flags, name, true); near != "" {
		return wrong("unknown flag %s: did you mean %s? (%s --help lists all)", typed, near, path)
	}
	return wrong("unknown flag %s: %s --help lists all", typed, path)
}

// noCommand returns the error for an unknown sub-command.
func (t *tree) noCommand(c *Command, path string, of *urfave.Command, name string) error {
	if near := urfave.SuggestCommand(of.Subcommands, name); near != "" {
		return wrong("unknown command %q: did you mean %s %s?", name, path, near)
	}
	var names []string
	for _, s := range c.Commands {
		names = append(names, s.Name)
	}
	return wrong("unknown command %q: want one of %s", name, strings.Join(names, ", "))
}

func init() {
	urfave.HelpFlag, urfave.VersionFlag = nil, nil // ours are like all other flags
	urfave.SuggestFlag, urfave.SuggestCommand = nearestFlag, nearestCommand
}

// nearestFlag suggests a flag that is similar to an unknown one, including the forms that switch a flag off. It returns
// "" if none is similar. The library calls it.
func nearestFlag(flags []urfave.Flag, name string, _ bool) string {
	var names []string
	for _, f := range flags {
		o, is := f.(*option)
		if !is || o.Hidden {
			continue
		}
		for _, n := range o.Names() {
			names = append(names, n)
			if o.value.flag.Kind == Bool && len(n) > 1 {
				names = append(names, "no_"+n)
			}
		}
	}
	if near := Nearest(name, names); len(near) > 1 {
		return dashed(near)
	}
	return ""
}

// nearestCommand suggests a command, if one is close.
func nearestCommand(commands []*urfave.Command, name string) string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return Nearest(name, names)
}

// Error describes what is wrong with a command line. It names the flag or argument, and what would be right.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// wrong makes an [Error], as fmt.Errorf does.
func wrong(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
