package lease

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tmpfs mounts a file system.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// A full disk takes files without content; one that takes no more files, and one
// that cannot be written to, are a warning.
func TestFullDisk(t *testing.T) {
	d := []Device{device(0, 10*gib)}
	dir := tmpfs(t, "size=4k")
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	acquire(t, dir, d, 6*gib)
	if list, err := List(dir); err != nil || len(list) != 1 || list[0].Bytes != 6*gib {
		t.Errorf("%v %v", list, err)
	}
	warning := func(dir string) (text string) {
		l, err := Acquire(t.Context(), dir, d, gib, Options{Warn: func(s string) { text += s }})
		if err != nil || l.Release() != nil {
			t.Errorf("%v", err)
		}
		return text
	}
	few := tmpfs(t, "nr_inodes=2")
	if text := warning(few); !strings.Contains(text, "no space left") {
		t.Errorf("warned %q", text)
	}
	fixed := tmpfs(t, "size=64k")
	hold(t, filepath.Join(fixed, "GPU-00000000.lease.1.5.x"), "")
	if err := unix.Mount("", fixed, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if text := warning(fixed); !strings.Contains(text, "read-only") {
		t.Errorf("warned %q", text)
	}
	if list, err := List(fixed); err != nil || len(list) != 1 || list[0].Bytes != 5 {
		t.Errorf("%v %v", list, err)
	}
}
