package flags

import (
	"slices"
	"strings"
)

// order is a command line as the library takes it: where linumpy's scripts and habits write it another way, it is
// rewritten. Nothing else parses.
type order struct {
	cmd    *Command
	path   string      // "zarr-tool info"
	names  []string    // of sub-commands
	found  []foundFlag // in the order given
	args   []string    // positional arguments
	behind []*Flag     // for each argument, the list of texts that it stands behind; nil for most
	leaf   bool        // the first argument is not the name of a sub-command

	help    Help
	unknown string // the first flag that no command has, as typed
}

type foundFlag struct {
	typed, value string
	flag         *Flag // nil: unknown, and the value is the whole word
}

// tokens returns the words for the library: sub-commands, flags as --name=value, and behind "--" the arguments.
func (o *order) tokens() []string {
	out := slices.Clone(o.names)
	for _, f := range o.found {
		if name := canonical(strings.TrimLeft(f.typed, "-")); f.flag == nil && o.cmd.Gone[name] != "" {
			return append(out, "--"+name+"=") // whatever its value is
		} else if f.flag == nil {
			return append(out, f.value)
		}
		out = append(out, "--"+f.flag.Name+"="+f.value)
	}
	return append(append(out, "--"), o.args...)
}

// rewrite puts a command line in order: which sub-command, which flags with which values, which positional arguments.
// Flags may stand anywhere, where the library would stop at the first positional; "--" ends them. Lists of numbers go
// on with the numbers that follow, --no-x is --x=false, and dashes in names are underscores.
func rewrite(root *Command, tokens []string) (*order, error) {
	a := &rewriter{order: order{cmd: root, path: root.path()}, tokens: tokens}
	a.known = a.flagsOf(root)
	for len(a.tokens) > 0 && a.unknown == "" {
		tok := a.next()
		switch {
		case !a.ended && tok == "--":
			a.ended, a.list = true, nil
		case !a.ended && IsFlag(tok) && !(a.restIsNext() && IsAbout(tok)):
			a.list = nil
			if err := a.flag(tok); err != nil {
				return &a.order, err
			}
		default:
			a.positional(tok)
		}
	}
	return &a.order, a.finish()
}

// restIsNext reports whether all arguments are there but the command line of another program, which
// --help and the like are then meant for.
func (a *rewriter) restIsNext() bool {
	n := len(a.cmd.Args)
	return n > 1 && len(a.args) == n-1 && a.cmd.Args[n-1].Rest
}

type rewriter struct {
	order
	tokens []string
	ended  bool // by "--"
	known  []Flag
	list   *Flag // a list of texts whose value was the last token, or what may have been meant as more of them
}

// flagsOf are the flags that may stand after a command. Before a sub-command
// is named, they are its own, if it does something itself, and those of all sub-commands.
func (a *rewriter) flagsOf(c *Command) []Flag {
	if len(c.Commands) == 0 {
		return c.All()
	}
	if c.group {
		return Common(0)
	}
	var all []Flag
	if c.Run != nil {
		all = c.All()
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

func (a *rewriter) next() string {
	tok := a.tokens[0]
	a.tokens = a.tokens[1:]
	return tok
}

// IsFlag reports whether a word is a flag: "-" alone is standard input or output, and "-3" a number.
func IsFlag(tok string) bool {
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

func (a *rewriter) lookup(name string) *Flag {
	for i := range a.known {
		if slices.Contains(a.known[i].names(), name) {
			return &a.known[i]
		}
	}
	return nil
}

// flag takes one token that begins with a dash, and its value.
func (a *rewriter) flag(tok string) error {
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
					return wrong("flag %s: %w", tok[:len(tok)-len(val)-1], err)
				}
				val = "true"
				if v.(bool) {
					val = "false"
				}
				a.add(tok, f, val)
				return nil
			}
		}
		a.give(tok)
		return nil
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
func (a *rewriter) short(tok string) error {
	letters := tok[1:]
	for len(letters) > 0 {
		name, rest := letters[:1], letters[1:]
		f := a.lookup(name)
		if f == nil || name == "_" {
			a.give(tok)
			return nil
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
func (a *rewriter) valued(typed string, f *Flag, val string, hasValue bool) error {
	if !hasValue {
		if len(a.tokens) == 0 || a.tokens[0] == "--" || IsFlag(a.tokens[0]) {
			hint := ""
			if len(a.tokens) > 0 && a.tokens[0] != "--" && a.lookup(strings.TrimLeft(canonical(a.tokens[0]), "_")) == nil {
				hint = " (write " + typed + "=" + a.tokens[0] + " for a value that begins with a dash)"
			}
			return wrong("flag %s needs a value: %s %s%s", typed, typed, f.Placeholder(), hint)
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

func (a *rewriter) add(typed string, f *Flag, val string) {
	a.found = append(a.found, foundFlag{typed, val, f})
}

// give leaves a flag that no command has to the library.
func (a *rewriter) give(tok string) {
	a.unknown, _, _ = strings.Cut(tok, "=")
	a.found = append(a.found, foundFlag{typed: a.unknown, value: tok})
}

// IsAbout reports whether a flag asks for something about the program itself, such as its version.
func IsAbout(tok string) bool {
	name, _, _ := strings.Cut(tok, "=")
	switch canonical(strings.TrimLeft(name, "-")) {
	case "h", "help", "version", "completion", "man":
		return true
	}
	return false
}

// wantsHelp returns the help that a command line with a mistake asks for.
func wantsHelp(tokens []string) Help {
	if end := slices.Index(tokens, "--"); end >= 0 {
		tokens = tokens[:end]
	}
	switch {
	case slices.Contains(tokens, "--help"):
		return FullHelp
	case slices.Contains(tokens, "-h"):
		return BriefHelp
	}
	return NoHelp
}

// positional takes a sub-command's name or an argument. "tool help sub" is the
// same as "tool sub --help". A command that has both takes the first word for a name, if it is
// one; behind "--" nothing is.
func (a *rewriter) positional(tok string) {
	if a.isLeaf(tok) {
		a.leaf = true
		a.args, a.behind = append(a.args, tok), append(a.behind, a.list)
		if n := len(a.cmd.Args); n > 0 && len(a.args) >= n && a.cmd.Args[n-1].Rest {
			a.ended, a.list = true, nil
		}
		return
	}
	if tok == "help" && a.help == NoHelp {
		a.help = FullHelp
		return
	}
	sub := a.cmd.sub(tok)
	if sub == nil { // the library says what is wrong
		a.args, a.behind, a.found, a.tokens = append(a.args, tok), append(a.behind, nil), nil, nil
		return
	}
	a.cmd = sub
	a.names = append(a.names, tok)
	a.path += " " + tok
	a.known = a.flagsOf(sub)
}

// isLeaf tells whether the next word is an argument of the command itself, and takes notice if
// it is the first.
func (a *rewriter) isLeaf(tok string) bool {
	switch {
	case len(a.cmd.Commands) == 0 || len(a.args) > 0:
		return true
	case a.cmd.Run == nil || len(a.cmd.Args) == 0:
		return false
	}
	return a.ended || a.cmd.sub(tok) == nil && tok != "help"
}

// finish makes the checks that need the end of the line: a flag before the sub-command may belong to another
// sub-command.
func (a *rewriter) finish() error {
	if a.cmd.Run != nil || len(a.cmd.Commands) == 0 {
		a.known = a.cmd.All() // no sub-command is named any more
	}
	for i, f := range a.found {
		if f.flag == nil {
			continue
		}
		here := a.lookup(f.flag.Name)
		if here == nil || here.Kind != f.flag.Kind {
			return wrong("flag %s is not one of %s: %s --help lists all", f.typed, a.path, a.path)
		}
		a.found[i].flag = here
		if f.flag.Name == "help" {
			if v, err := f.flag.parseOne(f.value); err == nil && v.(bool) {
				if a.help = max(a.help, BriefHelp); f.typed != "-h" {
					a.help = FullHelp
				}
			}
		}
	}
	return nil
}
