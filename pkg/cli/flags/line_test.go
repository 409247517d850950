package flags

import (
	"fmt"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"threads", "n_levels", "use_gpu", "mem", "f"}
	for typed, want := range map[string]string{
		"thread": "threads", "treads": "threads", "htreads": "threads", "n_level": "n_levels", "nlevels": "n_levels",
		"usegpu": "use_gpu", "men": "mem", "x": "", "completely": "", "": "",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

// Check finds the mistakes that a description can have.
func TestCheck(t *testing.T) {
	run := func(*Line, Streams) int { return 0 }
	good := func() *Command {
		return &Command{Name: "tool", Usage: "do it", Run: run, Shared: Stage, Args: []Arg{{Name: "IN"}}}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(c *Command){
		"a name and a usage":          func(c *Command) { c.Usage = "" },
		"full stop":                   func(c *Command) { c.Usage = "Do it." },
		"want either Run or Commands": func(c *Command) { c.Run = nil },
		"flag --upper is defined twice": func(c *Command) {
			c.Commands = []*Command{{Name: "s", Usage: "u", Run: run}}
			c.Flags = []Flag{{Name: "upper"}, {Name: "upper"}}
		},
		"belong to its sub-commands":   func(c *Command) { c.Run = nil; c.Commands = []*Command{good()} },
		"stands for many":              func(c *Command) { c.Args = []Arg{{Name: "A", Many: true}, {Name: "B"}} },
		"stands for one word":          func(c *Command) { c.Args = []Arg{{Name: "A", Rest: true}} },
		"after an optional one":        func(c *Command) { c.Args = []Arg{{Name: "A", Optional: true}, {Name: "B"}} },
		"flag --threads is defined":    func(c *Command) { c.Flags = []Flag{{Name: "threads"}} },
		"flag -j is defined twice":     func(c *Command) { c.Flags = []Flag{{Name: "jobs", Short: "j"}} },
		"spelled with underscores":     func(c *Command) { c.Flags = []Flag{{Name: "a-b"}} },
		"more than one letter":         func(c *Command) { c.Flags = []Flag{{Name: "jobs", Short: "jj"}} },
		"default of --jobs":            func(c *Command) { c.Flags = []Flag{{Name: "jobs", Kind: Int, Default: "x"}} },
		"unknown flag --jobs":          func(c *Command) { c.Defaults = Defaults{"jobs": "1"} },
		"default of --n_levels":        func(c *Command) { c.Defaults = Defaults{"n_levels": "x"} },
		"sub-command tool is defined ": func(c *Command) { *c = Command{Name: "t", Usage: "u", Commands: []*Command{good(), good()}} },
	} {
		c := good()
		spoil(c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// A flag or an argument that the command does not have is a bug in the command.
func TestBugsPanic(t *testing.T) {
	l := &Line{Command: testCommand(), values: map[string]*value{"sigma_xy": (&Flag{Name: "sigma_xy", Kind: Float}).newValue()}, args: []string{"a", "b"}}
	for name, ask := range map[string]func(){
		"unknown": func() { l.Bool("unknown") }, "of another kind": func() { l.Int("sigma_xy") },
		"no argument": func() { l.Arg("NOTHING") }, "no flag": func() { l.IsSet("unknown") },
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), name) {
					t.Errorf("%s: %v", name, p)
				}
			}()
			ask()
		}()
	}
	if l.Arg("MORE") != "" || l.Args("OUT")[0] != "b" || l.Float("sigma_xy") != 0 {
		t.Error("wrong values")
	}
}
