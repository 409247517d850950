package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// unprivileged runs f on a thread that may not pass over permissions, even when
// the test runs as root.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&header, &data[0])
		if err == nil {
			data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
			err = unix.Capset(&header, &data[0])
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("capabilities cannot be dropped here: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	s := Folder(dir)
	for _, key := range []string{"a", "d/x"} {
		if err := s.Put(bg, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"a": 0, "d": 0o444, ".": 0o555} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Join(dir, name), 0o777)
	}
	unprivileged(t, func() {
		_, get := s.Get(bg, "a", nil, -1)
		_, open := s.Open(bg, "d/x")
		_, absent := s.Get(bg, "d/y", nil, -1)
		for name, err := range map[string]error{
			"Get": get, "Open": open, "Get in a closed folder": absent,
			"Put": s.Put(bg, "b", nil), "Delete": s.Delete(bg, "a"), "Put in a new folder": s.Put(bg, "c/d", nil),
		} {
			if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(fmt.Sprint(err), dir) {
				t.Errorf("%s: %v, want permission denied and the path", name, err)
			}
		}
	})
}

// TestFullDisk fills a small file system of its own.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no right to mount a small tmpfs: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	s := Folder(dir)
	if err := s.Put(bg, "c/0", []byte("old")); err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 1<<20)
	wantFull := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(fmt.Sprint(err), filepath.Join(dir, "c/0")) {
			t.Errorf("%s: %v, want ENOSPC and the file's name", what, err)
		}
		noTemps(t, dir)
	}
	wantFull("Put", s.Put(bg, "c/0", []byte("head"), big))
	o, err := s.Create(bg, "c/0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.WriteAt(big, 0)
	if e := o.Abort(); e != nil {
		t.Error(e)
	}
	wantFull("WriteAt", err)
	if b, err := s.Get(bg, "c/0", nil, -1); string(b) != "old" || err != nil {
		t.Errorf("the object that was there is now %q, %v", b, err)
	}
	// what was given back is enough for a smaller one
	if err := s.Put(bg, "c/1", big[:100<<10]); err != nil {
		t.Error(err)
	}
}
