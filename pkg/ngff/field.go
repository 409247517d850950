package ngff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"strata/pkg/zarr/meta"
)

// Severity tells whether a [Problem] stops a reader.
type Severity int

const (
	// Warning is a fault that readers cope with, or a recommendation of the specification that the file does
	// not follow.
	Warning Severity = iota
	// Error is a violation of the specification.
	Error
)

// String returns "warning" or "error".
func (s Severity) String() string {
	if s == Error {
		return "error"
	}
	return "warning"
}

// Problem is one finding about a node of an OME-Zarr hierarchy.
type Problem struct {
	Path     string // location of the node, as its store names it
	Field    string // metadata field, such as "multiscales[0].axes[1].type"; "" for the node as a whole
	Severity Severity
	Message  string // what is wrong, and what would be right
	Err      error  // error from opening a node; nil: the finding is about metadata
	fatal    bool   // Open cannot make sense of it
}

// String returns the finding on one line.
func (p Problem) String() string {
	if p.Field == "" {
		return fmt.Sprintf("%s: %s: %s", p.Path, p.Severity, p.Message)
	}
	return fmt.Sprintf("%s: %s: %s: %s", p.Path, p.Severity, p.Field, p.Message)
}

// findings collects problems in the order in which they are met.
type findings struct {
	list []Problem
}

// fatal records a fault that makes the metadata useless.
func (f *findings) fatal(field, format string, args ...any) {
	f.list = append(f.list, Problem{Field: field, Severity: Error, Message: fmt.Sprintf(format, args...), fatal: true})
}

// bad records a broken rule that does not stop a reader.
func (f *findings) bad(field, format string, args ...any) {
	f.list = append(f.list, Problem{Field: field, Severity: Error, Message: fmt.Sprintf(format, args...)})
}

// warn records a warning.
func (f *findings) warn(field, format string, args ...any) {
	f.list = append(f.list, Problem{Field: field, Severity: Warning, Message: fmt.Sprintf(format, args...)})
}

// firstFatal returns the finding that stops Open, or nil.
func (f *findings) firstFatal() *Problem {
	for i := range f.list {
		if f.list[i].fatal {
			return &f.list[i]
		}
	}
	return nil
}

// firstFatalFrom returns the first fatal finding after the first n findings, or nil.
func (f *findings) firstFatalFrom(n int) *Problem {
	rest := findings{list: f.list[n:]}
	return rest.firstFatal()
}

// demote makes the findings after the first n non-fatal, for parts of the metadata that the image can do without.
func (f *findings) demote(n int) {
	for i := n; i < len(f.list); i++ {
		f.list[i].fatal = false
	}
}

// value is a JSON value and the name of its place in the metadata.
type value struct {
	field string
	raw   json.RawMessage
}

// missing reports whether a value is absent. JSON's null counts as absent, since several writers use it in place of
// unknown values.
func (v value) missing() bool {
	t := bytes.TrimSpace(v.raw)
	return len(t) == 0 || bytes.Equal(t, []byte("null"))
}

// kind names the JSON type for messages.
func (v value) kind() string { return meta.KindOf(v.raw) }

func (v value) errorf(format string, args ...any) error {
	return &fieldError{v.field, fmt.Errorf(format, args...)}
}

// fieldError reports a value that violates its field's rules.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// object returns a JSON object's members.
func (v value) object() (object, error) {
	if v.missing() {
		return object{}, v.errorf("missing (an object)")
	}
	o := object{field: v.field}
	if err := json.Unmarshal(v.raw, &o.members); err != nil {
		return object{}, v.errorf("%s (must be an object)", v.kind())
	}
	return o, nil
}

// list returns a JSON array's elements.
func (v value) list() ([]value, error) {
	if v.missing() {
		return nil, v.errorf("missing (a list)")
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(v.raw, &raws); err != nil {
		return nil, v.errorf("%s (must be a list)", v.kind())
	}
	out := make([]value, len(raws))
	for i, r := range raws {
		out[i] = value{v.field + "[" + strconv.Itoa(i) + "]", r}
	}
	return out, nil
}

func (v value) text() (string, error) {
	if v.missing() {
		return "", v.errorf("missing (a string)")
	}
	var s string
	if err := json.Unmarshal(v.raw, &s); err != nil {
		return "", v.errorf("%s (must be a string)", v.kind())
	}
	return s, nil
}

func (v value) number() (float64, error) {
	if v.missing() {
		return 0, v.errorf("missing (a number)")
	}
	var x float64
	if err := json.Unmarshal(v.raw, &x); err != nil {
		var ute *json.UnmarshalTypeError
		if errors.As(err, &ute) && v.kind() == "a number" {
			return 0, v.errorf("%s is outside the range of float64", bytes.TrimSpace(v.raw))
		}
		return 0, v.errorf("%s (must be a number)", v.kind())
	}
	return x, nil
}

func (v value) integer() (int, error) {
	x, err := v.number()
	if err != nil {
		return 0, err
	}
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, v.errorf("%v (must be an integer)", x)
	}
	return int(x), nil
}

func (v value) integer64() (int64, error) {
	n, err := v.integer()
	return int64(n), err
}

func (v value) boolean() (bool, error) {
	if v.missing() {
		return false, v.errorf("missing (true or false)")
	}
	var b bool
	if err := json.Unmarshal(v.raw, &b); err != nil {
		return false, v.errorf("%s (must be true or false)", v.kind())
	}
	return b, nil
}

// object is a JSON object and the name of its place.
type object struct {
	field   string
	members map[string]json.RawMessage
}

// get returns the member of that name; an absent one is a missing value.
func (o object) get(name string) value {
	f := name
	if o.field != "" {
		f = o.field + "." + name
	}
	return value{f, o.members[name]}
}

// has reports whether a member exists and is not null.
func (o object) has(name string) bool { return !o.get(name).missing() }

// need reads a value and notes what is wrong with it.
func need[T any](f *findings, v value, read func(value) (T, error)) (x T, ok bool) {
	x, err := read(v)
	if err != nil {
		f.noted(err)
	}
	return x, err == nil
}

// may reads a value that may be missing.
func may[T any](f *findings, v value, read func(value) (T, error), dst *T) {
	if !v.missing() {
		*dst, _ = need(f, v, read)
	}
}
