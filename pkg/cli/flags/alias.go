package flags

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Alias is a name of another program whose place a command can take: started
// by a link of that name, the command has that program's flags and defaults.
// scripts/links.sh makes the links.
type Alias struct {
	Name     string            // "linum-aip"; linum_aip and either with .py behind it mean the same
	Command  string            // the sub-command that it stands for; "": the command itself
	Args     []Arg             // its positional arguments, if they differ; see [Line.HasArg]
	Defaults Defaults          // its defaults where they differ, of the command's own flags and of common ones
	Flags    map[string]string // its names of flags that differ, and what the command calls them
	// Values has for flags with choices the values of the other program, and the choices that they stand for.
	Values  map[string]map[string]string
	Ignored []Flag // flags of its own that have no meaning here; Flag.Ignored says why
}

// Alias returns the name by which the process was started in place of the command's own; nil if it was its own.
func (c *Command) Alias() *Alias { return c.alias }

// CalledAs is the command as it runs under the name that a process was started
// by: itself, or with what an alias changes.
func (c *Command) CalledAs(argv0 string) *Command {
	if a := c.aliasOf(argv0); a != nil {
		return c.under(a, filepath.Base(argv0))
	}
	return c
}

// aliasOf is the alias that a process was started by; nil if it is none of the command's.
func (c *Command) aliasOf(argv0 string) *Alias {
	for i := range c.Aliases {
		if SameName(argv0, c.Aliases[i].Name) {
			return &c.Aliases[i]
		}
	}
	return nil
}

// SameName reports whether a process was started by a name, or by a spelling variant of that name.
func SameName(argv0, name string) bool {
	return canonical(strings.TrimSuffix(filepath.Base(argv0), ".py")) == canonical(name)
}

func (c *Command) under(a *Alias, typed string) *Command {
	as := *c
	if a.Command != "" {
		as = *c.sub(a.Command)
	}
	if a.Args != nil {
		as.Args = a.Args
	}
	as.Name, as.original, as.alias = typed, c.Name, a
	return &as
}

// Tool is the name that the command has of its own.
func (c *Command) Tool() string { return cmp.Or(c.original, c.Name) }

// change gives flags the names and defaults that they have under an alias, and
// appends those that are ignored.
func (a *Alias) change(flags []Flag) []Flag {
	for i := range flags {
		f := &flags[i]
		if d, ok := a.Defaults[f.Name]; ok {
			f.Default, f.Note = d, ""
		}
		f.means = a.Values[f.Name]
		for _, theirs := range slices.Sorted(maps.Keys(a.Flags)) {
			if a.Flags[theirs] == f.Name {
				f.Aliases = append(slices.Clone(f.Aliases), theirs)
			}
		}
	}
	for _, f := range a.Ignored {
		f.Hidden = true
		flags = append(flags, f)
	}
	return flags
}

// Differences describes in one line how the command differs under the alias.
func (a *Alias) Differences() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Defaults)) {
		if d := a.Defaults[name]; d == "true" {
			parts = append(parts, "--"+name+" is on")
		} else {
			parts = append(parts, "--"+name+" is "+d)
		}
	}
	for _, theirs := range slices.Sorted(maps.Keys(a.Flags)) {
		parts = append(parts, "--"+theirs+" means --"+a.Flags[theirs])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		for _, value := range slices.Sorted(maps.Keys(a.Values[name])) {
			parts = append(parts, "--"+name+" "+value+" means "+a.Values[name][value])
		}
	}
	for _, f := range a.Ignored {
		parts = append(parts, "--"+f.Name+" has no effect")
	}
	switch {
	case len(parts) == 0 && a.Command != "":
		return "the command " + a.Command
	case len(parts) == 0:
		return "the same flags and defaults"
	}
	return strings.Join(parts, "; ")
}

// check returns an error if an alias does not fit its command.
func (a *Alias) check(c *Command) error {
	if a.Name != strings.ToLower(a.Name) || strings.ContainsAny(a.Name, "_./ ") || a.Name == "" {
		return fmt.Errorf("command %s: alias %q: want lower case and dashes", c.Name, a.Name)
	}
	if c.alias != nil {
		return nil
	}
	of := c
	if a.Command != "" {
		if of = c.sub(a.Command); of == nil {
			return fmt.Errorf("command %s: alias %s: stands for the unknown command %s", c.Name, a.Name, a.Command)
		}
	}
	for name := range a.Defaults {
		if of.Flag(name) == nil {
			return fmt.Errorf("command %s: alias %s: a default of the unknown flag --%s", c.Name, a.Name, name)
		}
	}
	for theirs, name := range a.Flags {
		if f := of.Flag(name); f == nil || f.Name != name {
			return fmt.Errorf("command %s: alias %s: --%s stands for the unknown flag --%s", c.Name, a.Name, theirs, name)
		}
	}
	for name, values := range a.Values {
		for _, choice := range values {
			if f := of.Flag(name); f == nil || !slices.Contains(f.Choices, choice) {
				return fmt.Errorf("command %s: alias %s: values of --%s stand for the unknown choice %s", c.Name, a.Name, name, choice)
			}
		}
	}
	for _, f := range a.Ignored {
		if f.Ignored == "" {
			return fmt.Errorf("command %s: alias %s: no reason to ignore --%s", c.Name, a.Name, f.Name)
		}
	}
	return c.under(a, a.Name).Check()
}
