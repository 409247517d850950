package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// secret is what lies outside of the folders that are served.
const secret = "nobody may read this"

// image writes an image of 8 × 8 voxels in chunks of 4 × 4 to a folder.
func image(t *testing.T, dir string) {
	t.Helper()
	chain, err := codec.FromFlag("raw", dtype.Uint8, 2)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ngff.Create(ctx, store.Folder(dir), "", ngff.ImageSpec{Shape: []int{8, 8}, Chunks: []int{4, 4}, DType: dtype.Uint8, Codecs: chain,
		Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteTile(ctx, []int{0, 0}, []int{8, 8}, bytes.Repeat([]byte{7}, 64)), w.Close(ctx)); err != nil {
		t.Fatal(err)
	}
}

// folderViewer shows entries of the local file system. It returns the messages that the viewer logs.
func folderViewer(t *testing.T, entries ...Entry) (*Viewer, *[]string) {
	t.Helper()
	said := &[]string{}
	v := New(Options{Overlay: -1, Mem: 1 << 20, Workers: 2, Token: token, Entries: entries, Origins: []string{"https://example.org"},
		Warn: func(format string, args ...any) { *said = append(*said, fmt.Sprintf(format, args...)) },
		Open: func(ctx context.Context, path string) (*ngff.Image, error) {
			return ngff.OpenPresent(ctx, store.Folder(path), "")
		}})
	t.Cleanup(v.Close)
	return v, said
}

// must fails the test unless all went well.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Only an image's documents and chunks are served, from inside of its folder, and nothing that is no file.
func TestStoredInside(t *testing.T) {
	top := t.TempDir()
	dir, named := filepath.Join(top, "a.ome.zarr"), filepath.Join(top, "named")
	image(t, dir)
	label := filepath.Join(dir, "labels", "cells")
	image(t, label)
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	must(t, os.WriteFile(filepath.Join(dir, "labels", "zarr.json"), []byte(`{"zarr_format":3,"node_type":"group"}`), 0o600),
		os.WriteFile(filepath.Join(top, "secret"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(top, "zarr.json"), []byte(secret), 0o600),
		os.WriteFile(at("notes.txt"), []byte(secret), 0o600),
		os.WriteFile(at("0/c/0/9"), []byte(secret), 0o600),
		os.WriteFile(at("0/c/0/0.bak"), []byte(secret), 0o600),
		os.Symlink("a.ome.zarr", named),
		os.Symlink("../..", at("root")), os.Symlink(top, at("labels/top")),
		os.Rename(at("0/c/0/1"), at("0/kept")), os.Symlink("../../kept", at("0/c/0/1")),
		os.Remove(at("0/c/1/0")), os.Symlink("../../../../secret", at("0/c/1/0")),
		os.Remove(at("0/c/1/1")), unix.Mkfifo(at("0/c/1/1"), 0o600),
		os.MkdirAll(at("far"), 0o755), os.Symlink(filepath.Join(top, "zarr.json"), at("far/zarr.json")),
		os.MkdirAll(at("odd"), 0o755), os.Symlink(at("zarr.json"), at("odd/zarr.json")), unix.Mkfifo(at("odd/.zattrs"), 0o600),
		os.Link(filepath.Join(dir, "zarr.json"), at("odd/.zgroup")), os.Symlink(".zmetadata", at("odd/.zmetadata")))
	v, said := folderViewer(t, Entry{Path: named, Name: "named"})
	for _, c := range []struct {
		key  string
		code int
	}{
		{"zarr.json", 200}, {"0/zarr.json", 200}, {"0/c/0/0", 200}, {"labels/zarr.json", 200}, {"labels/cells/0/c/1/1", 200},
		{"0/c/0/1", 200},     // a link inside
		{"odd/.zgroup", 200}, // a hard link is the file itself
		{"0/c/1/0", 403}, {"root/secret/zarr.json", 403}, {"root/zarr.json", 403}, {"far/zarr.json", 403}, {"labels/top/zarr.json", 403},
		{"odd/zarr.json", 403},                 // absolute links are not followed, wherever they lead
		{"0/c/1/1", 404}, {"odd/.zattrs", 404}, // pipes
		{"odd/.zmetadata", 404}, // a link to itself
		{"notes.txt", 404}, {"0/c/0/0.bak", 404}, {"0/kept", 404}, {"0/c/0/9", 404}, {"0/c/00/0", 404}, {"0/c/+0/0", 404}, {"0/c/0", 404}, {"0/c/0/0/0", 404},
		{"0/0/0", 404}, {"0/c.0.0", 404}, {"0/c", 404}, {"0", 404}, {"labels", 404}, {"root", 404}, {"root/secret", 403}, {"root/etc/passwd", 403},
		{"ZARR.JSON", 404}, {"0/C/0/0", 404}, {"zarr.json/", 404}, {"0//zarr.json", 404}, {"../zarr.json", 404}, {"%2e%2e/zarr.json", 404},
		{"..%2fzarr.json", 404}, {"0/..%2f..%2f..%2fzarr.json", 404}, {"%2fetc%2fpasswd", 404}, {"..%5czarr.json", 404},
		{"zarr.json%00", 400}, {"zarr.json%00.txt", 400},
	} {
		for _, origin := range []string{"", "https://example.org"} {
			w := get(t, v, "/zarr/0/"+c.key, "Origin", origin)
			if w.Code != c.code || strings.Contains(w.Body.String(), secret) || w.Code != 200 && strings.Count(w.Body.String(), "\n") > 1 {
				t.Errorf("%s from %q: %d %.200q, want %d", c.key, origin, w.Code, w.Body, c.code)
			}
		}
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], filepath.Join(named, "0/c/1/0")+": is, or lies behind, a link that leads out of the folder: not served") {
		t.Errorf("messages: %q", *said)
	}
	// Whatever has the folder's name by now, served is the one that was opened.
	image(t, filepath.Join(top, "b.ome.zarr"))
	must(t, os.Remove(named), os.Symlink("b.ome.zarr", named), os.WriteFile(filepath.Join(top, "b.ome.zarr/0/c/0/0"), []byte(secret), 0o600))
	if got := body(t, v, "/zarr/0/0/c/0/0"); !bytes.Equal(got, bytes.Repeat([]byte{7}, 16)) {
		t.Errorf("served from another folder: %q", got)
	}
}

// A chunk that becomes a link while it is opened is refused, or served as it was.
func TestStoredExchanged(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a.ome.zarr")
	image(t, dir)
	chunk := filepath.Join(dir, "0/c/0/0")
	must(t, os.WriteFile(filepath.Join(top, "secret"), []byte(secret), 0o600), os.Symlink("../../../../secret", chunk+".link"), os.Link(chunk, chunk+".file"))
	v, _ := folderViewer(t, Entry{Path: dir, Name: "a"})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := []string{".file", ".link"}[i%2]
			var err error
			if from == ".file" {
				err = os.Link(chunk+from, chunk+".new")
			} else {
				err = os.Symlink("../../../../secret", chunk+".new")
			}
			if err := errors.Join(err, os.Rename(chunk+".new", chunk)); err != nil {
				t.Error(err)
				return
			}
			_ = os.Remove(chunk + ".new") // stays if both names were the same file
		}
	}()
	codes := map[int]int{}
	for end := time.Now().Add(10 * time.Second); (codes[200] == 0 || codes[403] == 0) && time.Now().Before(end); {
		for range 300 {
			w := get(t, v, "/zarr/0/0/c/0/0")
			codes[w.Code]++
			if w.Code == 500 {
				t.Log(w.Body)
			}
			if strings.Contains(w.Body.String(), secret) {
				t.Fatal("the link was followed")
			}
		}
	}
	close(stop)
	<-ended
	if len(codes) != 2 || codes[200] == 0 || codes[403] == 0 {
		t.Errorf("answers: %v, want some of 200 and some of 403", codes)
	}
}

// Links that lead out of a folder are not listed, and what becomes one later is not served.
func TestListInside(t *testing.T) {
	top := t.TempDir()
	dir, elsewhere := filepath.Join(top, "results"), filepath.Join(top, "private")
	for _, name := range []string{"a.ome.zarr", "b.ome.zarr"} {
		image(t, filepath.Join(dir, name))
	}
	image(t, filepath.Join(elsewhere, "c.ome.zarr"))
	must(t, os.WriteFile(filepath.Join(elsewhere, "page.html"), []byte(secret), 0o600), os.WriteFile(filepath.Join(dir, "page.html"), []byte("<p>report"), 0o600),
		os.Symlink("../private/c.ome.zarr", filepath.Join(dir, "c.ome.zarr")), os.Symlink(filepath.Join(elsewhere, "page.html"), filepath.Join(dir, "x.html")),
		os.Symlink(elsewhere, filepath.Join(dir, "more")), os.Symlink("a.ome.zarr", filepath.Join(dir, "d.ome.zarr")), os.Symlink("nowhere", filepath.Join(dir, "gone")),
		os.Symlink(elsewhere, filepath.Join(dir, "a.ome.zarr", "more")), // not the list's
		unix.Mkfifo(filepath.Join(dir, "pipe.html"), 0o600))
	local, err := OpenLocal(dir)
	must(t, err)
	f := &Folder{Store: local, Place: func(key string) string { return filepath.Join(dir, key) }, IsImage: func(string) bool { return false }, Pages: true}
	list, _, err := f.Find(ctx, 3, 100)
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	if want := []string{"a.ome.zarr", "b.ome.zarr", "d.ome.zarr", "page.html"}; !slices.Equal(names, want) {
		t.Errorf("listed: %q, want %q", names, want)
	}
	if out := local.Outside(); !slices.Equal(out, []string{filepath.Join(dir, "c.ome.zarr"), filepath.Join(dir, "more"), filepath.Join(dir, "x.html")}) {
		t.Errorf("left out: %q", out)
	}
	v, _ := folderViewer(t, list...)
	if got := body(t, v, "/pages/3"); string(got) != "<p>report" {
		t.Errorf("page: %q", got)
	}
	body(t, v, "/zarr/0/0/zarr.json")
	body(t, v, "/zarr/2/0/zarr.json")
	must(t, os.Remove(filepath.Join(dir, "page.html")), os.Symlink("../private/page.html", filepath.Join(dir, "page.html")),
		os.RemoveAll(filepath.Join(dir, "b.ome.zarr")), os.Symlink("../private/c.ome.zarr", filepath.Join(dir, "b.ome.zarr")))
	for _, address := range []string{"/pages/3", "/zarr/1/0/zarr.json", "/api/images/1"} {
		if w := get(t, v, address); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s: %d %q, want 403", address, w.Code, w.Body)
		}
	}
}

// A listed image that becomes a link while it is opened is refused.
func TestListExchanged(t *testing.T) {
	zip, err := os.ReadFile("../../tests/golden/inputs/m_u16_v3shard.zip")
	must(t, err)
	for _, name := range []string{"a.ome.zarr", "a.zip"} {
		top := t.TempDir()
		dir, private := filepath.Join(top, "results"), filepath.Join(top, name)
		for _, path := range []string{private, filepath.Join(dir, name)} {
			if name == "a.zip" {
				must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, zip, 0o600))
			} else {
				image(t, path)
			}
		}
		local, err := OpenLocal(dir)
		must(t, err)
		v, _ := folderViewer(t, Entry{Path: filepath.Join(dir, name), Name: name, In: local, Key: name})
		v.o.Open = func(ctx context.Context, path string) (*ngff.Image, error) {
			must(t, os.RemoveAll(path), os.Symlink(private, path))
			st, key, err := store.OpenURL(ctx, path)
			must(t, err)
			return ngff.OpenPresent(ctx, st, key)
		}
		if w := get(t, v, "/api/images/0"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %.200q, want 403", name, w.Code, w.Body)
		}
	}
}

// A store that is no folder has no keys but those of the image, either.
func TestStoredKeys(t *testing.T) {
	st := create(t, spec{axes: "yx", shape: []int{8, 8}, chunks: []int{8, 8}, codec: "raw"}, func(i int) uint8 { return uint8(i) })
	must(t, st.Put(ctx, "notes.txt", []byte(secret)), st.Put(ctx, "other/zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`)))
	v := viewer(t, 1<<20, st)
	for key, code := range map[string]int{"zarr.json": 200, "0/c/0/0": 200, "other/zarr.json": 200, "notes.txt": 404, "other/notes.txt": 404, "0/c/0/1": 404} {
		if w := get(t, v, "/zarr/0/"+key); w.Code != code {
			t.Errorf("%s: %d, want %d", key, w.Code, code)
		}
	}
}
