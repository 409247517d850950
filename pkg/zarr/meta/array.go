package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr/internal/number"
)

// maxRank is the maximum number of dimensions. numpy allows 64; nobody stores so many, and each costs scratch
// memory.
const maxRank = 32

// MaxDocument bounds the size of a metadata document: also of one that a server never ends.
// Consolidated metadata of a thousand images has about 10 MiB.
const MaxDocument = 16 << 20

// Array holds the checked content of an array's document. It does not change.
type Array struct {
	Format         int
	Shape          []int
	Chunks         []int // of the chunk grid: shards, where there are shards
	DType          dtype.Type
	NumpyType      string // numpy's type string without its byte order, where elem alone does not tell; see numpytype.go
	bigEndian      bool   // of format 2's dtype
	order          byte   // of format 2: 'C' or 'F'
	Fill           []byte
	Keys           keyEncoding
	Pipeline       *Pipeline
	DimensionNames []string
	Attributes     map[string]json.RawMessage
	Document       json.RawMessage
}

// KindOf names the kind of a JSON value, for messages.
func KindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// IsNull reports whether a JSON value is null.
func IsNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// Shorten cuts a value from a file to one short line, for messages.
func Shorten(raw json.RawMessage) string {
	const most = 60
	s := strconv.QuoteToASCII(string(raw))
	s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

func need(m map[string]json.RawMessage, field string) (json.RawMessage, error) {
	raw, ok := m[field]
	if !ok {
		return nil, FieldError(field, "missing")
	}
	return raw, nil
}

// required parses a field that must be there.
func required[T any](m map[string]json.RawMessage, field string, parse func(field string, raw json.RawMessage) (T, error)) (v T, err error) {
	raw, err := need(m, field)
	if err != nil {
		return v, err
	}
	return parse(field, raw)
}

func parseString(field string, raw json.RawMessage) (string, error) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil // the common case, checked by the document's parse
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", FieldError(field, "is %s, must be a string", KindOf(raw))
	}
	return *s, nil
}

// parseSizes reads a list of integers from 0 on.
func parseSizes(field string, raw json.RawMessage) ([]int, error) { return parseInts(field, raw, 0) }

// parseInts reads a list of integers that are at least least.
func parseInts(field string, raw json.RawMessage, least int) ([]int, error) {
	list, ok := ParseList(raw)
	if !ok {
		return nil, FieldError(field, "is %s, must be a list of integers", KindOf(raw))
	}
	if len(list) > maxRank {
		return nil, FieldError(field, "has %d dimensions, at most %d are supported", len(list), maxRank)
	}
	out := make([]int, len(list))
	for i, r := range list {
		n, ok := number.Int(r)
		if !ok || n < least {
			return nil, FieldError(fmt.Sprintf("%s[%d]", field, i), "is %s, must be an integer from %d to 2^%d-1", Shorten(r), least, strconv.IntSize-1)
		}
		out[i] = n
	}
	return out, nil
}

// ParseAttributes reads the user attributes; absent and null mean none.
func ParseAttributes(field string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if raw == nil || IsNull(raw) {
		return map[string]json.RawMessage{}, nil
	}
	return ParseObject(field, raw)
}

// extension names the choice for an extension point of Zarr v3: an object with name, configuration and
// must_understand, or (v3.1) the bare name.
type extension struct {
	name          string
	configuration json.RawMessage // nil when there is none
}

func parseExtension(field string, raw json.RawMessage) (extension, error) {
	if len(raw) > 0 && raw[0] == '"' {
		name, err := parseString(field, raw)
		return extension{name: name}, err
	}
	if KindOf(raw) != "an object" {
		return extension{}, FieldError(field, "is %s, must be an object with a name, or a name", KindOf(raw))
	}
	m, err := ParseObject(field, raw)
	if err != nil {
		return extension{}, err
	}
	nameRaw, ok := m["name"]
	if !ok {
		return extension{}, FieldError(field+".name", "missing")
	}
	name, err := parseString(field+".name", nameRaw)
	if err != nil {
		return extension{}, err
	}
	e := extension{name: name}
	if c, ok := m["configuration"]; ok && !IsNull(c) {
		e.configuration = c
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch k {
		case "name", "configuration":
		case "must_understand":
			if b := string(m[k]); b != "true" && b != "false" {
				return extension{}, FieldError(field+".must_understand", "is %s, must be true or false", Shorten(m[k]))
			}
		default:
			return extension{}, FieldError(field+"."+Shorten(json.RawMessage(k)), "unknown field (known: name, configuration, must_understand)")
		}
	}
	return e, nil
}

// settings returns the members of the configuration and refuses any that known does not name.
func (e extension) settings(field string, known ...string) (map[string]json.RawMessage, error) {
	if e.configuration == nil {
		return map[string]json.RawMessage{}, nil
	}
	field += ".configuration"
	m, err := ParseObject(field, e.configuration)
	if err != nil {
		return nil, err
	}
	for k := range m {
		if !slices.Contains(known, k) {
			return nil, FieldError(field+"."+Shorten(json.RawMessage(k)), "unknown field (known: %v)", known)
		}
	}
	return m, nil
}
