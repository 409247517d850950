package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// linkTo is a symbolic link to dir.
func linkTo(t testing.TB, dir string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// noTemps fails for every hidden file that a writer left below dir.
func noTemps(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if isTemp(filepath.Base(path)) {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTempNames(t *testing.T) {
	for _, name := range []string{"0", "zarr.json", ".zarray", "a.tmp-1", strings.Repeat("n", 255)} {
		temp := tempName(name)
		if !isTemp(temp) || len(temp) > 255 || temp[0] != '.' {
			t.Errorf("tempName(%q) = %q", name, temp)
		}
		if isTemp(name) {
			t.Errorf("%q is taken for a temporary file", name)
		}
	}
	for _, name := range []string{".zarray", ".x.tmp-", ".x.tmp-12", ".x.tmp-12-", ".x.tmp-a-b", "x.tmp-1-2"} {
		if isTemp(name) {
			t.Errorf("%q is taken for a temporary file", name)
		}
	}
}

func TestFolderFollowsLinksAndHidesTemps(t *testing.T) {
	dir := t.TempDir()
	real := Folder(dir)
	for _, key := range []string{"a/b", "c"} {
		if err := real.Put(bg, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"folder": "a", "file": "c", "nowhere": "none"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, tempName("d")), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := Folder(linkTo(t, dir))
	if b, err := s.Get(bg, "folder/b", nil, -1); string(b) != "a/b" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := s.Get(bg, "file", nil, -1); string(b) != "c" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	got, err := s.List(bg, "")
	if want := "[{a true 0 false} {c false 1 false} {file false 1 false} {folder true 0 false} {nowhere false 0 true}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// A link to nothing is lost content and no absent object, wherever it lies, however many absent ones were asked for
// before.
func TestFolderNamesLostContent(t *testing.T) {
	dir := t.TempDir()
	if err := Folder(dir).Put(bg, "a/c/0/0", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"a/c/0/1": "../annex/x", "a/c/1": "gone", "b": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*FolderStore{Folder(dir), Folder(dir, ReadBy(ReadMapped)), Folder(linkTo(t, dir))} {
		for range 2 {
			for _, absent := range []string{"a/c/0/2", "a/c/2/0", "a/d/e/f", "none"} {
				if _, err := s.Get(bg, absent, nil, -1); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", absent, err)
				}
			}
			for lost, want := range map[string]string{
				"a/c/0/1": "is a link to ../annex/x, which", "a/c/1/0": "a/c/1 is a link to gone, which", "b/zarr.json": "b is a link to nowhere, which",
			} {
				_, get := s.Get(bg, lost, nil, -1)
				_, open := s.Open(bg, lost)
				for _, err := range []error{get, open} {
					if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), s.Location(lost)) {
						t.Errorf("%s: %v, want %q", lost, err, want)
					}
				}
			}
		}
	}
	if _, err := Folder(filepath.Join(dir, "b")).List(bg, ""); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store is a link to nothing: %v", err)
	}
}

func TestFolderRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	// without O_NONBLOCK this would wait for a writer
	if _, err := Folder(dir).Get(bg, "pipe", nil, -1); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	if _, err := Folder(filepath.Join(dir, "none")).List(bg, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFileThatShrinks(t *testing.T) {
	dir := t.TempDir()
	s := Folder(dir)
	if err := s.Put(bg, "a", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(bg, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := os.Truncate(filepath.Join(dir, "a"), 300); err != nil {
		t.Fatal(err)
	}
	n, err := o.ReadAt(bg, make([]byte, 500), 100)
	if n != 200 || !errors.Is(err, ErrChanged) || errors.Is(err, io.EOF) {
		t.Errorf("%d, %v; want ErrChanged", n, err)
	}
	if err == nil || !strings.Contains(err.Error(), "1000 bytes when opened and ends after 300") {
		t.Error(err)
	}
	// a writer that replaces the file does not disturb those who have it open
	if err := s.Put(bg, "a", bytes.Repeat([]byte("x"), 1000)); err != nil {
		t.Fatal(err)
	}
	if n, err := o.ReadAt(bg, make([]byte, 300), 0); n != 300 || err != nil {
		t.Error(n, err)
	}
}

func TestNoTempsAreLeft(t *testing.T) {
	dir := t.TempDir()
	s := Folder(dir)
	if err := s.Put(bg, "folder/x", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(bg, "folder", []byte("x")); err == nil {
		t.Error("Put over a folder succeeded")
	}
	o, err := s.Create(bg, "folder")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err == nil {
		t.Error("Commit over a folder succeeded")
	}
	ctx, cancel := context.WithCancel(bg)
	if o, err = s.Create(ctx, "y"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := o.Abort(); err != nil {
		t.Error(err)
	}
	noTemps(t, dir)
}

func TestFilesHaveTheUsersMode(t *testing.T) {
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	dir := t.TempDir()
	if err := Folder(dir).Put(bg, "a/b", nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"a": 0o750, "a/b": 0o640} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func BenchmarkFolderGet(b *testing.B) {
	for _, size := range []int{300, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			dir := b.TempDir()
			s := Folder(dir)
			if err := s.Put(bg, "0/c/0/0", make([]byte, size)); err != nil {
				b.Fatal(err)
			}
			b.Run("store", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				buf := make([]byte, 0, size)
				for b.Loop() {
					if _, err := s.Get(bg, "0/c/0/0", buf, -1); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("os.Open", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				buf := make([]byte, size)
				for b.Loop() {
					f, err := os.Open(dir + "/0/c/0/0")
					if err != nil {
						b.Fatal(err)
					}
					if _, err := f.Stat(); err != nil {
						b.Fatal(err)
					}
					if _, err := f.ReadAt(buf, 0); err != nil {
						b.Fatal(err)
					}
					f.Close()
				}
			})
			b.Run("os.Root", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				root, err := os.OpenRoot(dir)
				if err != nil {
					b.Fatal(err)
				}
				defer root.Close()
				buf := make([]byte, size)
				for b.Loop() {
					f, err := root.Open("0/c/0/0")
					if err != nil {
						b.Fatal(err)
					}
					if _, err := f.ReadAt(buf, 0); err != nil {
						b.Fatal(err)
					}
					f.Close()
				}
			})
		})
	}
}

func BenchmarkFolderPut(b *testing.B) {
	data := make([]byte, 64<<10)
	b.Run("store", func(b *testing.B) {
		s := Folder(b.TempDir())
		b.SetBytes(int64(len(data)))
		for i := 0; b.Loop(); i++ {
			if err := s.Put(bg, fmt.Sprintf("0/c/%d/%d", i/100, i%100), data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.WriteFile", func(b *testing.B) { // neither atomic nor does it make folders
		dir := b.TempDir()
		b.SetBytes(int64(len(data)))
		for i := 0; b.Loop(); i++ {
			if err := os.WriteFile(fmt.Sprintf("%s/%d.%d", dir, i/100, i%100), data, 0o666); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Who writes a pending file by its path makes the object, as WriteAt does.
func TestPendingFile(t *testing.T) {
	dir := t.TempDir()
	st := Folder(dir)
	o, err := st.Create(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Abort()
	path := o.(PendingFile).Path()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("written"), 2); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Get(t.Context(), "a/b", nil, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there before its Commit: %v", err)
	}
	if _, err := o.WriteAt([]byte("as"), 0); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if b, err := st.Get(t.Context(), "a/b", nil, -1); err != nil || string(b) != "aswritten" {
		t.Errorf("%q, %v", b, err)
	}
	noTemps(t, dir)
}
