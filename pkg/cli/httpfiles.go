package cli

import (
	"strconv"

	"strata/pkg/settings"
	"strata/pkg/units"
)

// remoteFiles is the section of the help for [httpFlags].
const remoteFiles = "Remote file options"

// httpFlags are the flags of [settings.HTTP].
func httpFlags() []Flag {
	h := settings.DefaultHTTP()
	return []Flag{
		{Name: "http_status_codes", Kind: Ints, Value: "N,N", Note: "408, 429, 5xx", Check: Between(settings.LeastStatus, settings.MostStatus), Usage: "repeat a request after these HTTP status codes, and after no others"},
		{Name: "http_max_attempts", Kind: Int, Note: strconv.Itoa(h.Attempts), Check: Between(1, settings.MostAttempts), Usage: "number of times to send a request before the run fails"},
		{Name: "http_timeout", Kind: Duration, Note: units.FormatDuration(h.Timeout), Check: AtLeast(settings.LeastTimeout.Seconds()), Usage: "repeat a request when the server has sent nothing for this long"},
		{Name: "http_min_rate", Kind: Size, Note: units.FormatSize(h.MinRate), Usage: "repeat a request when the server sends fewer bytes per second than this, averaged over --http_timeout; 0 accepts any rate"},
	}
}

// httpSettings are the settings by the environment and, before it, the flags.
func httpSettings(r *Run) (settings.HTTP, error) {
	h, err := settings.HTTPEnvironment()
	if err != nil {
		return h, Usage("%w", err)
	}
	if r.IsSet("http_status_codes") {
		h.Statuses = r.Ints("http_status_codes")
	}
	if r.IsSet("http_max_attempts") {
		h.Attempts = r.Int("http_max_attempts")
	}
	if r.IsSet("http_timeout") {
		h.Timeout = r.Duration("http_timeout")
	}
	if r.IsSet("http_min_rate") {
		h.MinRate = r.Size("http_min_rate")
	}
	return h, nil
}
