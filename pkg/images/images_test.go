package images_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/images"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/czicorpus"
	"strata/tests/s3emu"
	"strata/tests/tiffcorpus"
)

// pixels reads level 0 of the image that s names.
func pixels(t *testing.T, s string) []byte {
	t.Helper()
	st, key, err := images.Open(t.Context(), s, store.Retry(1, 0))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	defer st.Close()
	im, err := ngff.Open(t.Context(), st, key)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	a := im.Levels[0].Array
	b := make([]byte, mem.Product(append(a.Shape(), a.DType().Size())...))
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return b
}

// TestOpen finds the same image by any name of its file.
func TestOpen(t *testing.T) {
	path := tiffcorpus.Write(t, "aperio_like.svs")
	want, label := pixels(t, path), pixels(t, path+"/label")
	if len(label) != 3*40*60 {
		t.Errorf("the label has %d bytes", len(label))
	}
	plain := filepath.Join(filepath.Dir(path), "no extension")
	if err := os.Rename(path, plain); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{plain, "file://" + plain, plain + "/"} {
		if got := pixels(t, s); !bytes.Equal(got, want) {
			t.Errorf("%s: other pixels", s)
		}
	}
	for _, s := range []string{plain + "/nothing", plain + "/pages/7", filepath.Dir(plain) + "/absent.tif"} {
		st, key, err := images.Open(t.Context(), s)
		if err == nil {
			_, err = zarr.Open(t.Context(), st, key)
			st.Close()
		}
		if err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestOpenFar reads TIFF files from a server, by requests for ranges.
func TestOpenFar(t *testing.T) {
	data := tiffcorpus.Bytes(t, "aperio_like.svs")
	want := pixels(t, tiffcorpus.Write(t, "aperio_like.svs"))
	var whole, absent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "scan.svs") && !strings.HasSuffix(r.URL.Path, "signed") {
			absent.Add(1)
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			whole.Add(1)
		}
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(data))
	}))
	defer s.Close()
	for _, name := range []string{"/data/scan.svs", "/data/scan.svs?token=x", "/signed?X-Amz-Signature=abc"} {
		if got := pixels(t, s.URL+name); !bytes.Equal(got, want) {
			t.Errorf("%s: other pixels", name)
		}
	}
	if len(pixels(t, s.URL+"/data/scan.svs/label")) != 3*40*60 {
		t.Error("the label has another size")
	}
	if whole.Load() > 0 || absent.Load() > 0 {
		t.Errorf("%d requests for whole files, %d for others", whole.Load(), absent.Load())
	}
	// what looks like Zarr is not asked for as a file
	st, _, err := images.Open(t.Context(), s.URL+"/image.ome.zarr", store.Retry(1, 0))
	if err != nil || absent.Load() > 0 {
		t.Errorf("%v, %d requests", err, absent.Load())
	}
	st.Close()
	if _, _, err := images.Open(t.Context(), s.URL+"/absent.tif", store.Retry(1, 0)); err == nil || !strings.Contains(err.Error(), "absent.tif") {
		t.Errorf("absent.tif: %v", err)
	}
}

// TestCZI reads a CZI file by its path, from a server, by ranges of which several are on their way, and from a bucket.
func TestCZI(t *testing.T) {
	const name = "mosaic_gaps_c2.czi"
	path, data := czicorpus.Write(t, name), czicorpus.Bytes(t, name)
	want := pixels(t, path)
	if len(want) != 2*2*80*85 {
		t.Errorf("%d bytes of pixels", len(want))
	}
	var whole, ranges atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			whole.Add(1)
		}
		ranges.Add(1)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(data))
	}))
	defer s.Close()
	if got := pixels(t, s.URL+"/data/scan.czi"); !bytes.Equal(got, want) {
		t.Error("other pixels from a server")
	}
	if whole.Load() > 0 || ranges.Load() > 40 {
		t.Errorf("%d requests, %d of them for the whole file", ranges.Load(), whole.Load())
	}
	if len(pixels(t, s.URL+"/data/scan.czi/slide")) != len(want) {
		t.Error("the slide has another size")
	}
	server := s3emu.Start(t)
	server.Use(t)
	bucket, err := store.S3(t.Context(), "s3://"+s3emu.Bucket+"/slides/")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if err := bucket.Put(t.Context(), "scan.czi", data); err != nil {
		t.Fatal(err)
	}
	if got := pixels(t, "s3://"+s3emu.Bucket+"/slides/scan.czi"); !bytes.Equal(got, want) {
		t.Error("other pixels from a bucket")
	}
	for _, how := range []store.Reading{store.ReadMapped, store.ReadDirect} {
		st, key, err := images.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		st, ok, err := images.ReadBy(t.Context(), st, path, how)
		if errors.Is(err, store.ErrNoDirect) {
			continue
		}
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		im, err := ngff.Open(t.Context(), st, key)
		if err != nil {
			t.Fatal(err)
		}
		a := im.Levels[0].Array
		got := make([]byte, len(want))
		if err := a.Read(t.Context(), a.Bounds(), got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("other pixels, or %v", err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCancel checks that an opened file's reads end with their context.
func TestCancel(t *testing.T) {
	st, key, err := images.Open(t.Context(), tiffcorpus.Write(t, "zstd_u2_tile.tif"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	im, err := ngff.Open(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a := im.Levels[0].Array
	if err := a.Read(ctx, a.Bounds(), make([]byte, 2*50*70)); err == nil {
		t.Error("read with a context that had ended")
	}
}

// TestFile tells image files from all else.
func TestFile(t *testing.T) {
	path := tiffcorpus.Write(t, "size_1x1.tif")
	other := filepath.Join(t.TempDir(), "x.tif")
	if err := os.WriteFile(other, []byte("II"), 0o666); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]bool{path: true, path + "/pages/0": true, "file://" + path: true, other: false, t.TempDir(): false, "absent": false, "ftp://host/x.tif": false} {
		st, _, err := images.File(t.Context(), s)
		if (st != nil) != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", s, st, err, want)
		}
		if st != nil {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOpenBucket reads a TIFF file from a bucket.
func TestOpenBucket(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	bucket, err := store.S3(t.Context(), "s3://"+s3emu.Bucket+"/slides/")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if err := bucket.Put(t.Context(), "scan.svs", tiffcorpus.Bytes(t, "aperio_like.svs")); err != nil {
		t.Fatal(err)
	}
	if got := pixels(t, "s3://"+s3emu.Bucket+"/slides/scan.svs"); !bytes.Equal(got, pixels(t, tiffcorpus.Write(t, "aperio_like.svs"))) {
		t.Error("other pixels")
	}
}

// TestReadBy reads the same pixels of a file by every way, and leaves stores alone that have no files of their own.
func TestReadBy(t *testing.T) {
	path := tiffcorpus.Write(t, "aperio_like.svs")
	want := pixels(t, path)
	for _, how := range []store.Reading{store.ReadMapped, store.ReadDirect} {
		for _, s := range []string{path, "file://" + path, path + "/0"} {
			st, key, err := images.Open(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			st, ok, err := images.ReadBy(t.Context(), st, s, how)
			if errors.Is(err, store.ErrNoDirect) {
				continue
			}
			if err != nil || !ok {
				t.Fatalf("%s: %v %v", s, ok, err)
			}
			a, err := zarr.OpenArray(t.Context(), st, cmp.Or(key, "0"))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			if err := a.Read(t.Context(), a.Bounds(), got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: other pixels, or %v", s, err)
			}
			a.Close()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	zip, err := store.Zip(filepath.Join("..", "..", "tests", "golden", "inputs", "m_u8_v3raw.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zip.Close()
	if st, ok, err := images.ReadBy(t.Context(), zip, "m_u8_v3raw.zip", store.ReadMapped); ok || err != nil || st != store.Store(zip) {
		t.Errorf("a zip file: %v %v", ok, err)
	}
}
