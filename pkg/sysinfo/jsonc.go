package sysinfo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// withoutComments replaces comments of C and C++ outside of strings by white space, so that lines stay where they are.
func withoutComments(text []byte) []byte {
	out := bytes.Clone(text)
	inString, escaped := false, false
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case inString:
			inString = escaped || c != '"'
			escaped = !escaped && c == '\\'
		case c == '"':
			inString, escaped = true, false
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			stop := len(out)
			if end >= 0 {
				stop = i + 2 + end + 2
			}
			for ; i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return out
}

// decodeCommented decodes JSON with comments. Errors name the line.
func decodeCommented(text []byte, into any) error {
	clean := withoutComments(text)
	err := json.Unmarshal(clean, into)
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		name := kind.Field
		if name == "" {
			name = "the document"
		}
		err = fmt.Errorf("%s is of type %s, want %s", name, kind.Value, kind.Type.Kind())
	}
	if err == nil {
		return nil
	}
	if offset >= 0 && offset <= int64(len(clean)) {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(clean[:max(offset-1, 0)], []byte("\n")), err)
	}
	return err
}
