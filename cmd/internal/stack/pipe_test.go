package stack

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"strata/tests/clitest"
)

// A signal ends a run that waits for a pipe that nobody writes to.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, whole := filepath.Join(dir, "pipe"), filepath.Join(dir, "shifts.csv")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(whole, []byte("fixed_id,moving_id,x_shift_mm,y_shift_mm\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{dir, pipe, filepath.Join(dir, "out")},
		{dir, whole, filepath.Join(dir, "out"), "--slice_config", pipe},
	} {
		var said bytes.Buffer
		c := exec.Command(clitest.Program(t, "stack"), args...)
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		writer := open(t, pipe, ended)
		err := c.Process.Signal(syscall.SIGTERM)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = c.Process.Kill()
			t.Errorf("%q does not end", args)
			<-ended
		}
		if code := c.ProcessState.ExitCode(); code != 143 {
			t.Errorf("%q: exit code %d: %s", args, code, said.String())
		}
		writer.Close()
	}
}

// open opens a pipe for writing when somebody reads it.
func open(t *testing.T, pipe string, ended chan error) *os.File {
	t.Helper()
	for {
		w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return w
		}
		if !errors.Is(err, syscall.ENXIO) {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}
