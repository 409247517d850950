package squashfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"strata/pkg/sif/squashfs"
)

// tree makes a folder with all kinds of things in it.
func tree(t testing.TB, big bool) string {
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/hostname", []byte("x\n"))
	write("etc/empty", nil)
	write("usr/bin/tool", bytes.Repeat([]byte("tool "), 3000))
	if big {
		r := rand.NewChaCha8([32]byte{7})
		noise := make([]byte, 700_001)
		_, _ = r.Read(noise)
		write("data/noise", noise)
		write("data/exact", bytes.Repeat([]byte{1, 2, 3, 4}, 1<<16)) // two whole blocks
		holes := make([]byte, 1<<20+17)
		copy(holes[600_000:], "in the middle")
		write("data/holes", holes)
		for i := range 700 {
			write(fmt.Sprintf("many/a-rather-long-name-of-a-file-%04d", i), []byte(strings.Repeat("z", i)))
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("usr/bin", filepath.Join(dir, "bin")))
	must(os.Symlink("/etc/hostname", filepath.Join(dir, "etc/absolute")))
	must(os.Symlink("loop", filepath.Join(dir, "loop")))
	must(os.Link(filepath.Join(dir, "usr/bin/tool"), filepath.Join(dir, "usr/bin/same")))
	must(os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	must(os.Chmod(filepath.Join(dir, "tmp"), 0o777|fs.ModeSticky))
	return dir
}

func pack(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("mksquashfs"); err != nil {
		t.Fatal("mksquashfs is missing: install squashfs-tools")
	}
	out := filepath.Join(t.TempDir(), "x.squashfs")
	args = append([]string{dir, out, "-noappend", "-all-root", "-no-progress", "-quiet", "-all-time", "1000", "-mkfs-time", "1000", "-processors", "1"}, args...)
	if said, err := exec.Command("mksquashfs", args...).CombinedOutput(); err != nil {
		t.Fatalf("mksquashfs: %v: %s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func describe(mode fs.FileMode, size int64, target string, content []byte) string {
	if !mode.IsRegular() {
		size = 0
	}
	sum := 0
	for i, b := range content {
		sum = (sum + (i%251+1)*int(b)) % 1_000_003
	}
	return fmt.Sprintf("%v %d %s %d", mode, size, target, sum)
}

// What is read equals what mksquashfs was given, whatever the compression.
func TestAgainstMksquashfs(t *testing.T) {
	dir := tree(t, true)
	want := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		target, _ := os.Readlink(path)
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		name, _ := filepath.Rel(dir, path)
		want[strings.TrimPrefix(name, ".")] = describe(info.Mode(), info.Size(), target, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"-comp gzip", "-comp lz4", "-comp zstd", "-noI -noD -noF", "-comp gzip -b 4096", "-comp zstd -b 1048576", "-no-fragments", "-no-exports -always-use-fragments"} {
		image := pack(t, dir, strings.Fields(args)...)
		r, err := squashfs.Open(bytes.NewReader(image), int64(len(image)))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if r.Size() > int64(len(image)) || r.Size() < int64(len(image))-4096 {
			t.Errorf("%s: size %d of %d", args, r.Size(), len(image))
		}
		got, inodes := map[string]string{}, map[string]uint32{}
		err = r.Walk("", func(e *squashfs.Entry) error {
			var content []byte
			if e.Mode.IsRegular() {
				var err error
				if content, err = io.ReadAll(r.File(e)); err != nil {
					return err
				}
			}
			if !e.ModTime.Equal(time.Unix(1000, 0)) || e.UID != 0 || e.GID != 0 {
				t.Errorf("%s: %s: time %v, owner %d:%d", args, e.Path, e.ModTime, e.UID, e.GID)
			}
			got[e.Path], inodes[e.Path] = describe(e.Mode, e.Size, e.Target, content), e.Inode
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", args, d)
		}
		if inodes["usr/bin/tool"] != inodes["usr/bin/same"] || inodes["usr/bin/tool"] == inodes["etc/hostname"] {
			t.Errorf("%s: hard links: %v", args, inodes)
		}
	}
}

func TestLookup(t *testing.T) {
	image := pack(t, tree(t, false))
	r, err := squashfs.Open(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "", "/": "", "bin": "bin", "bin/tool": "usr/bin/tool", "/usr/../bin//same": "usr/bin/same", "../../etc": "etc", "etc/absolute": "etc/absolute"} {
		if e, err := r.Lookup(name); err != nil || e.Path != want {
			t.Errorf("%q: %v, %v", name, e, err)
		}
	}
	for _, name := range []string{"nothing", "etc/nothing", "etc/hostname/x", "loop/x"} {
		if e, err := r.Lookup(name); err == nil {
			t.Errorf("%q: %v", name, e)
		} else if name != "loop/x" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	n := 0
	err = r.Walk("usr", func(e *squashfs.Entry) error {
		n++
		if e.Path == "usr/bin" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d entries, %v", n, err)
	}
}

func TestOtherCompression(t *testing.T) {
	image := pack(t, tree(t, false), "-comp", "xz")
	if _, err := squashfs.Open(bytes.NewReader(image), int64(len(image))); !errors.Is(err, squashfs.ErrFormat) || !strings.Contains(err.Error(), "its compression xz is not one of gzip, lz4, zstd") {
		t.Error(err)
	}
}

// readAll reads everything of an image, as far as it can be.
func readAll(image []byte) error {
	r, err := squashfs.Open(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		return err
	}
	return r.Walk("", func(e *squashfs.Entry) error {
		if !e.Mode.IsRegular() {
			return nil
		}
		_, err := io.Copy(io.Discard, io.LimitReader(r.File(e), 8<<20))
		return err
	})
}

func TestCutOff(t *testing.T) {
	image := pack(t, tree(t, false), "-nopad")
	if err := readAll(image); err != nil {
		t.Fatal(err)
	}
	for n := range image {
		if err := readAll(image[:n]); !errors.Is(err, squashfs.ErrFormat) {
			t.Fatalf("cut off at byte %d of %d: %v", n, len(image), err)
		}
	}
}

func FuzzReader(f *testing.F) {
	dir := tree(f, false)
	for _, args := range []string{"-comp gzip", "-comp zstd", "-comp lz4", "-noI -noD -noF"} {
		f.Add(pack(f, dir, append(strings.Fields(args), "-nopad")...))
	}
	f.Fuzz(func(t *testing.T, image []byte) { _ = readAll(image) })
}
