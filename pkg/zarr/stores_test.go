package zarr_test

import (
	"archive/zip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

// The corpus' arrays read the same out of a zip file and over HTTP.
func TestCorpusFromOtherStores(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(corpus.Dir(t))))
	defer server.Close()
	for _, c := range corpus.Cases(t) {
		// one of many kinds: each costs requests
		if c.Kind != "array" || c.Must != "read" || !strings.Contains(c.ID, "shard") && !strings.Contains(c.ID, "order") && !strings.Contains(c.ID, "fill_0") {
			continue
		}
		want := corpus.Npy(t, c.Expected)
		z, err := store.Zip(zipFolder(t, c.Dir(t)))
		if err != nil {
			t.Fatal(err)
		}
		web := store.HTTP(server.URL + "/" + c.Path)
		for _, st := range []store.Store{z, web} {
			data, stage, err := readAll(t, c, st)
			if err != nil {
				t.Errorf("%s: %s: %v", c.ID, stage, err)
			} else if d := want.Diff(data); d != "" {
				t.Errorf("%s: %s", st.Location(""), d)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// zipFolder puts a folder's files into a zip file, every other one deflated.
func zipFolder(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	n := 0
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		n++
		m, err := w.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(rel), Method: []uint16{zip.Store, zip.Deflate}[n%2]})
		if err == nil {
			_, err = m.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
