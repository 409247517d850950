package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const gib = 1 << 30

// The test binary is also a process that asks for leases: LEASE_ASK is the folder,
// LEASE_BYTES how much, LEASE_DEVICES which; it says "waits" and "has UUID" or
// "warns TEXT", and holds until its standard input ends.
func TestMain(m *testing.M) {
	againAfter, againAtMost = 5*time.Millisecond, 50*time.Millisecond
	dir := os.Getenv("LEASE_ASK")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := ask(dir); err != nil {
		fmt.Println("fails", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func ask(dir string) error {
	n, err := strconv.ParseInt(os.Getenv("LEASE_BYTES"), 10, 64)
	if err != nil {
		return err
	}
	var devices []Device
	for _, s := range strings.Fields(os.Getenv("LEASE_DEVICES")) {
		uuid, memory, _ := strings.Cut(s, "=")
		total, err := strconv.ParseInt(memory, 10, 64)
		if err != nil {
			return err
		}
		devices = append(devices, Device{uuid, total})
	}
	audit := func(string) error { return nil }
	if name := os.Getenv("LEASE_AUDIT"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return err
		}
		audit = func(line string) error { _, err := f.WriteString(line); return err }
	}
	var waited sync.Once
	l, err := Acquire(context.Background(), dir, devices, n, Options{
		Wait: func(string) { waited.Do(func() { fmt.Println("waits") }) },
		Warn: func(text string) { fmt.Println("warns", text) },
	})
	if err != nil {
		return err
	}
	if err := audit(fmt.Sprintf("%s %d\n", l.Device().UUID, n)); err != nil {
		return err
	}
	fmt.Println("has", l.Device().UUID)
	if hold := os.Getenv("LEASE_HOLD"); hold != "" {
		d, err := time.ParseDuration(hold)
		if err != nil {
			return err
		}
		time.Sleep(d)
	} else if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := audit(fmt.Sprintf("%s -%d\n", l.Device().UUID, n)); err != nil {
		return err
	}
	if os.Getenv("LEASE_CRASH") != "" {
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return l.Release()
}

// process is one that asks for a lease.
type process struct {
	*exec.Cmd
	t     *testing.T
	lines chan string
	in    io.Closer
	done  chan error
}

// start runs a process that asks; env are further variables.
func start(t *testing.T, dir string, n int64, devices []Device, change ...func(*exec.Cmd)) *process {
	t.Helper()
	var names []string
	for _, d := range devices {
		names = append(names, fmt.Sprintf("%s=%d", d.UUID, d.Memory))
	}
	p := &process{Cmd: exec.Command(os.Args[0]), t: t, lines: make(chan string, 100), done: make(chan error, 1)}
	p.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "LEASE_ASK="+dir, fmt.Sprintf("LEASE_BYTES=%d", n), "LEASE_DEVICES="+strings.Join(names, " "))
	p.Stderr = os.Stderr
	for _, f := range change {
		f(p.Cmd)
	}
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
		p.done <- p.Wait()
	}()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// says waits for a line that begins so and gives the rest of it.
func (p *process) says(text string) string {
	p.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the process ended before it said %q", text)
			}
			if rest, found := strings.CutPrefix(line, text); found {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			p.t.Fatalf("the process did not say %q", text)
		}
	}
}

// quiet asserts that the process does not get its lease for a while.
func (p *process) quiet(d time.Duration) {
	p.t.Helper()
	select {
	case line := <-p.lines:
		p.t.Fatalf("the process says %q", line)
	case <-time.After(d):
	}
}

// end lets the process release its lease and end.
func (p *process) end() {
	p.t.Helper()
	_ = p.in.Close()
	if err := <-p.done; err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func device(i int, memory int64) Device { return Device{fmt.Sprintf("GPU-%08d", i), memory} }

// leases are the names of the folder's files, but for that of its lock.
func leases(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

func acquire(t *testing.T, dir string, devices []Device, n int64) *Lease {
	t.Helper()
	l, err := Acquire(t.Context(), dir, devices, n, Options{Warn: func(s string) { t.Error("warned: " + s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// waiting waits until that many requests stand in the queue.
func waiting(t *testing.T, dir string, n int) {
	t.Helper()
	for range 3000 {
		list, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, e := range list {
			if e.Waiting {
				count++
			}
		}
		if count == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("there never were %d in the queue", n)
}

func TestSpread(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub", "leases")
	devices := []Device{device(0, 8*gib), device(1, 10*gib), device(2, 8*gib)}
	var got []string
	var all []*Lease
	for range 5 {
		l := acquire(t, dir, devices, 3*gib)
		all, got = append(all, l), append(got, l.Device().UUID[len("GPU-0000000"):])
	}
	// 9.5, 7.6, 7.6 → 6.5, 7.6, 7.6 → 6.5, 4.6, 7.6 → 6.5, 4.6, 4.6 → 3.5, 4.6, 4.6
	if want := []string{"1", "0", "2", "1", "0"}; !slices.Equal(got, want) {
		t.Errorf("devices %v, want %v", got, want)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
		t.Errorf("folder: %v %v", info.Mode(), err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 5 || list[0].UUID != "GPU-00000000" || list[0].Bytes != 3*gib || list[0].Waiting || list[0].Holder.PID != os.Getpid() ||
		list[0].Holder.Tool == "" || list[0].Holder.Host == "" || time.Since(list[0].Holder.Since) > time.Minute {
		t.Errorf("%v %+v", err, list)
	}
	for _, l := range all {
		if err := errors.Join(l.Release(), l.Release()); err != nil {
			t.Error(err)
		}
	}
	if left := leases(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestRefused(t *testing.T) {
	devices := []Device{device(0, 8*gib), device(1, 16*gib)}
	_, err := Acquire(t.Context(), t.TempDir(), devices, 20*gib, Options{})
	if want := "20.0 GiB are requested, GPU-00000001 grants 14.6 GiB of its 16.0 GiB"; !errors.Is(err, ErrTooLarge) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	for name, f := range map[string]func() error{
		"no device": func() error { _, err := Acquire(t.Context(), t.TempDir(), nil, 1, Options{}); return err },
		"nothing":   func() error { _, err := Acquire(t.Context(), t.TempDir(), devices, 0, Options{}); return err },
		"less":      func() error { _, err := Acquire(t.Context(), t.TempDir(), devices, -5, Options{}); return err },
		"path": func() error {
			_, err := Acquire(t.Context(), t.TempDir(), []Device{{"../../etc", gib}}, 1, Options{})
			return err
		},
		"no name": func() error {
			_, err := Acquire(t.Context(), t.TempDir(), []Device{{"", gib}}, 1, Options{})
			return err
		},
	} {
		if err := f(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The largest that fits is granted, one byte more is not; a small request goes to a
// device where there is room though another is its equal.
func TestLimit(t *testing.T) {
	dir, d := t.TempDir(), []Device{device(0, 1000)}
	if _, err := Acquire(t.Context(), dir, d, 889, Options{}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	l := acquire(t, dir, d, 888)
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	acquire(t, dir, d, 800)
	acquire(t, dir, d, 26)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, dir, d, 1, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Cancelling ends a wait, and leaves nothing in the queue.
func TestCancel(t *testing.T) {
	dir, d := t.TempDir(), []Device{device(0, 8*gib), device(1, 8*gib)}
	acquire(t, dir, d, 5*gib)
	acquire(t, dir, d, 5*gib)
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	_, err := Acquire(ctx, dir, d, 4*gib, Options{Wait: func(s string) { told = append(told, s); cancel() }, Warn: func(s string) { t.Error(s) }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if want := []string{"waiting for GPU memory: 4.0 GiB needed, 1.6 GiB free on GPU-00000000, 1.6 GiB free on GPU-00000001"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if left := leases(t, dir); len(left) != 2 {
		t.Errorf("left: %q", left)
	}
	if _, err := Acquire(ctx, dir, d, 1, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("already cancelled: %v", err)
	}
}

// Many processes race for two devices; some release, some die with their lease. Never
// is more held than there is, and all get their turn.
func TestRace(t *testing.T) {
	dir, audit := t.TempDir(), filepath.Join(t.TempDir(), "audit")
	devices := []Device{device(0, 10*gib), device(1, 8*gib)}
	var all []*process
	for i := range 24 {
		all = append(all, start(t, dir, int64(2+i%3)*gib, devices, func(c *exec.Cmd) {
			c.Env = append(c.Env, "LEASE_AUDIT="+audit, "LEASE_HOLD=20ms")
			if i%4 == 3 {
				c.Env = append(c.Env, "LEASE_CRASH=1")
			}
		}))
	}
	for i, p := range all {
		p.says("has")
		if err := <-p.done; (err != nil) != (i%4 == 3) {
			t.Errorf("process %d: %v", i, err)
		}
	}
	held, most := map[string]int64{}, map[string]int64{}
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var uuid string
		var n int64
		if _, err := fmt.Sscan(line, &uuid, &n); err != nil {
			t.Fatal(err)
		}
		held[uuid] += n
		most[uuid] = max(most[uuid], held[uuid])
	}
	for _, d := range devices {
		if most[d.UUID] > d.Grantable() || most[d.UUID] == 0 {
			t.Errorf("%s: %s were held of %s", d.UUID, size(most[d.UUID]), size(d.Grantable()))
		}
	}
	acquire(t, dir, devices, 7*gib) // takes the litter away
	if left := leases(t, dir); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}

// First come, first served: a small request does not overtake a large one on the
// device that that waits for, but may go where that does not.
func TestOrder(t *testing.T) {
	dir, one, both := t.TempDir(), []Device{device(0, 10*gib)}, []Device{device(0, 10*gib), device(1, 10*gib)}
	first := start(t, dir, 6*gib, one)
	first.says("has")
	large := start(t, dir, 7*gib, one)
	large.says("waits")
	waiting(t, dir, 1)
	small := start(t, dir, 1*gib, one)
	small.says("waits")
	waiting(t, dir, 2)
	other := start(t, dir, 1*gib, both)
	if got := other.says("has"); got != "GPU-00000001" {
		t.Errorf("got %s", got)
	}
	small.quiet(100 * time.Millisecond)
	first.end()
	large.says("has")
	small.says("has")
	for _, p := range []*process{large, small, other} {
		p.end()
	}
	if left := leases(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Whoever dies gives back, and leaves the queue.
func TestDeath(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSEGV} {
		t.Run(s.String(), func(t *testing.T) {
			dir, d := t.TempDir(), []Device{device(0, 10*gib)}
			quietly := func(c *exec.Cmd) { c.Stderr = nil; c.Env = append(c.Env, "GOTRACEBACK=none") }
			holder := start(t, dir, 8*gib, d, quietly)
			holder.says("has")
			ahead := start(t, dir, 8*gib, d, quietly)
			ahead.says("waits")
			waiting(t, dir, 1)
			behind := start(t, dir, 8*gib, d)
			behind.says("waits")
			ahead.signal(s)
			<-ahead.done
			behind.quiet(50 * time.Millisecond)
			holder.signal(s)
			<-holder.done
			behind.says("has")
			if left := leases(t, dir); len(left) != 1 {
				t.Errorf("left: %q", left)
			}
			behind.end()
		})
	}
}

// A process that is stopped in the queue is passed over; when it goes on it gets
// its turn. One that is stopped with a lease keeps it.
func TestStopped(t *testing.T) {
	defer func(d time.Duration) { stalledAfter = d }(stalledAfter)
	dir, d := t.TempDir(), []Device{device(0, 10*gib)}
	l := acquire(t, dir, d, 8*gib)
	asleep := start(t, dir, 8*gib, d)
	asleep.says("waits")
	waiting(t, dir, 1)
	asleep.signal(syscall.SIGSTOP)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, dir, d, 8*gib, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("passed over at once: %v", err)
	}
	stalledAfter = 200 * time.Millisecond
	l = acquire(t, dir, d, 8*gib)
	asleep.signal(syscall.SIGCONT)
	asleep.quiet(50 * time.Millisecond)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	asleep.says("has")
	asleep.signal(syscall.SIGSTOP)
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, dir, d, 8*gib, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lease was passed over: %v", err)
	}
	asleep.signal(syscall.SIGCONT)
	asleep.end()
}

// What a process takes besides its lease is counted for each: its context, and what libraries keep.
func TestPerProcess(t *testing.T) {
	d := []Device{device(0, 80*gib)}
	if got, want := d[0].Grantable(), int64(76*gib-600<<20); got != want {
		t.Errorf("one process gets %d, want %d", got, want)
	}
	dir := t.TempDir()
	const each = 8 * gib
	for range 8 { // of 8.6 GiB in all
		acquire(t, dir, d, each)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, dir, d, each, Options{Wait: func(string) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("nine processes of %s with what each takes besides, on %s: %v", size(each), size(d[0].Memory), err)
	}
}
