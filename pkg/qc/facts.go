package qc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/smallfile"
)

// Facts holds the plain values of a JSON file: those of its top-level object, and those of nested objects as
// "outer.inner". Lists of up to four plain values, and of two rows of two, count as plain; for longer ones it
// holds the length.
type Facts struct {
	Name   string
	Fields []string // in the order of the file
	Values map[string]string

	known bool               // summed up in our words
	plot  map[string]float64 // numbers to compare between slices
	size  [2]int             // (y, x) of a stitched slice in px
	seams []seam             // to look at, of a stitched slice
	worst *seam              // of the largest difference; nil: not known
	pairs *PairMap           // of a stitched slice; nil: its pairs are not known
}

// maxFacts is the maximum number of values shown of a file.
const maxFacts = 24

// loadFacts reads JSON files; sum puts those of a known form in other words.
func (r *Report) loadFacts(ctx context.Context, list []found, to *[]*Facts, suffix string, sum func(*Facts, []byte) bool) error {
	for _, f := range list {
		b, err := smallfile.Read(ctx, f.path)
		var facts *Facts
		if err == nil {
			if facts, err = parseFacts(b, f.path); err == nil {
				facts.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f.path), ".json"), suffix)
				facts.known = sum(facts, b)
				*to = append(*to, facts)
				continue
			}
		}
		if err := r.unusable(f, err); err != nil {
			return err
		}
	}
	return nil
}

// parseFacts parses a JSON object. name is the file's name in errors.
func parseFacts(b []byte, name string) (*Facts, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	f := &Facts{Values: map[string]string{}}
	if err := f.object(d, "", 0); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, lineAt(b, d.InputOffset()), plainJSON(err, name))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s:%d: something follows the object", name, lineAt(b, d.InputOffset()))
	}
	return f, nil
}

// object reads an object with its opening brace.
func (f *Facts) object(d *json.Decoder, prefix string, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("want a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := prefix + key.(string)
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		switch raw[0] {
		case '{':
			if depth == 0 {
				inner := json.NewDecoder(bytes.NewReader(raw))
				inner.UseNumber()
				if err := f.object(inner, name+".", depth+1); err != nil {
					return err
				}
			}
		case '[':
			f.set(name, list(raw))
		default:
			f.set(name, scalar(raw))
		}
	}
	_, err = d.Token()
	return err
}

func (f *Facts) set(name, value string) {
	if _, ok := f.Values[name]; !ok {
		if len(f.Fields) >= maxFacts {
			return
		}
		f.Fields = append(f.Fields, name)
	}
	f.Values[name] = value
}

// scalar writes a plain value; numbers with at most five digits that matter.
func scalar(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	switch v := v.(type) {
	case nil:
		return "–"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		return strconv.FormatFloat(v, 'g', 5, 64)
	case string:
		return v
	}
	return string(raw)
}

// list formats a list of a few plain values or rows of them, or gives the length of a longer one.
func list(raw json.RawMessage) string {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return ""
	}
	long := strconv.Itoa(len(items)) + " entries"
	if len(items) == 1 {
		long = "1 entry"
	}
	var parts []string
	separator := ", "
	for _, i := range items {
		switch {
		case len(items) > 4 || i[0] == '{':
			return long
		case i[0] == '[': // a row
			var row []json.RawMessage
			if json.Unmarshal(i, &row) != nil || len(items)*len(row) > 4 {
				return long
			}
			var values []string
			for _, v := range row {
				if v[0] == '[' || v[0] == '{' {
					return long
				}
				values = append(values, scalar(v))
			}
			parts, separator = append(parts, strings.Join(values, ", ")), "; "
		default:
			parts = append(parts, scalar(i))
		}
	}
	return strings.Join(parts, separator)
}

// columns returns the fields that any of the files has, in the order of first sight.
func columns(all []*Facts) []string {
	var out []string
	for _, f := range all {
		for _, name := range f.Fields {
			if !slices.Contains(out, name) && len(out) < maxFacts {
				out = append(out, name)
			}
		}
	}
	return out
}

// lineAt returns the line of an offset.
func lineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(offset, int64(len(b)))], []byte{'\n'})
}

// plainJSON describes a fault of JSON in one line without the name of the file, which the caller adds.
func plainJSON(err error, path string) error {
	var syntax *json.SyntaxError
	var file *fs.PathError
	var lost *smallfile.LostError
	switch {
	case errors.As(err, &lost):
		return errors.New(lost.Cause())
	case errors.As(err, &file):
		return file.Err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return errors.New("the JSON ends in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON: %w", syntax)
	}
	text := strings.TrimPrefix(err.Error(), "record "+path+": ")
	return errors.New(strings.Join(strings.Fields(text), " "))
}
