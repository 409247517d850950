package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"strata/tests/s3emu"
)

var bg = context.Background()

// content is a recognisable object: any shifted or missing byte shows.
func content(key string, n int) []byte {
	seed := uint64(len(key))
	for _, c := range []byte(key) {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32() >> 9)
		if i%3 == 0 {
			b[i] = byte(i)
		}
	}
	return b
}

// objects is what every store under test holds.
func objects() map[string][]byte {
	m := map[string][]byte{}
	for key, n := range map[string]int{
		"zarr.json":              12,
		"empty":                  0,
		".zattrs":                3,
		"0/c/0/0":                1000,
		"0/c/0/1":                1001,
		"0/c/10/0":               7,
		"0/zarr.json":            130,
		"0/.zarray":              1,
		"s p#a?c%e/ü+&=~/0.0":    40,
		"..hidden/..0":           5,
		"big":                    3 << 20,
		"0.0.0":                  17,
		"a-b":                    2,
		"a/b":                    4,
		strings.Repeat("n", 255): 9,
	} {
		m[key] = content(key, n)
	}
	return m
}

// subject is a store with objects in it.
type subject struct {
	name    string
	store   Store
	list    bool // it can list
	flat    bool // it does not know folders from absent objects
	ownRoot string
}

func subjects(t *testing.T) []subject {
	t.Helper()
	dir := t.TempDir()
	folder := Folder(dir)
	memory := Memory()
	for key, data := range objects() {
		for _, w := range []Writer{folder, memory} {
			if err := w.Put(bg, key, data[:len(data)/3], nil, data[len(data)/3:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	zipFile := writeZip(t, objects(), zipMixed)
	zipped, err := Zip(zipFile)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(fileServer(dir))
	web := HTTP(srv.URL+"/", quick())
	zipSrv := httptest.NewServer(oneFile(zipFile))
	zipWeb, err := ZipFrom(bg, HTTP(zipSrv.URL, quick()), "x.zip")
	if err != nil {
		t.Fatal(err)
	}
	server := s3emu.Start(t)
	server.Use(t)
	bucket := newS3(t, "s3://"+s3emu.Bucket+"/some/x.zarr")
	for key, data := range objects() {
		if err := bucket.Put(bg, key, data[:len(data)/3], nil, data[len(data)/3:]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range []Store{folder, memory, zipped, zipWeb, web} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		srv.Close()
		zipSrv.Close()
	})
	list := []subject{
		{"folder", folder, true, false, dir},
		{"folder, mapped", folder.With(ReadBy(ReadMapped)), true, false, dir},
		{"memory", memory, true, false, "memory:"},
		{"zip", zipped, true, false, zipFile},
		{"http", web, false, true, srv.URL},
		{"zip over http", zipWeb, true, false, zipSrv.URL + "/x.zip"},
		{"s3", bucket, true, true, "s3://" + s3emu.Bucket + "/some/x.zarr"},
	}
	direct := folder.With(ReadBy(ReadDirect))
	if _, err := direct.Get(bg, "big", nil, -1); errors.Is(err, ErrNoDirect) {
		t.Log(err)
	} else {
		list = append(list, subject{"folder, direct", direct, true, false, dir})
	}
	return list
}

func TestEveryStoreReadsTheSame(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			for key, want := range objects() {
				got, err := s.store.Get(bg, key, nil, -1)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("Get(%q): %d bytes, %v; want %d", key, len(got), err, len(want))
				}
				if got == nil {
					t.Errorf("Get(%q) returned nil for an object that exists", key)
				}
				checkRanges(t, s.store, key, want)
			}
		})
	}
}

func checkRanges(t *testing.T, s Store, key string, want []byte) {
	t.Helper()
	o, err := s.Open(bg, key)
	if err != nil {
		t.Errorf("Open(%q): %v", key, err)
		return
	}
	defer o.Close()
	n := int64(len(want))
	if o.Size() != n {
		t.Errorf("%q: size %d, want %d", key, o.Size(), n)
	}
	for _, r := range [][2]int64{{0, n}, {0, 1}, {n / 2, n / 3}, {n - 1, 1}, {n / 3, n}, {n, 1}, {n + 5, 2}, {n, 0}, {0, 0}} {
		off, size := r[0], r[1]
		if off < 0 {
			continue
		}
		have := max(min(size, n-off), 0)
		p := make([]byte, size)
		got, err := o.ReadAt(bg, p, off)
		if int64(got) != have || (have == size) != (err == nil) || (err != nil && err != io.EOF) {
			t.Errorf("%q: ReadAt(%d bytes at %d) of %d = %d, %v; want %d", key, size, off, n, got, err, have)
			continue
		}
		if have > 0 && !bytes.Equal(p[:have], want[off:off+have]) {
			t.Errorf("%q: ReadAt(%d bytes at %d): wrong bytes", key, size, off)
		}
	}
	if _, err := o.ReadAt(bg, make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("%q: a negative offset gave %v", key, err)
	}
}

func TestGetUsesTheCallersBuffer(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			buf := make([]byte, 5, 2000)
			got, err := s.store.Get(bg, "0/c/0/0", buf, 1000)
			if err != nil || !bytes.Equal(got, objects()["0/c/0/0"]) {
				t.Fatal(len(got), err)
			}
			if &got[0] != &buf[0] {
				t.Error("a buffer that was large enough was not used")
			}
			if got, err = s.store.Get(bg, "0/c/0/1", buf[:0:10], -1); err != nil || !bytes.Equal(got, objects()["0/c/0/1"]) {
				t.Error(len(got), err)
			}
		})
	}
}

func TestGetKeepsTheLimit(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			if b, err := s.store.Get(bg, "0/c/0/0", nil, 999); !errors.Is(err, ErrTooLarge) || b != nil {
				t.Errorf("%d bytes, %v; want ErrTooLarge", len(b), err)
			} else if !strings.Contains(err.Error(), s.store.Location("0/c/0/0")) {
				t.Errorf("%v does not say which object", err)
			}
			if _, err := s.store.Get(bg, "empty", nil, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAbsentIsNotADamagedStore(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			read := map[string]func(string) error{
				"Get": func(k string) error { _, err := s.store.Get(bg, k, nil, -1); return err },
				"Open": func(k string) error {
					o, err := s.store.Open(bg, k)
					if err == nil {
						o.Close()
					}
					return err
				},
			}
			if s.list {
				read["List"] = func(k string) error { _, err := s.store.List(bg, k); return err }
			}
			for name, f := range read {
				for _, key := range []string{"nothing", "0/c/0/2", "no/such/folder", "0/c/0/00"} {
					err := f(key)
					if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s(%q): %v, want fs.ErrNotExist", name, key, err)
					} else if !strings.Contains(err.Error(), s.store.Location(key)) {
						t.Errorf("%s(%q): %v does not say which object", name, key, err)
					}
				}
				if err := f("zarr.json"); name == "List" && !errors.Is(err, syscall.ENOTDIR) {
					t.Errorf("List of an object: %v, want ENOTDIR", err)
				}
				if s.flat {
					continue
				}
				if err := f("zarr.json/c/0"); !errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s through an object: %v, want ENOTDIR", name, err)
				}
				if err := f("0/c"); name != "List" && !errors.Is(err, syscall.EISDIR) {
					t.Errorf("%s of a folder: %v, want EISDIR", name, err)
				}
			}
		})
	}
}

func TestInvalidKeysAreRefusedEverywhere(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, key := range badKeys {
				if _, err := s.store.Get(bg, key, nil, -1); !errors.Is(err, ErrKey) {
					t.Errorf("Get(%q): %v", key, err)
				}
				if _, err := s.store.Open(bg, key); !errors.Is(err, ErrKey) {
					t.Errorf("Open(%q): %v", key, err)
				}
				if key != "" && s.list {
					if _, err := s.store.List(bg, key); !errors.Is(err, ErrKey) {
						t.Errorf("List(%q): %v", key, err)
					}
				}
				w, ok := s.store.(Writer)
				if !ok {
					continue
				}
				if err := w.Put(bg, key, []byte("x")); !errors.Is(err, ErrKey) {
					t.Errorf("Put(%q): %v", key, err)
				}
				if _, err := w.Create(bg, key); !errors.Is(err, ErrKey) {
					t.Errorf("Create(%q): %v", key, err)
				}
				if err := w.Delete(bg, key); !errors.Is(err, ErrKey) {
					t.Errorf("Delete(%q): %v", key, err)
				}
			}
		})
	}
}

func TestList(t *testing.T) {
	long := strings.Repeat("n", 255)
	want := map[string][]Entry{
		"": {{"..hidden", true, 0, false}, {".zattrs", false, 3, false}, {"0", true, 0, false}, {"0.0.0", false, 17, false}, {"a", true, 0, false},
			{"a-b", false, 2, false}, {"big", false, 3 << 20, false}, {"empty", false, 0, false}, {long, false, 9, false}, {"s p#a?c%e", true, 0, false}, {"zarr.json", false, 12, false}},
		"0":   {{".zarray", false, 1, false}, {"c", true, 0, false}, {"zarr.json", false, 130, false}},
		"0/c": {{"0", true, 0, false}, {"10", true, 0, false}},
	}
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			if !s.list {
				if _, err := s.store.List(bg, ""); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%v, want errors.ErrUnsupported", err)
				}
				return
			}
			for prefix, want := range want {
				if got, err := s.store.List(bg, prefix); err != nil || !slices.Equal(got, want) {
					t.Errorf("List(%q) = %v, %v; want %v", prefix, got, err, want)
				}
			}
		})
	}
}

func TestLocationNamesTheStore(t *testing.T) {
	for _, s := range subjects(t) {
		if got := s.store.Location(""); got != s.ownRoot {
			t.Errorf("%s: Location of the root is %q, want %q", s.name, got, s.ownRoot)
		}
		if got := s.store.Location("0/c"); !strings.HasPrefix(got, s.ownRoot) || !strings.HasSuffix(got, "0/c") {
			t.Errorf("%s: Location(0/c) = %q", s.name, got)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			o, err := s.store.Open(bg, "big")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			ctx, cancel := context.WithCancel(bg)
			cancel()
			if _, err := s.store.Get(ctx, "zarr.json", nil, -1); !errors.Is(err, context.Canceled) {
				t.Errorf("Get: %v", err)
			}
			if _, err := s.store.Open(ctx, "zarr.json"); !errors.Is(err, context.Canceled) {
				t.Errorf("Open: %v", err)
			}
			if _, err := o.ReadAt(ctx, make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
				t.Errorf("ReadAt: %v", err)
			}
			if s.list {
				if _, err := s.store.List(ctx, ""); !errors.Is(err, context.Canceled) {
					t.Errorf("List: %v", err)
				}
			}
			if w, ok := s.store.(Writer); ok {
				if err := w.Put(ctx, "late", []byte("x")); !errors.Is(err, context.Canceled) {
					t.Errorf("Put: %v", err)
				}
				if _, err := w.Create(ctx, "late"); !errors.Is(err, context.Canceled) {
					t.Errorf("Create: %v", err)
				}
				if err := w.Delete(ctx, "zarr.json"); !errors.Is(err, context.Canceled) {
					t.Errorf("Delete: %v", err)
				}
				if _, err := s.store.Get(bg, "late", nil, -1); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a cancelled Put left an object: %v", err)
				}
			}
		})
	}
}

func TestObjectsCloseOnceAndReadConcurrently(t *testing.T) {
	want := objects()["big"]
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			o, err := s.store.Open(bg, "big")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					p := make([]byte, 100_000)
					for i := range 5 {
						off := int64((w*5 + i) * 90_001)
						if n, err := o.ReadAt(bg, p, off); n != len(p) || err != nil || !bytes.Equal(p, want[off:off+int64(n)]) {
							t.Errorf("at %d: %d bytes, %v", off, n, err)
						}
					}
				})
			}
			wg.Wait()
			// readers that race with Close get all they asked for, or that it is closed
			for range 4 {
				wg.Go(func() {
					p := make([]byte, 50_000)
					for {
						n, err := o.ReadAt(bg, p, 1000)
						if errors.Is(err, fs.ErrClosed) {
							return
						}
						if n != len(p) || err != nil || !bytes.Equal(p, want[1000:1000+n]) {
							t.Errorf("while closing: %d bytes, %v", n, err)
							return
						}
					}
				})
			}
			for range 2 {
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
			wg.Wait()
		})
	}
}

// writers are empty stores that can be written.
func writers(t *testing.T) map[string]Writer {
	s3emu.Start(t).Use(t)
	return map[string]Writer{
		"folder":      Folder(t.TempDir() + "/made/by/the/first/put"),
		"synced":      Folder(t.TempDir()+"/made/by/the/first/put", Sync(true)),
		"memory":      Memory(),
		"s3":          newS3(t, "s3://"+s3emu.Bucket),
		"link":        Folder(linkTo(t, t.TempDir())),
		"with a dot/": Folder(t.TempDir() + "/./x//"),
	}
}

// flat tells stores where an object's name may lead to others too.
func flat(w Writer) bool {
	_, ok := w.(*S3Store)
	return ok
}

func TestPutReplacesAndDeleteIsIdempotent(t *testing.T) {
	for name, w := range writers(t) {
		t.Run(name, func(t *testing.T) {
			for _, data := range []string{"first, the longer one", "second", ""} {
				if err := w.Put(bg, "a/b/c", []byte(data)); err != nil {
					t.Fatal(err)
				}
				if got, err := w.Get(bg, "a/b/c", nil, -1); err != nil || string(got) != data {
					t.Fatalf("%q, %v; want %q", got, err, data)
				}
			}
			if flat(w) {
				if err := w.Delete(bg, "a/b"); err != nil {
					t.Errorf("Delete of what others share: %v", err)
				}
				if got, err := w.Get(bg, "a/b/c", nil, -1); err != nil || len(got) != 0 {
					t.Errorf("Delete of what others share deleted them: %v", err)
				}
			} else {
				if err := w.Put(bg, "a/b", []byte("x")); !errors.Is(err, syscall.EISDIR) {
					t.Errorf("Put over a folder: %v", err)
				}
				if err := w.Put(bg, "a/b/c/d", []byte("x")); !errors.Is(err, syscall.ENOTDIR) {
					t.Errorf("Put below an object: %v", err)
				}
				if err := w.Delete(bg, "a/b"); !errors.Is(err, syscall.EISDIR) {
					t.Errorf("Delete of a folder: %v", err)
				}
				if err := w.Delete(bg, "a/b/c/d"); !errors.Is(err, syscall.ENOTDIR) {
					t.Errorf("Delete below an object: %v", err)
				}
			}
			for range 2 {
				if err := w.Delete(bg, "a/b/c"); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
			if err := w.Delete(bg, "never/was"); err != nil {
				t.Errorf("Delete of nothing: %v", err)
			}
			if _, err := w.Get(bg, "a/b/c", nil, -1); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Delete: %v", err)
			}
			got, err := w.List(bg, "a/b")
			if flat(w) && errors.Is(err, fs.ErrNotExist) {
				return
			}
			if err != nil || len(got) != 0 {
				t.Errorf("%v, %v; want an empty folder without leftovers", got, err)
			}
		})
	}
}

func TestPendingObject(t *testing.T) {
	want := content("shard", 70_000)
	for name, w := range writers(t) {
		t.Run(name, func(t *testing.T) {
			if err := w.Put(bg, "c/0", []byte("old")); err != nil {
				t.Fatal(err)
			}
			o, err := w.Create(bg, "c/0")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Abort()
			var wg sync.WaitGroup
			for i := 6; i >= 0; i-- {
				wg.Go(func() {
					if n, err := o.WriteAt(want[i*10_000:(i+1)*10_000], int64(i)*10_000); n != 10_000 || err != nil {
						t.Error(n, err)
					}
				})
			}
			wg.Wait()
			if got, err := w.Get(bg, "c/0", nil, -1); err != nil || string(got) != "old" {
				t.Errorf("before Commit: %q, %v", got, err)
			}
			if got, err := w.List(bg, "c"); err != nil || !slices.Equal(got, []Entry{{"0", false, 3, false}}) {
				t.Errorf("before Commit: %v, %v", got, err)
			}
			if _, err := o.WriteAt([]byte("x"), -1); err == nil {
				t.Error("a negative offset was accepted")
			}
			back := make([]byte, 20_000)
			if n, err := o.ReadAt(back, 45_000); n != len(back) || err != nil || !bytes.Equal(back, want[45_000:65_000]) {
				t.Errorf("read back: %d bytes, %v", n, err)
			}
			if n, err := o.ReadAt(back, 60_000); n != 10_000 || err != io.EOF || !bytes.Equal(back[:n], want[60_000:]) {
				t.Errorf("read back across the end: %d bytes, %v", n, err)
			}
			if _, err := o.ReadAt(back, -1); err == nil {
				t.Error("a negative offset was read")
			}
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := o.Abort(); err != nil {
				t.Errorf("Abort after Commit: %v", err)
			}
			if err := o.Commit(); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("second Commit: %v", err)
			}
			if _, err := o.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("WriteAt after Commit: %v", err)
			}
			if got, err := w.Get(bg, "c/0", nil, -1); err != nil || !bytes.Equal(got, want) {
				t.Errorf("after Commit: %d bytes, %v", len(got), err)
			}

			if o, err = w.Create(bg, "c/1"); err != nil {
				t.Fatal(err)
			}
			if _, err := o.WriteAt([]byte("tail"), 1000); err != nil {
				t.Fatal(err)
			}
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			if got, err := w.Get(bg, "c/1", nil, -1); err != nil || !bytes.Equal(got, append(make([]byte, 1000), "tail"...)) {
				t.Errorf("a hole is not zero: %d bytes, %v", len(got), err)
			}

			if o, err = w.Create(bg, "d/2"); err != nil {
				t.Fatal(err)
			}
			if _, err := o.WriteAt([]byte("x"), 0); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := o.Abort(); err != nil {
					t.Error(err)
				}
			}
			if _, err := w.Get(bg, "d/2", nil, -1); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Abort: %v", err)
			}

			if err := w.Put(bg, "folder/x", nil); err != nil {
				t.Fatal(err)
			}
			if o, err = w.Create(bg, "folder"); err == nil {
				err = o.Commit()
			}
			if flat(w) != (err == nil) || err != nil && !errors.Is(err, syscall.EISDIR) {
				t.Errorf("Commit over a folder: %v", err)
			}
		})
	}
}

func TestConcurrentPutsLeaveOneWhole(t *testing.T) {
	for name, w := range writers(t) {
		t.Run(name, func(t *testing.T) {
			data := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 10_000+i*1000) }
			rounds := 30
			if name == "synced" {
				rounds = 3 // each flush takes as long as the device likes
			}
			check := func(b []byte, err error) {
				if errors.Is(err, fs.ErrNotExist) {
					return // before the first Put
				}
				if err != nil || len(b) == 0 || !bytes.Equal(b, data(int(b[0]))) {
					t.Errorf("half an object: %d bytes, %v", len(b), err)
				}
			}
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					for range rounds {
						if err := w.Put(bg, "deep/in/folders/c", data(i)); err != nil {
							t.Error(err)
						}
						check(w.Get(bg, "deep/in/folders/c", nil, -1))
					}
				})
			}
			wg.Wait()
			if got, err := w.List(bg, "deep/in/folders"); err != nil || len(got) != 1 {
				t.Errorf("%v, %v; want one object", got, err)
			}
		})
	}
}

func ExampleFolder() {
	s := Memory() // or Folder("/data/x.zarr")
	ctx := context.Background()
	if err := s.Put(ctx, "0/zarr.json", []byte(`{"node_type":"array"}`)); err != nil {
		fmt.Println(err)
	}
	b, err := s.Get(ctx, "0/zarr.json", nil, 1<<20)
	fmt.Println(string(b), err)
	_, err = s.Get(ctx, "0/c/0", nil, 1<<20)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// {"node_type":"array"} <nil>
	// true
}
