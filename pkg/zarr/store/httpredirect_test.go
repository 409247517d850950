package store

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// witness is a server that notes the headers of what it is asked.
type witness struct {
	*httptest.Server
	mu   sync.Mutex
	seen []http.Header
}

func newWitness(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) *witness {
	w := &witness{}
	w.Server = start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Header.Clone())
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// told reports whether the server saw a text in any header.
func (w *witness) told(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.seen, func(h http.Header) bool {
		for _, values := range h {
			if strings.Contains(strings.Join(values, "\n"), text) {
				return true
			}
		}
		return false
	})
}

func redirectTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, http.StatusFound) }
}

// What a store adds to its requests, and the query of its address, stay with the server that the
// user named.
func TestHTTPRedirectsTellNothing(t *testing.T) {
	other := newWitness(t, httptest.NewServer, honest([]byte("data")))
	for name, to := range map[string]string{
		"another host":       strings.Replace(other.URL, "127.0.0.1", "localhost", 1),
		"another port":       other.URL,
		"with a user of its": strings.Replace(other.URL, "//", "//them@", 1),
	} {
		here := newWitness(t, httptest.NewServer, redirectTo(to+"/elsewhere"))
		address := strings.Replace(here.URL, "//", "//me:password@", 1) + "/x?Signature=signed"
		s := HTTP(address, quick(), Header("Authorization", "Bearer token"), Header("X-Api-Key", "apikey"))
		got, err := s.Get(bg, "c/0", nil, -1)
		if err != nil || string(got) != "data" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		for _, secret := range []string{"token", "apikey", "signed", "bWU6cGFzc3dvcmQ", here.URL} {
			if other.told(secret) {
				t.Errorf("%s: the other server was told %q: %v", name, secret, other.seen)
			}
		}
		if !here.told("token") || !here.told("apikey") {
			t.Errorf("%s: the server was not told who asks: %v", name, here.seen)
		}
		s.Close()
	}
	if len(other.seen) != 3 {
		t.Errorf("%d requests", len(other.seen))
	}
}

// On the same server they are sent again.
func TestHTTPRedirectsWithinAServer(t *testing.T) {
	s := serve(t, honest([]byte("data")), redirectTo("/there"))
	st := s.store(t, Header("X-Api-Key", "apikey"))
	if got, err := st.Get(bg, "c/0", nil, -1); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
	if s.header(1, "X-Api-Key") != "apikey" || s.header(1, "Referer") != "" {
		t.Errorf("%v", s.requests[1].Header)
	}
}

// What was asked for over an encrypted connection does not come over another, nor from what is no
// server.
func TestHTTPRedirectsRefused(t *testing.T) {
	plain := newWitness(t, httptest.NewServer, honest([]byte("data")))
	for to, want := range map[string]string{
		plain.URL + "/x?secret=1": "the server redirects from https to " + plain.URL + ", which is not encrypted: give that address to read from there",
		"ftp://host/x":            "the server redirects to something other than a web address: ftp://host",
	} {
		secure := newWitness(t, httptest.NewTLSServer, redirectTo(to))
		s := HTTP(secure.URL, quick(), Client(secure.Client()))
		_, err := s.Get(bg, "c/0", nil, -1)
		if err == nil || !strings.HasSuffix(err.Error(), want) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", to, err)
		}
		if len(secure.seen) != 1 || len(plain.seen) != 0 {
			t.Errorf("%s: %d and %d requests", to, len(secure.seen), len(plain.seen))
		}
		s.Close()
	}
}

// Requests for a bucket go to its endpoint only, signed or not; the message says what to give.
func TestS3RedirectsAreNotFollowed(t *testing.T) {
	other := newWitness(t, httptest.NewServer, honest([]byte("{}")))
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	t.Setenv("AWS_ACCESS_KEY_ID", "a-key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
	t.Setenv("AWS_SESSION_TOKEN", "a-token")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another server":       {redirectTo(elsewhere + "/bucket/x?X-Amz-Signature=s"), "the server redirects to " + elsewhere + ", which is not followed with S3: give ?endpoint=" + elsewhere + " in the address if that is the server"},
		"another region":       {status(http.StatusMovedPermanently, "X-Amz-Bucket-Region", "eu-west-2"), "the bucket is in region eu-west-2: give ?region=eu-west-2 in the address, or AWS_REGION"},
		"… of new buckets":     {status(http.StatusTemporaryRedirect, "X-Amz-Bucket-Region", "eu-west-2", "Location", elsewhere), "the bucket is in region eu-west-2: give ?region=eu-west-2 in the address, or AWS_REGION"},
		"a bad signature":      {status(http.StatusBadRequest, "X-Amz-Bucket-Region", "eu-west-2"), "the bucket is in region eu-west-2: give ?region=eu-west-2 in the address, or AWS_REGION"},
		"nowhere":              {status(http.StatusMovedPermanently), "the server redirects to another place, which is not followed with S3: give its endpoint or region"},
		"a region with a host": {status(http.StatusMovedPermanently, "X-Amz-Bucket-Region", "evil.com/"), "the server redirects to another place, which is not followed with S3: give its endpoint or region"},
		"the same server":      {redirectTo("/bucket/y"), ", which is not followed with S3: give ?endpoint="},
	} {
		t.Run(name, func(t *testing.T) {
			here := newWitness(t, httptest.NewServer, c.answer)
			s := newS3(t, "s3://bucket/x?region=us-east-1&endpoint="+here.URL, Retry(3, time.Millisecond))
			_, get := s.Get(bg, "zarr.json", nil, -1)
			_, list := s.List(bg, "")
			for what, err := range map[string]error{"Get": get, "List": list, "Put": s.Put(bg, "a", []byte("x")), "Delete": s.Delete(bg, "a")} {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %v, want %q", what, err, c.want)
				}
			}
			if len(other.seen) > 0 || len(here.seen) != 4 || !here.told("a-token") {
				t.Errorf("requests: %v; at the other server: %v", here.seen, other.seen)
			}
		})
	}
	s := newS3(t, "s3://bucket/x?region=us-east-1&endpoint="+other.URL)
	req, err := http.NewRequest(http.MethodGet, elsewhere+"/bucket/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.web.client.Do(req); err == nil || !strings.Contains(err.Error(), "nothing is signed for it") || len(other.seen) > 0 {
		t.Errorf("another host than the endpoint: %v", err)
	}
}
