package store

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"strata/tests/s3emu"
)

func TestForeign(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"404 Not Found":                "404 Not Found",
		"größer — 页":                   "größer — 页",
		"\x1b[2J\x07":                  `"\x1b[2J\a"`,
		"a\r\nb":                       `"a\r\nb"`,
		"\xff":                         `"\xff"`,
		"right\u202eleft":              `"right\u202eleft"`,
		strings.Repeat("é", 200):       strings.Repeat("é", 150) + "…",
		strings.Repeat("a", 299) + "é": strings.Repeat("a", 299) + "…",
	} {
		if got := foreign(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzForeign(f *testing.F) {
	f.Add("404 \x1b]0;title\x07")
	f.Fuzz(func(t *testing.T, text string) {
		got := foreign(text)
		if !utf8.ValidString(got) || len(got) > 5*maxForeign || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", got)
		}
	})
}

// rawly answers with these bytes.
func rawly(t *testing.T, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, answer)
	}
}

// Nothing that a server says reaches the terminal as it is.
func TestServersTextsAreQuoted(t *testing.T) {
	const bell = "\x1b]0;x\x07"
	for name, answer := range map[string]string{
		"status":           "HTTP/1.1 404 " + bell + "\r\nContent-Length: 0\r\n\r\n",
		"no protocol":      bell + "\r\n\r\n",
		"version":          "HTTP/1.1\x1b[2J 200 OK\r\n\r\n",
		"header":           "HTTP/1.1 200 OK\r\n" + bell + "\r\n\r\n",
		"length":           "HTTP/1.1 200 OK\r\nContent-Length: 1\x1b2\r\n\r\n",
		"encoding":         "HTTP/1.1 200 OK\r\nContent-Encoding: \x9b2J\r\nContent-Length: 0\r\n\r\n",
		"range":            "HTTP/1.1 206 Partial Content\r\nContent-Range: \x9b2J\r\nContent-Length: 0\r\n\r\n",
		"location":         "HTTP/1.1 302 Found\r\nLocation: http://h\u202eost/\r\nContent-Length: 0\r\n\r\n",
		"location's colon": "HTTP/1.1 302 Found\r\nLocation: \x9b:%zz\r\nContent-Length: 0\r\n\r\n",
	} {
		s := serve(t, rawly(t, answer))
		_, err := s.store(t, Retry(1, 0)).Get(bg, "c/0", nil, -1)
		checkPrintable(t, name, err)
	}

	server := s3emu.Start(t)
	server.Use(t)
	for name, answer := range map[string]string{
		"code":          "<Error><Code>\u009b2J</Code><Message>no</Message></Error>",
		"message":       "<Error><Code>No</Code><Message>\u009b2J&#x202e;</Message></Error>",
		"no XML":        bell,
		"another":       "<\u202e/>",
		"a name":        "<ListBucketResult><Contents><Key>\u009b2J</Key></Contents></ListBucketResult>",
		"a size":        "<ListBucketResult><Contents><Key>x</Key><Size>\u009b2J</Size></Contents></ListBucketResult>",
		"another token": "<ListBucketResult></\u009b>",
	} {
		for _, code := range []int{http.StatusOK, http.StatusForbidden, http.StatusTeapot} {
			endpoint := between(t, server, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("X-Minio-Error-Desc", "\u009b2J")
				w.WriteHeader(code)
				_, _ = io.WriteString(w, answer)
				return true
			})
			s := newS3(t, "s3://"+s3emu.Bucket+"/quoted?endpoint="+endpoint, Retry(1, time.Millisecond))
			_, err := s.List(bg, "")
			checkPrintable(t, fmt.Sprint("List, ", name, code), err)
			if code != http.StatusOK {
				checkPrintable(t, fmt.Sprint("Put, ", name, code), s.Put(bg, "a", nil))
				checkPrintable(t, fmt.Sprint("Delete, ", name, code), s.Delete(bg, "a"))
			}
		}
	}
	s := newS3(t, "s3://"+s3emu.Bucket+"/marked")
	if err := s.Put(bg, markName, []byte(bell)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Begin(bg, "me", false)
	checkPrintable(t, "mark", err)
}

func checkPrintable(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
	} else if text := err.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%s: %q", name, text)
	}
}
