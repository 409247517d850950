package cli

import (
	"slices"
	"strings"
)

// line is a command line put in order.
type line struct {
	cmd    *Command
	path   string            // "zarr-tool info"
	found  []foundFlag       // in the order given
	values map[string]*value // of all flags of the command, by name
	args   []string          // positional arguments

	help, brief, version, man bool   // brief: the help of -h
	completion                string // shell, or ""
}

// arrange sorts a command line: which sub-command, which flags with which
// values, which positional arguments. Flags may stand anywhere, where the flag
// package would stop at the first positional; "--" ends them.
func arrange(root *Command, tokens []string) (*line, error) {
	a := &arranger{line: line{cmd: root, path: root.by + root.Name}, tokens: tokens}
	a.known = a.flagsOf(root)
	for len(a.tokens) > 0 {
		tok := a.next()
		switch {
		case !a.ended && tok == "--":
			a.ended, a.list = true, nil
		case !a.ended && isFlag(tok) && !(a.restIsNext() && aboutGroup(tok)):
			a.list = nil
			if err := a.flag(tok); err != nil {
				return &a.line, err
			}
		default:
			if err := a.positional(tok); err != nil {
				return &a.line, err
			}
		}
	}
	return a.finish()
}

// restIsNext reports whether all arguments are there but the command line of another program, which
// --help and the like are then meant for.
func (a *arranger) restIsNext() bool {
	n := len(a.cmd.Args)
	return n > 1 && len(a.args) == n-1 && a.cmd.Args[n-1].Rest
}

type arranger struct {
	line
	tokens []string
	ended  bool // by "--"
	known  []Flag
	list   *Flag   // a list of texts whose value was the last token, or what may have been meant as more of them
	behind []*Flag // for each argument, the list that it stands behind; nil for most
}

type foundFlag struct {
	typed, value string
	flag         *Flag
}

// flagsOf are the flags that may stand after a command. Before a sub-command
// is named, they are its own, if it does something itself, and those of all sub-commands.
func (a *arranger) flagsOf(c *Command) []Flag {
	if len(c.Commands) == 0 {
		return c.flags()
	}
	var all []Flag
	if c.Run != nil {
		all = c.flags()
	}
	for _, sub := range c.Commands {
		for _, f := range a.flagsOf(sub) {
			if !slices.ContainsFunc(all, func(o Flag) bool { return o.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	return all
}

func (a *arranger) next() string {
	tok := a.tokens[0]
	a.tokens = a.tokens[1:]
	return tok
}

// isFlag: "-" alone is standard input or output, and "-3" a number.
func isFlag(tok string) bool {
	return len(tok) > 1 && tok[0] == '-' && !isNumber(tok)
}

// isNumber recognises what may follow a flag as its value, or stand as a
// positional, although it may begin with a dash: "-3", "1e-3", ".5", "10,25".
func isNumber(tok string) bool {
	if tok == "" {
		return false
	}
	for part := range strings.SplitSeq(tok, ",") {
		digits := strings.TrimPrefix(strings.TrimLeft(part, "+-"), ".")
		if digits == "" || digits[0] < '0' || digits[0] > '9' {
			return false
		}
		if _, err := (&Flag{Kind: Float}).parseOne(part); err != nil {
			return false
		}
	}
	return true
}

func (a *arranger) lookup(name string) *Flag {
	for i := range a.known {
		if slices.Contains(a.known[i].names(), name) {
			return &a.known[i]
		}
	}
	return nil
}

// flag takes one token that begins with a dash, and its value.
func (a *arranger) flag(tok string) error {
	name, val, hasValue := strings.Cut(tok, "=")
	if !strings.HasPrefix(name, "--") {
		return a.short(tok)
	}
	name = canonical(name[2:])
	f := a.lookup(name)
	if f == nil || len(name) == 1 && f.Short == name {
		// --no_x of a boolean x.
		if positive, ok := strings.CutPrefix(name, "no_"); ok {
			if f := a.lookup(positive); f != nil && f.Kind == Bool && len(positive) > 1 {
				if !hasValue {
					val = "true"
				}
				v, err := f.parseOne(val)
				if err != nil {
					return Usage("flag %s: %w", tok[:len(tok)-len(val)-1], err)
				}
				val = "true"
				if v.(bool) {
					val = "false"
				}
				a.add(tok, f, val)
				return nil
			}
		}
		return a.unknown(strings.SplitN(tok, "=", 2)[0], name)
	}
	typed := strings.SplitN(tok, "=", 2)[0]
	if f.Kind == Bool {
		if !hasValue {
			val = "true"
		}
		a.add(typed, f, val)
		return nil
	}
	return a.valued(typed, f, val, hasValue)
}

// short takes "-f", "-j4", "-j=4", "-j 4", and several booleans with at most
// one valued flag at the end: "-fvj4".
func (a *arranger) short(tok string) error {
	letters := tok[1:]
	for len(letters) > 0 {
		name, rest := letters[:1], letters[1:]
		f := a.lookup(name)
		if f == nil || name == "_" {
			return a.unknown(strings.SplitN(tok, "=", 2)[0], canonical(strings.SplitN(tok[1:], "=", 2)[0]))
		}
		if f.Kind != Bool {
			val, eq := strings.CutPrefix(rest, "=")
			return a.valued("-"+name, f, val, eq || rest != "")
		}
		if val, ok := strings.CutPrefix(rest, "="); ok {
			a.add("-"+name, f, val)
			return nil
		}
		a.add("-"+name, f, "true")
		letters = rest
	}
	return nil
}

// valued takes the value of a flag: behind "=", or the next token; for lists
// of numbers all numbers that follow.
func (a *arranger) valued(typed string, f *Flag, val string, hasValue bool) error {
	if !hasValue {
		if len(a.tokens) == 0 || a.tokens[0] == "--" || isFlag(a.tokens[0]) {
			hint := ""
			if len(a.tokens) > 0 && a.tokens[0] != "--" && a.lookup(strings.TrimLeft(canonical(a.tokens[0]), "_")) == nil {
				hint = " (write " + typed + "=" + a.tokens[0] + " for a value that begins with a dash)"
			}
			return Usage("flag %s needs a value: %s %s%s", typed, typed, f.placeholder(), hint)
		}
		val = a.next()
	}
	a.add(typed, f, val)
	if !hasValue && f.Kind == Strings {
		a.list = f
	}
	for !hasValue && f.numeric() && len(a.tokens) > 0 && isNumber(a.tokens[0]) {
		a.add(typed, f, a.next())
	}
	return nil
}

func (a *arranger) add(typed string, f *Flag, val string) {
	a.found = append(a.found, foundFlag{typed, val, f})
}

func (a *arranger) unknown(typed, name string) error {
	if instead := a.cmd.Gone[name]; instead != "" {
		return Usage("unknown flag %s: give %s (%s --help tells more)", typed, instead, a.path)
	}
	var names []string
	for _, f := range a.known {
		if f.Hidden {
			continue
		}
		for _, n := range f.names() {
			names = append(names, n)
			if f.Kind == Bool && len(n) > 1 {
				names = append(names, "no_"+n)
			}
		}
	}
	if near := nearest(name, names); near != "" && len(near) > 1 {
		return Usage("unknown flag %s: did you mean %s? (%s --help lists all)", typed, dashed(near), a.path)
	}
	return Usage("unknown flag %s: %s --help lists all", typed, a.path)
}

// positional takes a sub-command's name or an argument. "tool help sub" is the
// same as "tool sub --help". A command that has both takes the first word for a name, if it is
// one; behind "--" nothing is.
func (a *arranger) positional(tok string) error {
	if a.leaf(tok) {
		a.args, a.behind = append(a.args, tok), append(a.behind, a.list)
		if n := len(a.cmd.Args); n > 0 && len(a.args) >= n && a.cmd.Args[n-1].Rest {
			a.ended, a.list = true, nil
		}
		return nil
	}
	if tok == "help" && !a.help {
		a.help, a.brief = true, false
		return nil
	}
	sub := a.cmd.sub(tok)
	if sub == nil {
		var names []string
		for _, s := range a.cmd.Commands {
			names = append(names, s.Name)
		}
		if near := nearest(tok, names); near != "" {
			return Usage("unknown command %q: did you mean %s %s?", tok, a.path, near)
		}
		return Usage("unknown command %q: want one of %s", tok, strings.Join(names, ", "))
	}
	a.cmd = sub
	a.path += " " + tok
	a.known = a.flagsOf(sub)
	return nil
}

// leaf tells whether the next word is an argument of the command itself, and takes notice if
// it is the first.
func (a *arranger) leaf(tok string) bool {
	switch {
	case len(a.cmd.Commands) == 0 || len(a.args) > 0:
		return true
	case a.cmd.Run == nil || len(a.cmd.Args) == 0:
		return false
	}
	return a.ended || a.cmd.sub(tok) == nil && tok != "help"
}

// finish checks what only the end of the line shows.
func (a *arranger) finish() (*line, error) {
	own := a.cmd.flags()
	if a.cmd.Run != nil {
		a.known = own // no sub-command is named any more
	}
	a.values = make(map[string]*value, len(own))
	for _, f := range own {
		a.values[f.Name] = f.newValue()
	}
	for _, f := range a.found {
		// A flag before the sub-command may be one of another sub-command.
		here := a.lookup(f.flag.Name)
		if here == nil || here.Kind != f.flag.Kind {
			return &a.line, Usage("flag %s is not one of %s: %s --help lists all", f.typed, a.path, a.path)
		}
		switch f.flag.Name {
		case "help", "version", "man":
			v, err := f.flag.parseOne(f.value)
			if err != nil {
				return &a.line, Usage("flag %s: %w", f.typed, err)
			}
			switch f.flag.Name {
			case "help":
				if v.(bool) {
					a.help, a.brief = true, f.typed == "-h" && (a.brief || !a.help)
				}
			case "version":
				a.version = v.(bool)
			case "man":
				a.man = v.(bool)
			}
			continue
		case "completion":
			if _, err := f.flag.parseOne(f.value); err != nil {
				return &a.line, Usage("flag %s: %w", f.typed, err)
			}
			a.completion = f.value
			continue
		}
		if err := a.values[here.Name].Set(f.value); err != nil {
			return &a.line, Usage("flag %s: %w", f.typed, err)
		}
	}
	if a.help || a.version || a.man || a.completion != "" {
		return &a.line, nil
	}
	return &a.line, a.count()
}

// count checks the number of positional arguments.
func (a *arranger) count() error {
	if a.cmd.Run == nil && len(a.cmd.Commands) > 0 {
		var names []string
		for _, s := range a.cmd.Commands {
			names = append(names, s.Name)
		}
		return Usage("a command is missing: want one of %s (%s --help tells more)", strings.Join(names, ", "), a.path)
	}
	least, most := a.cmd.limits()
	usage := a.cmd.synopsis(a.path)
	switch {
	case len(a.args) < least:
		var missing []string
		for _, arg := range a.cmd.Args[len(a.args):] {
			if !arg.Optional {
				missing = append(missing, arg.Name)
			}
		}
		return Usage("missing %s: usage: %s [flags] (%s --help tells more)", strings.Join(missing, " and "), usage, a.path)
	case most >= 0 && len(a.args) > most:
		// The first that a shell may have made of a pattern says more than the last.
		for i, f := range a.behind {
			if f != nil {
				return Usage("unexpected argument %q: put commas between the values of %s, or repeat the flag (%s %s: %s)",
					a.args[i], dashed(f.Name), dashed(f.Name), f.placeholder(), f.Usage)
			}
		}
		return Usage("unexpected argument %q: usage: %s [flags]", a.args[most], usage)
	}
	for i, text := range a.args {
		if text == "" {
			return Usage("argument %s is empty: usage: %s [flags]", a.cmd.Args[min(i, len(a.cmd.Args)-1)].Name, usage)
		}
	}
	return nil
}
