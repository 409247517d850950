package settings

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func httpFrom(env map[string]string) (HTTP, error) {
	return HTTPFromEnv(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

func TestHTTPFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		want func(*HTTP)
	}{
		"nothing":               {"KVIKIO_HTTP_TIMEOUT=", func(*HTTP) {}},
		"KvikIO's":              {"KVIKIO_HTTP_STATUS_CODES=429,500;KVIKIO_HTTP_MAX_ATTEMPTS=3;KVIKIO_HTTP_TIMEOUT=90", func(h *HTTP) { h.Statuses, h.Attempts, h.Timeout = []int{429, 500}, 3, 90*time.Second }},
		"ours before KvikIO's":  {"STRATA_HTTP_MAX_ATTEMPTS=9;KVIKIO_HTTP_MAX_ATTEMPTS=3", func(h *HTTP) { h.Attempts = 9 }},
		"a time with its unit":  {"STRATA_HTTP_TIMEOUT=1m30s", func(h *HTTP) { h.Timeout = 90 * time.Second }},
		"statuses with spaces":  {"STRATA_HTTP_STATUS_CODES=503 , 404", func(h *HTTP) { h.Statuses = []int{503, 404} }},
		"a rate":                {"STRATA_HTTP_MIN_RATE=2MiB", func(h *HTTP) { h.MinRate = 2 << 20 }},
		"any rate":              {"STRATA_HTTP_MIN_RATE=0", func(h *HTTP) { h.MinRate = 0 }},
		"ours, not theirs also": {"STRATA_HTTP_STATUS_CODES=503;KVIKIO_HTTP_STATUS_CODES=429", func(h *HTTP) { h.Statuses = []int{503} }},
	} {
		env := map[string]string{}
		for f := range strings.SplitSeq(c.env, ";") {
			k, v, _ := strings.Cut(f, "=")
			env[k] = v
		}
		want := DefaultHTTP()
		c.want(&want)
		if got, err := httpFrom(env); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestHTTPFromEnvRefuses(t *testing.T) {
	for env, want := range map[string]string{
		"STRATA_HTTP_STATUS_CODES=5xx":     `environment variable STRATA_HTTP_STATUS_CODES: "5xx" is not a list of HTTP status codes: want numbers from 100 to 599 between commas, such as 429,503`,
		"KVIKIO_HTTP_STATUS_CODES=429,600": `environment variable KVIKIO_HTTP_STATUS_CODES: "429,600" is not a list of HTTP status codes: want numbers from 100 to 599 between commas, such as 429,503`,
		"STRATA_HTTP_MAX_ATTEMPTS=0":       `environment variable STRATA_HTTP_MAX_ATTEMPTS: "0" is not a number of attempts: want 1 to 1000`,
		"KVIKIO_HTTP_MAX_ATTEMPTS=often":   `environment variable KVIKIO_HTTP_MAX_ATTEMPTS: "often" is not a number of attempts: want 1 to 1000`,
		"KVIKIO_HTTP_TIMEOUT=0":            `environment variable KVIKIO_HTTP_TIMEOUT: "0" is too short: want at least 1ms`,
		"STRATA_HTTP_MIN_RATE=-1":          `environment variable STRATA_HTTP_MIN_RATE: "-1" is not a size: want a number of bytes such as 1048576, 512MiB or 100MB`,
		"STRATA_HTTP_TIMEOUT=-1":           `environment variable STRATA_HTTP_TIMEOUT: "-1" is not a duration: want seconds, or a number with ms, s, m, h or d such as 90s or 1h30m`,
	} {
		k, v, _ := strings.Cut(env, "=")
		if h, err := httpFrom(map[string]string{k: v}); err == nil || err.Error() != want || !reflect.DeepEqual(h, DefaultHTTP()) {
			t.Errorf("%s:\n%v\n%s", env, err, want)
		}
	}
}

// What is sent again: by default what may pass, else what is listed and nothing else.
func TestAgain(t *testing.T) {
	usual, listed := DefaultHTTP(), HTTP{Statuses: []int{404, 503}}
	for status, want := range map[int][2]bool{
		200: {}, 403: {}, 404: {false, true}, 408: {true, false}, 429: {true, false}, 500: {true, false}, 501: {}, 503: {true, true}, 505: {}, 599: {true, false},
	} {
		if got := [2]bool{usual.Again(status), listed.Again(status)}; got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

// Every variable is known by name, for containers that must be told which to pass on.
func TestVariables(t *testing.T) {
	all := Variables()
	for _, name := range []string{"STRATA_COMPAT_MODE", "KVIKIO_NUM_THREADS", "STRATA_DIRECT_IO", "STRATA_HTTP_TIMEOUT", "KVIKIO_HTTP_STATUS_CODES"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not among %v", name, all)
		}
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("twice: %v", all)
	}
}

func FuzzHTTPFromEnv(f *testing.F) {
	for _, row := range httpVariables {
		for _, v := range row {
			for _, text := range []string{"", "0", "12", "429,503", "1m", "1e9", "99999999999999999999", ",", "\x00"} {
				f.Add(v.name, text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		h, err := httpFrom(map[string]string{name: text})
		if err != nil {
			if !reflect.DeepEqual(h, DefaultHTTP()) || !strings.HasPrefix(err.Error(), "environment variable "+name+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v, %q", h, err)
			}
			return
		}
		if h.Attempts < 1 || h.Attempts > MostAttempts || h.Timeout < LeastTimeout || h.MinRate < 0 || slices.ContainsFunc(h.Statuses, func(n int) bool { return n < LeastStatus || n > MostStatus }) {
			t.Errorf("%s=%q: %+v", name, text, h)
		}
	})
}

// The documentation has every variable; tests/nextflow has a look at the containers.
func TestVariablesAreTold(t *testing.T) {
	const path = "../../docs/file-layer.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Variables() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s does not name %s", path, name)
		}
	}
}
