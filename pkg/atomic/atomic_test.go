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
		"exchange": {renameNew, exchange, os.Rename},
		"in steps": {renameNewInSteps, unsupported, os.Rename},
	}
}

// start makes a group with a folder "image" and a file "picture" that are written.
func start(t *testing.T, dir string, opt Options, ops operations) *Group {
	t.Helper()
	g := NewGroup(opt)
	g.ops = ops
	folder, err := g.Folder(filepath.Join(dir, "image"), without("notes"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := g.File(filepath.Join(dir, "picture"), nil)
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
				if _, err := g.File(filepath.Join(dir, "late"), nil); err == nil {
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

// An absent output takes what lies in its place with it, once the others are in theirs.
func TestAbsent(t *testing.T) {
	for name, ops := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := old(t)
			g := start(t, dir, Options{Overwrite: true}, ops)
			g.Outputs()[0].Absent()
			if err := g.Commit(); err != nil {
				t.Fatal(err)
			}
			gone := g.Outputs()[0].Path()
			if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", gone, err)
			}
			if read(filepath.Join(dir, "image/zarr.json")) == "old" || read(filepath.Join(dir, "picture")) == "old picture" {
				t.Error("the other output is not replaced")
			}
			if left := hiddenIn(t, dir); left != nil {
				t.Errorf("left over: %q", left)
			}
		})
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
	g := start(t, dir, Options{Overwrite: true}, operations{renameNew, exchange, os.Rename})
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
				g := start(t, dir, Options{Overwrite: true}, operations{count(ops.renameNew), count(ops.exchange), count(ops.rename)})
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
	}, os.Rename}
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
			_, err := g.Folder(filepath.Join(dir, "image"), nil)
			return err
		}},
		{ErrNotOurs, func(g *Group) error { _, err := g.Folder(filepath.Join(dir, "image"), without("old")); return err }},
		{ErrNotOurs, func(g *Group) error { _, err := g.Folder(filepath.Join(dir, "picture"), nil); return err }},
		{ErrNotOurs, func(g *Group) error { _, err := g.File(filepath.Join(dir, "image"), nil); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.File("", nil); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.Folder("/", nil); return err }},
		{ErrPlace, func(g *Group) error { _, err := g.File(filepath.Join(dir, "picture/x"), nil); return err }},
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
		out, err := g.File(filepath.Join(dir, "image2"), nil)
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
