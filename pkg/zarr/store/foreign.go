package store

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxForeign is the maximum length of a server's text in a message.
const maxForeign = 300

// foreign makes text from a server fit for a message: short, and quoted if it has characters that could
// control a terminal or break the line.
func foreign(text string) string {
	if len(text) > maxForeign {
		cut := maxForeign
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// foreignError is an error whose text comes partly from a server.
type foreignError struct{ error }

func (e foreignError) Error() string { return foreign(e.error.Error()) }
func (e foreignError) Unwrap() error { return e.error }
