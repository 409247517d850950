// Package nrrd reads and writes the headers of NRRD files (Nearly Raw Raster Data,
// https://teem.sourceforge.net/nrrd/format.html), and shows a file's volume ([Open]).
package nrrd

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// Is reports whether a file begins like one of NRRD.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte("NRRD000")) }

// mostHeader bounds the length of a header; those with long notes have some KiB.
const mostHeader = 1 << 20

// types are the element types by their names.
var types = map[string]dtype.Type{}

func init() {
	for t, names := range map[dtype.Type]string{
		dtype.Int8: "signed char,int8,int8_t", dtype.Uint8: "uchar,unsigned char,uint8,uint8_t",
		dtype.Int16: "short,short int,signed short,signed short int,int16,int16_t", dtype.Uint16: "ushort,unsigned short,unsigned short int,uint16,uint16_t",
		dtype.Int32: "int,signed int,int32,int32_t", dtype.Uint32: "uint,unsigned int,uint32,uint32_t",
		dtype.Int64:  "longlong,long long,long long int,signed long long,signed long long int,int64,int64_t",
		dtype.Uint64: "ulonglong,unsigned long long,unsigned long long int,uint64,uint64_t", dtype.Float32: "float", dtype.Float64: "double",
	} {
		for name := range strings.SplitSeq(names, ",") {
			types[name] = t
		}
	}
}

// header is the text of a file: its fields by their names in lower case, without spaces in "sizes" and the like.
type header struct {
	fields map[string]string
	length int64 // bytes, with the empty line behind it; 0: it ends with the file, as a detached one does
}

// split divides the text of a header into its fields. Comments and key/value pairs are left out.
func split(text []byte) (*header, error) {
	h := &header{fields: map[string]string{}}
	rest := text
	for first := true; ; first = false {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		s := strings.TrimRight(string(line), "\r")
		if !found && len(rest) > 0 && len(text) >= mostHeader {
			return nil, fmt.Errorf("the header has no end within %d bytes", mostHeader)
		}
		switch name, value, ok := strings.Cut(s, ":"); {
		case first && !Is(line):
			return nil, fmt.Errorf("no header of NRRD (begins NRRD000)")
		case first, strings.HasPrefix(s, "#"):
		case s == "" && found:
			h.length = int64(len(text) - len(after))
			return h, nil
		case s == "" && !found:
			return h, nil
		case !ok:
			return nil, fmt.Errorf("line %q of the header is no field (NAME: VALUE)", shorten(s))
		case strings.HasPrefix(value, "="): // a key of the user's
		default:
			name = strings.ToLower(strings.TrimSpace(name))
			if other := alias[name]; other != "" {
				name = other
			}
			h.fields[name] = strings.TrimSpace(value)
		}
		if !found {
			return h, nil
		}
		rest = after
	}
}

// alias are other spellings of fields.
var alias = map[string]string{"datafile": "data file", "lineskip": "line skip", "byteskip": "byte skip", "axismins": "axis mins", "centerings": "centers"}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// words returns the values of a list; vectors in parentheses are one each, and texts in quotes.
func (h *header) words(name string) (list []string) {
	s := h.fields[name]
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexAny(s, " \t")
		switch s[0] {
		case '(':
			if end = strings.IndexByte(s, ')'); end >= 0 {
				end++
			}
		case '"':
			if end = strings.IndexByte(s[1:], '"'); end >= 0 {
				end += 2
			}
		}
		if end < 0 || end > len(s) {
			end = len(s)
		}
		list = append(list, strings.Trim(s[:end], `"`))
		s = s[end:]
	}
	return list
}

// vector reads (a,b,c); ok is false for none.
func vector(text string) (v [3]float64, ok bool, err error) {
	if text == "none" {
		return v, false, nil
	}
	inner, open := strings.CutPrefix(text, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	parts := strings.Split(inner, ",")
	if !open || !closed || len(parts) != 3 {
		return v, false, fmt.Errorf("%q is no vector of three numbers", shorten(text))
	}
	for i, p := range parts {
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil {
			return v, false, fmt.Errorf("%q is no vector of three numbers", shorten(text))
		}
	}
	return v, true, nil
}
