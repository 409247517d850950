package address

import (
	"strconv"
	"unicode/utf8"
)

// mostQuoted is the maximum length of a quoted text in characters.
const mostQuoted = 70

// Quoted returns a cell, an attribute or another text of a file as a message quotes it: at most 70 characters of it,
// in quotation marks, without secrets. An address is redacted before the text is cut: one without its end would not
// be recognised.
func Quoted(text string) string { return strconv.Quote(Cut(Redact(text), mostQuoted)) }

// Cut returns a text of at most the given number of characters: of a longer one, the beginning and the end with "…"
// between them, since messages begin with the file and end with what would be right. Texts that may hold secrets go
// through [Redact] first.
func Cut(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	tail := (most - 1) / 3
	return text[:ahead(text, most-1-tail)] + "…" + text[behind(text, tail):]
}

// ahead returns where the first n characters of a text end.
func ahead(text string, n int) (at int) {
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// behind returns where the last n characters of a text begin.
func behind(text string, n int) int {
	at := len(text)
	for ; n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}
