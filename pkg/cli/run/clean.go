package run

import (
	"io"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"strata/pkg/address"
)

// secretVariables hold secrets whatever they look like.
var secretVariables = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"}

// HideSecrets declares the secrets of a command line and of the environment, so that nothing
// that is printed or recorded shows them, whoever quotes them.
func HideSecrets(arguments, environment []string) {
	for _, a := range arguments {
		address.HideIn(address.Address(a))
	}
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		for _, secret := range secretVariables {
			if name == secret {
				address.Hide(value)
			}
		}
		if strings.HasSuffix(strings.ToLower(name), "_proxy") && !strings.Contains(value, "://") {
			value = "http://" + value
		}
		if u, err := url.Parse(value); err != nil || u.User != nil { // a query elsewhere is nobody's signature
			address.HideIn(address.Address(value))
		}
	}
}

// clean is a text as terminals, logs and records may have it: without secrets, and with
// characters that would move a cursor or hide text quoted.
func clean(text string) string { return quoted(address.Redact(text), "") }

// mostText is the maximum length of a message in characters. Names of files, cells of tables and attributes of images,
// which messages quote, can be of any length.
const mostText = 600

// Message returns the text of an error, a warning or a finding as it is printed, logged and recorded: one line without
// secrets, with characters that would control a terminal quoted. Of a text of more than a few hundred characters the
// middle is left out.
func Message(text string) string { return address.Cut(clean(text), mostText) }

// quoted replaces non-printing characters by JSON's escapes, except the characters in stay.
func quoted(text, stay string) string {
	harmless := func(r rune) bool {
		return r < utf8.RuneSelf && r >= ' ' && r != 0x7f || strings.ContainsRune(stay, r)
	}
	if strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i, r := range text {
		units := []uint16{uint16(r)}
		switch {
		case harmless(r) || r != utf8.RuneError && unicode.IsGraphic(r):
			b.WriteRune(r)
			continue
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			b.WriteString(`\x` + string([]byte{hex[text[i]>>4], hex[text[i]&15]}))
			continue
		case r > 0xffff:
			units = utf16.Encode([]rune{r})
		}
		for _, u := range units {
			b.WriteString(`\u` + string([]byte{hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15]}))
		}
	}
	return b.String()
}

// cleaner applies clean to each line. Every Write must be one line.
type cleaner struct{ io.Writer }

func (c cleaner) Write(p []byte) (int, error) {
	line, end := strings.CutSuffix(string(p), "\n")
	line = clean(line)
	if end {
		line += "\n"
	}
	if _, err := io.WriteString(c.Writer, line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// onTerminal quotes control characters in results that go to a terminal, since results may contain texts from files,
// such as the names of attributes.
type onTerminal struct{ io.Writer }

func (t onTerminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.Writer, quoted(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}
