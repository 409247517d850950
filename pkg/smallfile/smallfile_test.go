package smallfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endless gives the same byte for ever, and counts.
type endless struct {
	c byte
	n int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	e.n += len(p)
	return len(p), nil
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		text, err string
		fits      bool // as a document without lines
	}{
		{"", "", true}, {"a\nb", "", true}, {long + "\n" + long, "", true}, {"a\n" + long + "\r\nb", "f:2: the line is longer than 1 MiB", true},
		{strings.Repeat(long[1:]+"\n", 16), "", true},
		{strings.Repeat(long[1:]+"\n", 16) + "x", "f:17: the file is longer than 16 MiB", false},
	} {
		got, err := Lines(strings.NewReader(c.text), "f")
		if fmt.Sprint(err) != cmp.Or(c.err, "<nil>") || err == nil && string(got) != c.text {
			t.Errorf("%d bytes: %v, want %s", len(c.text), err, c.err)
		}
		got, err = All(strings.NewReader(c.text), "f")
		if (err == nil) != c.fits || err == nil && string(got) != c.text {
			t.Errorf("%d bytes: %v", len(c.text), err)
		}
	}
	for _, read := range []func(io.Reader, string) ([]byte, error){All, Lines} {
		e := &endless{c: 'x'}
		if _, err := read(e, "f"); err == nil || e.n > MaxBytes+1 {
			t.Errorf("%v after %d bytes", err, e.n)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(t.Context(), path); string(b) != "text" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Text(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
	if _, err := Text(t.Context(), "/dev/zero"); err == nil || err.Error() != "/dev/zero:1: the line is longer than 1 MiB" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, path); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A link to nothing is not an absent file: the error names it and where it leads, also where a folder above is the
// link.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{"file": "../annex/objects/x", "folder": "gone", "twice": "file", "good": "x", "loop": "loop"} {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"file":       "file: is a link to ../annex/objects/x, which does not exist: ",
		"twice":      "twice: is a link to file, which does not exist: ",
		"folder/a/b": "folder/a/b: is not there, because " + in("folder") + " is a link to gone, which does not exist: ",
		"none":       "", "none/none": "", "good": "", "x": "", "loop": "", "x/y": "",
	} {
		err := Lost(in(path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), in(want)) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		var lost *LostError
		if _, opened := Open(t.Context(), in(path)); errors.As(opened, &lost) != (want != "") || want != "" && errors.Is(opened, os.ErrNotExist) {
			t.Errorf("Open(%s): %v", path, opened)
		}
	}
}

// A pipe is read like a file, also when its writer comes later; one that nobody writes
// to, or that falls silent, is left when the context ends.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip(err)
	}
	want := bytes.Repeat([]byte("line\n"), 50_000) // more than a pipe holds
	wrote := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		wrote <- os.WriteFile(path, want, 0o666)
	}()
	if got, err := Text(t.Context(), path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Text(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a writer: %v", err)
	}

	defer func(was time.Duration) { awaited = was }(awaited)
	awaited = 30 * time.Millisecond
	if _, err := Text(t.Context(), path); err == nil || !strings.Contains(err.Error(), path+": is a pipe that no program writes to") {
		t.Errorf("without a writer for long: %v", err)
	}

	silent, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := silent.WriteString("begun"); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(t.Context(), path); err != nil {
		t.Error(err)
	} else {
		got := make([]byte, 5)
		if n, err := io.ReadFull(f, got); n != 5 || string(got) != "begun" {
			t.Errorf("%q, %v", got[:n], err)
		}
		f.Close()
	}
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond) // a writer that has not begun is waited for
	defer cancel()
	if _, err := Text(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("from a silent writer: %v", err)
	}
}

// The line of a key is that behind the keys before it; a key that is not there counts for nothing.
func TestJSONLine(t *testing.T) {
	b := []byte("{\"value\": 1,\n\"a\": {\n\"value\": 2},\n\"b\": {\"x\": 0,\n\"value\": 3, \"tile\": [],\n\"tile\": []}}")
	for want, keys := range map[int][]string{1: {"value"}, 3: {"a", "value"}, 5: {"b", "value"}, 6: {"tile", "tile"}, 4: {"b", "none"}} {
		if got := JSONLine(b, keys...); got != want {
			t.Errorf("%v: line %d, want %d", keys, got, want)
		}
	}
}
