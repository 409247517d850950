//go:build unix

package clitest

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"strata/tests/s3emu"
)

var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
}

func signalOf(p *os.ProcessState) (int, bool) {
	w, ok := p.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return 0, false
	}
	return int(w.Signal()), true
}

// patience is how long a started command may take to say what is waited for,
// and to end: only a hanging command takes as long.
const patience = 60 * time.Second

// hangUp lets commands end on SIGHUP where the tests run under nohup: what ignores a
// signal hands that on to what it starts, what handles it does not.
var hangUp sync.Once

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	hangUp.Do(func() {
		if signal.Ignored(syscall.SIGHUP) {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		}
	})
	noNegation(ts, neg, "interrupt")
	want(ts, args, 4, "interrupt SIGNAL[,SIGNAL] CODE TEXT CMD ARG...")
	wanted, err := strconv.Atoi(args[1])
	ts.Check(err)
	path, err := lookPath(ts, args[3])
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Args[0] = args[3]
	cmd.Dir = ts.MkAbs(".")
	variables := []string{"PATH", "HOME", "TMPDIR", "STRATA_PROGRESS_INTERVAL", "WORK", "ROOT", "GORACE", "PEERS", "FIO_DOUBLE"}
	for _, name := range append(variables, slices.Collect(maps.Keys((&s3emu.Server{}).Environment()))...) {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	stderr := &watched{text: []byte(args[2]), found: make(chan struct{})}
	cmd.Stderr = stderr
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process, which is killed below if need be
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-stderr.found:
	case err := <-ended:
		ts.Fatalf("ended (%v) before %q; its standard error: %s", err, args[2], stderr.String())
	case <-late.C:
		_ = cmd.Process.Kill()
		<-ended
		ts.Fatalf("waited in vain for %q; its standard error: %s", args[2], stderr.String())
	}
	names := strings.Split(args[0], ",")
	for i := 0; ; i++ {
		s, ok := signals[names[min(i, len(names)-1)]]
		if !ok {
			_ = cmd.Process.Kill()
			<-ended
			ts.Fatalf("unknown signal in %q", args[0])
		}
		if i < len(names) || len(names) > 1 {
			_ = cmd.Process.Signal(s) // it may have ended meanwhile
		}
		// Equal signals that come together count as one: the last of several is
		// sent until the command has ended.
		again := time.NewTimer(200 * time.Millisecond)
		select {
		case err = <-ended:
		case <-again.C:
			continue
		case <-late.C:
			_ = cmd.Process.Kill()
			<-ended
			ts.Fatalf("did not end after %s; its standard error: %s", args[0], stderr.String())
		}
		again.Stop()
		break
	}
	_, _ = ts.Stderr().Write([]byte(stderr.String()))
	if got := codeOf(ts, err); got != wanted {
		ts.Fatalf("exit code %d, want %d", got, wanted)
	}
}

func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), ":") {
		if info, err := os.Stat(dir + "/" + name); err == nil && info.Mode()&0o111 != 0 {
			return dir + "/" + name, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// watched is a writer that tells when a text has gone by.
type watched struct {
	mu    sync.Mutex
	all   bytes.Buffer
	text  []byte
	found chan struct{}
	told  bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	if !w.told && bytes.Contains(w.all.Bytes(), w.text) {
		w.told = true
		close(w.found)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
