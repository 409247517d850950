package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hang is the time after which a program counts as hanging: the inputs are small.
const hang = 60 * time.Second

// ending describes how a program ended.
type ending struct {
	code     int // exit code; 128 + the signal that ended it
	stderr   string
	seconds  float64
	peak     int64 // resident bytes
	hung     bool
	signaled bool // the signal was sent before it ended
}

// crashed reports whether the text on standard error is a crash rather than an error.
func (e ending) crashed() bool {
	return strings.Contains(e.stderr, "this is a bug") || strings.Contains(e.stderr, "goroutine ") || strings.Contains(e.stderr, "fatal error: ")
}

// String returns the exit code and the end of standard error.
func (e ending) String() string {
	text := strings.TrimSpace(e.stderr)
	return fmt.Sprintf("exit code %d after %.1f s: %s", e.code, e.seconds, text[max(0, len(text)-400):])
}

// program is a command line with what is done to it.
type program struct {
	bin  string
	args []string
	env  []string
	dir  string

	prefix []string       // a command that runs it, such as prlimit
	after  time.Duration  // time of the signal
	signal syscall.Signal // 0: none
}

// run runs the program to its end.
func (p program) run(ctx context.Context) (ending, error) {
	line := append(append([]string{}, p.prefix...), filepath.Join(p.bin, p.args[0]))
	line = append(line, p.args[1:]...)
	c := exec.Command(line[0], line[1:]...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr = p.dir, &stderr
	if p.env != nil {
		c.Env = append(c.Environ(), p.env...)
	}
	started := time.Now()
	if err := c.Start(); err != nil {
		return ending{}, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }() // ends with the process, which is killed below if need be
	var e ending
	var err error
	send, late := time.NewTimer(p.after), time.NewTimer(hang)
	defer send.Stop()
	defer late.Stop()
	if p.signal == 0 {
		send.Stop()
	}
	for waiting := true; waiting; {
		select {
		case err = <-done:
			waiting = false
		case <-send.C:
			e.signaled = c.Process.Signal(p.signal) == nil
		case <-late.C:
			e.hung = true
			_ = c.Process.Kill()
		case <-ctx.Done():
			_ = c.Process.Kill()
			<-done
			return ending{}, ctx.Err()
		}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ending{}, err
	}
	e.stderr, e.seconds = stderr.String(), time.Since(started).Seconds()
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if e.code = status.ExitStatus(); status.Signaled() {
		e.code = 128 + int(status.Signal())
	}
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		e.peak = usage.Maxrss << 10
	}
	return e, nil
}

// mustRun runs a program that must succeed.
func mustRun(ctx context.Context, bin, dir string, args ...string) error {
	e, err := program{bin: bin, dir: dir, args: args}.run(ctx)
	if err != nil {
		return err
	}
	if e.code != 0 {
		return fmt.Errorf("%s: %v", strings.Join(args, " "), e)
	}
	return nil
}
