package cli

import (
	"net/url"
	"strings"
)

// redact hides passwords in URLs before a command line goes into a record:
// "http://user:secret@host" becomes "http://user:xxxxx@host".
func redact(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		at := strings.Index(a, "http")
		if at < 0 || !isURL(a[at:]) {
			continue
		}
		if u, err := url.Parse(a[at:]); err == nil && u.User != nil {
			out[i] = a[:at] + u.Redacted()
		}
	}
	return out
}
