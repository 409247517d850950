//go:build unix

package run

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"strata/pkg/address"
	"strata/pkg/host"
	"strata/pkg/pattern"
	"strata/pkg/units"
)

// Where the address space is limited, as Grid Engine's h_vmem does, memory can run out anywhere,
// also in Go's runtime, which no code of ours can catch. There, and only there, the command runs
// in a second process, and this one turns such an end into one line and exit code 1.
//
// The worker has the same arguments, environment, streams and process group. Its standard error
// is file 3; what its runtime writes to file 2 comes here. Signals that reach the supervisor are
// handed on through file 4, as bytes: one to the whole group reaches the worker on both ways and
// counts once.

// roleVariable is the environment variable with the role of a process, supervisor or worker, where the address space is
// limited.
const (
	roleVariable = "STRATA_ROLE"
	supervisor   = "supervisor"
	worker       = "worker"
)

// frugal are variables that both processes get before they start: without them, the C library
// reserves 64 MiB for each thread, and the runtime ends with exit code 2 instead of SIGABRT.
var frugal = map[string]string{"MALLOC_ARENA_MAX": "1", "GOTRACEBACK": "crash"}

// relayed receives the signals that the supervisor hands on; it is nil in a process without a supervisor.
var relayed chan os.Signal

// becomeWorker takes over the streams from the supervisor.
func becomeWorker() {
	for _, fd := range []int{3, 4} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return // somebody else set the variable
		}
	}
	os.Stderr = os.NewFile(3, "/dev/stderr")
	relayed = make(chan os.Signal, 2)
	pipe := os.NewFile(4, "signals")
	go func() { // ends with the process
		b := make([]byte, 1)
		for {
			sig := syscall.SIGTERM // the supervisor was killed
			_, err := pipe.Read(b)
			if err == nil {
				sig = syscall.Signal(b[0])
			}
			relayed <- sig
			if err != nil {
				return
			}
		}
	}()
}

// Supervise runs the command in a worker, where the address space is limited, and returns its
// exit code; supervised is false where this process is to run the command.
func Supervise(tool string, arguments []string) (code int, supervised bool) {
	limit, _, limited := host.AddressSpace()
	if !limited {
		return 0, false
	}
	role := os.Getenv(roleVariable)
	_ = os.Unsetenv(roleVariable) // programs that are started from here have none
	if role == worker {
		becomeWorker()
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	if role != supervisor {
		return 0, startAs(supervisor, self) == nil // does not return
	}
	debug.SetGCPercent(-1) // it would start threads
	runtime.GOMAXPROCS(1)
	fromWorker, toUs, err := os.Pipe()
	if err != nil {
		return 0, false
	}
	defer fromWorker.Close()
	toWorker, signals, err := os.Pipe()
	if err != nil {
		return 0, false
	}
	defer signals.Close()
	command := &exec.Cmd{Path: self, Args: CommandLine(), Env: append(os.Environ(), roleVariable+"="+worker), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: toUs, ExtraFiles: []*os.File{os.Stderr, toWorker}}
	received := make(chan os.Signal, 4)
	signal.Notify(received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := command.Start(); err != nil {
		return PrintError(os.Stderr, tool, fmt.Errorf("start %s: %w", self, err)), true
	}
	_, _ = toUs.Close(), toWorker.Close()
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case s := <-received:
				_, _ = signals.Write([]byte{byte(s.(syscall.Signal))})
			case <-ended:
				return
			}
		}
	})
	said := passOn(fromWorker, os.Stderr)
	_ = command.Wait() // its state tells
	close(ended)
	wg.Wait()
	return verdict(tool, command.ProcessState.Sys().(syscall.WaitStatus), said, limit, slices.ContainsFunc(arguments, func(a string) bool { return a == "-v" || a == "--verbose" })), true
}

// startAs starts this process anew in a role.
func startAs(role, self string) error {
	for name, value := range frugal {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return syscall.Exec(self, CommandLine(), append(os.Environ(), roleVariable+"="+role))
}

// fatal lists the beginnings of the runtime's messages when it ends a process.
var fatal = []string{"fatal error: ", "runtime: ", "panic: ", "fakecgo: ", "SIGABRT: ", "unexpected fault address ", "[signal "}

// outOfMemory matches what the runtime says when it is short of memory, or of memory for threads.
var outOfMemory = pattern.Lazy(`(?m)^(fatal error: .*memory.*|runtime: failed to create new OS thread.*|fakecgo: .*failed.*)`)

// passOn copies lines, and from the first that the runtime ends with on keeps them.
func passOn(from io.Reader, to io.Writer) (said []byte) {
	const most = 1 << 20
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case len(said) > 0 || slices.ContainsFunc(fatal, func(f string) bool { return bytes.HasPrefix(line, []byte(f)) }):
			said = append(said, line[:min(len(line), most-len(said))]...)
		default:
			_, _ = to.Write(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return said
		}
	}
}

// verdict returns the exit code for a worker that has ended. It prints what the worker's runtime has written (said), or
// one line if the runtime ran out of memory.
func verdict(tool string, end syscall.WaitStatus, said []byte, limit int64, verbose bool) int {
	text := address.Redact(string(said))
	byRuntime := text != "" && (end.Signaled() && end.Signal() == syscall.SIGABRT || end.Exited() && end.ExitStatus() == ExitUsage)
	short := byRuntime && outOfMemory().MatchString(text)
	if verbose || !short {
		fmt.Fprint(os.Stderr, text)
	}
	switch {
	case short:
		return PrintError(os.Stderr, tool, fmt.Errorf("out of memory: the address space is limited to %s (ulimit -v): %s; raise the limit, or lower --mem and --threads",
			units.FormatSize(limit), outOfMemory().FindString(text)))
	case byRuntime:
		return ExitFailed
	case end.Signaled(): // as the worker did
		signal.Reset(end.Signal())
		_ = syscall.Kill(os.Getpid(), end.Signal())
		return 128 + int(end.Signal())
	}
	return end.ExitStatus()
}
