package flags

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func testCommand() *Command {
	return &Command{
		Name: "tool", Usage: "test", Shared: Stage,
		Args: []Arg{{Name: "IN", Usage: "in"}, {Name: "OUT", Usage: "out"}, {Name: "MORE", Usage: "more", Optional: true, Many: true}},
		Flags: []Flag{
			{Name: "sigma_xy", Short: "s", Kind: Float, Usage: "u"}, {Name: "no_xy_shift", Kind: Bool, Usage: "u"},
			{Name: "resolutions", Kind: Floats, Usage: "u"}, {Name: "names", Kind: Strings, Usage: "u"}, {Name: "input", Short: "i", Aliases: []string{"in-put"}, Usage: "u"},
		},
		Run: nil,
	}
}

// parsed is what a command line means.
type parsed struct {
	*order
	*Line
}

// arrange parses a command line, and checks the number of arguments.
func arrange(c *Command, tokens []string) (parsed, error) {
	p := parsed{Line: &Line{}}
	p.order, _ = rewrite(c, tokens)
	return p, Parse(c, tokens, func(l *Line) error {
		if p.Line = l; l.Help != NoHelp || l.About() != "" {
			return nil
		}
		return l.Count()
	})
}

// typed returns the flags of a line as "--name=value", canonically spelled.
func (o *order) typed() string {
	var flags []string
	for _, f := range o.found {
		flags = append(flags, "--"+f.flag.Name+"="+f.value)
	}
	return strings.Join(flags, " ")
}

// From the first word of another program's command line on nothing is a flag of ours.
func TestArrangeRest(t *testing.T) {
	c := &Command{Name: "tool", Usage: "test", Shared: Outputs, Run: nil,
		Args:  []Arg{{Name: "IN", Usage: "in"}, {Name: "CMD", Usage: "command", Optional: true, Many: true, Rest: true}},
		Flags: []Flag{{Name: "names", Kind: Strings, Usage: "u"}}}
	for typed, want := range map[string]string{
		"a":                           " | a",
		"a -f":                        "--overwrite=true | a",
		"-f a ls -l --nothing -f":     "--overwrite=true | a ls -l --nothing -f",
		"a --names x ls --names y":    "--names=x | a ls --names y",
		"a -f -- -x --help":           "--overwrite=true | a -x --help",
		"a ls -- -f":                  " | a ls -- -f",
		"-- a ls -f":                  " | a ls -f",
		"a --overwrite=no sh --help":  "--overwrite=no | a sh --help",
		"a sh --version --completion": " | a sh --version --completion",
		"a --help":                    " | a --help",
		"a -f --version -f":           "--overwrite=true | a --version -f",
	} {
		l, err := arrange(c, strings.Fields(typed))
		if err != nil {
			t.Errorf("%s: %v", typed, err)
		} else if got := l.typed() + " | " + strings.Join(l.Line.args, " "); got != want || l.Help != NoHelp || l.About() == "version" {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
}

// A flag whose name is one letter takes two dashes, or one; a short form takes one.
func TestArrangeLetter(t *testing.T) {
	c := &Command{Name: "tool", Usage: "test", Shared: Outputs, Flags: []Flag{{Name: "k", Kind: Int, Usage: "u"}}}
	for _, typed := range []string{"--k 3", "--k=3", "-k 3", "-k3"} {
		if l, err := arrange(c, strings.Fields(typed)); err != nil || l.typed() != "--k=3" {
			t.Errorf("%s: %v", typed, err)
		}
	}
	if _, err := arrange(c, []string{"--f"}); err == nil {
		t.Error("--f, the short form of --overwrite, was taken")
	}
}

func TestArrange(t *testing.T) {
	for _, c := range []struct{ typed, flags, args string }{
		{"a b", "", "a b"},
		{"a -f b", "--overwrite=true", "a b"},
		{"-- -f --", "", "-f --"},
		{"a b -fs 3", "--overwrite=true --sigma_xy=3", "a b"},
		{"a b -fs3", "--overwrite=true --sigma_xy=3", "a b"},
		{"a b -s-3", "--sigma_xy=-3", "a b"},
		{"a b -f=no", "--overwrite=no", "a b"},
		{"-3 -1e5 -s -.5", "--sigma_xy=-.5", "-3 -1e5"},
		{"--resolutions 1 2,3 a 4", "--resolutions=1 --resolutions=2,3", "a 4"},
		{"--resolutions=1 2 a", "--resolutions=1", "2 a"},
		{"--resolutions 1 -- 2 a", "--resolutions=1", "2 a"},
		{"--names 1 2 a", "--names=1", "2 a"},
		{"a b --in_put x --in-put=y -i z", "--input=x --input=y --input=z", "a b"},
		{"a b --no-no-xy-shift --no_use_gpu --no-xy-shift", "--no_xy_shift=false --use_gpu=false --no_xy_shift=true", "a b"},
		{"a b --input -", "--input=-", "a b"},
		{"a b --input=", "--input=", "a b"},
		{"a b c d e", "", "a b c d e"},
	} {
		l, err := arrange(testCommand(), strings.Fields(c.typed))
		if err != nil {
			t.Errorf("%s: %v", c.typed, err)
			continue
		}
		if flags, args := l.typed(), strings.Join(l.Line.args, " "); flags != c.flags || args != c.args {
			t.Errorf("%s: flags %q, arguments %q", c.typed, flags, args)
		}
	}
	for typed, want := range map[string]string{
		"a b --in-pit=3":      "unknown flag --in-pit: did you mean --in_put?",
		"a b --no-sigma_xy":   "unknown flag --no-sigma_xy",
		"a b -i":              "flag -i needs a value: -i TEXT",
		"a b -i --":           "flag -i needs a value",
		"a b --f":             "unknown flag --f",
		"a b -fz":             "unknown flag -fz",
		"a b ---":             "unknown flag ---",
		"a b --=3":            "unknown flag --",
		"a b -_":              "unknown flag -_",
		"a b --no-use_gpu=up": "flag --no-use_gpu: ",
		"a b --no-help=up":    "flag --no-help: ",
		"a b --help=up":       "flag --help: ",
		"a":                   "missing OUT",
		"--names 1 2":         "missing OUT",
	} {
		if _, err := arrange(testCommand(), strings.Fields(typed)); !errors.As(err, new(*Error)) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", typed, err)
		}
	}
}

// A flag that is gone says what to give instead, however it was typed.
func TestGone(t *testing.T) {
	c := &Command{Name: "tool", Usage: "test", Shared: Outputs, Gone: map[string]string{"skip_slices": "--slice_config FILE"}}
	for _, typed := range []string{"--skip_slices 3", "--skip-slices=3", "--skip_slices", "-f --skip-slices --force"} {
		want := "unknown flag " + regexp.MustCompile("--skip.slices").FindString(typed) + ": give --slice_config FILE (tool --help tells more)"
		if _, err := arrange(c, strings.Fields(typed)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", typed, err, want)
		}
	}
}

// Whatever is typed, the result is in order, loses no argument, and every flag of
// the command has a value.
func FuzzArrange(f *testing.F) {
	for _, s := range []string{
		"a b", "a\n-f\nb", "--\n-f\n--", "-s\n-3\na\nb", "--resolutions\n1\n2,3\na\nb", "--help", "-fs3\na\nb", "a\nb\n--no-use_gpu\n--mem=4GiB",
		"--completion\nbash", "a\nb\n--codec\nzstd:3\n--chunks\n1\n2\n3", "--\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		tokens := strings.Split(typed, "\n")
		c := testCommand()
		l, err := arrange(c, tokens)
		if err != nil {
			if !errors.As(err, new(*Error)) || err.Error() == "" {
				t.Fatalf("%q: %q", tokens, err)
			}
			return
		}
		for _, arg := range l.Line.args {
			if !slices.Contains(tokens, arg) {
				t.Fatalf("%q: argument %q was not typed", tokens, arg)
			}
		}
		if l.Help != NoHelp || l.About() != "" {
			return
		}
		for _, f := range c.All() {
			if v := l.values[f.Name]; v == nil || v.err != nil || v.flag.Name != f.Name {
				t.Fatalf("%q: --%s has no value", tokens, f.Name)
			}
		}
	})
}
