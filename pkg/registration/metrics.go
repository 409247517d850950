package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"strata/pkg/smallfile"
)

// Metrics holds the quality metrics of a pairwise registration (pairwise_registration_metrics.json). A
// missing number is 0, a missing confidence 1.
type Metrics struct {
	Status       string // "ok", "warning" or "error"
	Confidence   float64
	TX, TY       float64 // translation, pixels
	ZCorrelation float64
	Rotation     float64 // degrees
	// Correlation is the correlation of the planes under the transform, or ZCorrelation if that was not measured; 0 if
	// neither was.
	Correlation float64

	Fixed, Moving string            // the slices, as the metrics name them
	Files         map[string]string // digests of the files of the registration, by name; nil: the metrics name none
}

// OpenMetrics reads the metrics file at a path.
func OpenMetrics(ctx context.Context, path string) (m *Metrics, err error) {
	err = open(ctx, path, func(f io.Reader) error {
		m, err = readMetrics(f, path)
		return err
	})
	return m, err
}

// rounding is by how much a correlation or a share may exceed 1, relatively.
const rounding = 1e-3

// readMetrics reads a metrics file. Values that are null, or Python's NaN and
// Infinity, count as absent.
func readMetrics(r io.Reader, name string) (*Metrics, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return nil, err
	}
	b = smallfile.Nullify(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
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
			Correlation  number `json:"registration_correlation"`

			Fixed  json.RawMessage `json:"fixed_volume"`
			Moving json.RawMessage `json:"moving_volume"`
			Files  json.RawMessage `json:"files"`
		} `json:"metrics"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, smallfile.JSONError(name, b, err)
	}
	m := &Metrics{Status: raw.Status, Confidence: 1}
	for _, f := range []struct {
		to   any
		from json.RawMessage
	}{{&m.Fixed, raw.Metrics.Fixed}, {&m.Moving, raw.Metrics.Moving}, {&m.Files, raw.Metrics.Files}} {
		var metric struct {
			Value json.RawMessage `json:"value"`
		}
		if json.Unmarshal(f.from, &metric) == nil { // others have written something else there
			_ = json.Unmarshal(metric.Value, f.to)
		}
	}
	for _, f := range []struct {
		to   *float64
		from number
		key  string
		most float64
	}{
		{&m.Confidence, raw.Metrics.Confidence, "registration_confidence", 1}, {&m.TX, raw.Metrics.TX, "translation_x", farthest}, {&m.TY, raw.Metrics.TY, "translation_y", farthest},
		{&m.ZCorrelation, raw.Metrics.ZCorrelation, "z_correlation", 1}, {&m.Rotation, raw.Metrics.Rotation, "rotation", 360},
		{&m.Correlation, raw.Metrics.Correlation, "registration_correlation", 1},
	} {
		if f.from.Value == nil {
			continue
		}
		if *f.to = *f.from.Value; math.Abs(*f.to) > f.most*(1+rounding) {
			return nil, fmt.Errorf("%s:%d: metrics.%s is %g, want a number from %g to %g", name, smallfile.JSONLine(b, "metrics", f.key, "value"), f.key, *f.to, -f.most, f.most)
		}
	}
	if m.Correlation == 0 {
		m.Correlation = m.ZCorrelation
	}
	return m, nil
}
