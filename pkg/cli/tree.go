package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// line is a command line that the library has parsed.
type line struct {
	cmd    *Command
	path   string            // "zarr-tool info"
	values map[string]*value // of all flags of the command, by name
	args   []string          // positional arguments
}

// option is a flag of ours as the library's: its value is one of the library's generic ones, and parses what was typed.
type option struct {
	urfave.GenericFlag
	value *value
	typed []string // how the flag was spelled each time, in order
	err   error    // what is wrong with what was typed
}

// newOption makes the option of a flag that was typed so.
func newOption(f *Flag, typed []string) *option {
	o := &option{value: f.newValue(), typed: typed}
	o.GenericFlag = urfave.GenericFlag{Name: f.Name, Usage: f.Usage, Category: f.section, Hidden: f.Hidden, DefaultText: f.Default, Value: o.value}
	for _, name := range f.names()[1:] {
		o.Aliases = append(o.Aliases, name)
	}
	return o
}

// Apply adds the option to the library's flags under its name: [rewrite] has replaced the others.
func (o *option) Apply(set *flag.FlagSet) error {
	set.Var(o, o.Name, o.Usage)
	return nil
}

// Set takes a value, and remembers how it was typed if it is wrong.
func (o *option) Set(text string) error {
	err := o.value.Set(text)
	if err != nil && o.err == nil {
		o.err = Usage("flag %s: %w", o.typed[0], err)
	}
	if len(o.typed) > 1 {
		o.typed = o.typed[1:]
	}
	return err
}

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

// parse puts a command line in order, lets the library parse it, and does with it what act does. The order is that of the part that was
// understood, if there is an error.
func parse(root *Command, words []string, act func(*order, *line) error) (*order, error) {
	o, err := rewrite(root, words)
	if err != nil {
		return o, err
	}
	t := &tree{order: o, act: func(l *line) error { return act(o, l) }}
	return o, t.app(root).RunContext(context.Background(), append([]string{root.Name}, o.tokens()...))
}

// tree makes the library's commands of a command line's.
type tree struct {
	order *order
	act   func(*line) error
}

// app returns the program for the library.
func (t *tree) app(root *Command) *urfave.App {
	top := t.command(root, root.by+root.Name, t.order.names)
	return &urfave.App{
		Name: top.Name, HelpName: top.HelpName, Usage: top.Usage, ArgsUsage: top.ArgsUsage, Description: top.Description,
		Flags: top.Flags, Commands: top.Subcommands, Action: top.Action, OnUsageError: top.OnUsageError,
		HideHelp: true, HideVersion: true, Suggest: true,
		ExitErrHandler: func(*urfave.Context, error) {}, // Main ends the process, when all is cleaned up
	}
}

// command makes the library's form of a command. Of its sub-commands only the one that is next in names is whole.
func (t *tree) command(c *Command, path string, names []string) *urfave.Command {
	var options []*option
	known := c.flags()
	if c.Run == nil && len(c.Commands) > 0 {
		known = commonFlags(0)
	}
	typed := map[string][]string{}
	for _, f := range t.order.found {
		if f.flag != nil {
			typed[f.flag.Name] = append(typed[f.flag.Name], f.typed)
		}
	}
	out := &urfave.Command{Name: c.Name, HelpName: path, Usage: c.Usage, Description: c.Description, ArgsUsage: strings.TrimPrefix(c.synopsis(""), " "), HideHelp: true}
	for i := range known {
		o := newOption(&known[i], typed[known[i].Name])
		options, out.Flags = append(options, o), append(out.Flags, o)
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
	out.OnUsageError = func(_ *urfave.Context, err error, _ bool) error { return t.usage(c, path, out, options, err) }
	out.Action = func(ctx *urfave.Context) error {
		l := &line{cmd: c, path: path, values: map[string]*value{}, args: ctx.Args().Slice()}
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

// usage says what is wrong with a flag.
func (t *tree) usage(c *Command, path string, of *urfave.Command, options []*option, err error) error {
	for _, o := range options {
		if o.err != nil {
			return o.err
		}
	}
	typed := t.order.unknown
	if typed == "" {
		return Usage("%w", err)
	}
	name := canonical(strings.TrimPrefix(strings.TrimPrefix(typed, "-"), "-"))
	if instead := c.Gone[name]; instead != "" {
		return Usage("unknown flag %s: give %s (%s --help tells more)", typed, instead, path)
	}
	if near := urfave.SuggestFlag(of.Flags, name, true); near != "" {
		return Usage("unknown flag %s: did you mean %s? (%s --help lists all)", typed, near, path)
	}
	return Usage("unknown flag %s: %s --help lists all", typed, path)
}

// noCommand says that there is no such sub-command.
func (t *tree) noCommand(c *Command, path string, of *urfave.Command, name string) error {
	if near := urfave.SuggestCommand(of.Subcommands, name); near != "" {
		return Usage("unknown command %q: did you mean %s %s?", name, path, near)
	}
	var names []string
	for _, s := range c.Commands {
		names = append(names, s.Name)
	}
	return Usage("unknown command %q: want one of %s", name, strings.Join(names, ", "))
}

func init() {
	urfave.HelpFlag, urfave.VersionFlag = nil, nil // ours are like all other flags
	urfave.SuggestFlag, urfave.SuggestCommand = nearestFlag, nearestCommand
}

// nearestFlag suggests a flag, as the library lets a program do: only if one is close, and also what switches one off.
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
	if near := nearest(name, names); len(near) > 1 {
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
	return nearest(name, names)
}

// count checks the number of positional arguments.
func (l *line) count(behind []*Flag) error {
	if l.cmd.Run == nil && len(l.cmd.Commands) > 0 {
		var names []string
		for _, s := range l.cmd.Commands {
			names = append(names, s.Name)
		}
		return Usage("a command is missing: want one of %s (%s --help tells more)", strings.Join(names, ", "), l.path)
	}
	least, most := l.cmd.limits()
	usage := l.cmd.synopsis(l.path)
	switch {
	case len(l.args) < least:
		var missing []string
		for _, arg := range l.cmd.Args[len(l.args):] {
			if !arg.Optional {
				missing = append(missing, arg.Name)
			}
		}
		return Usage("missing %s: usage: %s [flags] (%s --help tells more)", strings.Join(missing, " and "), usage, l.path)
	case most >= 0 && len(l.args) > most:
		// The first that a shell may have made of a pattern says more than the last.
		for i, f := range behind {
			if f != nil {
				return Usage("unexpected argument %q: put commas between the values of %s, or repeat the flag (%s %s: %s)",
					l.args[i], dashed(f.Name), dashed(f.Name), f.placeholder(), f.Usage)
			}
		}
		return Usage("unexpected argument %q: usage: %s [flags]", l.args[most], usage)
	}
	for i, text := range l.args {
		if text == "" {
			return Usage("argument %s is empty: usage: %s [flags]", l.cmd.Args[min(i, len(l.cmd.Args)-1)].Name, usage)
		}
	}
	return nil
}
