package flags

import (
	"errors"
	"fmt"
	"math"
	"reflect"
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
	// Ignored flags are accepted and have no effect. A run that is given such a flag warns with this reason.
	Ignored string

	// Written says that the flag names a file or folder that the run writes: with --batch each pair has its own.
	Written bool
	// Alone marks a flag that cannot be combined with --batch, because a run with it has no pair of IN and OUT.
	Alone bool

	// Section is the title of the help section that lists the flag, one of [Sections]; "": the section of the command's
	// own flags.
	Section string

	means map[string]string // further values, and the choices that they stand for
	bound reflect.Value     // the variable that gets the value, if there is one; see [Bind]
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

// plain returns a limit in the form in which a user would type it for a value of v's type.
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

// Placeholder is the name of the flag's value in messages and in the help.
func (f *Flag) Placeholder() string {
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

// Typed returns the flag as it is typed, with dashes.
func (f *Flag) Typed() string { return dashed(f.Name) }
