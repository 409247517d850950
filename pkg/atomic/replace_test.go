package atomic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// without returns a function that describes an entry of a folder by its name.
func without(name string) Foreign {
	return func(dir string) (string, error) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name + ", which is a pity", nil
		}
		return "", nil
	}
}

// What the check finds stays, whenever it comes: before the run, while it works, and in the last moment.
func TestForeign(t *testing.T) {
	for name, ops := range variants() {
		for _, when := range []string{"before", "meanwhile", "at the last moment"} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := old(t)
				put := func() { write(t, filepath.Join(dir, "image/notes"), "precious") }
				last := ops
				if when == "at the last moment" {
					last.renameNew = func(from, to string) error {
						if once := put; strings.HasSuffix(to, "/image") {
							put = func() {}
							once()
						}
						return ops.renameNew(from, to)
					}
				}
				if when == "before" {
					put()
				}
				g := NewGroup(Options{Overwrite: true})
				g.ops = last
				out, err := g.Folder(filepath.Join(dir, "image"), without("notes"))
				if when != "before" {
					if err != nil {
						t.Fatal(err)
					}
					write(t, filepath.Join(out.Work(), "zarr.json"), "new")
					if when == "meanwhile" {
						put()
					}
					err = g.Commit()
				}
				if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "image holds notes, which is a pity: not replaced") {
					t.Errorf("error %v", err)
				}
				if read(filepath.Join(dir, "image/notes")) != "precious" {
					t.Error("the foreign file is gone")
				}
				g.Abort()
				mustBeOld(t, dir)
			})
		}
	}
}

// A replaced output keeps the mode of the old one; while it is written it is not more open.
func TestModeIsKept(t *testing.T) {
	for name, ops := range variants() {
		for _, mode := range []fs.FileMode{0o700, 0o750, 0o500, 0o755, 0o775 | fs.ModeSetgid, 0o770 | fs.ModeSetgid | fs.ModeSticky} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				dir := old(t)
				image, picture := filepath.Join(dir, "image"), filepath.Join(dir, "picture")
				for path, m := range map[string]fs.FileMode{image: mode, picture: mode & 0o666} {
					if err := os.Chmod(path, m); err != nil {
						t.Fatal(err)
					}
				}
				g := NewGroup(Options{Overwrite: true})
				g.ops = ops
				outs := map[string]*Output{}
				for _, start := range []func() (*Output, error){
					func() (*Output, error) { return g.Folder(image, without("notes")) },
					func() (*Output, error) { return g.File(picture, nil) },
				} {
					o, err := start()
					if err != nil {
						t.Fatal(err)
					}
					outs[o.Path()] = o
					info, err := os.Stat(o.Work())
					if err != nil || info.Mode().Perm()&^(mode.Perm()|0o700) != 0 {
						t.Errorf("%s is open to more while it is written: %v %v", o.Path(), info.Mode(), err)
					}
				}
				if err := os.Remove(outs[picture].Work()); err != nil { // as encoders do that make the file anew
					t.Fatal(err)
				}
				write(t, outs[picture].Work(), "new picture")
				if err := os.Mkdir(filepath.Join(outs[image].Work(), "0"), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := g.Commit(); err != nil {
					t.Fatal(err)
				}
				mask := fs.ModePerm | fs.ModeSetgid | fs.ModeSticky
				for path, want := range map[string]fs.FileMode{image: mode, picture: mode & 0o666} {
					if info, err := os.Stat(path); err != nil || info.Mode()&mask != want {
						t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), want, err)
					}
				}
				if info, err := os.Stat(filepath.Join(image, "0")); err != nil || info.Mode()&fs.ModeSetgid != mode&fs.ModeSetgid {
					t.Errorf("a folder inside does not inherit the set-group bit: %v %v", info.Mode(), err)
				}
			})
		}
	}
}

// Root keeps the owner, too.
func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := old(t)
	for _, name := range []string{"image", "picture"} {
		if err := os.Chown(filepath.Join(dir, name), 1234, 4321); err != nil {
			t.Fatal(err)
		}
	}
	g := start(t, dir, Options{Overwrite: true}, variants()["exchange"])
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"image", "picture"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if a := accessOf(info); a.uid != 1234 || a.gid != 4321 {
			t.Errorf("%s belongs to %d:%d", name, a.uid, a.gid)
		}
	}
}

// An output that is absent leaves no file where there was none, and gives the old one back if the run fails.
func TestAbsentIsTakenBack(t *testing.T) {
	for name, ops := range variants() {
		t.Run(name, func(t *testing.T) {
			dir := old(t)
			boom := errors.New("boom")
			failing := ops
			failing.renameNew = func(from, to string) error {
				if filepath.Base(to) == "image" {
					return boom
				}
				return ops.renameNew(from, to)
			}
			g := NewGroup(Options{Overwrite: true})
			g.ops = failing
			for _, file := range []string{"picture", "never"} {
				out, err := g.File(filepath.Join(dir, file), nil)
				if err != nil {
					t.Fatal(err)
				}
				out.Absent()
			}
			if _, err := g.Folder(filepath.Join(dir, "image"), without("notes")); err != nil {
				t.Fatal(err)
			}
			if err := g.Commit(); !errors.Is(err, boom) {
				t.Errorf("error %v", err)
			}
			mustBeOld(t, dir)
			if _, err := os.Lstat(filepath.Join(dir, "never")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file appeared: %v", err)
			}
		})
	}
}
