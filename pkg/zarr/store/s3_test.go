package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"strata/tests/s3emu"
)

// newS3 is the store at an address, with short pauses between tries.
func newS3(t *testing.T, address string, opts ...HTTPOption) *S3Store {
	t.Helper()
	s, err := S3(bg, address, append([]HTTPOption{quick()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// minioClient is a client of another make for what the store writes to.
func minioClient(t *testing.T, s *S3Store) *minio.Core {
	t.Helper()
	at, err := url.Parse(s.root)
	if err != nil {
		t.Fatal(err)
	}
	c, err := minio.NewCore(at.Host, &minio.Options{Creds: credentials.NewStaticV4(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// between is a proxy in front of an S3 server: fault may answer in its place.
func between(t *testing.T, server *s3emu.Server, fault func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { // the host was signed
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// neverAnswer waits until the client has gone, which a server sees once it has read
// the body.
func neverAnswer(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func hangUp(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		c.Close()
	}
}

func TestS3LargeObjectInParts(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	var mu sync.Mutex
	seen := map[string]int{}
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		part := r.URL.Query().Get("partNumber")
		mu.Lock()
		seen[r.Method+" "+part]++
		n := seen[r.Method+" "+part]
		mu.Unlock()
		switch {
		case part == "2" && n == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case part == "3" && n == 1:
			hangUp(w)
		default:
			return false
		}
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/large?endpoint="+endpoint)
	want := content("large", 2*partSize+12345)
	if err := s.Put(bg, "0/c/0", want[:100], nil, want[100:partSize+7], want[partSize+7:]); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(bg, "0/c/0", nil, -1); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if seen["PUT 1"] != 1 || seen["PUT 2"] != 2 || seen["PUT 3"] != 2 {
		t.Errorf("parts sent: %v", seen)
	}
	p, err := s.Create(bg, "0/c/1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Abort()
	for _, at := range []int{2 * partSize, 0, partSize} {
		if _, err := p.WriteAt(want[at:min(at+partSize, len(want))], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(bg, "0/c/1", nil, -1); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// An upload that fails or is given up leaves neither an object nor parts of one.
func TestS3UploadThatFails(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	for name, f := range map[string]struct {
		part, complete int
		want           error
	}{
		"a part":   {http.StatusInternalServerError, 0, ErrUnavailable},
		"no right": {http.StatusForbidden, 0, fs.ErrPermission},
		"the end":  {0, http.StatusServiceUnavailable, ErrUnavailable},
		"given up": {-1, 0, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
				code := 0
				switch {
				case r.URL.Query().Get("partNumber") == "2":
					code = f.part
				case r.Method == http.MethodPost && r.URL.Query().Get("uploadId") != "":
					code = f.complete
				}
				if code < 0 {
					cancel()
					neverAnswer(r)
					return true
				}
				if code > 0 {
					w.WriteHeader(code)
				}
				return code > 0
			})
			s := newS3(t, "s3://"+s3emu.Bucket+"/"+url.PathEscape(name)+"?endpoint="+endpoint)
			err := s.Put(ctx, "c/0", make([]byte, 3*partSize))
			if !errors.Is(err, f.want) || !strings.Contains(err.Error(), "/c/0") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %v", err, f.want)
			}
			if _, err := s.Get(bg, "c/0", nil, -1); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an object is there: %v", err)
			}
			left, err := minioClient(t, s).ListMultipartUploads(bg, s3emu.Bucket, "", "", "", "|", 10)
			if err != nil || len(left.Uploads) > 0 {
				t.Errorf("parts are left: %v, %v", left.Uploads, err)
			}
		})
	}
}

// What is read is of one version of an object, through failures of the server.
func TestS3ReadsThroughFailures(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	direct := newS3(t, "s3://"+s3emu.Bucket+"/x")
	want := content("shard", 300_000)
	if err := direct.Put(bg, "shard", want); err != nil {
		t.Fatal(err)
	}
	n := 0
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		n++
		switch n {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			hangUp(w)
		case 3:
			w.WriteHeader(http.StatusBadGateway)
		default:
			return false
		}
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/x?endpoint="+endpoint)
	o, err := s.Open(bg, "shard")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p := make([]byte, 1000)
	if _, err := o.ReadAt(bg, p, 5000); err != nil || !bytes.Equal(p, want[5000:6000]) {
		t.Fatal(err)
	}
	if err := direct.Put(bg, "shard", content("other", 300_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(bg, p, 9000); !errors.Is(err, ErrChanged) {
		t.Errorf("an object that changed: %v", err)
	}
}

func TestS3WhoAsks(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	address := "s3://" + s3emu.Bucket + "/x"
	if err := newS3(t, address).Put(bg, "zarr.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, secrets := filepath.Join(dir, "config"), filepath.Join(dir, "credentials")
	text := fmt.Sprintf("[default]\nregion = eu-west-2\n[profile lab]\nendpoint_url = %s\n s3 =\n   addressing_style = path\n", server.URL)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600),
		os.WriteFile(secrets, []byte("[lab]\naws_access_key_id=a-key\naws_secret_access_key = a-secret\n[wrong]\naws_access_key_id=a-key\naws_secret_access_key=x\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment map[string]string
		address     string
		want        error
	}{
		"environment":               {nil, address, nil},
		"wrong secret":              {map[string]string{"AWS_SECRET_ACCESS_KEY": "x"}, address, fs.ErrPermission},
		"nobody":                    {map[string]string{"AWS_ACCESS_KEY_ID": ""}, address, fs.ErrPermission},
		"anonymous":                 {nil, address + "?anonymous=true", fs.ErrPermission},
		"profile of the variable":   {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_ENDPOINT_URL_S3": "", "AWS_PROFILE": "lab", "AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": secrets}, address, nil},
		"profile of the address":    {map[string]string{"AWS_SECRET_ACCESS_KEY": "x", "AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": secrets}, address + "?profile=lab", nil},
		"wrong profile":             {map[string]string{"AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": secrets}, address + "?profile=wrong", fs.ErrPermission},
		"other region is the key's": {map[string]string{"AWS_REGION": "eu-west-2"}, address, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.environment {
				t.Setenv(k, v)
			}
			s := newS3(t, c.address)
			got, err := s.Get(bg, "zarr.json", nil, -1)
			if !errors.Is(err, c.want) || err == nil && string(got) != "{}" {
				t.Errorf("Get: %q, %v; want %v", got, err, c.want)
			}
			if err := s.Put(bg, "again", []byte("x")); !errors.Is(err, c.want) {
				t.Errorf("Put: %v, want %v", err, c.want)
			}
			if _, err := s.List(bg, ""); !errors.Is(err, c.want) {
				t.Errorf("List: %v, want %v", err, c.want)
			}
		})
	}

	open := s3emu.StartAnonymous(t)
	open.Use(t)
	s := newS3(t, address)
	if err := s.Put(bg, "zarr.json", []byte("{}")); err != nil {
		t.Errorf("without credentials: %v", err)
	}
	if got, err := s.Get(bg, "zarr.json", nil, -1); err != nil || string(got) != "{}" {
		t.Errorf("without credentials: %q, %v", got, err)
	}
}

func TestS3Addresses(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	for address, want := range map[string]string{
		"s3://":                                     "not the name of a bucket",
		"s3:///x":                                   "not the name of a bucket",
		"s3://A_b/x":                                "not the name of a bucket",
		"s3://bucket/a//b":                          "invalid key",
		"s3://me:secret@bucket/x":                   "no credentials in an address",
		"s3://bucket/x?region":                      "", // empty is not given
		"s3://bucket/x?regio=eu":                    "unknown parameter regio: want endpoint, region, profile or anonymous",
		"s3://bucket/x?anonymous=si":                "want true or false",
		"s3://bucket/x?profile=none":                `no profile "none"`,
		"s3://bucket/x?endpoint=ftp://h":            "want http://host:port or https://host",
		"s3://bucket/x?endpoint=http://h/p":         "want http://host:port or https://host",
		"s3://bucket/x%zz":                          "invalid URL escape",
		"s3://bucket/x?endpoint=localhost:9000":     "",
		"s3://bucket.with.dots/x?region=cn-north-1": "",
	} {
		s, err := S3(bg, address)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", address, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret@")):
			t.Errorf("%s: %v, want %q", address, err, want)
		}
		if err == nil {
			s.Close()
		}
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	for address, want := range map[string]string{
		"s3://bucket/a%20b/x.zarr?region=eu-west-2":                    "https://bucket.s3.eu-west-2.amazonaws.com/a%20b/x.zarr/0/c%2B1",
		"s3://bucket/?region=cn-north-1":                               "https://bucket.s3.cn-north-1.amazonaws.com.cn/0/c%2B1",
		"s3://bucket.of.us/x/?region=us-east-1":                        "https://s3.us-east-1.amazonaws.com/bucket.of.us/x/0/c%2B1",
		"s3://bucket/x?endpoint=http://localhost:9000":                 "http://localhost:9000/bucket/x/0/c%2B1",
		"s3://bucket/x?endpoint=store.example.org&region=eu&anonymous": "https://store.example.org/bucket/x/0/c%2B1",
	} {
		s, err := S3(bg, address)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := s.web.address("0/c+1"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
		s.Close()
	}
}

func TestS3NoSuchBucket(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://another-bucket/x")
	if err := s.Put(bg, "a", nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no bucket another-bucket") {
		t.Errorf("Put: %v", err)
	}
	if _, err := s.List(bg, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("List: %v", err)
	}
	if _, err := s.Get(bg, "a", nil, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get: %v", err)
	}
}

func TestS3Unreachable(t *testing.T) {
	s3emu.Start(t).Use(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	s := newS3(t, "s3://bucket/x", Retry(2, time.Millisecond))
	for name, err := range map[string]error{
		"Put":  s.Put(bg, "a", []byte("x")),
		"Get":  func() error { _, err := s.Get(bg, "a", nil, -1); return err }(),
		"List": func() error { _, err := s.List(bg, ""); return err }(),
	} {
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "s3://bucket/x") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Listings of more than a page, and zip files in a bucket.
func TestS3Listing(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/many.zarr")
	const n = 1203
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				if err := s.Put(bg, fmt.Sprintf("0/c/%d", i), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, err := s.List(bg, "0/c")
	if err != nil || len(list) != n || list[0].Name != "0" || list[n-1].Name != "999" {
		t.Errorf("%d entries, %v", len(list), err)
	}
	file, err := os.ReadFile(writeZip(t, objects(), zipMixed))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(bg, "inner/x.zip", file); err != nil {
		t.Fatal(err)
	}
	st, key, err := OpenURL(bg, "s3://"+s3emu.Bucket+"/many.zarr/inner/x.zip/0", quick())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got, err := st.Get(bg, key+"/zarr.json", nil, -1); err != nil || len(got) != 130 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A cancelled upload or read leaves no goroutine behind.
func TestS3LeavesNoGoroutines(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	before := runtime.NumGoroutine()
	endpoint := between(t, server, func(_ http.ResponseWriter, r *http.Request) bool {
		neverAnswer(r)
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/x?endpoint="+endpoint)
	ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Put(ctx, "a", make([]byte, 2*partSize)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put: %v", err)
		}
	})
	wg.Go(func() {
		if _, err := s.Get(ctx, "a", nil, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v", err)
		}
	})
	wg.Wait()
	s.Close()
	for range 100 {
		if runtime.NumGoroutine() <= before+4 { // the proxy's and the server's
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A node in a bucket is there when it is whole, and not before.
func TestS3UploadIsSeenWhole(t *testing.T) {
	s3emu.Start(t).Use(t)
	address := "s3://" + s3emu.Bucket + "/a/x.zarr"
	s := newS3(t, address)
	beside := newS3(t, "s3://"+s3emu.Bucket+"/a/x.zarr2")
	if err := beside.Put(bg, "zarr.json", []byte("beside")); err != nil {
		t.Fatal(err)
	}
	begin := func(replace bool) *S3Upload {
		t.Helper()
		u, err := s.Begin(bg, "process 7 on\nhost", replace)
		if err != nil {
			t.Fatal(err)
		}
		for key, text := range map[string]string{"zarr.json": "root", "0/zarr.json": "level", "0/c/0/0": "chunk"} {
			if err := u.Put(bg, key, []byte(text[:2]), []byte(text[2:])); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	absent := func() {
		t.Helper()
		if _, err := s.Get(bg, "zarr.json", nil, -1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
	}

	u := begin(false)
	absent()
	if got, err := u.Get(bg, "zarr.json", nil, -1); err != nil || string(got) != "root" {
		t.Errorf("the writer reads %q, %v", got, err)
	}
	if _, err := u.Get(bg, "zarr.json", nil, 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("limit: %v", err)
	}
	if _, err := s.Begin(bg, "me", false); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), `"process 7 on\nhost" is writing there, or was killed`) {
		t.Errorf("a second writer: %v", err)
	}
	if err := u.Commit(bg); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(bg, "zarr.json", nil, -1); err != nil || string(got) != "root" {
		t.Errorf("%q, %v", got, err)
	}
	if list, err := s.List(bg, ""); err != nil || len(list) != 2 {
		t.Errorf("%v, %v; want 0 and zarr.json", list, err)
	}
	if _, err := s.Begin(bg, "me", false); !errors.Is(err, ErrOccupied) {
		t.Errorf("over a node: %v", err)
	}

	if err := s.Put(bg, "5/c/0", []byte("of the old one")); err != nil {
		t.Fatal(err)
	}
	u = begin(true)
	if got, err := s.Get(bg, "5/c/0", nil, -1); err != nil || string(got) != "of the old one" {
		t.Errorf("the old node while it is replaced: %q, %v", got, err)
	}
	if err := u.Commit(bg); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(bg, "5/c/0", nil, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a chunk of the old node is in the new one: %v", err)
	}

	// What a killed run left may be replaced.
	begin(true)
	if err := begin(true).Abort(bg); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(bg, ""); err != nil || len(list) != 2 {
		t.Errorf("after Abort: %v, %v; want the node that was there", list, err)
	}
	u = begin(true)
	if err := errors.Join(u.Commit(bg), u.Abort(bg)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(bg, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Abort left %v, %v", list, err)
	}
	if err := s.Put(bg, "notes.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(bg, "me", true); !errors.Is(err, ErrForeign) {
		t.Errorf("over what is no Zarr: %v", err)
	}
	if _, err := newS3(t, "s3://"+s3emu.Bucket).Begin(bg, "me", true); !errors.Is(err, ErrForeign) {
		t.Errorf("a whole bucket: %v", err)
	}
	if got, err := beside.Get(bg, "zarr.json", nil, -1); err != nil || string(got) != "beside" {
		t.Errorf("the node beside: %q, %v", got, err)
	}
}

// Of runs that begin at the same time one gets the place.
func TestS3OneOfManyBegins(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/x.zarr")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 6 {
		wg.Go(func() {
			_, err := s.Begin(bg, fmt.Sprint("number ", i), false)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ErrOccupied) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d got the place, want 1", won)
	}
}

// Objects of an upload are sent while others are made; the last of one key is what
// stays, and the writer reads what it wrote.
func TestS3UploadSendsBehind(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	const atOnce = 6
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	endpoint := between(t, server, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/c/") {
			return false
		}
		mu.Lock()
		now++
		if now > most {
			if most = now; most == atOnce {
				close(full)
			}
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(5 * time.Second):
		}
		mu.Lock()
		now--
		mu.Unlock()
		return false
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/behind?endpoint="+endpoint, AtOnce(atOnce))
	u, err := s.Begin(bg, "me", false)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1000)
	for i := range 40 { // one goroutine, one buffer
		copy(buf, content(fmt.Sprint(i), 1000))
		if err := u.Put(bg, fmt.Sprintf("0/c/%d", i%30), buf[:300], buf[300:]); err != nil {
			t.Fatal(err)
		}
	}
	if most != atOnce {
		t.Errorf("%d on their way at a time, want %d", most, atOnce)
	}
	if got, err := u.Get(bg, "0/c/9", nil, -1); err != nil || !bytes.Equal(got, content("39", 1000)) {
		t.Errorf("the writer reads: %d bytes, %v", len(got), err)
	}
	if list, err := u.List(bg, "0/c"); err != nil || len(list) != 30 {
		t.Errorf("%d objects, %v", len(list), err)
	}
	if err := errors.Join(u.Put(bg, "zarr.json", []byte("{}")), u.Commit(bg)); err != nil {
		t.Fatal(err)
	}
	for i := 10; i < 40; i++ {
		if got, err := s.Get(bg, fmt.Sprintf("0/c/%d", i%30), nil, -1); err != nil || !bytes.Equal(got, content(fmt.Sprint(i), 1000)) {
			t.Errorf("%d: %d bytes, %v", i, len(got), err)
		}
	}
}

// Objects that were written piece by piece are sent behind, too, a few at a time.
func TestS3UploadSendsFilesBehind(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/c/") {
			return false
		}
		if strings.HasSuffix(r.URL.Path, "/c/forbidden") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		mu.Lock()
		now++
		if now > most {
			if most = now; most == queueFiles {
				close(full)
			}
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(5 * time.Second):
		}
		mu.Lock()
		now--
		mu.Unlock()
		return false
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/files?endpoint="+endpoint)
	u, err := s.Begin(bg, "me", false)
	if err != nil {
		t.Fatal(err)
	}
	write := func(key string) error {
		o, err := u.Create(bg, key)
		if err != nil {
			return err
		}
		defer o.Abort()
		data := content(key, 1000)
		for _, off := range []int{500, 0} { // not in order
			if _, err := o.WriteAt(data[off:off+500], int64(off)); err != nil {
				return err
			}
		}
		return o.Commit()
	}
	for i := range 3 * queueFiles {
		if err := write(fmt.Sprintf("c/%d", i%(2*queueFiles))); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := u.Get(bg, "c/1", nil, -1); err != nil || !bytes.Equal(got, content("c/1", 1000)) {
		t.Errorf("the writer reads: %d bytes, %v", len(got), err)
	}
	if most != queueFiles {
		t.Errorf("%d on their way at a time, want %d", most, queueFiles)
	}
	o, err := u.Create(bg, "c/twice")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a second Commit: %v", err)
	}
	if _, err := o.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("written after Commit: %v", err)
	}
	if err := write("c/forbidden"); err != nil {
		t.Errorf("the error comes later: %v", err)
	}
	if err := u.Commit(bg); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "c/forbidden") {
		t.Errorf("Commit: %v", err)
	}
	if err := write("c/late"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("after a failure: %v", err)
	}
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
}

// An object that does not arrive fails the upload, at the latest at its end.
func TestS3UploadFailsBehind(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/c/3") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/fails?endpoint="+endpoint)
	u, err := s.Begin(bg, "me", false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if err := u.Put(bg, fmt.Sprintf("c/%d", i), []byte("x")); err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
	}
	if err := u.Commit(bg); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/c/3") {
		t.Errorf("Commit: %v", err)
	}
	if err := u.Put(bg, "c/9", []byte("x")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Put afterwards: %v", err)
	}
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
	if list, err := s.List(bg, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v, %v", list, err)
	}
}

// A request that is on its way when the run is interrupted is waited for: it would make an object
// after all has been removed.
func TestS3UploadInterrupted(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	ctx, interrupt := context.WithCancel(bg)
	forwarded := make(chan struct{})
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/c/late") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		interrupt()
		time.Sleep(100 * time.Millisecond)
		again := r.Clone(context.WithoutCancel(r.Context())) // as a server that has it all
		again.Body = io.NopCloser(bytes.NewReader(body))
		again.RequestURI, again.URL.Scheme, again.URL.Host = "", "http", strings.TrimPrefix(server.URL, "http://")
		again.Host = r.Host
		if answer, err := http.DefaultTransport.RoundTrip(again); err != nil || answer.StatusCode != http.StatusOK {
			t.Error(answer, err)
		}
		close(forwarded)
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/interrupted?endpoint="+endpoint)
	u, err := s.Begin(ctx, "me", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Put(ctx, "c/late", []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
	<-forwarded
	if list, err := s.List(bg, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v, %v", list, err)
	}
}
