package registration

import (
	"encoding/csv"
	"fmt"
	"io"
)

// Filled is a row of an interpolation manifest: the outcome of filling the gap left by one slice.
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
	lines := map[int]int{}
	needed := []string{"slice_id", "interpolation_failed"}
	return readRows(openKept, r, name, needed, func(t *table, f *Filled) error {
		*f = Filled{Method: t.text("method"), Used: t.text("method_used"), Reason: t.text("fallback_reason"), Output: t.text("output_path")}
		if err := t.read(needed, sliceID{&f.Slice}, &f.Failed); err != nil {
			return err
		}
		return t.repeated(lines, f.Slice)
	})
}

// WriteManifest writes an interpolation manifest; lines end in LF.
func WriteManifest(dst io.Writer, filled []Filled) error {
	rows := [][]string{manifestColumns}
	for _, f := range filled {
		rows = append(rows, []string{SliceName(f.Slice), f.Method, f.Used, f.Reason, fmt.Sprint(f.Failed), f.Output})
	}
	return csv.NewWriter(dst).WriteAll(rows)
}
