package hiddenname

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func folder(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

func missing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return Missing(names)
}

// What is kept is found under its name, and below it, while its successor is there.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	elsewhere := Process{"elsewhere", 17, "abc", "1"}
	image := filepath.Join(dir, "image")
	if Find(image) != nil || Find(filepath.Join(image, "0")) != nil || Find("/none/at/all") != nil {
		t.Error("found what is not there")
	}
	twin := folder(t, dir, elsewhere.Name("image", "xyz"))
	aside := folder(t, twin+AsideSuffix, "0")
	folder(t, dir, elsewhere.Name("other", "xyz")) // is being written
	k := Find(filepath.Join(image, "0"))
	if k == nil || k.Path != aside || k.Writer != elsewhere || !k.Holds() {
		t.Fatalf("found %+v", k)
	}
	if Find(filepath.Join(image, "1")) != nil || Find(filepath.Join(dir, "other")) != nil {
		t.Error("found what is not kept")
	}
	if got := missing(t, dir); !slices.Equal(got, []string{"image"}) {
		t.Errorf("names %q", got)
	}
	if err := os.Rename(twin, image); err != nil {
		t.Fatal(err)
	}
	if k.Holds() || Find(image) != nil || missing(t, dir) != nil {
		t.Error("kept although it was replaced")
	}
	// the new one was removed by hand: what is left of the old one is rubbish
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if Find(image) != nil || missing(t, dir) != nil {
		t.Error("rubbish was taken for an output")
	}
}

func TestFindsTheNewest(t *testing.T) {
	dir := t.TempDir()
	var twins []string
	for _, host := range []string{"a", "b", "c"} {
		twins = append(twins, folder(t, dir, Process{host, 17, "abc", "1"}.Name("image", "xyz")))
		folder(t, twins[len(twins)-1]+AsideSuffix)
	}
	info, err := os.Stat(twins[1])
	if err == nil {
		later := info.ModTime().AddDate(1, 0, 0)
		err = os.Chtimes(twins[1], later, later)
	}
	if err != nil {
		t.Fatal(err)
	}
	if k := Find(filepath.Join(dir, "image")); k == nil || k.Writer.Host != "b" {
		t.Errorf("found %+v", k)
	}
}

// A name that does not fit into a sibling's is recognised by its beginning.
func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("a", 230)
	folder(t, folder(t, dir, Process{"h", 17, "abc", "1"}.Name(long, "xyz"))+AsideSuffix)
	if k := Find(filepath.Join(dir, long)); k == nil {
		t.Error("not found")
	}
	if Find(filepath.Join(dir, "b"+long)) != nil || missing(t, dir) != nil {
		t.Error("a name that is not known was made up")
	}
}

func FuzzSibling(f *testing.F) {
	f.Add("out.ome.zarr", "node-07.cluster", 17, "abcdefgh")
	f.Add(".strata-x-1-a.b.c", "h-1-2", 1, "0")
	f.Add(strings.Repeat("ü", 200), "h", 99999999, "zz")
	f.Fuzz(func(t *testing.T, base, host string, pid int, random string) {
		if base == "" || strings.ContainsAny(base, "/\n\x00") || host == "" || len(host) > 64 || strings.ContainsAny(host, "/\n\x00") || pid <= 0 || len(random) > 16 {
			t.Skip()
		}
		for _, r := range random {
			if r < '0' || r > '9' && r < 'a' || r > 'z' {
				t.Skip()
			}
		}
		id := Process{host, pid, "1a", "2b"}
		name := id.Name(base, random)
		if len(name)+len(AsideSuffix) > 255 {
			t.Fatalf("name of %d bytes", len(name))
		}
		h, ok := Parse(name)
		if random == "" {
			if ok {
				t.Fatalf("%q was taken for ours", name)
			}
			return
		}
		if !ok || h.Aside || h.Writer.PID != pid || !h.Of(base) && !strings.Contains(base, ".strata-") {
			t.Fatalf("%q: %+v %v", name, h, ok)
		}
		if old, ok := Parse(name + AsideSuffix); !ok || !old.Aside || old.Base != h.Base || old.Cut() != h.Cut() {
			t.Fatalf("%q: %+v %v", name+AsideSuffix, old, ok)
		}
	})
}
