package iobench

import (
	"bytes"
	"sync"

	"context"
	"errors"
	"os"
	"path/filepath"
	"strata/pkg/settings"
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

// counting counts how often each part was moved.
type counting struct {
	mu   sync.Mutex
	seen map[Part]int
	by   map[Part]int
}

func (c *counting) Move(_ context.Context, thread int, p Part) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[p]++
	c.by[p] = thread
	return nil
}

func (c *counting) Close() (string, error) { return "", nil }

// A round moves what its pass says: all parts once, in any order, or each thread those of its section.
func TestRound(t *testing.T) {
	b := &Bench{Threads: 3, Block: Page, Data: &Data{Files: []File{{"a", 20 * Page}}}}
	for name, pass := range map[string]Pass{
		"all":      {Count: 20},
		"from":     {First: 13, Count: 20},
		"reversed": {Count: 20, Order: func(i int64) int64 { return 19 - i }},
		"twice":    {Count: 40},
		"some":     {First: 18, Count: 4},
		"sections": {Sections: []Section{{Count: 6}, {First: 2, Count: 6}, {Count: 3}}},
		"again":    {Sections: []Section{{Count: 12}, {Count: 12}, {Count: 12}}},
	} {
		c := &counting{seen: map[Part]int{}, by: map[Part]int{}}
		s, n, err := b.Round(context.Background(), c, pass)
		sum := 0
		for _, k := range c.seen {
			sum += k
		}
		want := map[string]int{"all": 20, "from": 20, "reversed": 20, "twice": 40, "some": 4, "sections": 15, "again": 36}[name]
		parts := map[string]int{"all": 20, "from": 20, "reversed": 20, "twice": 20, "some": 4, "sections": 15, "again": 18}[name]
		if err != nil || n != int64(want) || sum != want || len(c.seen) != parts || s.Bytes != int64(want)*Page {
			t.Errorf("%s: %d parts, %d moves, %d told, %d bytes, %v", name, len(c.seen), sum, n, s.Bytes, err)
		}
		for p, thread := range c.by {
			if pass.Sections != nil && int(p.Off/Page/6) != thread {
				t.Errorf("%s: part %d moved by thread %d", name, p.Off/Page, thread)
			}
		}
		for i, section := range pass.Sections {
			if section.Done != section.Count {
				t.Errorf("%s: section %d: %+v", name, i, section)
			}
		}
	}
	c := &counting{seen: map[Part]int{}, by: map[Part]int{}}
	if _, n, err := b.Round(context.Background(), c, Pass{Count: 1 << 40, Limit: 1}); err != nil || n < 1 || n > 6 {
		t.Errorf("%d parts after the time: %v", n, err)
	}
}

// Every way reads and writes the bytes that it should.
func TestWaysMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	content := make([]byte, 8*Page)
	for i := range content {
		content[i] = byte(i / Page * 7)
	}
	for _, way := range append(Ways[:3:3], Pool) {
		b := &Bench{Threads: 1, Block: 2 * Page, Settings: settings.Default(), Random: true, Data: &Data{Made: true, Files: []File{{path, 8 * Page}}}}
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := b.Allocate(); err != nil {
			t.Fatal(err)
		}
		m, err := way.Open(b, false)
		if err != nil {
			b.Free()
			if way.Name == "direct" {
				continue
			}
			t.Fatal(way.Name, err)
		}
		p := b.Data.At(2, b.Block)
		if err := m.Move(context.Background(), 0, p); err != nil || !bytes.Equal(b.buffers[0], content[4*Page:6*Page]) {
			t.Errorf("%s: %v", way.Name, err)
		}
		if _, err := m.Close(); err != nil {
			t.Errorf("%s: %v", way.Name, err)
		}
		if way.Write {
			if m, err = way.Open(b, true); err != nil {
				t.Fatal(way.Name, err)
			}
			if _, n, err := b.Round(context.Background(), m, Pass{Write: true, First: 1, Count: 1}); err != nil || n != 1 {
				t.Errorf("%s: %d %v", way.Name, n, err)
			}
			if _, err := m.Close(); err != nil {
				t.Errorf("%s: %v", way.Name, err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got[:2*Page], content[:2*Page]) || !bytes.Equal(got[2*Page:4*Page], b.buffers[0]) || !bytes.Equal(got[4*Page:], content[4*Page:]) {
				t.Errorf("%s wrote something else: %v", way.Name, err)
			}
		}
		b.Free()
	}
}
