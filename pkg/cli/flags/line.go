package flags

import (
	"io"
	"slices"
	"strings"
	"time"
)

// Line is a parsed command line. Values are asked for by the name of their flag; a name that the command does not have
// is a bug and panics.
type Line struct {
	Root    *Command // what the process was started as
	Command *Command // it, or the sub-command that was named
	Path    string   // "zarr-tool info"
	Help    Help     // whether help was asked for

	values map[string]*value // of all flags of the command, by name
	args   []string          // positional arguments
	behind []*Flag           // for each argument, the list of texts that it stands behind; nil for most
}

// Help says which help a command line asks for.
type Help int

// The kinds of help.
const (
	NoHelp    Help = iota
	BriefHelp      // a screen: -h
	FullHelp       // all: --help
)

// Streams are a command's standard input, output and error.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Action does what a parsed command line says, and returns the exit code of the process. Package run makes it of the
// function of a program.
type Action func(l *Line, s Streams) (code int)

// Program returns the own name of the program, whatever it was started as.
func (l *Line) Program() string { return l.Root.Tool() }

// Sub returns the name of the sub-command that runs; "" if there is none.
func (l *Line) Sub() string {
	if l.Command != l.Root {
		return l.Command.Name
	}
	if l.Root.alias != nil {
		return l.Root.alias.Command
	}
	return ""
}

// Positional returns all positional arguments.
func (l *Line) Positional() []string { return slices.Clone(l.args) }

// About returns the name of the flag by which something about the program is asked for in place of a run: version, man,
// completion; "" if none is.
func (l *Line) About() string {
	for _, name := range []string{"version", "man", "completion"} {
		if v := l.values[name]; v != nil && v.set && v.items[0] != false {
			return name
		}
	}
	return ""
}

// Given is a flag that was given, and its values: a string, bool, int, float64, int64 (Size) or time.Duration each.
type Given struct {
	Flag   *Flag
	Values []any
}

// Given returns the flags that were given, in the order of the help.
func (l *Line) Given() (all []Given) {
	for _, f := range l.Command.All() {
		if v := l.values[f.Name]; v != nil && v.set {
			all = append(all, Given{v.flag, v.items})
		}
	}
	return all
}

// Unusual returns the flags whose values are not the defaults that the program has under its own name, in the order of
// the help. A flag without a default in the help is unusual when it is given.
func (l *Line) Unusual() (all []Given) {
	own := *l.Command
	own.alias = nil
	for _, f := range own.All() {
		v := l.values[f.Name]
		if v == nil || v.items == nil || slices.Equal(v.items, f.newValue().items) || f.Default == "" && f.Note == "" && v.isZero() {
			continue
		}
		all = append(all, Given{v.flag, v.items})
	}
	return all
}

// HasArg reports whether the command has a positional argument of this name under the name that it was started by.
func (l *Line) HasArg(name string) bool {
	return slices.ContainsFunc(l.Command.Args, func(a Arg) bool { return a.Name == name })
}

// Arg is a positional argument by its name; "" if it is optional and missing.
// Of one that stands for many it is the first.
func (l *Line) Arg(name string) string {
	if all := l.Args(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Args are all values of a positional argument that stands for many.
func (l *Line) Args(name string) []string {
	for i, a := range l.Command.Args {
		switch {
		case a.Name != name:
		case i >= len(l.args):
			return nil
		case a.Many:
			return slices.Clone(l.args[i:])
		default:
			return []string{l.args[i]}
		}
		if a.Name == name {
			break
		}
	}
	if !slices.ContainsFunc(l.Command.Args, func(a Arg) bool { return a.Name == name }) {
		panic("no argument " + name)
	}
	return nil
}

func (l *Line) value(name string, kinds ...Kind) *value {
	v := l.values[name]
	if v == nil {
		panic("no flag --" + name)
	}
	if !slices.Contains(kinds, v.flag.Kind) {
		panic("flag --" + name + " is of another kind")
	}
	return v
}

func one[T any](l *Line, name string, kind Kind) T {
	var zero T
	if v := l.value(name, kind); len(v.items) > 0 {
		return v.items[0].(T)
	}
	return zero
}

func all[T any](l *Line, name string, kind Kind) []T {
	var out []T
	for _, item := range l.value(name, kind).items {
		out = append(out, item.(T))
	}
	return out
}

// IsSet says whether the user gave a flag.
func (l *Line) IsSet(name string) bool {
	v := l.values[name]
	if v == nil {
		panic("no flag --" + name)
	}
	return v.set
}

// Bool is the value of a Bool flag.
func (l *Line) Bool(name string) bool { return one[bool](l, name, Bool) }

// String is the value of a String flag.
func (l *Line) String(name string) string { return one[string](l, name, String) }

// Int is the value of an Int flag.
func (l *Line) Int(name string) int { return one[int](l, name, Int) }

// Float is the value of a Float flag.
func (l *Line) Float(name string) float64 { return one[float64](l, name, Float) }

// Size is the value of a Size flag, in bytes.
func (l *Line) Size(name string) int64 { return one[int64](l, name, Size) }

// Duration is the value of a Duration flag.
func (l *Line) Duration(name string) time.Duration { return one[time.Duration](l, name, Duration) }

// Strings are the values of a Strings flag; nil if there are none.
func (l *Line) Strings(name string) []string { return all[string](l, name, Strings) }

// Ints are the values of an Ints flag; nil if there are none.
func (l *Line) Ints(name string) []int { return all[int](l, name, Ints) }

// Floats are the values of a Floats flag; nil if there are none.
func (l *Line) Floats(name string) []float64 { return all[float64](l, name, Floats) }

// Count checks the number of positional arguments.
func (l *Line) Count() error {
	if l.Command.Run == nil && len(l.Command.Commands) > 0 {
		var names []string
		for _, s := range l.Command.Commands {
			names = append(names, s.Name)
		}
		return wrong("a command is missing: want one of %s (%s --help tells more)", strings.Join(names, ", "), l.Path)
	}
	least, most := l.Command.limits()
	usage := l.Command.Synopsis(l.Path)
	if l.Batch() != "" {
		return l.countBatch()
	}
	switch {
	case len(l.args) < least:
		var missing []string
		for _, arg := range l.Command.Args[len(l.args):] {
			if !arg.Optional {
				missing = append(missing, arg.Name)
			}
		}
		return wrong("missing %s: usage: %s [flags] (%s --help tells more)", strings.Join(missing, " and "), usage, l.Path)
	case most >= 0 && len(l.args) > most:
		// The first that a shell may have made of a pattern says more than the last.
		for i, f := range l.behind {
			if f != nil {
				return wrong("unexpected argument %q: put commas between the values of %s, or repeat the flag (%s %s: %s)",
					l.args[i], dashed(f.Name), dashed(f.Name), f.Placeholder(), f.Usage)
			}
		}
		return wrong("unexpected argument %q: usage: %s [flags]", l.args[most], usage)
	}
	for i, text := range l.args {
		if text == "" {
			return wrong("argument %s is empty: usage: %s [flags]", l.Command.Args[min(i, len(l.Command.Args)-1)].Name, usage)
		}
	}
	return nil
}
