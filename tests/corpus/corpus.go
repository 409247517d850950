// Package corpus gives tests the Zarr conformance corpus of this folder: 439
// arrays, groups and OME-Zarr images that other programs wrote, with the values
// that must be read, and broken ones that must be refused. README.md describes it.
//
//	for _, c := range corpus.Cases(t) {
//		a, err := zarr.OpenArray(ctx, store.Folder(c.Dir(t)), "")
//		want := corpus.Npy(t, c.Expected)
//	}
package corpus

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"strata/tests/repo"
)

// Case is an entry of manifest.json. README.md explains which fields each kind has, and what they mean.
type Case struct {
	ID             string   `json:"id"`
	Path           string   `json:"path"` // below Dir
	Kind           string   `json:"kind"` // array, group, ome-image, ome-plate
	Format         int      `json:"zarr_format"`
	NGFF           string   `json:"ngff"`
	Expected       string   `json:"expected"`        // .npy below Dir
	ExpectedRegion [][2]int `json:"expected_region"` // start and stop per dimension
	Shape          []int    `json:"shape"`
	DType          string   `json:"dtype"`
	Features       []string `json:"features"`
	Must           string   `json:"must"`  // read, accept, reject, either
	Stage          string   `json:"stage"` // open, read, read-full, ome
	Behaviour      string   `json:"behaviour"`

	Members    []string                              `json:"members"`
	Arrays     map[string]string                     `json:"arrays"` // path in the group to .npy
	Attributes map[string]map[string]json.RawMessage `json:"attributes"`

	Axes []struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Unit string `json:"unit"`
	} `json:"axes"`
	MultiscaleTransform json.RawMessage   `json:"multiscale_transform"`
	Datasets            []Dataset         `json:"datasets"`
	Omero               json.RawMessage   `json:"omero"`
	Labels              json.RawMessage   `json:"labels"`
	Plate               json.RawMessage   `json:"plate"`
	Images              map[string]string `json:"images"` // path of an array to .npy

	Raw json.RawMessage `json:"-"` // the whole entry
}

// Dataset is one level of an image's pyramid.
type Dataset struct {
	Path        string    `json:"path"`
	Shape       []int     `json:"shape"`
	DType       string    `json:"dtype"`
	Scale       []float64 `json:"scale"`
	Translation []float64 `json:"translation"`
	Expected    string    `json:"expected"`
}

// here returns the folder of this source file.
func here() string {
	return repo.Path("tests", "corpus")
}

// Cases returns the entries of the corpus.
func Cases(t testing.TB) []Case {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(here(), "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Count int
		Cases []json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("manifest.json: %v", err)
	}
	cases := make([]Case, len(m.Cases))
	for i, raw := range m.Cases {
		if err := json.Unmarshal(raw, &cases[i]); err != nil {
			t.Fatalf("manifest.json: case %d: %v", i, err)
		}
		cases[i].Raw = raw
	}
	if len(cases) != m.Count || len(cases) == 0 {
		t.Fatalf("manifest.json: %d cases, its count says %d", len(cases), m.Count)
	}
	return cases
}

// Dir returns the folder of the case's array, group or image.
func (c Case) Dir(t testing.TB) string {
	t.Helper()
	return filepath.Join(Dir(t), filepath.FromSlash(c.Path))
}

var unpacked struct {
	sync.Mutex
	dir string
}

// Dir returns a folder with the unpacked corpus: v2, v3, ome, neg, field, expected. It is created once per process;
// tests must not change it, and [Main] removes it.
func Dir(t testing.TB) string {
	t.Helper()
	unpacked.Lock()
	defer unpacked.Unlock()
	if unpacked.dir != "" {
		return unpacked.dir
	}
	dir, err := os.MkdirTemp("", "strata-corpus-")
	if err != nil {
		t.Fatal(err)
	}
	unpacked.dir = dir
	for _, name := range []string{"v2", "v3", "ome", "neg", "expected", "field"} {
		if err := unzip(filepath.Join(here(), name+".zip"), dir); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Main runs the tests, removes the unpacked corpus and exits. TestMain of a package that uses the corpus calls it.
func Main(m *testing.M) {
	code := m.Run()
	unpacked.Lock()
	if unpacked.dir != "" {
		if err := os.RemoveAll(unpacked.dir); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func unzip(file, dir string) (err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer z.Close()
	for _, f := range z.File {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("%s: %q leads out of the archive", file, f.Name)
		}
		path := filepath.Join(dir, f.Name)
		if f.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o777)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = extract(f, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func extract(f *zip.File, path string) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
