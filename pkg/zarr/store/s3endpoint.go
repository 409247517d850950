package store

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// endpointOnly is a transport that refuses redirects: a request is signed for one server, and another would
// learn the session token. The error says which endpoint or region to give instead.
type endpointOnly struct {
	next   http.RoundTripper
	region string
}

// RoundTrip sends a request; a redirect is an error.
func (t *endpointOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	there := resp.Header.Get("X-Amz-Bucket-Region")
	switch {
	case validRegion(there) && there != t.region && (isRedirect(resp.StatusCode) || resp.StatusCode == http.StatusBadRequest):
		err = elsewhere(there)
	case isRedirect(resp.StatusCode):
		err = errors.New("the server redirects to another place, which is not followed with S3: give its endpoint or region")
		if to, e := resp.Location(); e == nil && to.Host != "" {
			err = fmt.Errorf("the server redirects to %s, which is not followed with S3: give ?endpoint=%[1]s in the address if that is the server", origin(to))
		}
	default:
		return resp, nil
	}
	resp.Body.Close()
	return nil, permanent(err)
}

// CloseIdleConnections passes on what [http.Client.CloseIdleConnections] asks.
func (t *endpointOnly) CloseIdleConnections() { closeIdle(t.next) }

// elsewhere returns the error of a bucket that lies in another region than the requested one.
func elsewhere(region string) error {
	return fmt.Errorf("the bucket is in region %s: give ?region=%[1]s in the address, or AWS_REGION", region)
}

// validRegion reports whether text can be a region, which becomes part of a host name.
func validRegion(text string) bool {
	for _, c := range []byte(text) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return text != "" && len(text) <= 64
}

// signing signs requests (AWS Signature Version 4) whose body is empty.
type signing struct {
	next http.RoundTripper
	*signature
	endpoint *url.URL // requests to others are not signed, and not sent
}

// RoundTrip signs a copy of the request and sends it.
func (s *signing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != s.endpoint.Scheme || req.URL.Host != s.endpoint.Host {
		return nil, permanent(fmt.Errorf("%s is not the endpoint %s: nothing is signed for it", origin(req.URL), origin(s.endpoint)))
	}
	req = req.Clone(req.Context())
	if err := s.sign(req, emptyHash); err != nil {
		return nil, err
	}
	return s.next.RoundTrip(req)
}

// CloseIdleConnections passes on what [http.Client.CloseIdleConnections] asks.
func (s *signing) CloseIdleConnections() { closeIdle(s.next) }

// maxAnswer is the most bytes of an answer that is read into memory.
const maxAnswer = 2 << 20

// bounded is a transport that limits the length of answers.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request and limits the answer's body to [maxAnswer]; reading beyond is an error.
func (t *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

// CloseIdleConnections passes on what [http.Client.CloseIdleConnections] asks.
func (t *bounded) CloseIdleConnections() { closeIdle(t.next) }

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, permanent(fmt.Errorf("the server's answer has more than %d bytes", maxAnswer))
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
