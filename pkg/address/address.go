// Package address keeps secrets out of what programs print and record.
//
// An [Address] is a path or URL as a user typed it. Printed, logged or written as JSON it shows
// neither user names and passwords nor the values of a query that may sign it; [Address.Reveal]
// alone returns it whole. Text that others wrote, such as an error of the standard library, goes
// through [Redact], which also removes what programs declared as secret with [Hide].
package address

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"strata/pkg/pattern"
)

// Address holds a path or URL as typed. Its printed forms are redacted.
type Address string

// Reveal returns the whole address, for code that opens it.
func (a Address) Reveal() string { return string(a) }

// String returns the address without parts that may be secret.
func (a Address) String() string {
	// An address that is the whole text ends where that ends, whatever its password holds.
	return Redact(redactFrom(string(a), 0, len(a)))
}

// Format prints String for every verb: %d and %x show no more than %s.
func (a Address) Format(f fmt.State, verb rune) {
	if verb != 'q' && verb != 's' {
		verb = 'v'
	}
	type plain string
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(a.String()))
}

// MarshalText writes String, for instance into JSON.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Scheme returns the part before "://" in lower case, or "" for a path.
func (a Address) Scheme() string {
	scheme, _, ok := strings.Cut(string(a), "://")
	if !ok {
		return ""
	}
	return strings.ToLower(scheme)
}

// Parse parses the address like url.Parse, with errors that quote nothing secret. An impossible port is an
// error, too.
func (a Address) Parse() (*url.URL, error) {
	u, err := url.Parse(string(a))
	if err == nil {
		if _, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16); err != nil {
			return nil, fmt.Errorf("%s: port %s: want 1 to 65535", a, u.Port())
		}
		return u, nil
	}
	// The redacted form has the same fault, unless the fault is in what was left out.
	var fault *url.Error
	if _, err = url.Parse(a.String()); errors.As(err, &fault) {
		return nil, fmt.Errorf("%s: %w", a, fault.Err)
	}
	return nil, fmt.Errorf("%s: the user name, password or query does not parse: percent-encode characters other than letters and digits, or better give no secrets in an address", a)
}

// Redact returns text without the parts of its addresses that may be secret, and without the secrets given to
// [Hide].
func Redact(text string) string {
	if !strings.Contains(text, ":/") && !strings.Contains(text, `:\`) {
		return hideKnown(text)
	}
	var b strings.Builder
	for {
		at := start().FindStringIndex(text)
		if at == nil {
			break
		}
		end := at[1] + length(text[at[1]:])
		b.WriteString(redactFrom(text[:end], at[0], end))
		text = text[end:]
	}
	return hideKnown(b.String() + text)
}

// hidden stands in the place of a secret.
const hidden = "xxxxx"

// start matches a scheme and its slashes, of which mistyped addresses have another number, or others. It is
// compiled when first needed: most runs have no address.
var start = pattern.Lazy(`[A-Za-z][A-Za-z0-9+.-]*:[/\\]+`)

// length returns the length of an address at the beginning of a text: all before a space, a quotation mark or
// another address.
func length(text string) int {
	if i := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'<>`\x7f", r) }); i >= 0 {
		text = text[:i]
	}
	if at := start().FindStringIndex(text); at != nil && strings.HasSuffix(text[:at[1]], "://") {
		return at[0]
	}
	return len(text)
}

// redactFrom redacts the address between two positions of a text, if there is one.
func redactFrom(text string, from, end int) string {
	at := start().FindStringIndex(text[from:end])
	if at == nil {
		return text
	}
	head, rest, tail := text[:from+at[1]], text[from+at[1]:end], text[end:]
	secret := userinfo(rest)
	if secret > 0 {
		head += hidden
		rest = rest[secret:]
	}
	i := strings.IndexAny(rest, "?#")
	if i < 0 {
		return head + rest + tail
	}
	bucket := strings.EqualFold(text[from+at[0]:from+at[0]+3], "s3:")
	return head + rest[:i] + redactQuery(rest[i:], bucket) + tail
}

// userinfo returns the length of the user name and password behind an address's slashes, without the "@"
// behind them.
func userinfo(rest string) int {
	authority := rest
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		authority = rest[:i]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		return i
	}
	// A password with an unescaped slash: "user:pa" is no host, since "pa" is no port.
	if _, port, ok := strings.Cut(authority, ":"); ok && !strings.HasPrefix(authority, "[") && (port == "" || strings.Trim(port, "0123456789") != "") {
		return max(0, strings.LastIndexByte(rest, '@'))
	}
	return 0
}

// public are the parameters of an address s3://… that say where the bucket is.
var public = map[string]bool{"endpoint": true, "region": true, "profile": true, "anonymous": true}

// redactQuery redacts the values of a query and a fragment, each behind its mark.
func redactQuery(query string, bucket bool) string {
	var b strings.Builder
	for query != "" {
		mark := query[:1]
		part := query[1:]
		if i := strings.IndexAny(part, "&;?#"); i >= 0 {
			part = part[:i]
		}
		query = query[1+len(part):]
		name, value, ok := strings.Cut(part, "=")
		b.WriteString(mark)
		switch {
		case part == "":
		case !ok:
			b.WriteString(hidden)
		case bucket && public[name]:
			b.WriteString(name + "=" + redactFrom(value, 0, len(value)))
		case value == "":
			b.WriteString(part)
		default:
			b.WriteString(name + "=" + hidden)
		}
	}
	return b.String()
}
