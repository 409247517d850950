package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
)

// S3Store holds objects below a prefix of a bucket of Amazon S3, or of a server that speaks its protocol
// (MinIO, Ceph, …). It reads as [HTTPStore] does, with signed requests. It writes a large object in several
// parts at once; the object appears when it is complete.
//
// A bucket has no folders: an object's name may also be a prefix of other objects, and deleting a prefix
// deletes nothing.
type S3Store struct {
	web    *HTTPStore
	client *s3Client
	bucket string
	prefix string // "" or ending in "/"
	root   string // address of the bucket, ending in "/"
}

var _ Writer = (*S3Store)(nil)

// S3 returns the store at an address s3://bucket/prefix. Other settings come from the address's query or else
// from the environment and files of Amazon's own tools:
//
//	endpoint    AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url of the profile; else Amazon
//	region      AWS_REGION, AWS_DEFAULT_REGION, region of the profile; else Amazon is asked, others take us-east-1
//	profile     AWS_PROFILE, or "default": of ~/.aws/credentials and ~/.aws/config
//	            (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE)
//	anonymous   "true": requests are not signed, as when there are no credentials
//
// Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else from the
// profile, else from the machine's role if AWS_WEB_IDENTITY_TOKEN_FILE or AWS_CONTAINER_CREDENTIALS_… names
// one.
//
// A bucket that does not exist shows at the first use.
func S3(ctx context.Context, address string, opts ...HTTPOption) (*S3Store, error) {
	p, err := parseS3(address)
	if err != nil {
		return nil, err
	}
	s := &S3Store{web: HTTP("", opts...), bucket: p.bucket, prefix: p.prefix}
	s.web.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.web.shown = strings.TrimSuffix("s3://"+p.bucket+"/"+p.prefix, "/")
	if p.region == "" {
		p.region = defaultRegion
		if p.amazon() {
			if p.region, err = s.askRegion(ctx); err != nil {
				return nil, unavailableError{fmt.Errorf("%s: no answer to where the bucket is: %w", s.web.shown, err)}
			}
		}
	}
	endpoint := p.address()
	server := &url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host, Path: "/" + p.bucket + "/"}
	if p.virtualHost() {
		server.Host, server.Path = p.bucket+"."+endpoint.Host, "/"
	}
	s.root = server.String()
	s.web.base = s.root + encodeKey(p.prefix)
	s.web.encode = encodeKey
	there := &endpointOnly{s.web.client.Transport, p.region}
	client := &http.Client{Transport: &bounded{there}}
	signed := newSignature(p.credentials(client, p.region), p.region)
	s.web.client.Transport = &signing{there, signed, server}
	s.client = &s3Client{http: client, signature: signed, root: s.root, bucket: p.bucket, plain: endpoint.Scheme == "http"}
	return s, nil
}

const defaultRegion = "us-east-1"

// askRegion asks Amazon for the bucket's region. Every answer gives it, even one that denies access.
func (s *S3Store) askRegion(ctx context.Context) (string, error) {
	region := defaultRegion
	err := s.web.retry(ctx, "", func(ctx context.Context) (bool, error) {
		r, err := s.web.request(ctx, http.MethodHead, "https://s3.amazonaws.com/"+s.bucket, nil)
		if err != nil {
			return false, err
		}
		defer r.close()
		if s.web.again(r.StatusCode) {
			return false, r.failure()
		}
		if there := r.Header.Get("X-Amz-Bucket-Region"); validRegion(there) {
			region = there
		}
		return true, nil
	})
	return region, err
}

// Location returns key's address as users write it, s3://bucket/prefix/key.
func (s *S3Store) Location(key string) string { return s.web.Location(key) }

// Requests returns how many requests to have in flight; see [AtOnce].
func (s *S3Store) Requests() int { return s.web.Requests() }

// Close closes idle connections.
func (s *S3Store) Close() error { return s.web.Close() }

// Get reads a whole object; see [Store].
func (s *S3Store) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	b, err := s.web.Get(ctx, key, dst, limit)
	if key == lastName && errors.Is(err, fs.ErrNotExist) {
		if m, e := s.readMark(ctx); e == nil && m != nil {
			return nil, fmt.Errorf("%s: there is no complete image: %w", s.web.shown, s.occupied(m))
		}
	}
	return b, err
}

// Open requests the object's size and its last 64 KiB; see [Store].
func (s *S3Store) Open(ctx context.Context, key string) (Object, error) { return s.web.Open(ctx, key) }

// Expect prepares reads without a request; see [Expecter].
func (s *S3Store) Expect(ctx context.Context, key string, size int64) (Object, error) {
	return s.web.Expect(ctx, key, size)
}

// Start opens an object and reads its beginning; see [Starter].
func (s *S3Store) Start(ctx context.Context, key string, memory []byte) (StartedObject, error) {
	return s.web.Start(ctx, key, memory)
}

// try retries requests that make or remove objects as [HTTPStore] does its own.
func (s *S3Store) try(ctx context.Context, key string, f func(ctx context.Context) error) error {
	return s.web.retry(ctx, key, func(ctx context.Context) (bool, error) { return false, s.meaning(f(ctx)) })
}

// meaning translates an error in the server's words to one of this package.
func (s *S3Store) meaning(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrOccupied) {
		return permanent(err)
	}
	r := new(s3Error)
	if !errors.As(err, &r) {
		return foreignError{withoutURL(err)} // the network
	}
	said := errors.New(foreign(strings.ToLower(strings.TrimSuffix(strings.ReplaceAll(err.Error(), "\n", " "), "."))))
	code := foreign(r.Code)
	switch {
	case r.Code == "NoSuchBucket":
		return permanent(fmt.Errorf("there is no bucket %s: %w", s.bucket, fs.ErrNotExist))
	case r.Code == "AuthorizationHeaderMalformed" && validRegion(r.Region):
		return permanent(elsewhere(r.Region))
	case r.Code == "NoSuchKey":
		return permanent(fs.ErrNotExist)
	case s.web.missing(r.StatusCode):
		return permanent(fmt.Errorf("the server answers %s: %w: %w", code, said, fs.ErrNotExist))
	case r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized:
		return permanent(fmt.Errorf("the server answers %s: %w: %w", code, said, fs.ErrPermission))
	case s.web.again(r.StatusCode) || r.Code == "SlowDown":
		return fmt.Errorf("the server answers %s: %w", code, said)
	}
	return permanent(fmt.Errorf("the server answers %s: %w", code, said))
}
