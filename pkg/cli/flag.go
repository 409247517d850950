package cli

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/units"
)

// Kind is the type of a flag's value.
type Kind int

// The kinds of flags. Those in the plural take several values:
// comma-separated, by repeating the flag, or (Ints and Floats) as numbers that
// follow it.
const (
	String   Kind = iota
	Bool          // --x, --no-x, --x=true
	Int           // whole number
	Float         // finite number
	Size          // bytes, with units: units.ParseSize
	Duration      // units.ParseDuration
	Strings
	Ints
	Floats
)

// Flag describes one flag. Defaults are written as a user would type them, are
// parsed by the same code and stand in the help as they are.
type Flag struct {
	Name    string   // canonical, with underscores: "n_levels"
	Short   string   // one letter; may be empty
	Aliases []string // other long names
	Kind    Kind
	Default string   // "" is the zero value
	Choices []string // the only values of a String flag, if any
	Value   string   // what the value is called in the help: "FILE"; one word
	Usage   string   // one line, lower case, without a full stop
	// Check says what is wrong with a value that has the right form; v is a
	// string, bool, int, float64, int64 (Size) or time.Duration, one element
	// of a list at a time. It is not asked about the default. May be nil.
	Check func(v any) error
	// Note is shown instead of the default: "the input's".
	Note string
	// Hidden flags work but are not in the help.
	Hidden bool
	// Ignored flags are accepted and have no effect; a run that is given one
	// warns of it with this reason.
	Ignored string

	means   map[string]string // further values, and the choices that they stand for
	section string            // of the help that it stands in; "": the command's own
	bound   reflect.Value     // the variable that gets the value, if there is one; see [Bind]
}

// AtLeast is a check for numbers, sizes and durations (in seconds).
func AtLeast(limit float64) func(any) error {
	return func(v any) error {
		if number(v) < limit {
			return fmt.Errorf("must be at least %s", plain(v, limit))
		}
		return nil
	}
}

// Above is a check for numbers, sizes and durations (in seconds).
func Above(limit float64) func(any) error {
	return func(v any) error {
		if number(v) <= limit {
			return fmt.Errorf("must be above %s", plain(v, limit))
		}
		return nil
	}
}

// Between is a check for numbers, sizes and durations (in seconds), both limits allowed.
func Between(low, high float64) func(any) error {
	return func(v any) error {
		if n := number(v); n < low || n > high {
			return fmt.Errorf("must be from %s to %s", plain(v, low), plain(v, high))
		}
		return nil
	}
}

// VoxelSize is a check for numbers that are sides of voxels in µm.
func VoxelSize(v any) error {
	if units.CheckVoxel(number(v)) != nil {
		return errors.New(units.VoxelLimits) // the value is named before
	}
	return nil
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	case time.Duration:
		return v.Seconds()
	}
	return math.NaN()
}

// plain is a limit as a user would type it for such a value.
func plain(v any, limit float64) string {
	switch v.(type) {
	case int64:
		return units.FormatSize(int64(limit))
	case time.Duration:
		return units.FormatDuration(time.Duration(limit * float64(time.Second)))
	}
	return strconv.FormatFloat(limit, 'f', -1, 64)
}

// canonical is the spelling of a flag's name under which it is looked up.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

// dashed is a flag as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// names are all canonical names of a flag.
func (f *Flag) names() []string {
	names := []string{f.Name}
	if f.Short != "" {
		names = append(names, f.Short)
	}
	for _, a := range f.Aliases {
		names = append(names, canonical(a))
	}
	return names
}

// many says whether the flag takes several values.
func (f *Flag) many() bool { return f.Kind >= Strings }

// numeric says whether numbers that follow the flag are its values.
func (f *Flag) numeric() bool { return f.Kind == Ints || f.Kind == Floats }

// placeholder is the name of the flag's value in messages and in the help.
func (f *Flag) placeholder() string {
	switch {
	case f.Kind == Bool:
		return ""
	case f.Value != "":
		return f.Value
	case len(f.Choices) > 0:
		return strings.Join(f.Choices, "|")
	}
	return map[Kind]string{String: "TEXT", Int: "N", Float: "X", Size: "SIZE", Duration: "TIME",
		Strings: "TEXT,...", Ints: "N,...", Floats: "X,..."}[f.Kind]
}

// value holds the parsed values of a flag.
type value struct {
	flag  *Flag
	set   bool
	items []any // one, or several for the plural kinds
	err   error // what is wrong with the default
}

func (f *Flag) newValue() *value {
	v := &value{flag: f}
	if f.Default != "" {
		v.err = v.parse(f.Default, false)
	}
	return v
}

// Set parses what the user typed. The first value of a list replaces the default.
func (v *value) Set(text string) error {
	if !v.set {
		v.items = nil
	}
	v.set = true
	return v.parse(text, true)
}

func (v *value) parse(text string, check bool) error {
	parts := []string{text}
	if v.flag.many() {
		parts = strings.Split(text, ",")
	} else {
		v.items = nil
	}
	for _, part := range parts {
		item, err := v.flag.parseOne(strings.TrimSpace(part))
		if err == nil && check && v.flag.Check != nil {
			if err = v.flag.Check(item); err != nil {
				err = fmt.Errorf("%q %w", part, err)
			}
		}
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	return nil
}

// mostFloat is the largest number of a flag: no length, angle or value of a voxel is larger, and
// what is computed from it stays within what integers and single precision hold.
const mostFloat = 1e15

func (f *Flag) parseOne(text string) (any, error) {
	switch f.Kind {
	case Bool:
		switch strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case Int, Ints:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case Float, Floats:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		if math.Abs(x) > mostFloat {
			return nil, fmt.Errorf("%q is out of range: want numbers from %g to %g", text, -mostFloat, mostFloat)
		}
		return x, nil
	case Size:
		return units.ParseSize(text)
	case Duration:
		return units.ParseDuration(text)
	}
	if choice, ok := f.means[text]; ok {
		text = choice
	}
	if len(f.Choices) > 0 && !slices.Contains(f.Choices, text) {
		if near := nearest(text, f.Choices); near != "" {
			return nil, fmt.Errorf("%q is not one of %s; did you mean %s?", text, strings.Join(f.Choices, ", "), near)
		}
		return nil, fmt.Errorf("%q is not one of %s", text, strings.Join(f.Choices, ", "))
	}
	return text, nil
}
