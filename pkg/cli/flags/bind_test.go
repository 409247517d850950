package flags

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// word is a string with a type of its own, as choices have.
type word string

// Variables of flags have their defaults, and what the user gives; an alias may have other defaults.
func TestBind(t *testing.T) {
	type options struct {
		Word   word
		Far    bool
		Planes int
		Sigma  float64
		Levels []float64
	}
	before := options{"near", true, 8, 0.25, []float64{10, 25}}
	for typed, want := range map[string]options{
		"tool":       before,
		"tool --far": before,
		"tool --sigma 1e-3 --planes 0 --no-far --levels 5": {"near", false, 0, 1e-3, []float64{5}},
		"tool --word far --levels 1 2 3":                   {"far", true, 8, 0.25, []float64{1, 2, 3}},
		"other":                                            {"near", true, 9, 0.25, []float64{10, 25}},
		"other --planes 3":                                 {"near", true, 3, 0.25, []float64{10, 25}},
	} {
		o := before
		o.Levels = slices.Clone(before.Levels)
		c := &Command{
			Name: "tool", Usage: "binds", Aliases: []Alias{{Name: "other", Defaults: Defaults{"planes": "9"}}},
			Flags: []Flag{
				Bind(&o.Word, Flag{Name: "word", Choices: []string{"near", "far"}, Usage: "a word"}), Bind(&o.Far, Flag{Name: "far", Usage: "a switch"}),
				Bind(&o.Planes, Flag{Name: "planes", Usage: "a count"}), Bind(&o.Sigma, Flag{Name: "sigma", Usage: "a number"}),
				Bind(&o.Levels, Flag{Name: "levels", Usage: "numbers"}),
			},
		}
		for name, def := range map[string]string{"word": "near", "far": "true", "planes": "8", "sigma": "0.25", "levels": "10,25"} {
			if f := c.Flag(name); f.Default != def {
				t.Errorf("--%s: default %q, want %q", name, f.Default, def)
			}
		}
		ran := false
		fields := strings.Fields(typed)
		if err := Parse(c.CalledAs(fields[0]), fields[1:], func(l *Line) error {
			l.FillBound()
			if ran = true; !reflect.DeepEqual(o, want) {
				t.Errorf("%s: %+v, want %+v", typed, o, want)
			}
			return nil
		}); err != nil || !ran {
			t.Errorf("%s: %v", typed, err)
		}
	}
}
