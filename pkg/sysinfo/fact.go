package sysinfo

import (
	"encoding/json"
	"fmt"
)

// Fact is a value, or the reason why it is unknown. As JSON it is {"value": …, "reason": "…"}, with null for
// an unknown value.
type Fact[T any] struct {
	Value  T
	Reason string // why the value is not known; "" if it is
}

// Known reports whether the value is known.
func (f Fact[T]) Known() bool { return f.Reason == "" }

// String returns the value, or "unknown".
func (f Fact[T]) String() string {
	if !f.Known() {
		return "unknown"
	}
	return fmt.Sprint(f.Value)
}

// MarshalJSON writes the two fields.
func (f Fact[T]) MarshalJSON() ([]byte, error) {
	out := struct {
		Value  *T     `json:"value"`
		Reason string `json:"reason"`
	}{Reason: f.Reason}
	if f.Known() {
		out.Value = &f.Value
	}
	return json.Marshal(out)
}

func known[T any](v T) Fact[T] { return Fact[T]{Value: v} }

func unknown[T any](format string, args ...any) Fact[T] {
	return Fact[T]{Reason: fmt.Sprintf(format, args...)}
}

// convert converts a fact to another type; the second result of its function argument gives the reason why
// that is impossible.
func convert[A, B any](a Fact[A], to func(A) (B, string)) Fact[B] {
	if !a.Known() {
		return Fact[B]{Reason: a.Reason}
	}
	b, why := to(a.Value)
	if why != "" {
		return Fact[B]{Reason: why}
	}
	return Fact[B]{Value: b}
}
