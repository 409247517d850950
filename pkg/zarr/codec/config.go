package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr/internal/number"
)

// config is a codec's JSON object while it is parsed. Each field is taken once; the first error is kept. Unknown fields
// are ignored: the fields that a decoder needs have long been fixed, but encoders add others.
type config struct {
	name   string
	v3     bool // the configuration of a v3 codec, not an object of numcodecs
	values bool // the codec gets values, not bytes: types have no byte order
	fields map[string]json.RawMessage
	err    error
}

func newConfig(object json.RawMessage) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(object, &c.fields); err != nil || c.fields == nil {
		return nil, errors.New("must be a JSON object")
	}
	return c, nil
}

// finish returns the codec, or the fault of its configuration.
func (c *config) finish(made Codec) (Codec, error) {
	if c.err != nil {
		return nil, fmt.Errorf("codec %q: %w", c.name, c.err)
	}
	return made, nil
}

func (c *config) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *config) take(field string) (json.RawMessage, bool) {
	v, ok := c.fields[field]
	delete(c.fields, field)
	return v, ok
}

// takeValue takes a field; null counts as absent.
func (c *config) takeValue(field string) (json.RawMessage, bool) {
	v, ok := c.take(field)
	return v, ok && string(v) != "null"
}

// integer takes a whole number from least to greatest, in any form that JSON has.
func (c *config) integer(field string, least, greatest, standard int) int {
	v, ok := c.takeValue(field)
	if !ok {
		return standard
	}
	n, ok := number.Int(v)
	if !ok || n < least || n > greatest {
		c.fail("%q is %s (must be a whole number from %d to %d)", field, abbreviate(v), least, greatest)
		return standard
	}
	return n
}

// setting takes a whole number that only an encoder needs, and that never keeps one from decoding: outside least to
// greatest it is the nearest of these, and anything else is the standard value.
func (c *config) setting(field string, least, greatest, standard int) int {
	v, _ := c.take(field)
	var f float64
	if len(v) == 0 || json.Unmarshal(v, &f) != nil || string(v) == "null" {
		return standard
	}
	return int(math.Round(min(max(f, float64(least)), float64(greatest))))
}

// flag takes true or false that only an encoder needs; anything else is false.
func (c *config) flag(field string) bool {
	v, _ := c.take(field)
	n, _ := number.Int(v)
	return string(v) == "true" || n == 1
}

// number takes any number; absent is an error unless a standard value is given.
func (c *config) number(field string, standard ...float64) float64 {
	v, ok := c.takeValue(field)
	if !ok && len(standard) > 0 {
		return standard[0]
	}
	f := math.NaN()
	if !ok || json.Unmarshal(v, &f) != nil {
		c.fail("%q is %s (must be a number)", field, abbreviate(v))
	}
	return f
}

// choice takes one of the given strings.
func (c *config) choice(field, standard string, choices ...string) string {
	v, ok := c.takeValue(field)
	if !ok {
		return standard
	}
	var s string
	if json.Unmarshal(v, &s) != nil || !slices.Contains(choices, s) {
		c.fail("%q is %s (must be %s)", field, abbreviate(v), strings.Join(choices, ", "))
		return standard
	}
	return s
}

// elements takes a data type, given as numpy's type string ("<i4") or by name ("int32"). A missing field gives the
// standard type, or an error if that is invalid.
func (c *config) elements(field string, standard layout) layout {
	v, ok := c.takeValue(field)
	if !ok {
		if standard.Type == dtype.Invalid {
			c.fail("%q is missing (must be a data type such as \"<i4\")", field)
		}
		return standard
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		c.fail("%q is %s (must be a data type such as \"<i4\")", field, abbreviate(v))
		return standard
	}
	if t, err := dtype.Parse(s); err == nil {
		return layout{Type: t}
	}
	t, big, err := dtype.ParseTypestr(s)
	if err != nil {
		c.fail("%q: %w", field, err)
		return standard
	}
	return layout{Type: t, big: big && !c.values}
}

// abbreviate shows a JSON value in an error message, however long it is.
func abbreviate(v json.RawMessage) string {
	switch {
	case len(v) == 0:
		return "missing"
	case len(v) > 40:
		return fmt.Sprintf("%.40q…", v)
	}
	return string(v)
}

// described is the part of a codec of numcodecs that its name and its settings decide, which are the same in both
// formats.
type described struct {
	name   string
	fields map[string]any
}

func (d described) Name() string { return d.name }

func (d described) MetadataV2() (json.RawMessage, error) { return metadataV2(d.name, d.fields) }

func (d described) MetadataV3() (json.RawMessage, error) {
	return metadataV3(prefixV3+d.name, d.fields)
}

// metadataV2 returns an object with an "id" and the given fields.
func metadataV2(id string, fields map[string]any) (json.RawMessage, error) {
	m := map[string]any{"id": id}
	maps.Copy(m, fields)
	return json.Marshal(m)
}

// metadataV3 returns an object with a "name" and a "configuration", which is left out when there is none.
func metadataV3(name string, fields map[string]any) (json.RawMessage, error) {
	m := map[string]any{"name": name}
	if fields != nil {
		m["configuration"] = fields
	}
	return json.Marshal(m)
}
