package flags

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/units"
)

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

// isZero reports whether a value is that of a flag without a default that was not given.
func (v *value) isZero() bool {
	return len(v.items) == 1 && (v.items[0] == nil || reflect.ValueOf(v.items[0]).IsZero())
}

// mostFloat is the maximum magnitude of a flag's number. Lengths, angles and voxel values are smaller, and numbers
// computed from it stay within the range of integers and of float32.
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
		if near := Nearest(text, f.Choices); near != "" {
			return nil, fmt.Errorf("%q is not one of %s; did you mean %s?", text, strings.Join(f.Choices, ", "), near)
		}
		return nil, fmt.Errorf("%q is not one of %s", text, strings.Join(f.Choices, ", "))
	}
	return text, nil
}
