package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file; read gives its content, or "" if it is not there.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// hiddenIn lists what is left over in a folder.
func hiddenIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// variants are the ways in which file systems rename.
func variants() map[string]operations {
	unsupported := func(_, _ string) error { return errors.ErrUnsupported }
	return map[string]operations{
		"exchange": {renameNew, exchange},
		"in steps": {renameNewInSteps, unsupported},
	}
}

// start makes a group with a folder "image" and a file "picture" that are written.
func start(t *testing.T, dir string, opt Options, ops operations) *Group {
	t.Helper()
	g := NewGroup(opt)
	g.ops = ops
	folder, err := g.Folder(filepath.Join(dir, "image"), "zarr.json")
	if err != nil {
		t.Fatal(err)
	}
	file, err := g.File(filepath.Join(dir, "picture"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder.Work(), "zarr.json"), "new")
	write(t, filepath.Join(folder.Work(), "c/0"), "chunk")
	write(t, file.Work(), "new picture")
	return g
}

func TestFresh(t *testing.T) {
	for name, ops := range variants() {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprint(name, sync), func(t *testing.T) {
				dir := t.TempDir()
				g := start(t, dir, Options{Sync: sync}, ops)
				if read(filepath.Join(dir, "image/zarr.json")) != "" || read(filepath.Join(dir, "picture")) != "" {
					t.Fatal("an output is there before the commit")
				}
				if err := g.Commit(); err != nil {
					t.Fatal(err)
				}
				g.Abort()
				if read(filepath.Join(dir, "image/c/0")) != "chunk" || read(filepath.Join(dir, "picture")) != "new picture" {
					t.Error("outputs are not in place")
				}
				if left := hiddenIn(t, dir); left != nil {
					t.Errorf("left over: %q", left)
				}
				if _, err := g.File(filepath.Join(dir, "late")); err == nil {
					t.Error("an output was started after the commit")
				}
			})
		}
	}
}

func old(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "image/zarr.json"), "old")
	write(t, filepath.Join(dir, "image/old"), "old chunk")
	write(t, filepath.Join(dir, "picture"), "old picture")
	return dir
}

func mustBeOld(t *testing.T, dir string) {
	t.Helper()
	if read(filepath.Join(dir, "image/zarr.json")) != "old" || read(filepath.Join(dir, "image/old")) != "old chunk" ||
		read(filepath.Join(dir, "picture")) != "old picture" || read(filepath.Join(dir, "image/c/0")) != "" {
		t.Error("the old outputs are not as they were")
	}
	if left := hiddenIn(t, dir); left != nil {
		t.Errorf("left over: %q", left)
	}
}

func TestReplace(t *testing.T) {
	for name, ops := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := old(t)
			g := start(t, dir, Options{Overwrite: true}, ops)
			if err := g.Commit(); err != nil {
				t.Fatal(err)
			}
			if read(filepath.Join(dir, "image/zarr.json")) != "new" || read(filepath.Join(dir, "image/old")) != "" || read(filepath.Join(dir, "picture")) != "new picture" {
				t.Error("outputs are not replaced as a whole")
			}
			if left := hiddenIn(t, dir); left != nil {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

func TestAbort(t *testing.T) {
	dir := old(t)
	g := start(t, dir, Options{Overwrite: true}, operations{renameNew, exchange})
	g.Abort()
	g.Abort()
	mustBeOld(t, dir)
	if err := g.Commit(); err != nil {
		t.Error(err)
	}
	mustBeOld(t, dir)
}

// A commit that fails at any of its renames leaves everything as it was.
func TestCommitFails(t *testing.T) {
	boom := errors.New("boom")
	for name, ops := range variants() {
		for _, existing := range []bool{false, true} {
			for failing := 1; ; failing++ {
				dir := t.TempDir()
				if existing {
					dir = old(t)
				}
				calls := 0
				count := func(op func(a, b string) error) func(a, b string) error {
					return func(a, b string) error {
						calls++
						if calls == failing {
							return boom
						}
						return op(a, b)
					}
				}
				g := start(t, dir, Options{Overwrite: true}, operations{count(ops.renameNew), count(ops.exchange)})
				err := g.Commit()
				if err == nil {
					if failing == 1 {
						t.Errorf("%s: no rename was made", name)
					}
					break
				}
				if !errors.Is(err, boom) {
					t.Errorf("%s, rename %d: %v", name, failing, err)
				}
				if existing {
					mustBeOld(t, dir)
				} else if entries, _ := os.ReadDir(dir); len(entries) > 0 {
					t.Errorf("%s, rename %d: left over: %v", name, failing, entries)
				}
			}
		}
	}
}

// Without Overwrite, what another process put in place meanwhile stays.
func TestAnotherWasFirst(t *testing.T) {
	for name, ops := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g := start(t, dir, Options{}, ops)
			write(t, filepath.Join(dir, "image/zarr.json"), "other")
			if err := g.Commit(); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "image exists now") {
				t.Errorf("error %v", err)
			}
			if read(filepath.Join(dir, "image/zarr.json")) != "other" || read(filepath.Join(dir, "picture")) != "" {
				t.Error("the other's output did not stay alone")
			}
			if left := hiddenIn(t, dir); left != nil {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// An output that vanishes while it shall be replaced is no obstacle.
func TestVanishes(t *testing.T) {
	dir := old(t)
	ops := operations{renameNew, func(a, b string) error {
		if err := os.RemoveAll(b); err != nil {
			return err
		}
		return exchange(a, b)
	}}
	g := start(t, dir, Options{Overwrite: true}, ops)
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	if read(filepath.Join(dir, "image/zarr.json")) != "new" {
		t.Error("not in place")
	}
}

func TestKinds(t *testing.T) {
	dir := old(t)
	for _, c := range []struct {
		kind  error
		start func(g *Group) error
	}{
		{ErrExists, func(g *Group) error {
			g.opt.Overwrite = false
			_, err := g.Folder(filepath.Join(dir, "image"))
			return err
		}},
		{ErrNotOurs, func(g *Group) error { _, err := g.Folder(filepath.Join(dir, "image"), ".zgroup"); return err }},
		{ErrNotOurs, func(g *Group) error { _, err := g.Folder(filepath.Join(dir, "picture")); return err }},
		{ErrNotOurs, func(g *Group) error { _, err := g.File(filepath.Join(dir, "image")); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.File(""); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.Folder("/"); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.File(filepath.Join(dir, "picture/x")); return err }},
		{ErrPlace, func(g *Group) error {
			if err := g.Reserve(filepath.Join(dir, "picture")); err != nil {
				return err
			}
			if err := g.Input(filepath.Join(dir, "image")); err != nil {
				return err
			}
			return g.Input(filepath.Join(dir, "picture"))
		}},
	} {
		g := NewGroup(Options{Overwrite: true})
		out, err := g.File(filepath.Join(dir, "image2"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Create(); err != nil {
			t.Fatal(err)
		}
		err = c.start(g)
		if !errors.Is(err, c.kind) {
			t.Errorf("want %v, got: %v", c.kind, err)
		}
		g.Abort()
		mustBeOld(t, dir)
	}
}

// Remains of dead processes of this host go; all others stay.
func TestRemains(t *testing.T) {
	me := self()
	if me.start == "0" || me.namespace == "0" {
		t.Skip("the system does not tell when a process started")
	}
	const nobody = 1 << 30 // above the largest process id
	for _, c := range []struct {
		name  string
		id    identity
		stays bool
	}{
		{"dead", identity{me.host, nobody, "abc", me.namespace}, false},
		{"its id is reused", identity{me.host, me.pid, "1", me.namespace}, false},
		{"alive", me, true},
		{"another host", identity{"elsewhere-1", nobody, "abc", me.namespace}, true},
		{"another container", identity{me.host, nobody, "abc", "1"}, true},
	} {
		dir := t.TempDir()
		for _, base := range []string{"image", "other"} {
			write(t, filepath.Join(dir, c.id.sibling(base, "xyz"), "c/0"), "half")
		}
		var warned []string
		g := NewGroup(Options{Warn: func(f string, a ...any) { warned = append(warned, fmt.Sprintf(f, a...)) }})
		if _, err := g.Folder(filepath.Join(dir, "image")); err != nil {
			t.Fatal(err)
		}
		g.Abort()
		left := hiddenIn(t, dir)
		if c.stays && len(left) != 2 || !c.stays && len(left) != 0 {
			t.Errorf("%s: left over: %q", c.name, left)
		}
		if want := c.stays && c.id != me; (len(warned) == 1) != want {
			t.Errorf("%s: warnings %q", c.name, warned)
		}
	}
}

// A process died between setting the old output aside and putting the new one
// in place: the next run puts the old one back.
func TestAsideIsPutBack(t *testing.T) {
	me := self()
	dead := identity{me.host, 1 << 30, "abc", me.namespace}
	for _, missing := range []bool{true, false} {
		dir := old(t)
		image, aside := filepath.Join(dir, "image"), filepath.Join(dir, dead.sibling("image", "xyz")+asideSuffix)
		if missing {
			if err := os.Rename(image, aside); err != nil {
				t.Fatal(err)
			}
		} else {
			write(t, filepath.Join(aside, "zarr.json"), "older")
		}
		g := NewGroup(Options{})
		if _, err := g.Folder(image); !errors.Is(err, ErrExists) {
			t.Errorf("missing %v: %v", missing, err)
		}
		g.Abort()
		mustBeOld(t, dir)
	}
}

func TestRenameNewInSteps(t *testing.T) {
	dir := t.TempDir()
	path := func(n string) string { return filepath.Join(dir, n) }
	write(t, path("file"), "a")
	write(t, path("taken"), "b")
	write(t, path("folder/x"), "c")
	write(t, path("full/x"), "d")
	for _, c := range []struct {
		from, to string
		want     error
	}{
		{"file", "taken", fs.ErrExist}, {"folder", "full", fs.ErrExist}, {"folder", "taken", fs.ErrExist},
		{"nothing", "new", fs.ErrNotExist}, {"file", "new", nil}, {"folder", "new2", nil},
	} {
		if err := renameNewInSteps(path(c.from), path(c.to)); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	if read(path("new")) != "a" || read(path("new2/x")) != "c" || read(path("taken")) != "b" || read(path("full/x")) != "d" || read(path("file")) != "" {
		t.Error("wrong content")
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
		id := identity{host, pid, "1a", "2b"}
		name := id.sibling(base, random)
		if len(name)+len(asideSuffix) > 255 {
			t.Fatalf("name of %d bytes", len(name))
		}
		wrote, got, aside, ok := parseSibling(name)
		if random == "" {
			if ok {
				t.Fatalf("%q was taken for ours", name)
			}
			return
		}
		if !ok || aside || got.pid != pid || !strings.HasPrefix(base, wrote) && !strings.Contains(base, ".strata-") {
			t.Fatalf("%q: %q %+v %v %v", name, wrote, got, aside, ok)
		}
	})
}
