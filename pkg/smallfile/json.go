package smallfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// JSONError returns the error of a JSON document with file and line.
func JSONError(name string, b []byte, err error) error {
	at := int64(len(b))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	} else if errors.As(err, &kind) {
		at = kind.Offset
		err = fmt.Errorf("%s is a %s, want a %s", kind.Field, kind.Value, kind.Type.Kind())
		if number, ok := strings.CutPrefix(kind.Value, "number "); ok && kind.Type.Kind() == reflect.Float64 {
			err = fmt.Errorf("%s is %.40s, which is too large", kind.Field, number)
		}
	}
	return fmt.Errorf("%s:%d: %w", name, line(b, at), err)
}

// line returns the number of the line that byte at lies on.
func line(b []byte, at int64) int { return 1 + bytes.Count(b[:min(at, int64(len(b)))], []byte("\n")) }

// JSONLine returns the line of a JSON document on which the last of some keys stands, each of which is sought behind
// the one before it.
func JSONLine(b []byte, keys ...string) int {
	at := 0
	for _, key := range keys {
		if i := bytes.Index(b[at:], []byte(`"`+key+`"`)); i >= 0 {
			at += i + len(key) + 2
		}
	}
	return line(b, int64(at))
}

// JSONOffset returns the offset at which encoding/json found an error; −1 if the error does not say where.
func JSONOffset(err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return syntax.Offset
	case errors.As(err, &kind):
		return kind.Offset
	}
	return -1
}

// Nullify writes null over the numbers that Python writes and JSON does not have.
func Nullify(b []byte) []byte {
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
