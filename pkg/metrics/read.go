package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"strata/pkg/smallfile"
)

// Read reads the metrics of a step as strata or linumpy wrote them. Python's NaN and Infinity become null. name is the
// file's name in errors, which begin with it and the line.
func Read(r io.Reader, name string) (*Step, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return nil, err
	}
	b = smallfile.Nullify(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	var raw struct {
		Name     *string         `json:"step_name"`
		Time     string          `json:"timestamp"`
		Status   Status          `json:"overall_status"`
		Metrics  json.RawMessage `json:"metrics"`
		Warnings []string        `json:"warnings"`
		Errors   []string        `json:"errors"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, smallfile.JSONError(name, b, err)
	}
	if raw.Name == nil {
		return nil, fmt.Errorf("%s: no step_name: want the metrics of a step of the workflow", name)
	}
	s := &Step{Name: *raw.Name, Warnings: raw.Warnings, Errors: raw.Errors}
	for _, layout := range []string{"2006-01-02T15:04:05.999999", time.RFC3339Nano} {
		if t, err := time.Parse(layout, raw.Time); err == nil {
			s.Time = t
			break
		}
	}
	if err := s.members(raw.Metrics); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if rank[raw.Status] > rank[s.Status()] {
		s.Mark("overall_status", string(raw.Status), "", "as the file states it", raw.Status)
	}
	return s, nil
}

// members reads the metrics in the order of the file.
func (s *Step) members(text json.RawMessage) error {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("metrics is not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var m struct {
			Value       any             `json:"value"`
			Unit        json.RawMessage `json:"unit"`
			Description string          `json:"description"`
			Status      Status          `json:"status"`
		}
		if err := d.Decode(&m); err != nil {
			return fmt.Errorf("metric %v: %w", key, err)
		}
		if _, ok := rank[m.Status]; !ok {
			m.Status = Info
		}
		unit := ""
		_ = json.Unmarshal(m.Unit, &unit) // null, and whatever is not text, is no unit
		s.put(key.(string), Metric{Value: m.Value, Unit: unit, Description: m.Description, Status: m.Status, judged: m.Unit != nil})
	}
	return nil
}
