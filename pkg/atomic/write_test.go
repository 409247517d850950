package atomic

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	g := NewGroup(Options{})
	defer g.Abort()
	out, err := g.File(filepath.Join(dir, "table.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("1,2\n", 1<<16)
	write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	if err := out.Write(write); err != nil {
		t.Fatal(err)
	}
	if got := read(out.Work()); got != text {
		t.Errorf("%d bytes, want %d", len(got), len(text))
	}
	broken := errors.New("broken")
	if err := out.Write(func(io.Writer) error { return broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "table.csv") {
		t.Errorf("%v", err)
	}
	// what the buffer holds back fails when it is flushed
	if err := os.Remove(out.Work()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", out.Work()); err != nil {
		t.Fatal(err)
	}
	text = "1,2\n"
	if err := out.Write(write); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "table.csv") {
		t.Errorf("%v", err)
	}
	var none *Output
	if err := none.Write(func(io.Writer) error { return broken }); err != nil {
		t.Errorf("no output: %v", err)
	}
}
