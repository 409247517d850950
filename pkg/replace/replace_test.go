package replace

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/hiddenname"
	"strata/pkg/host"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

var bg = context.Background()

// image writes an image of two levels, and further arrays that strata's record may name.
func image(t *testing.T, format int, separator string, record string, others ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image.ome.zarr")
	st := store.Folder(dir)
	attrs := map[string]any{}
	multiscales := []any{map[string]any{"version": "0.4", "axes": []any{map[string]any{"name": "y"}, map[string]any{"name": "x"}},
		"datasets": []any{map[string]any{"path": "0"}, map[string]any{"path": "more/1"}}}}
	if format == 3 {
		attrs["ome"] = map[string]any{"version": "0.5", "multiscales": multiscales}
	} else {
		attrs["multiscales"] = multiscales
	}
	if record != "" {
		attrs["strata"] = map[string]any{"program": "test", "nodes": strings.Split(record, " ")}
	}
	if _, err := zarr.CreateGroup(bg, st, "", format, attrs); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"0", "more/1"}, others...) {
		for above := range parents(name) {
			_, _ = zarr.CreateGroup(bg, st, above, format, nil) // may be there
		}
		a, err := zarr.CreateArray(bg, st, name, zarr.Spec{Format: format, Shape: []int{10, 20}, Chunks: []int{5, 5}, DType: dtype.Uint8, Separator: separator})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Write(bg, a.Bounds(), slices.Repeat([]byte{7}, 200)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// parents are the groups above a node, but for the root.
func parents(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

// put writes a file of a hierarchy; one whose name ends in a slash is a folder, and "NAME -> TARGET" a link.
func put(t *testing.T, dir, name string) {
	t.Helper()
	link, target, isLink := strings.Cut(name, " -> ")
	path := filepath.Join(dir, link)
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	switch {
	case err != nil:
	case isLink:
		err = os.Symlink(target, path)
	case strings.HasSuffix(name, "/"):
		err = os.MkdirAll(path, 0o777)
	default:
		err = os.WriteFile(path, []byte("precious"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a Zarr image has may be replaced; anything else is named.
func TestHierarchy(t *testing.T) {
	gone := hiddenname.Self()
	gone.PID = 1 << 30
	for _, format := range []int{2, 3} {
		for _, separator := range []string{"/", "."} {
			chunk := map[string]string{"2/": "0/9/9", "2.": "0/9.9", "3/": "0/c/9/9", "3.": "0/c.9.9"}[fmt.Sprint(format, separator)]
			for _, extra := range []string{"", ".DS_Store", "0/._0", "more/.nfs0001", "Thumbs.db", ".zmetadata", gone.Name("x", "abc"),
				"photos/", "notes.txt", "0/notes.txt", "0/2024/", "more/2/", "labels/", "labels/zarr.json", "tables/.zgroup", "0/zarr.json.bak",
				chunk, "0/c/0/x", "0/0x/0/0", "link -> 0", "0/link -> /etc/passwd", "c/0/0", ".git/", "0/-1.0", "0/00/0", hiddenname.Self().Name("x", "abc")} {
				t.Run(fmt.Sprint(format, separator, extra), func(t *testing.T) {
					dir := image(t, format, separator, "")
					allowed := extra == "" || store.Litter(filepath.Base(extra)) || strings.HasSuffix(extra, "abc") && !strings.Contains(extra, fmt.Sprintf("-%d-", os.Getpid()))
					if extra != "" {
						put(t, dir, extra)
					}
					if extra == ".zmetadata" && format == 2 {
						allowed = false // it is the group's, and broken
					}
					what, err := Hierarchy(bg, dir)
					if err != nil || (what == "") != allowed {
						t.Fatalf("%q, %v", what, err)
					}
					first, _, _ := strings.Cut(strings.Split(extra, " ")[0], "/")
					if !allowed && !strings.Contains(what, first) {
						t.Errorf("%q does not name %s", what, extra)
					}
				})
			}
		}
	}
}

// A chunk or a document that is something else than a file is foreign, and so is what strata's record does not name.
func TestKindsAndRecord(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		others []string
		change func(dir string) error
		want   string // "": nothing is foreign
	}{
		"named":            {"labels labels/cells labels/cells/0", []string{"labels/cells/0"}, nil, ""},
		"not named":        {"", []string{"labels/cells/0"}, nil, `"labels", which is not part of the image there`},
		"one is not named": {"labels labels/cells labels/cells/0", []string{"labels/cells/0", "labels/mine"}, nil, `"labels/mine", which is not part of the image there`},
		"record of nonsense": {"../0 /etc labels/none", []string{}, func(dir string) error { return os.Mkdir(filepath.Join(dir, "labels"), 0o777) },
			`"labels", which is not part of the image there`},
		"chunk is a link": {"", nil, func(dir string) error {
			return replaceBy(filepath.Join(dir, "0/c/0/0"), func(p string) error { return os.Symlink("/etc/passwd", p) })
		},
			`"0/c/0/0", which is a link`},
		"chunk is a folder": {"", nil, func(dir string) error {
			return replaceBy(filepath.Join(dir, "0/c/0/0"), func(p string) error { return os.Mkdir(p, 0o777) })
		},
			`"0/c/0/0", which is not part of the image there`},
		"level is a link": {"", nil, func(dir string) error {
			if err := os.Rename(filepath.Join(dir, "0"), filepath.Join(dir, "../elsewhere")); err != nil {
				return err
			}
			return os.Symlink("../elsewhere", filepath.Join(dir, "0"))
		}, `"0", which is not part of the image there`},
		"no JSON": {"", nil, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "zarr.json"), []byte("not json"), 0o666)
		}, "no valid Zarr ("},
		"document is a folder": {"", nil, func(dir string) error {
			return replaceBy(filepath.Join(dir, "zarr.json"), func(p string) error { return os.Mkdir(p, 0o777) })
		}, "no readable Zarr ("},
		"no document": {"", nil, func(dir string) error { return os.Remove(filepath.Join(dir, "zarr.json")) }, `"0", and no Zarr`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := image(t, 3, "/", c.record, c.others...)
			if c.change != nil {
				if err := c.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			what, err := Hierarchy(bg, dir)
			if err != nil || c.want == "" && what != "" || !strings.HasPrefix(what, c.want) {
				t.Errorf("%q, %v, want %q", what, err, c.want)
			}
		})
	}
}

func replaceBy(path string, make func(string) error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return make(path)
}

// An empty folder holds nothing foreign; neither does one with what operating systems leave.
func TestEmpty(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", ".DS_Store", "._x"} {
		if name != "" {
			put(t, dir, name)
		}
		if what, err := Hierarchy(bg, dir); what != "" || err != nil {
			t.Errorf("with %q: %q, %v", name, what, err)
		}
	}
	put(t, dir, "._folder/notes")
	if what, err := Hierarchy(bg, dir); what == "" || err != nil {
		t.Errorf("a folder named like litter: %q, %v", what, err)
	}
}

// The keys of a bucket are judged like the files of a folder.
func TestKeys(t *testing.T) {
	dir := image(t, 3, "/", "")
	var keys []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			keys = append(keys, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, extra := range []string{"", "0/", "more/", ".DS_Store", "notes.txt", "photos/a.jpg", "labels/zarr.json", "0/c/7/7", "photos/"} {
		list := func(yield func(string, error) bool) {
			for _, k := range append(slices.Clone(keys), extra) {
				if k != "" && !yield(k, nil) {
					return
				}
			}
		}
		what, err := Keys(bg, store.Folder(dir), list)
		if allowed := slices.Contains([]string{"", "0/", "more/", ".DS_Store"}, extra); err != nil || allowed != (what == "") || !allowed && !strings.Contains(what, extra) {
			t.Errorf("with %q: %q, %v", extra, what, err)
		}
	}
}

// A rule's images, files and folders are looked into; a mount point is foreign whatever its name.
func TestTree(t *testing.T) {
	rule := func(key string, folder bool) Kind {
		switch {
		case key == "image" && folder:
			return Image
		case key == "truth" && folder:
			return Folder
		case key == "truth/list.json" || key == "picture.png":
			return File
		}
		return Foreign
	}
	for name, want := range map[string]string{
		"":                  "",
		"notes":             `"notes", which the program does not write there`,
		"truth/notes":       `"truth/notes", which the program does not write there`,
		"picture.png":       `"picture.png", which is no PNG file`,
		"truth/list.json":   `"truth/list.json", which is no JSON file`,
		"image/notes":       `"image", which holds "notes", which is not part of the image there`,
		"picture.png/":      `"picture.png", which is a folder`,
		"picture.png -> /x": `"picture.png", which is a link`,
	} {
		dir := t.TempDir()
		if err := os.Rename(image(t, 2, ".", ""), filepath.Join(dir, "image")); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			put(t, dir, name)
		}
		if what, err := Tree(bg, dir, rule); what != want || err != nil {
			t.Errorf("with %q: %q, %v, want %q", name, what, err, want)
		}
	}
	for _, path := range []string{"/proc", "/"} {
		if !host.IsMount(path) {
			t.Errorf("%s is no mount point", path)
		}
	}
	if host.IsMount(t.TempDir()) {
		t.Error("a new folder is a mount point")
	}
}

func TestLooksLike(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		alike      bool
	}{
		{"a.png", "\x89PNG\r\n\x1a\n....", true}, {"a.png", "precious", false}, {"a.PNG", "precious", false}, {"a.png", "", true},
		{"a.json", " \n{\"a\": 1}", true}, {"a.json", "\xef\xbb\xbf[1]", true}, {"a.json", "notes", false}, {"a.html", "<!doctype html>", true},
		{"a.tif", "II*\x00", true}, {"a.tif", "II", false}, {"a.tfm", "#Insight Transform File V1.0\n", true}, {"README", "anything", true}, {"a.txt", "anything", true},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if what, err := LooksLike(path); err != nil || (what == "") != c.alike {
			t.Errorf("%s of %q: %q, %v", c.name, c.text, what, err)
		}
	}
	path := filepath.Join(dir, "table.txt")
	for text, alike := range map[string]bool{"": true, "id,shift\n1,2\n": true, "id,other": false, "id": false} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if what, err := Any(LooksLike, Begins("table", "id,shift"))(path); err != nil || (what == "") != alike {
			t.Errorf("%q: %q, %v", text, what, err)
		}
	}
}
