// Package metrics writes and reads the quality metrics of a step of the workflow: one JSON file per step, in the form
// that linumpy's report and stack read too. Numbers that JSON does not have, NaN and the infinities, are written as
// null.
package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// Status is a judgement. A step has the worst of its metrics and messages.
type Status string

// Statuses, from good to bad; Info is that of a metric which is not judged.
const (
	Info    Status = "info"
	OK      Status = "ok"
	Warning Status = "warning"
	Error   Status = "error"
)

// rank orders statuses.
var rank = map[Status]int{Info: 0, OK: 0, Warning: 1, Error: 2}

// A Limit judges a value: beyond Warning it is a warning, beyond Error an error. Higher tells that high values are
// good.
type Limit struct {
	Warning, Error float64
	Higher         bool
}

// Limits are those of the workflow, by what they judge.
var Limits = map[string]Limit{
	"registration_error":      {Warning: 0.05, Error: 0.15},
	"translation_magnitude":   {Warning: 30, Error: 50},
	"rotation":                {Warning: 1, Error: 2},
	"correlation":             {Warning: 0.7, Error: 0.5, Higher: true},
	"agarose_coverage":        {Warning: 0.05, Error: 0.01, Higher: true},
	"std_background":          {Warning: 0.1, Error: 0.25},
	"z_offset_std":            {Warning: 10, Error: 25},
	"z_offset_range":          {Warning: 15, Error: 30},
	"registration_confidence": {Warning: 0.4, Error: 0.3, Higher: true},
	"psf_max":                 {Warning: 0.1, Error: 0.05, Higher: true},
	"seam_l1":                 {Warning: 0.12, Error: 0.25},
	"seam_pearson":            {Warning: 0.7, Error: 0.5, Higher: true},
	"seam_curvature":          {Warning: 0.15, Error: 0.30},
}

// A Metric is one value of a step. Value is a number, text, a list or an object.
type Metric struct {
	Value       any
	Unit        string // of a judged metric; "" becomes null
	Description string
	Status      Status
	judged      bool
}

// A Step holds the metrics of one step of the workflow on one slice, pair or volume.
type Step struct {
	Name     string // such as "normalize_intensities"
	Time     time.Time
	Warnings []string
	Errors   []string

	names   []string // in the order in which they were added
	metrics map[string]Metric
}

// New returns a step without metrics.
func New(name string) *Step { return &Step{Name: name, Time: time.Now()} }

// Note adds a metric that is not judged.
func (s *Step) Note(name string, value any, description string) {
	s.put(name, Metric{Value: value, Description: description, Status: Info})
}

// Judge adds a number, judged by limit if it is not nil. A number beyond a limit adds a line to Errors or Warnings. NaN
// is an error if there is a limit.
func (s *Step) Judge(name string, value float64, unit, description string, limit *Limit) {
	m := Metric{Value: value, Unit: unit, Description: description, Status: OK, judged: true}
	if limit != nil {
		sign, than := 1.0, ">"
		if limit.Higher {
			sign, than = -1, "<"
		}
		switch {
		case !(sign*value <= sign*limit.Error):
			m.Status = Error
			s.Errors = append(s.Errors, fmt.Sprintf("%s: %s %s %s (error threshold)", name, number(value, limit.Error), than, number(limit.Error, value)))
		case !(sign*value <= sign*limit.Warning):
			m.Status = Warning
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %s %s %s (warning threshold)", name, number(value, limit.Warning), than, number(limit.Warning, value)))
		}
	}
	s.put(name, m)
}

// Mark adds a metric of the judged form whose status the caller decides.
func (s *Step) Mark(name string, value any, unit, description string, status Status) {
	s.put(name, Metric{Value: value, Unit: unit, Description: description, Status: status, judged: true})
}

func (s *Step) put(name string, m Metric) {
	if s.metrics == nil {
		s.metrics = map[string]Metric{}
	}
	if _, ok := s.metrics[name]; !ok {
		s.names = append(s.names, name)
	}
	s.metrics[name] = m
}

// Names returns the names of the metrics in the order of the file.
func (s *Step) Names() []string { return s.names }

// Metric returns a metric by its name.
func (s *Step) Metric(name string) (m Metric, ok bool) {
	m, ok = s.metrics[name]
	return m, ok
}

// Status returns the worst status of the metrics and messages.
func (s *Step) Status() Status {
	worst := OK
	if len(s.Warnings) > 0 {
		worst = Warning
	}
	if len(s.Errors) > 0 {
		worst = Error
	}
	for _, m := range s.metrics {
		if rank[m.Status] > rank[worst] {
			worst = m.Status
		}
	}
	return worst
}

// number returns a number as Python prints it, with three significant digits, or as many as a whole number has, or tell
// it from another.
func number(v, other float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64))
	}
	t := strconv.FormatFloat(v, 'g', -1, 64)
	for digits := max(3, len(strconv.FormatFloat(math.Trunc(math.Abs(v)), 'f', 0, 64))); digits < 17; digits++ {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
		if rounded != other || v == other {
			t = strconv.FormatFloat(rounded, 'g', -1, 64)
			break
		}
	}
	if !strings.ContainsAny(t, ".e") {
		t += ".0"
	}
	return t
}

// finite returns v with null in place of numbers that JSON does not have, also in lists and objects.
func finite(v any) any {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	case float32:
		return finite(float64(x))
	case []float64:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = finite(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = finite(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = finite(e)
		}
		return out
	}
	return v
}

// member is a metric in its JSON form; Unit is left out of those that are not judged.
type member struct {
	Value       any    `json:"value"`
	Unit        any    `json:"unit,omitempty"`
	Description string `json:"description"`
	Status      Status `json:"status"`
}

// JSON returns the file's text.
func (s *Step) JSON() ([]byte, error) {
	var all bytes.Buffer
	all.WriteByte('{')
	for i, name := range s.names {
		m := s.metrics[name]
		e := member{Value: finite(m.Value), Description: m.Description, Status: m.Status}
		if m.judged {
			if e.Unit = json.RawMessage("null"); m.Unit != "" {
				e.Unit = m.Unit
			}
		}
		key, _ := json.Marshal(name)
		value, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		if i > 0 {
			all.WriteByte(',')
		}
		all.Write(key)
		all.WriteByte(':')
		all.Write(value)
	}
	all.WriteByte('}')
	text, err := json.MarshalIndent(struct {
		Name     string          `json:"step_name"`
		Time     string          `json:"timestamp"`
		Status   Status          `json:"overall_status"`
		Metrics  json.RawMessage `json:"metrics"`
		Warnings []string        `json:"warnings"`
		Errors   []string        `json:"errors"`
	}{s.Name, s.Time.Format("2006-01-02T15:04:05.000000"), s.Status(), all.Bytes(), orEmpty(s.Warnings), orEmpty(s.Errors)}, "", "  ")
	return append(text, '\n'), err
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// FileName returns the path of the metrics of an output: beside it, with the output's name without its last suffix.
func FileName(out string) string {
	out = strings.TrimRight(out, "/")
	dir, base := path.Split(out)
	if ext := path.Ext(base); ext != "" && ext != base {
		base = strings.TrimSuffix(base, ext)
	}
	return dir + base + "_metrics.json"
}
