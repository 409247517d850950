package settings

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/units"
)

// HTTP sets when a request to a web server or an object store is retried.
type HTTP struct {
	// Statuses lists the answers after which a request is retried, and no others. Nil means 408, 429, and 500
	// and above except 501 and 505, which are permanent.
	Statuses []int
	// Absent lists the answers that mean that there is no such object, and no others. Nil means 404 and 410.
	Absent []int
	// Attempts is how often a request is tried before it fails.
	Attempts int
	// Timeout is how long a server may send nothing. KvikIO applies it to the whole transfer.
	Timeout time.Duration
	// MinRate is the minimum rate of a transfer in bytes per second, measured over [HTTP.Timeout]; a slower
	// one fails. 0 allows any.
	MinRate int64
}

// DefaultHTTP returns the default settings.
func DefaultHTTP() HTTP { return HTTP{Attempts: 6, Timeout: time.Minute, MinRate: 1 << 10} }

// Again reports whether a request is retried after an answer with this status.
func (h HTTP) Again(status int) bool {
	if h.Statuses != nil {
		return slices.Contains(h.Statuses, status)
	}
	return status == 408 || status == 429 || status >= 500 && status != 501 && status != 505
}

// Missing reports whether an answer with this status means that there is no such object.
func (h HTTP) Missing(status int) bool {
	if h.Absent == nil {
		return status == 404 || status == 410
	}
	return slices.Contains(h.Absent, status)
}

// HTTPEnvironment calls [HTTPFromEnv] with the environment of the process.
func HTTPEnvironment() (HTTP, error) { return HTTPFromEnv(os.LookupEnv) }

// HTTPFromEnv returns [DefaultHTTP] with the values set in the environment; see [FromEnv].
func HTTPFromEnv(lookup func(name string) (string, bool)) (HTTP, error) {
	h := DefaultHTTP()
	if err := apply(&h, httpVariables, lookup); err != nil {
		return DefaultHTTP(), err
	}
	return h, nil
}

var httpVariables = [][]variable[HTTP]{
	{{"STRATA_HTTP_STATUS_CODES", (*HTTP).SetStatuses}, {"KVIKIO_HTTP_STATUS_CODES", (*HTTP).SetStatuses}},
	{{"STRATA_HTTP_ABSENT_CODES", (*HTTP).SetAbsent}},
	{{"STRATA_HTTP_MAX_ATTEMPTS", (*HTTP).SetAttempts}, {"KVIKIO_HTTP_MAX_ATTEMPTS", (*HTTP).SetAttempts}},
	{{"STRATA_HTTP_TIMEOUT", (*HTTP).SetTimeout}, {"KVIKIO_HTTP_TIMEOUT", (*HTTP).SetTimeout}},
	{{"STRATA_HTTP_MIN_RATE", (*HTTP).SetMinRate}},
}

// LeastStatus and MostStatus limit the possible statuses.
const (
	LeastStatus = 100
	MostStatus  = 599
)

// SetStatuses accepts numbers separated by commas: "429,503".
func (h *HTTP) SetStatuses(text string) (err error) {
	h.Statuses, err = statuses(text, h.Statuses)
	return err
}

// SetAbsent accepts numbers separated by commas: "403,404".
func (h *HTTP) SetAbsent(text string) (err error) {
	h.Absent, err = statuses(text, h.Absent)
	return err
}

// statuses reads a list of status codes, or returns the former one with an error.
func statuses(text string, former []int) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < LeastStatus || n > MostStatus {
			return former, fmt.Errorf("%q is not a list of HTTP status codes: want numbers from %d to %d between commas, such as 429,503", text, LeastStatus, MostStatus)
		}
		all = append(all, n)
	}
	return all, nil
}

// MostAttempts is the maximum of [HTTP.Attempts].
const MostAttempts = 1000

// SetAttempts accepts a number from 1 to [MostAttempts].
func (h *HTTP) SetAttempts(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MostAttempts {
		return fmt.Errorf("%q is not a number of attempts: want 1 to %d", text, MostAttempts)
	}
	h.Attempts = n
	return nil
}

// LeastTimeout is the minimum of [HTTP.Timeout].
const LeastTimeout = time.Millisecond

// SetTimeout accepts a duration, or a number of seconds.
func (h *HTTP) SetTimeout(text string) error {
	d, err := units.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < LeastTimeout {
		return fmt.Errorf("%q is too short: want at least %s", text, units.FormatDuration(LeastTimeout))
	}
	h.Timeout = d
	return nil
}

// SetMinRate accepts a size, in bytes per second; 0 allows any rate.
func (h *HTTP) SetMinRate(text string) error {
	n, err := units.ParseSize(text)
	if err != nil {
		return err
	}
	h.MinRate = n
	return nil
}
