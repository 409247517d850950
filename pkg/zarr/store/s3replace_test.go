package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"strata/tests/race"
	"strata/tests/s3emu"
)

// node is what objects a node has.
type node map[string]string

// nodeNamed is a small node whose every object says whose it is.
func nodeNamed(name string, format, chunks int) node {
	n := node{}
	for i := range chunks {
		n[fmt.Sprintf("0/c/%d", i)] = name
	}
	if format == 2 {
		n[".zgroup"], n[".zattrs"], n["0/.zarray"] = name, name, name
	} else {
		n["zarr.json"], n["0/zarr.json"] = name, name
	}
	return n
}

// write writes a node as a run does, up to its end.
func (n node) write(ctx context.Context, u *S3Upload) error {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		if err := u.Put(ctx, key, []byte(n[key])); err != nil {
			return err
		}
	}
	return u.Commit(ctx)
}

// run writes a node over what is there. It removes nothing when it fails.
func (n node) run(ctx context.Context, s *S3Store) (*S3Upload, error) {
	u, err := s.Begin(ctx, "a run", true)
	if err != nil {
		return nil, err
	}
	return u, n.write(ctx, u)
}

// objectsOf is everything below the store's prefix, marks included.
func objectsOf(t *testing.T, s *S3Store) node {
	t.Helper()
	n := node{}
	for entries, err := range s.pages(bg, s.prefix, "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range entries {
			key := strings.TrimPrefix(o.key, s.prefix)
			b, err := s.web.Get(bg, key, nil, -1)
			if err != nil {
				t.Fatal(err)
			}
			n[key] = string(b)
		}
	}
	return n
}

// visible is what a reader sees: the node, or nil if it finds none.
func (n node) visible() node {
	if n["zarr.json"] == "" && n[".zgroup"] == "" {
		return nil
	}
	n = maps.Clone(n)
	maps.DeleteFunc(n, func(key, _ string) bool { return strings.HasPrefix(key, hidden) })
	return n
}

// dying is a proxy to a server that lets requests through up to the one at which something happens.
type dying struct {
	mu     sync.Mutex
	server *s3emu.Server
	n, at  int
	happen func(w http.ResponseWriter, r *http.Request) bool // reports whether it answered
	dead   bool
}

func (d *dying) fault(w http.ResponseWriter, r *http.Request) bool {
	d.mu.Lock()
	n := d.n
	d.n++
	dead, at, happen := d.dead, d.at, d.happen
	d.mu.Unlock()
	switch {
	case dead:
		hangUp(w)
		return true
	case n == at:
		return happen(w, r)
	}
	return false
}

// next is the beginning of another process.
func (d *dying) next(at int, happen func(w http.ResponseWriter, r *http.Request) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.at, d.happen, d.dead = 0, at, happen, false
}

// ended waits until a run sends nothing any more, and tells how many requests there were, and
// whether it was killed.
func (d *dying) ended(u *S3Upload) (requests int, killed bool) {
	d.mu.Lock()
	killed = d.dead
	d.mu.Unlock()
	if killed && u != nil {
		u.cancel()
		u.sent.Wait()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n, killed
}

// die is the end of the process: nothing that it sends from now on arrives.
func (d *dying) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

// pass lets a request do its work, and is as if the answer had been lost.
func (d *dying) pass(r *http.Request) error {
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.RequestURI, again.URL.Scheme, again.URL.Host = "", "http", strings.TrimPrefix(d.server.URL, "http://")
	answer, err := http.DefaultTransport.RoundTrip(again)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

// A run that ends at any request of its own leaves a whole image, the old one or its own, or what the
// next run makes whole: killed before the request arrives or after, interrupted, or refused by the server.
func TestS3ReplaceEndsAnywhere(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	first, second := nodeNamed("first", 2, 3), nodeNamed("second", 3, 2)
	third := nodeNamed("third", 3, 1)
	for name, end := range map[string]func(d *dying, interrupt context.CancelFunc) func(http.ResponseWriter, *http.Request) bool{
		"killed before": func(d *dying, _ context.CancelFunc) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				d.die()
				hangUp(w)
				return true
			}
		},
		"killed after": func(d *dying, _ context.CancelFunc) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if err := d.pass(r); err != nil {
					t.Error(err)
				}
				d.die()
				hangUp(w)
				return true
			}
		},
		"interrupted": func(_ *dying, interrupt context.CancelFunc) func(http.ResponseWriter, *http.Request) bool {
			return func(http.ResponseWriter, *http.Request) bool {
				interrupt()
				return false
			}
		},
		"refused": func(*dying, context.CancelFunc) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		},
	} {
		for state, before := range map[string]node{"over nothing": nil, "over an image": first, "over a dead run": nil} {
			t.Run(name+" "+state, func(t *testing.T) {
				if name == "killed before" || name == "refused" {
					race.Leave(t)
				}
				d := &dying{server: server}
				endpoint := between(t, server, d.fault)
				for i := 0; ; i++ {
					place := fmt.Sprintf("s3://%s/%s/%d.zarr", s3emu.Bucket, strings.ReplaceAll(name+state, " ", "-"), i)
					direct := newS3(t, place, Retry(1, time.Millisecond))
					if before != nil {
						if _, err := before.run(bg, direct); err != nil {
							t.Fatal(err)
						}
					}
					if state == "over a dead run" {
						u, err := direct.Begin(bg, "dead", false)
						if err != nil || u.Put(bg, "0/c/9", []byte("dead")) != nil || u.allArrived(bg) != nil {
							t.Fatal(err)
						}
					}
					start := objectsOf(t, direct)
					ctx, interrupt := context.WithCancel(bg)
					d.next(i, end(d, interrupt))
					s := newS3(t, place+"?endpoint="+endpoint, Retry(1, time.Millisecond))
					u, err := second.run(ctx, s)
					requests, killed := d.ended(u)
					if err != nil && !killed && u != nil {
						if e := u.Abort(ctx); e != nil {
							t.Errorf("request %d: Abort: %v", i, e)
						}
					}
					interrupt()
					if requests <= i {
						if !maps.Equal(objectsOf(t, direct), second) {
							t.Fatal("the run that nothing happened to did not write its node")
						}
						t.Logf("%d requests", i)
						return
					}
					if name == "interrupted" && (err == nil) != maps.Equal(objectsOf(t, direct), second) {
						t.Errorf("request %d: %v, and left %v", i, err, objectsOf(t, direct))
					}
					checkEnd(t, fmt.Sprintf("request %d (%v)", i, err), direct, start, before, second, third, killed)
				}
			})
		}
	}
}

// checkEnd looks at what a run left that wrote after over start, with the image before in it, and lets
// the next one end in each way.
func checkEnd(t *testing.T, name string, s *S3Store, start, before, after, next node, killed bool) {
	t.Helper()
	left := objectsOf(t, s)
	if v := left.visible(); v != nil && !maps.Equal(v, before) && !maps.Equal(v, after) {
		t.Errorf("%s: a reader finds %v", name, left)
	}
	if !killed && len(left) > 0 && !maps.Equal(left, start) && !maps.Equal(left, after) {
		t.Errorf("%s: left %v, want nothing or a whole node", name, left)
	}
	if left[markName] == "" && (left.visible() == nil && len(left) > 0 || left.visible() != nil && len(left.visible()) != len(left)) {
		t.Errorf("%s: orphans without a mark: %v", name, left)
	}
	if before != nil && left.visible() == nil {
		if _, err := s.Get(bg, lastName, nil, -1); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a reader is not told of the image that is being replaced: %v", name, err)
		}
	}
	// one that begins and gives up: nothing is lost
	u, err := s.Begin(bg, "the next", true)
	if err != nil {
		t.Fatalf("%s: the next run: %v", name, err)
	}
	if err := errors.Join(u.Put(bg, "0/c/0", []byte("never")), u.Abort(bg)); err != nil {
		t.Errorf("%s: the next run gives up: %v", name, err)
	}
	left = objectsOf(t, s)
	if !maps.Equal(left, before) && !maps.Equal(left, after) && (before != nil || len(left) > 0) {
		t.Errorf("%s: after the next run gave up: %v", name, left)
	}
	if before == nil && maps.Equal(left, after) || before != nil {
		if _, err := s.Begin(bg, "the next", false); !errors.Is(err, ErrOccupied) {
			t.Errorf("%s: without leave to replace: %v", name, err)
		}
	}
	if _, err := next.run(bg, s); err != nil {
		t.Errorf("%s: the next run: %v", name, err)
	}
	if left := objectsOf(t, s); !maps.Equal(left, next) {
		t.Errorf("%s: after the next run: %v", name, left)
	}
}

// The next run, too, may end anywhere while it goes on with what a killed one began.
func TestS3ReplaceEndsTwice(t *testing.T) {
	race.Leave(t)
	server := s3emu.Start(t)
	server.Use(t)
	first, second, third := nodeNamed("first", 3, 3), nodeNamed("second", 2, 2), nodeNamed("third", 3, 1)
	d := &dying{server: server}
	endpoint := between(t, server, d.fault)
	die := func(w http.ResponseWriter, _ *http.Request) bool {
		d.die()
		hangUp(w)
		return true
	}
	for i := 0; ; i++ {
		place := fmt.Sprintf("s3://%s/twice/%d.zarr", s3emu.Bucket, i)
		direct := newS3(t, place, Retry(1, time.Millisecond))
		if _, err := first.run(bg, direct); err != nil {
			t.Fatal(err)
		}
		// killed while the old node is being overwritten: at the first chunk that is copied
		d.next(-1, nil)
		copied := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Amz-Copy-Source") != "" && strings.HasSuffix(r.URL.Path, ".zarr/0/c/1") && !strings.Contains(r.URL.Path, hidden) {
				return die(w, r)
			}
			return d.fault(w, r)
		})
		u, err := second.run(bg, newS3(t, place+"?endpoint="+copied, Retry(1, time.Millisecond)))
		if _, killed := d.ended(u); !killed || err == nil {
			t.Fatal("the first run was not killed")
		}
		d.next(i, die)
		u, err = third.run(bg, newS3(t, place+"?endpoint="+endpoint, Retry(1, time.Millisecond)))
		if requests, _ := d.ended(u); requests <= i {
			if err != nil || !maps.Equal(objectsOf(t, direct), third) {
				t.Fatalf("the run that nothing happened to: %v", err)
			}
			return
		}
		checkEnd(t, fmt.Sprintf("request %d (%v)", i, err), direct, nil, second, third, nodeNamed("fourth", 2, 1), true)
	}
}

// Of two runs the one that took the place over has it: the other's end fails, and harms nothing.
func TestS3UploadThatLostItsPlace(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/lost/x.zarr")
	for name, before := range map[string]node{"over nothing": nil, "over an image": nodeNamed("old", 3, 2)} {
		t.Run(name, func(t *testing.T) {
			if before != nil {
				if _, err := before.run(bg, s); err != nil {
					t.Fatal(err)
				}
			}
			slow, err := s.Begin(bg, "the slow one", true)
			if err != nil {
				t.Fatal(err)
			}
			want := nodeNamed("new", 3, 3)
			if _, err := want.run(bg, s); err != nil {
				t.Fatal(err)
			}
			if err := slow.Commit(bg); !errors.Is(err, ErrOccupied) {
				t.Errorf("Commit: %v", err)
			}
			if err := slow.Abort(bg); err != nil {
				t.Errorf("Abort: %v", err)
			}
			if left := objectsOf(t, s); !maps.Equal(left, want) {
				t.Errorf("left %v", left)
			}
			if u, err := s.Begin(bg, "cleaning", true); err != nil || u.Commit(bg) != nil {
				t.Fatal(err)
			}
		})
	}
}

// Marks of earlier versions say only who wrote.
func TestS3MarksOfEarlierVersions(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/earlier/x.zarr")
	for key, text := range map[string]string{markName: "process 7 on host", "0/c/0": "x"} {
		if err := s.Put(bg, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Begin(bg, "me", false); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), "process 7 on host is writing there") {
		t.Errorf("without leave to replace: %v", err)
	}
	want := nodeNamed("new", 3, 3)
	if _, err := want.run(bg, s); err != nil || !maps.Equal(objectsOf(t, s), want) {
		t.Errorf("%v, %v", objectsOf(t, s), err)
	}
}

// A server that cannot copy, or does not list in order, is found out while the old node is whole.
func TestS3ReplaceNeedsCopies(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Amz-Copy-Source") == "" {
			return false
		}
		w.WriteHeader(http.StatusNotImplemented)
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/copies/x.zarr?endpoint="+endpoint, Retry(1, time.Millisecond))
	want := nodeNamed("old", 3, 3)
	if _, err := want.run(bg, s); err != nil {
		t.Fatal(err)
	}
	u, err := nodeNamed("new", 3, 3).run(bg, s)
	if err == nil || !strings.Contains(err.Error(), "without them, remove the old one first") {
		t.Fatal(err)
	}
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
	if left := objectsOf(t, s); !maps.Equal(left, want) {
		t.Errorf("left %v", left)
	}
}

// A copy that fails when the server has begun to answer is made again.
func TestS3CopyFailsLate(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	failed := map[string]bool{}
	var mu sync.Mutex
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("X-Amz-Copy-Source") == "" || failed[r.URL.String()] {
			return false
		}
		failed[r.URL.String()] = true
		_, _ = io.WriteString(w, "<Error><Code>InternalError</Code><Message>try again</Message></Error>")
		return true
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/late/x.zarr?endpoint="+endpoint)
	want := nodeNamed("new", 3, 3)
	for _, n := range []node{nodeNamed("old", 2, 4), want} {
		if _, err := n.run(bg, s); err != nil {
			t.Fatal(err)
		}
	}
	if left := objectsOf(t, s); !maps.Equal(left, want) {
		t.Errorf("left %v", left)
	}
	if err := s.copyParts(bg, "parts", listed{s.prefix + "zarr.json", 3}, 5<<20); err != nil {
		t.Error(err)
	}
	if len(failed) < 6 {
		t.Errorf("%d copies failed", len(failed))
	}
}

// Objects that one request does not copy are copied in parts.
func TestS3CopyInParts(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/parts")
	want := content("parts", 11<<20+5)
	if err := s.Put(bg, "from", want); err != nil {
		t.Fatal(err)
	}
	if err := s.copyParts(bg, "to", listed{s.prefix + "from", int64(len(want))}, 5<<20); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(bg, "to", nil, -1); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// What a killed run had sent of an object in parts is given up by the next.
func TestS3PartsOfDeadRunsGo(t *testing.T) {
	s3emu.Start(t).Use(t)
	s := newS3(t, "s3://"+s3emu.Bucket+"/dead/x.zarr")
	if _, err := s.Begin(bg, "dead", false); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{s.prefix + "0/c/0", "dead/y.zarr/0/c/0"} {
		if _, err := minioClient(t, s).NewMultipartUpload(bg, s.bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	u, err := s.Begin(bg, "me", true)
	if err != nil {
		t.Fatal(err)
	}
	left, err := minioClient(t, s).ListMultipartUploads(bg, s.bucket, "", "", "", "|", 10)
	if err != nil || len(left.Uploads) != 1 || left.Uploads[0].Key != "dead/y.zarr/0/c/0" {
		t.Errorf("%v, %v", left.Uploads, err)
	}
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
}

// What a foreign function finds stays, whether it was there before or came while the run worked.
func TestS3ForeignStays(t *testing.T) {
	s3emu.Start(t).Use(t)
	notes := func(ctx context.Context, s *S3Store) (string, error) {
		for key, err := range s.Keys(ctx) {
			if err != nil || key == "notes.txt" {
				return key, err
			}
			if strings.HasPrefix(key, hidden) {
				t.Errorf("the key %s of an unfinished run", key)
			}
		}
		return "", nil
	}
	for _, meanwhile := range []bool{false, true} {
		s := newS3(t, fmt.Sprintf("s3://%s/foreign-%v.zarr", s3emu.Bucket, meanwhile))
		old := nodeNamed("old", 3, 3)
		if _, err := old.run(bg, s); err != nil {
			t.Fatal(err)
		}
		put := func() {
			old["notes.txt"] = "precious"
			if err := s.Put(bg, "notes.txt", []byte("precious")); err != nil {
				t.Fatal(err)
			}
		}
		if !meanwhile {
			put()
		}
		u, err := s.Begin(bg, "me", true, notes)
		if meanwhile {
			if err != nil {
				t.Fatal(err)
			}
			put()
			err = nodeNamed("new", 3, 2).write(bg, u)
			if e := u.Abort(bg); e != nil {
				t.Error(e)
			}
		}
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "holds notes.txt, and must not be replaced") {
			t.Errorf("error %v", err)
		}
		if got := objectsOf(t, s); !maps.Equal(got, old) {
			t.Errorf("left: %v, want %v", got, old)
		}
	}
}
