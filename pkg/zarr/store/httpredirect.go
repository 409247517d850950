package store

import (
	"fmt"
	"net/http"
	"net/url"
)

// maxRedirects is the maximum number of redirects on the way to an object.
const maxRedirects = 10

// follow decides about a redirect to req. Headers and queries that the store adds go only to the server that
// the user named, and no other server learns the original address.
func (s *HTTPStore) follow(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // the client's own: with the query, which may be a signature
	first, to := via[0].URL, req.URL
	switch {
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "":
		return permanent(fmt.Errorf("the server redirects to something other than a web address: %s", foreign(to.Scheme+"://"+to.Host)))
	case via[len(via)-1].URL.Scheme == "https" && to.Scheme == "http":
		return permanent(fmt.Errorf("the server redirects from https to %s, which is not encrypted: give that address to read from there", origin(to)))
	case len(via) >= maxRedirects:
		return permanent(fmt.Errorf("the server redirects more than %d times", maxRedirects))
	}
	if to.Scheme != first.Scheme || to.Host != first.Host {
		req.Header.Del("Authorization")
		for name := range s.header {
			req.Header.Del(name)
		}
	}
	return nil
}

// origin returns scheme and host of an address, which hold no secret.
func origin(u *url.URL) string { return foreign(u.Scheme + "://" + u.Host) }

// isRedirect reports whether a status redirects the client.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}
