package registration

import (
	"encoding/csv"
	"fmt"
	"io"
)

// Filled is a row of an interpolation manifest: what came of the attempt to fill the gap of one slice.
type Filled struct {
	Slice  int
	Method string // that was asked for
	Used   string // that was used; "" if none was
	Reason string // why it was not the one that was asked for
	Failed bool
	Output string // path; "" if there is none
}

var manifestColumns = []string{"slice_id", "method", "method_used", "fallback_reason", "interpolation_failed", "output_path"}

// ReadManifest reads an interpolation manifest. Only the columns slice_id and interpolation_failed are needed. A
// duplicate slice is an error.
func ReadManifest(r io.Reader, name string) ([]Filled, error) {
	t, err := openKept(r, name, "slice_id", "interpolation_failed")
	if err != nil {
		return nil, err
	}
	var out []Filled
	lines := map[int]int{}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		f := Filled{Method: t.text("method"), Used: t.text("method_used"), Reason: t.text("fallback_reason"), Output: t.text("output_path")}
		if f.Slice, err = t.id("slice_id"); err != nil {
			return nil, err
		}
		if f.Failed, err = t.truth("interpolation_failed", false); err != nil {
			return nil, err
		}
		if first, ok := lines[f.Slice]; ok {
			return nil, t.errorf("slice %d is already on line %d", f.Slice, first)
		}
		lines[f.Slice] = t.line
		out = append(out, f)
	}
}

// WriteManifest writes an interpolation manifest; lines end in LF.
func WriteManifest(dst io.Writer, filled []Filled) error {
	rows := [][]string{manifestColumns}
	for _, f := range filled {
		rows = append(rows, []string{SliceName(f.Slice), f.Method, f.Used, f.Reason, fmt.Sprint(f.Failed), f.Output})
	}
	return csv.NewWriter(dst).WriteAll(rows)
}
