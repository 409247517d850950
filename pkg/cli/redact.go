package cli

import (
	"net/url"
	"strings"
)

// Redact hides what may be a secret in web addresses before a command line is written down: a
// password, and the values of a query, which may sign it. "http://user:secret@host/x?Signature=s" becomes
// "http://user:xxxxx@host/x?Signature=xxxxx".
func Redact(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		at := strings.Index(a, "http")
		if at < 0 || !isURL(a[at:]) {
			continue
		}
		u, err := url.Parse(a[at:])
		if err != nil || u.User == nil && u.RawQuery == "" {
			continue
		}
		parts := strings.Split(u.RawQuery, "&")
		for k, p := range parts {
			if name, _, ok := strings.Cut(p, "="); ok {
				parts[k] = name + "=xxxxx"
			}
		}
		u.RawQuery = strings.Join(parts, "&")
		out[i] = a[:at] + u.Redacted()
	}
	return out
}
