package registration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"strata/pkg/document"
)

// Metrics holds the quality metrics of a pairwise registration (pairwise_registration_metrics.json). A
// missing number is 0, a missing confidence 1.
type Metrics struct {
	Status       string // "ok", "warning" or "error"
	Confidence   float64
	TX, TY       float64 // translation, pixels
	ZCorrelation float64
	Rotation     float64 // degrees
}

// ReadMetrics reads a metrics file. Values that are null, or Python's NaN and
// Infinity, count as absent.
func ReadMetrics(r io.Reader, name string) (*Metrics, error) {
	b, err := document.All(r, name)
	if err != nil {
		return nil, err
	}
	b = nullify(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	type number struct {
		Value *float64 `json:"value"`
	}
	var raw struct {
		Status  string   `json:"overall_status"`
		Metrics struct { // others may be of any kind
			Confidence   number `json:"registration_confidence"`
			TX           number `json:"translation_x"`
			TY           number `json:"translation_y"`
			ZCorrelation number `json:"z_correlation"`
			Rotation     number `json:"rotation"`
		} `json:"metrics"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, jsonError(name, b, err)
	}
	m := &Metrics{Status: raw.Status, Confidence: 1}
	for _, f := range []struct {
		to   *float64
		from number
	}{
		{&m.Confidence, raw.Metrics.Confidence}, {&m.TX, raw.Metrics.TX}, {&m.TY, raw.Metrics.TY},
		{&m.ZCorrelation, raw.Metrics.ZCorrelation}, {&m.Rotation, raw.Metrics.Rotation},
	} {
		if f.from.Value != nil {
			*f.to = *f.from.Value
		}
	}
	return m, nil
}

// jsonError returns the error of a JSON document with file and line.
func jsonError(name string, b []byte, err error) error {
	at := int64(len(b))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	} else if errors.As(err, &kind) {
		at = kind.Offset
		err = fmt.Errorf("%s is a %s, want a %s", kind.Field, kind.Value, kind.Type.Kind())
	}
	return fmt.Errorf("%s:%d: %w", name, 1+bytes.Count(b[:min(at, int64(len(b)))], []byte("\n")), err)
}

// nullify writes null over the numbers that Python writes and JSON does not have.
func nullify(b []byte) []byte {
	out := make([]byte, 0, len(b))
	inString := false
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case inString && c == '\\' && i+1 < len(b):
			out = append(out, c, b[i+1])
			i += 2
			continue
		case c == '"':
			inString = !inString
		case !inString:
			if n := pythonNumber(b[i:]); n > 0 {
				out = append(out, "null"...)
				i += n
				continue
			}
		}
		out = append(out, c)
		i++
	}
	return out
}

func pythonNumber(b []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}
