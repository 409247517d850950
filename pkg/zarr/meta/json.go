package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Metadata is small and opened often: a document is checked once, with
// encoding/json, and then split by hand, which needs no second look at what is
// skipped and no reflection. All values keep their text, without space around it.

// ParseDocument splits a metadata file, which must be one JSON object.
func ParseDocument(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, FieldError("", "not valid JSON: not UTF-8")
	}
	if !json.Valid(raw) {
		var v any
		err := json.Unmarshal(raw, &v) // says where
		if err == nil {
			err = errors.New("nested too deep")
		}
		return nil, FieldError("", "not valid JSON: %w", err)
	}
	return ParseObject("", raw)
}

// QuoteNonFinite quotes the bare words NaN, Infinity and -Infinity, which Python's json writes into
// attributes (for example xarray's _FillValue) and no other parser accepts. It leaves valid documents
// unchanged.
func QuoteNonFinite(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) || json.Valid(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+16)
	s := splitter{b: raw}
	for s.i < len(raw) {
		switch c := raw[s.i]; c {
		case '{', '}', '[', ']', ',', ':', ' ', '\n', '\t', '\r':
			out = append(out, c)
			s.i++
		default:
			v := s.scalar()
			switch string(v) {
			case "NaN", "Infinity", "-Infinity":
				out = append(append(append(out, '"'), v...), '"')
			default:
				out = append(out, v...)
			}
		}
	}
	if !json.Valid(out) {
		return raw // and its error is about what the file holds
	}
	return out
}

// ParseObject splits an object of a valid document. Of members with the same name the last one counts, as in
// most parsers.
func ParseObject(field string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	s := splitter{b: raw}
	s.space()
	if s.peek() != '{' {
		return nil, FieldError(field, "is %s, must be a JSON object", KindOf(raw))
	}
	m := make(map[string]json.RawMessage, 8)
	for s.i++; ; s.i++ {
		s.space()
		if s.peek() == '}' {
			return m, nil
		}
		key, err := parseString(field, s.value())
		if err != nil {
			return nil, err
		}
		s.space()
		s.i++ // the colon
		s.space()
		m[key] = s.value()
		s.space()
		if s.peek() != ',' {
			return m, nil
		}
	}
}

// ParseList splits a list of a valid document; ok is false if it is not a list.
func ParseList(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	s := splitter{b: raw}
	s.space()
	if s.peek() != '[' {
		return nil, false
	}
	list = make([]json.RawMessage, 0, 4)
	for s.i++; ; s.i++ {
		s.space()
		if s.peek() == ']' {
			return list, true
		}
		list = append(list, s.value())
		s.space()
		if s.peek() != ',' {
			return list, true
		}
	}
}

// splitter walks over valid JSON. Beyond its end it sees zero bytes.
type splitter struct {
	b []byte
	i int
}

func (s *splitter) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *splitter) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// value returns the value that begins here and moves behind it.
func (s *splitter) value() json.RawMessage {
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			depth--
			s.i++
		case ',', ':', ' ', '\n', '\t', '\r':
			s.i++
		default:
			s.scalar()
		}
		if depth <= 0 {
			break
		}
	}
	return s.b[start:s.i:s.i]
}

// scalar returns the string, number or word that begins here and moves behind it.
func (s *splitter) scalar() []byte {
	start := s.i
	if s.b[s.i] == '"' {
		for s.i++; s.i < len(s.b) && s.b[s.i] != '"'; s.i++ {
			if s.b[s.i] == '\\' {
				s.i++
			}
		}
		s.i = min(s.i+1, len(s.b))
		return s.b[start:s.i:s.i]
	}
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '{', '}', '[', ']', ',', ':', '"', ' ', '\n', '\t', '\r':
			return s.b[start:s.i:s.i]
		}
	}
	return s.b[start:s.i:s.i]
}
