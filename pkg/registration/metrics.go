package registration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Metrics are what a pairwise registration says of itself
// (pairwise_registration_metrics.json). A number that the file does not have is
// 0, the confidence 1.
type Metrics struct {
	Status       string // "ok", "warning" or "error"
	Confidence   float64
	TX, TY       float64 // translation, pixels
	ZCorrelation float64
	Rotation     float64 // degrees
}

// maxMetrics is how long a metrics file may be.
const maxMetrics = 16 << 20

// ReadMetrics reads a metrics file. Values that are null, or Python's NaN and
// Infinity, count as absent.
func ReadMetrics(r io.Reader, name string) (*Metrics, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxMetrics+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxMetrics {
		return nil, fmt.Errorf("%s: longer than %d MiB", name, maxMetrics>>20)
	}
	b = nullify(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	var raw struct {
		Status  string `json:"overall_status"`
		Metrics map[string]struct {
			Value *float64 `json:"value"`
		} `json:"metrics"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		at := int64(len(b))
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		} else if errors.As(err, &kind) {
			at = kind.Offset
			err = fmt.Errorf("%s is a %s, want a %s", kind.Field, kind.Value, kind.Type.Kind())
		}
		return nil, fmt.Errorf("%s:%d: %w", name, 1+bytes.Count(b[:min(at, int64(len(b)))], []byte("\n")), err)
	}
	m := &Metrics{Status: raw.Status, Confidence: 1}
	for key, to := range map[string]*float64{
		"registration_confidence": &m.Confidence, "translation_x": &m.TX, "translation_y": &m.TY,
		"z_correlation": &m.ZCorrelation, "rotation": &m.Rotation,
	} {
		if v := raw.Metrics[key].Value; v != nil {
			*to = *v
		}
	}
	return m, nil
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
