package address

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A shorter secret is not looked for in a text: every "a" would be one. [Redact] hides it where
// it stands in an address. Values of a query are names and numbers more often than signatures.
const (
	shortest      = 4
	shortestValue = 12
)

// known are the secrets of this process, in every form that a text may hold them in, longest first.
var known struct {
	sync.RWMutex
	forms []string
}

// Hide makes [Redact] remove the secrets from every text from now on.
func Hide(secrets ...string) {
	known.Lock()
	defer known.Unlock()
	for _, s := range secrets {
		for _, form := range forms(s) {
			if len(form) >= shortest && !slices.Contains(known.forms, form) {
				known.forms = append(known.forms, form)
			}
		}
	}
	slices.SortStableFunc(known.forms, func(a, b string) int { return len(b) - len(a) })
}

// forms returns the forms in which a secret may be written: literally, decoded, and quoted.
func forms(secret string) []string {
	bare := []string{secret}
	for _, unescape := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := unescape(secret); err == nil {
			bare = append(bare, plain)
		}
	}
	var all []string
	for _, s := range bare {
		quoted := strconv.Quote(s)
		all = append(all, s, quoted[1:len(quoted)-1], url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:], html.EscapeString(s))
		if text, err := json.Marshal(s); err == nil {
			all = append(all, string(text[1:len(text)-1]))
		}
	}
	return all
}

// HideIn hides the parts of an address that may be secret: its user name and password, and the values of its
// query.
func HideIn(a Address) {
	text := string(a)
	if !strings.Contains(text, ":/") && !strings.Contains(text, `:\`) {
		return
	}
	at := start().FindStringIndex(text)
	if at == nil {
		return
	}
	rest := text[at[1]:]
	if n := userinfo(rest); n > 0 {
		user, password, ok := strings.Cut(rest[:n], ":")
		Hide(rest[:n], password)
		if !ok || password == "" {
			Hide(user) // a token
		}
		rest = rest[n:]
	}
	bucket := a.Scheme() == "s3"
	i := strings.IndexAny(rest, "?#")
	if i < 0 {
		return
	}
	for part := range strings.FieldsFuncSeq(rest[i:], func(r rune) bool { return strings.ContainsRune("&;?#", r) }) {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			value = part
		}
		if ok && bucket && public[name] {
			if plain, err := url.QueryUnescape(value); err == nil {
				HideIn(Address(plain))
			}
			HideIn(Address(value))
		} else if len(value) >= shortestValue {
			Hide(value)
		}
	}
}

// hideKnown removes the known secrets from a text.
func hideKnown(text string) string {
	known.RLock()
	defer known.RUnlock()
	for _, secret := range known.forms {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
