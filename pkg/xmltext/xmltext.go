// Package xmltext decodes the XML documents that image files hold: in UTF-8, or in ISO 8859-1, in which older programs
// write µ, declared or not.
package xmltext

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// NewDecoder returns a decoder of a document. It knows no entities but XML's own, so that none can grow; how deep
// elements are nested it bounds itself.
func NewDecoder(text []byte) *xml.Decoder {
	turned := !utf8.Valid(text)
	if turned {
		text = fromLatin(text)
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252":
			if turned {
				return in, nil
			}
			rest, err := io.ReadAll(in)
			return bytes.NewReader(fromLatin(rest)), err
		}
		return nil, fmt.Errorf("character set %q is not supported", charset)
	}
	return d
}

// Decode decodes a document into a value, as [xml.Unmarshal].
func Decode(text []byte, into any) error { return NewDecoder(text).Decode(into) }

// fromLatin turns ISO 8859-1 into UTF-8.
func fromLatin(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/8)
	for _, b := range text {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}
