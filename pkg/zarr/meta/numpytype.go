package meta

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"strata/pkg/dtype"
	"strata/pkg/pattern"
)

// Types of numpy that are no numbers: dates and times are read as their int64 and text and bytes of fixed length
// as the bytes of an element. What they stand for is kept as numpy writes it without the byte order: "M8[ns]",
// "m8[10s]", "U16" (code points), "S10" (ends at its first zero bytes) and "V10". Format 3 has names of its own.

var (
	timeType  = pattern.Lazy(`^([Mm])8(?:\[([1-9][0-9]*)?([A-Za-zμ]+)\])?$`)
	fixedType = pattern.Lazy(`^([SUV])([1-9][0-9]*)$`)
	rawType   = pattern.Lazy(`^r([1-9][0-9]*)$`)
)

var timeUnits = map[string]bool{"generic": true, "Y": true, "M": true, "W": true, "D": true, "h": true, "m": true, "s": true,
	"ms": true, "us": true, "μs": true, "ns": true, "ps": true, "fs": true, "as": true}

// parseNumpyType returns the element type for one of numpy's names of dates, times, text and bytes; ok is
// false for other names.
func parseNumpyType(name string) (t dtype.Type, ok bool, err error) {
	if m := timeType().FindStringSubmatch(name); m != nil {
		if m[3] != "" && !timeUnits[m[3]] {
			return 0, true, fmt.Errorf("data type %q: unknown unit %q", name, m[3])
		}
		if _, err := strconv.ParseInt("0"+m[2], 10, 32); err != nil {
			return 0, true, fmt.Errorf("data type %q: a unit of %s is too long (at most 2^31-1)", name, m[2])
		}
		return dtype.Int64, true, nil
	}
	m := fixedType().FindStringSubmatch(name)
	if m == nil {
		return 0, false, nil
	}
	n, err := strconv.Atoi(m[2])
	per := 1
	if m[1] == "U" {
		per = 4
	}
	if err != nil || n > dtype.MaxFixed/per {
		return 0, true, fmt.Errorf("data type %q: elements of more than %d bytes are not supported", name, dtype.MaxFixed)
	}
	if per == 4 {
		return dtype.FixedText(n), true, nil
	}
	return dtype.FixedBytes(n), true, nil
}

// parseTypestr reads the dtype of a .zarray.
func parseTypestr(s string) (t dtype.Type, numpy string, big bool, err error) {
	if len(s) > 1 && strings.ContainsRune("<>|", rune(s[0])) {
		t, ok, err := parseNumpyType(s[1:])
		if ok && err == nil && s[0] == '|' && t.SwapSize() > 1 {
			err = fmt.Errorf("data type %q: byte order %q (must be '<' or '>')", s, s[0])
		}
		if ok || err != nil {
			return t, s[1:], s[0] == '>' && t.SwapSize() > 1, err
		}
		if s[1:] == "O" {
			return 0, "", false, fmt.Errorf("data type %q: Python objects, such as text of any length, are not supported", s)
		}
	}
	t, big, err = dtype.ParseTypestr(s)
	return t, "", big, err
}

// parseDataType reads the data_type of a zarr.json.
func parseDataType(raw json.RawMessage) (t dtype.Type, numpy string, err error) {
	const field = "data_type"
	e, err := parseExtension(field, raw)
	if err != nil {
		return 0, "", err
	}
	switch e.name {
	case "numpy.datetime64", "numpy.timedelta64":
		numpy, err = e.time(field)
	case "fixed_length_utf32":
		numpy, err = e.fixed(field, "U", 4)
	case "null_terminated_bytes":
		numpy, err = e.fixed(field, "S", 1)
	case "raw_bytes":
		numpy, err = e.fixed(field, "V", 1)
	default:
		if m := rawType().FindStringSubmatch(e.name); m != nil {
			bits, err := strconv.Atoi(m[1])
			if err != nil || bits%8 != 0 {
				return 0, "", FieldError(field, "is %q, must have a multiple of 8 bits", e.name)
			}
			numpy = fmt.Sprintf("V%d", bits/8)
		}
		if numpy == "" {
			if t, err = dtype.Parse(e.name); err != nil {
				return 0, "", foreign(FieldError(field, "%w", err))
			}
		}
		_, err = e.settings(field)
	}
	if err != nil || numpy == "" {
		return t, "", err
	}
	t, ok, err := parseNumpyType(numpy)
	if !ok || err != nil {
		return 0, "", foreign(FieldError(field, "%s of %s is not supported", e.name, Shorten(e.configuration)))
	}
	return t, numpy, nil
}

// time reads the configuration of a type of dates or times.
func (e extension) time(field string) (string, error) {
	m, err := e.settings(field, "unit", "scale_factor")
	if err != nil {
		return "", err
	}
	raw, err := need(m, "unit")
	if err != nil {
		return "", FieldError(field+".configuration.unit", "missing")
	}
	unit, err := parseString(field+".configuration.unit", raw)
	if err != nil {
		return "", err
	}
	if !timeUnits[unit] {
		return "", FieldError(field+".configuration.unit", "is %s, must be a unit of numpy such as \"ns\", or \"generic\"", Shorten(raw))
	}
	scale := int64(1)
	if raw, ok := m["scale_factor"]; ok {
		if scale, err = strconv.ParseInt(string(raw), 10, 32); err != nil || scale < 1 {
			return "", FieldError(field+".configuration.scale_factor", "is %s, must be an integer from 1 to 2^31-1", Shorten(raw))
		}
	}
	letter := map[string]string{"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}[e.name]
	switch {
	case unit == "generic":
		return letter, nil
	case scale == 1:
		return letter + "[" + unit + "]", nil
	}
	return fmt.Sprintf("%s[%d%s]", letter, scale, unit), nil
}

// fixed reads the configuration of a fixed-length type whose units have size bytes.
func (e extension) fixed(field, letter string, size int) (string, error) {
	m, err := e.settings(field, "length_bytes")
	if err != nil {
		return "", err
	}
	raw, ok := m["length_bytes"]
	if !ok {
		return "", FieldError(field+".configuration.length_bytes", "missing")
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < size || n > dtype.MaxFixed || n%size != 0 {
		return "", FieldError(field+".configuration.length_bytes", "is %s, must be a multiple of %d up to %d", Shorten(raw), size, dtype.MaxFixed)
	}
	return fmt.Sprintf("%s%d", letter, n/size), nil
}

// dataTypeJSON returns the data_type of a zarr.json.
func dataTypeJSON(t dtype.Type, numpy string) any {
	if m := timeType().FindStringSubmatch(numpy); m != nil {
		unit, scale := m[3], 1
		if unit == "" {
			unit = "generic"
		}
		if m[2] != "" {
			scale, _ = strconv.Atoi(m[2]) // was parsed
		}
		name := map[string]string{"M": "numpy.datetime64", "m": "numpy.timedelta64"}[m[1]]
		return extensionJSON{name, map[string]any{"unit": unit, "scale_factor": scale}}
	}
	if m := fixedType().FindStringSubmatch(numpy); m != nil {
		name := map[string]string{"S": "null_terminated_bytes", "U": "fixed_length_utf32", "V": "raw_bytes"}[m[1]]
		return extensionJSON{name, map[string]any{"length_bytes": t.Size()}}
	}
	return t.String()
}

// parseNumpyFill reads the fill value of a numpy type: a number or "NaT" for dates and times, a string for
// text, base64 for bytes or, as format 3 once had them, a list of numbers.
func parseNumpyFill(field string, raw json.RawMessage, t dtype.Type, numpy string) ([]byte, error) {
	out := make([]byte, t.Size())
	wrong := func(want string) error {
		return FieldError(field, "is %s, must be %s for data type %s", Shorten(raw), want, numpy)
	}
	text, isText := "", KindOf(raw) == "a string"
	if isText && json.Unmarshal(raw, &text) != nil {
		return nil, wrong("a string")
	}
	switch {
	case t == dtype.Int64:
		if text == "NaT" {
			putUint(out, 1<<63)
			return out, nil
		}
		i, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return nil, wrong("an integer from -2^63 to 2^63-1 or \"NaT\"")
		}
		putUint(out, uint64(i))
	case string(raw) == "0": // what writers of format 2 have for empty text and bytes
	case t.IsFixedText():
		if !isText || utf8.RuneCountInString(text) > len(out)/4 {
			return nil, wrong(fmt.Sprintf("a string of up to %d characters", len(out)/4))
		}
		at := 0
		for _, r := range text {
			binary.LittleEndian.PutUint32(out[at:], uint32(r))
			at += 4
		}
	case isText:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(b) > len(out) {
			return nil, wrong(fmt.Sprintf("up to %d bytes in base64", len(out)))
		}
		copy(out, b)
	default:
		list, ok := ParseList(raw)
		if !ok || len(list) != len(out) {
			return nil, wrong(fmt.Sprintf("%d bytes in base64, or a list of them", len(out)))
		}
		for i, r := range list {
			n, err := strconv.ParseUint(string(r), 10, 8)
			if err != nil {
				return nil, wrong("a list of numbers up to 255")
			}
			out[i] = byte(n)
		}
	}
	return out, nil
}

// encodeNumpyFill inverts parseNumpyFill. It refuses code points that no string can hold.
func encodeNumpyFill(fill []byte, t dtype.Type, numpy string) (json.RawMessage, error) {
	switch {
	case t == dtype.Int64:
		return EncodeFill(fill, t, 3), nil
	case t.IsFixedText():
		var text strings.Builder
		for b := fill; len(b) > 0; b = b[4:] {
			r := binary.LittleEndian.Uint32(b)
			if r > math.MaxInt32 || !utf8.ValidRune(rune(r)) {
				return nil, FieldError("fill value", "has the code point %#x, which no text has", r)
			}
			text.WriteRune(rune(r))
		}
		return Marshal(strings.TrimRight(text.String(), "\x00"))
	case numpy[0] == 'S':
		fill = []byte(strings.TrimRight(string(fill), "\x00"))
	}
	return Marshal(base64.StdEncoding.EncodeToString(fill))
}
