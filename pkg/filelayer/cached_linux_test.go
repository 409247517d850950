package filelayer

import (
	"context"
	"errors"
	"os"
	"testing"

	"strata/pkg/settings"
)

func TestPageCache(t *testing.T) {
	const n = 64 << 12
	f := openFile(t, pool(t, nil, settings.Default()), file(t, random(n+100)), os.O_RDWR)
	b := make([]byte, n+100)
	if err := f.ReadAt(context.Background(), b, 0); err != nil {
		t.Fatal(err)
	}
	got, err := f.Cached(0, 0)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || got != n+100 {
		t.Errorf("after a read: %d bytes, %v; want %d", got, err, n+100)
	}
	if again, err := resident(f.file, 0, n+100); err != nil || again != got {
		t.Errorf("page by page: %d bytes, %v", again, err)
	}
	if part, err := f.Cached(4096, 8192); err != nil || part != 8192 {
		t.Errorf("a part: %d bytes, %v", part, err)
	}
	if err := f.DropCached(0, 0); err != nil {
		t.Fatal(err)
	}
	left, err := f.Cached(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := resident(f.file, 0, n+100); err != nil || again != left {
		t.Errorf("page by page: %d bytes, %v; at once %d", again, err, left)
	}
	if left == got {
		t.Skip("this file system keeps files in memory") // tmpfs has no other place
	}
	if err := f.Prefetch(0, 0); err != nil {
		t.Error(err)
	}
	if _, err := f.Cached(-1, 0); err == nil {
		t.Error("a negative position")
	}
	if beyond, err := f.Cached(1<<40, 0); err != nil || beyond != 0 {
		t.Errorf("beyond the end: %d, %v", beyond, err)
	}
}

// The system tells who owns a file, and who may write it.
func TestWhoIsTold(t *testing.T) {
	path := file(t, random(10))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !owns(info, os.Geteuid()) || owns(info, os.Geteuid()+1) {
		t.Errorf("the owner: %v; another one: %v", owns(info, os.Geteuid()), owns(info, os.Geteuid()+1))
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, pool(t, nil, settings.Default()), path, os.O_RDONLY)
	if os.Geteuid() != 0 && mayWrite(f.file) {
		t.Error("a file that only may be read can be written")
	}
	if _, err := f.Cached(0, 0); err != nil { // though nobody may write it
		t.Error(err)
	}
}
