//go:build !nocuda

package gds

import (
	"bytes"
	"os"
	"testing"

	"strata/pkg/gds/settings"
	"strata/pkg/mem"
)

// Whole pages go past the page cache where memory and file system allow it; where direct
// I/O fails after all, everything goes through the cache.
func TestDirect(t *testing.T) {
	s := settings.Default()
	s.Threads, s.DirectRead = 1, true
	p := pool(t, nil, s)
	content := random(5 * page)
	path := file(t, content)
	memory, err := mem.Alloc(8 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Free(memory)
	f := openFile(t, p, path, os.O_RDWR)
	if f.openDirect(); f.direct == nil {
		t.Skip("the file system has no direct I/O")
	}
	for _, c := range []struct{ off, at, n, want int64 }{
		{0, 0, 2 * page, 2 * page}, {100, 100, 3 * page, 3*page - 100}, {100, 200, 3 * page, 0}, {1, 1, page, 0}, {3 * page, 0, 3 * page, 2 * page},
		{page + 7, page + 7, page, 0}, {page + 7, 7, 2*page - 7, 2*page - 7},
	} {
		clear(memory)
		if n := f.directly(memory[c.at:c.at+c.n], c.off, (*os.File).ReadAt); int64(n) != c.want {
			t.Errorf("%+v: %d", c, n)
		}
		if !bytes.Equal(memory[c.at:c.at+c.want], content[c.off:c.off+c.want]) {
			t.Errorf("%+v: other bytes", c)
		}
	}
	// What is written so is in the file, beside what is not.
	copy(memory[5:], content[:3*page])
	if n := f.directly(memory[5:3*page], 5, (*os.File).WriteAt); n != 3*page-5 {
		t.Error(n)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got[5:3*page], content[:3*page-5]) || !bytes.Equal(got[3*page:], content[3*page:]) || !bytes.Equal(got[:5], content[:5]) {
		t.Error(err, "other bytes")
	}
	// Direct I/O that fails.
	broken, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	broken.Close()
	g := openFile(t, p, file(t, content), os.O_RDWR)
	g.opening.Do(func() {})
	g.direct = broken
	got := memory[:4*page]
	for range 2 {
		if err := g.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got, content[:4*page]) {
			t.Error(err)
		}
		if err := g.WriteAt(t.Context(), got, page); err != nil {
			t.Error(err)
		}
		copy(content[page:], content[:4*page])
	}
	if !g.noDirect.Load() {
		t.Error("it is tried again")
	}
	g.direct = nil
}
