package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Strata is the name of our programs in Result.Who.
const Strata = "strata"

// Axis is a setting of a measurement.
type Axis struct{ Name, Value string }

// Axes are the settings of a measurement, in the order in which they are shown. As JSON they are an object.
type Axes []Axis

// Get returns the value of an axis, or "" if there is none.
func (a Axes) Get(name string) string {
	for _, x := range a {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}

// With returns the axes with one more, or with another value of an existing one.
func (a Axes) With(name, value string) Axes {
	out := slices.Clone(a)
	for i := range out {
		if out[i].Name == name {
			out[i].Value = value
			return out
		}
	}
	return append(out, Axis{name, value})
}

func (a Axes) String() string {
	var parts []string
	for _, x := range a {
		parts = append(parts, x.Name+" "+x.Value)
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes an object.
func (a Axes) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range a {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object of strings and keeps its order.
func (a *Axes) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("axes: want an object of strings")
	}
	*a = Axes{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("axes: %w", err)
		}
		var value string
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("axes: %v: %w", name, err)
		}
		if a.has(name.(string)) {
			return fmt.Errorf("axes: %v: is there twice", name)
		}
		*a = append(*a, Axis{name.(string), value})
	}
	_, err := d.Token()
	return err
}

func (a Axes) has(name string) bool {
	return slices.ContainsFunc(a, func(x Axis) bool { return x.Name == name })
}

// Result is one measurement with its repeats, or the reason why it was not made.
type Result struct {
	Name    string `json:"name"`    // the operation: "read", "full"
	Axes    Axes   `json:"axes"`    // how
	Who     string `json:"who"`     // the program: Strata, "zarr-python"
	Backend string `json:"backend"` // the way that was actually used; "" if there is only one

	Seconds []float64 `json:"seconds"` // of each repeat
	Bytes   int64     `json:"bytes"`   // moved in each repeat
	Ops     int64     `json:"ops"`     // reads or writes in each repeat; 0 where they are not counted
	Latency *Latency  `json:"latency"` // of those of all repeats; null where it was not measured

	CPU      float64 `json:"cpu_seconds"`              // of a repeat, the median; 0: unknown
	RSS      int64   `json:"peak_resident"`            // bytes of the process; 0: unknown
	Grown    int64   `json:"resident_delta,omitempty"` // part of it that the process did not have before the repeat
	Pixels   int64   `json:"pixels,omitempty"`         // in each repeat; 0 where they are not counted
	Device   int64   `json:"device_bytes"`             // moved to or from a device in a repeat
	Checksum string  `json:"checksum,omitempty"`       // checksum of the data read
	Note     string  `json:"note,omitempty"`           // what did not go as the axes say
	Reason   string  `json:"reason,omitempty"`         // why it was not measured; there are no repeats then
}

// resultJSON is a Result with derived values, so that readers need not compute them.
type resultJSON struct {
	fields
	Median   float64 `json:"median_seconds"`
	Least    float64 `json:"least_seconds"`
	Most     float64 `json:"most_seconds"`
	Rate     float64 `json:"bytes_per_second"`
	OpsPerSc float64 `json:"ops_per_second"`
	PixelsPS float64 `json:"pixels_per_second,omitempty"`
}

type fields Result

// MarshalJSON writes the fields, and the median, spread and rates that follow from them.
func (r Result) MarshalJSON() ([]byte, error) {
	if r.Seconds == nil {
		r.Seconds = []float64{}
	}
	if r.Axes == nil {
		r.Axes = Axes{}
	}
	least, most := r.spread()
	return json.Marshal(resultJSON{fields(r), r.Median(), least, most, r.Rate(), r.OpsRate(), r.PixelRate()})
}

// UnmarshalJSON reads the output of MarshalJSON and refuses anything else.
func (r *Result) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var v resultJSON
	if err := d.Decode(&v); err != nil {
		return err
	}
	*r = Result(v.fields)
	return nil
}

// Median returns the median of the repeats' seconds; 0 if there are none.
func (r Result) Median() float64 { return Median(r.Seconds) }

// spread returns the minimum and the maximum seconds of the repeats.
func (r Result) spread() (least, most float64) {
	if len(r.Seconds) == 0 {
		return 0, 0
	}
	return slices.Min(r.Seconds), slices.Max(r.Seconds)
}

// Rate returns the bytes per second of the median repeat, or 0 if there is none.
func (r Result) Rate() float64 { return per(float64(r.Bytes), r.Median()) }

// rates returns the bytes per second of the slowest and of the fastest repeat.
func (r Result) rates() (slowest, fastest float64) {
	least, most := r.spread()
	return per(float64(r.Bytes), most), per(float64(r.Bytes), least)
}

// OpsRate returns the reads or writes per second of the median repeat, or 0 if they are not counted.
func (r Result) OpsRate() float64 { return per(float64(r.Ops), r.Median()) }

// PixelRate returns the pixels per second of the median repeat, or 0 if they are not counted.
func (r Result) PixelRate() float64 { return per(float64(r.Pixels), r.Median()) }

// Measured reports whether there is a repeat.
func (r Result) Measured() bool { return len(r.Seconds) > 0 }

// key returns a result's name and axes.
func (r Result) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", r.Name)
	for _, x := range slices.SortedFunc(slices.Values(r.Axes), func(a, b Axis) int { return cmp.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&b, " %q=%q", x.Name, x.Value)
	}
	return b.String()
}

func per(n, seconds float64) float64 {
	if !(seconds > 0) {
		return 0
	}
	return n / seconds
}

// Median returns the median of numbers, for an even count the mean of the two in the middle, and 0 for none.
func Median(list []float64) float64 {
	n := len(list)
	if n == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	if n%2 == 0 {
		return s[n/2-1]/2 + s[n/2]/2
	}
	return s[n/2]
}
