package iobench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestParts(t *testing.T) {
	d := &Data{Files: []File{{"a", 20480}, {"b", 4096}, {"c", 16384}}}
	var got []Part
	for i := range d.Count(8192) {
		got = append(got, d.At(i, 8192))
	}
	want := []Part{{0, 0, 8192}, {0, 8192, 8192}, {0, 16384, 4096}, {1, 0, 4096}, {2, 0, 8192}, {2, 8192, 8192}}
	if len(got) != len(want) || d.Bytes() != 40960 {
		t.Fatal(got, d.Bytes())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("part %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// Files of runs that were killed go, those of runs that live and of others stay; names that are
// patterns are no patterns.
func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*?")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	live, err := makeFile(dir, Least)
	if err != nil {
		t.Fatal(err)
	}
	left, foreign := filepath.Join(dir, hiddenName+"left"), filepath.Join(dir, "data")
	for _, name := range []string{left, foreign} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	there := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	if !there(live.Files[0].Path) || there(left) || !there(foreign) {
		t.Error(there(live.Files[0].Path), there(left), there(foreign))
	}
	live.Remove()
	live.Remove()
	if there(live.Files[0].Path) {
		t.Error("is not removed")
	}
}

// Only large files are read, the largest first, and links are not followed.
func TestLargest(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"small": leastFile - 1, "a/large": 3 * Least, "a/b/larger": 5*Least + 100, "c": Least} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "c"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := largest(context.Background(), dir)
	if err != nil || len(got) != 3 || got[0] != (File{filepath.Join(dir, "a/b/larger"), 5 * Least}) || got[2].Path != filepath.Join(dir, "c") {
		t.Error(got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := largest(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What becomes shorter while it is read is an error with its name, whichever way it is read.
func TestShorter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 4*Page), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &Bench{Threads: 1, Block: 4 * Page, Data: &Data{Files: []File{{path, 4 * Page}}}}
	if err := b.Allocate(); err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	for _, open := range []func(*Bench, bool) (Mover, error){openHost, openMapped} {
		m, err := open(b, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, Page); err != nil {
			t.Fatal(err)
		}
		if err := m.Move(context.Background(), 0, b.Data.At(0, b.Block)); err == nil || err.Error() != path+": became shorter while it was read" {
			t.Error(err)
		}
		if _, err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Truncate(path, 4*Page); err != nil {
			t.Fatal(err)
		}
	}
}
