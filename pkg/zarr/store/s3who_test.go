package store

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strata/tests/s3emu"
)

// roundTripper answers requests in the place of a network.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Amazon is asked where a bucket is, if nobody says it; then the bucket is asked there.
func TestS3AsksForTheRegion(t *testing.T) {
	s3emu.Start(t).Use(t)
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	answer := func(status int, header ...string) *http.Response {
		r := &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: 2, Body: io.NopCloser(strings.NewReader("{}"))}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	for name, c := range map[string]struct {
		answers []*http.Response // nil: the network fails
		address string
		host    string // that is asked for the object; "": none
	}{
		"elsewhere":   {[]*http.Response{answer(301, "X-Amz-Bucket-Region", "eu-west-2", "Location", "https://elsewhere.test/")}, "s3://bucket/x", "bucket.s3.eu-west-2.amazonaws.com"},
		"not allowed": {[]*http.Response{answer(403, "X-Amz-Bucket-Region", "ap-south-1")}, "s3://bucket/x", "bucket.s3.ap-south-1.amazonaws.com"},
		"no word":     {[]*http.Response{answer(404)}, "s3://bucket/x", "bucket.s3.us-east-1.amazonaws.com"},
		"busy":        {[]*http.Response{answer(503), nil, answer(200, "X-Amz-Bucket-Region", "eu-west-2")}, "s3://bucket/x", "bucket.s3.eu-west-2.amazonaws.com"},
		"known":       {nil, "s3://bucket/x?region=eu-north-1", "bucket.s3.eu-north-1.amazonaws.com"},
		"never":       {[]*http.Response{nil, nil, nil, nil}, "s3://bucket/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			n := 0
			client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked = append(asked, r.Method+" "+r.URL.Host+r.URL.Path)
				if r.Method == http.MethodHead {
					if r.URL.String() != "https://s3.amazonaws.com/bucket" || r.Header.Get("Authorization") != "" {
						t.Errorf("asks %s, signed %q", r.URL, r.Header.Get("Authorization"))
					}
					n++
					if c.answers[n-1] == nil {
						return nil, errors.New("connection refused")
					}
					return c.answers[n-1], nil
				}
				if !strings.Contains(r.Header.Get("Authorization"), "/"+strings.Split(c.host, ".")[2]+"/s3/aws4_request") {
					t.Errorf("signed for another region: %s", r.Header.Get("Authorization"))
				}
				return answer(200), nil
			})}
			s, err := S3(bg, c.address, quick(), Client(client))
			if c.host == "" {
				if !errors.Is(err, ErrUnavailable) || !strings.HasPrefix(err.Error(), "s3://bucket/x: no answer to where the bucket is: ") || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(bg, "zarr.json", nil, -1); err != nil || string(got) != "{}" {
				t.Errorf("Get: %q, %v", got, err)
			}
			if want := "GET " + c.host + "/x/zarr.json"; asked[len(asked)-1] != want || len(asked) != len(c.answers)+1 {
				t.Errorf("asked %q, want %d answers and then %s", asked, len(c.answers), want)
			}
		})
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := S3(ctx, "s3://bucket/x", quick()); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: %v", err)
	}
}

// Credentials of the machine's role, as containers of Amazon and others have it.
func TestS3CredentialsOfARole(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	secret := server.Secret
	roles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/role" || r.Header.Get("Authorization") != "a-token" {
			http.Error(w, "who is that", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":"","Expiration":%q}`, server.Key, secret, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer roles.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", roles.URL+"/role")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-token")
	s := newS3(t, "s3://"+s3emu.Bucket+"/x")
	if err := s.Put(bg, "a", []byte("of a role")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(bg, "a", nil, -1); err != nil || string(got) != "of a role" {
		t.Errorf("Get: %q, %v", got, err)
	}
	secret = "another"
	if _, err := newS3(t, "s3://"+s3emu.Bucket+"/x").Get(bg, "a", nil, -1); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with another secret: %v", err)
	}
	roles.Close()
	_, err := newS3(t, "s3://"+s3emu.Bucket+"/x").Get(bg, "a", nil, -1)
	if err == nil || !strings.Contains(err.Error(), "no credentials for S3") || strings.Contains(err.Error(), "\n") {
		t.Errorf("nobody says who this is: %v", err)
	}
}

// A presigned address of a zip file is a Zarr hierarchy for who has no credentials, while it holds.
func TestPresignedZip(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"zarr.json": "{}", "0/c/0": strings.Repeat("chunk", 30_000)} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := newS3(t, "s3://"+s3emu.Bucket+"/data")
	if err := s.Put(bg, "x.zarr.zip", archive.Bytes()); err != nil {
		t.Fatal(err)
	}
	sign := func(valid time.Duration) string {
		u, err := minioClient(t, s).Presign(bg, http.MethodGet, s3emu.Bucket, "data/x.zarr.zip", valid, url.Values{})
		if err != nil {
			t.Fatal(err)
		}
		return u.String()
	}
	address := sign(time.Hour)
	st, key, err := OpenURL(bg, address, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got, err := st.Get(bg, Join(key, "zarr.json"), nil, -1); err != nil || string(got) != "{}" {
		t.Errorf("Get: %q, %v", got, err)
	}
	o, err := st.Open(bg, Join(key, "0/c/0"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p := make([]byte, 10)
	if _, err := o.ReadAt(bg, p, 50_000); err != nil || string(p) != "chunkchunk" {
		t.Errorf("part: %q, %v", p, err)
	}
	changed := strings.Replace(address, "X-Amz-Signature=", "X-Amz-Signature=0", 1)
	if _, _, err := OpenURL(bg, changed, quick()); !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "Signature") || strings.Contains(err.Error(), "\n") {
		t.Errorf("another signature: %v", err)
	}
}

// Credentials of a role that the token of an identity gives, as pods of Kubernetes have it: for a while.
func TestS3CredentialsForAToken(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	asked, expires := 0, time.Now().Add(time.Hour)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.FormValue("WebIdentityToken") != "a-token" || r.FormValue("RoleArn") != "arn:role" || r.FormValue("Action") != "AssumeRoleWithWebIdentity" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken></SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			server.Key, server.Secret, expires.UTC().Format(time.RFC3339))
	}))
	defer tokens.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:role", "AWS_ENDPOINT_URL_STS": tokens.URL} {
		t.Setenv(name, value)
	}
	s := newS3(t, "s3://"+s3emu.Bucket+"/x")
	for _, key := range []string{"a", "b"} {
		if err := s.Put(bg, key, []byte("of a role")); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("the token was exchanged %d times", asked)
	}
	t.Setenv("AWS_ROLE_ARN", "arn:another")
	_, err := newS3(t, "s3://"+s3emu.Bucket+"/x").Get(bg, "a", nil, -1)
	if err == nil || !strings.Contains(err.Error(), "no credentials for S3") || !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "\n") {
		t.Errorf("another role: %v", err)
	}
}
