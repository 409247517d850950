package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hold makes a file with a lock that this process holds until the test ends.
func hold(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := openFile(path, unix.O_RDONLY, 0)
	if err == nil {
		err = flock(fd, unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

// What lies in the folder and is no lease does not count, does no harm, and stays;
// leases of the dead go; a lease counts whatever its content and times are.
func TestGarbage(t *testing.T) {
	dir, d := t.TempDir(), []Device{device(0, 10*gib)}
	dead := []string{
		"GPU-00000000.lease.1.9999999999.dead",
		"GPU-00000000.queue.1.9999999999.dead",
		"GPU-00000000.queue.9007199254740992.9223372036854775807.dead",
		"GPU-00000001.lease.5.9999999999.dead",
	}
	other := []string{
		"README", "GPU-00000000", "GPU-00000000.lease", "GPU-00000000.lease.1.2", "GPU-00000000.lease.1.2.3.4", "GPU-00000000.lease.0.9999999999.x",
		"GPU-00000000.lease.1.-9999999999.x", "GPU-00000000.lease.1.99999999999999999999999.x", "GPU-00000000.lease.9007199254740993.9999999999.x",
		"GPU-00000000.lease.99999999999999999999.9999999999.x", "GPU-00000000.held.1.9999999999.x", ".lease.1.9999999999.x", "GPU_\n.lease.1.9999999999.x",
	}
	for i, name := range append(dead, other...) {
		content := [...]string{`{"pid":7,"tool":"aip"}`, ""}[i%2] // of dead leases; a full disk leaves none
		if i >= len(dead) {
			content = "\x00{]"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range other {
		if i > 0 {
			hold(t, filepath.Join(dir, name), "")
		}
	}
	special := filepath.Join(dir, "GPU-00000000.lease.2.9999999999.")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	hold(t, elsewhere, "")
	if err := errors.Join(
		os.Mkdir(special+"folder", 0o755), os.Symlink(elsewhere, special+"link"), os.Symlink("nowhere", special+"dangling"),
		unix.Mkfifo(special+"pipe", 0o666)); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, dir, d, 8*gib)
	for _, name := range dead {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range other {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(dir, "GPU-00000000.lease.3.9223372036854775807.x") // more than there is, more than adds up
	hold(t, live, `{"pid": 99999999, "host": "\u001b[31m", "tool": 3}`)
	hold(t, filepath.Join(dir, "GPU-00000000.lease.3.9223372036854775807.y"), `{"pid": 1, "host": "a\u001b[31mb", "tool": "t", "namespace": "pid:[0]"}`)
	for _, when := range []time.Time{time.Unix(0, 0), time.Now().Add(1e6 * time.Hour)} {
		if err := os.Chtimes(live, when, when); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := Acquire(ctx, dir, d, 1, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a lease was overlooked: %v", err)
		}
	}
	list, err := List(dir)
	if err != nil || len(list) != 2 || list[0].Holder.PID+list[1].Holder.PID != 1 || list[0].Holder.Host+list[1].Holder.Host != "a[31mb" {
		t.Errorf("%v %+v", err, list)
	}
}

// A folder that cannot be used is one warning and no lease.
func TestUnusable(t *testing.T) {
	defer func(d time.Duration) { lockPatience = d }(lockPatience)
	lockPatience = 100 * time.Millisecond
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	taken, held := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, lockName), 0o755); err != nil {
		t.Fatal(err)
	}
	hold(t, filepath.Join(held, lockName), "")
	cases := map[string]struct{ dir, want string }{
		"a file":         {file, "not a directory"},
		"below a file":   {filepath.Join(file, "sub"), "not a directory"},
		"lock taken":     {taken, "lock: is a directory"},
		"lock held":      {held, "another process has held its lock"},
		"name too long":  {filepath.Join(t.TempDir(), strings.Repeat("x", 300)), "file name too long"},
		"no permission":  {"/proc/strata-lease", ""},
		"folder in /sys": {"/sys/strata-lease", ""},
	}
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var warned []string
			l, err := Acquire(t.Context(), c.dir, []Device{device(0, gib), device(1, gib)}, 1, Options{Warn: func(s string) { warned = append(warned, s) }})
			if err != nil || len(warned) != 1 || !strings.Contains(warned[0], c.want) || !strings.Contains(warned[0], "STRATA_LEASE_DIR") || strings.Contains(warned[0], "\n") {
				t.Fatalf("%v %q, want %q", err, warned, c.want)
			}
			if err := l.Release(); err != nil || l.Device().Memory != gib {
				t.Error(err)
			}
		})
	}
	if l, err := Acquire(t.Context(), file, []Device{device(0, gib)}, 1, Options{}); err != nil || l.Release() != nil {
		t.Error(err)
	}
}

// The folder is removed under those who wait and who hold: the wait goes on and ends.
func TestFolderRemoved(t *testing.T) {
	dir, d := filepath.Join(t.TempDir(), "leases"), []Device{device(0, 10*gib)}
	first := start(t, dir, 8*gib, d)
	first.says("has")
	second := start(t, dir, 8*gib, d)
	second.says("waits")
	if err := os.RemoveAll(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
		t.Fatal(err)
	}
	second.says("has")
	if left := leases(t, dir); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	first.end()
	second.end()
}

// scanned lists a folder without its lock.
func scanned(dir string) ([]entry, error) {
	d, err := openFolder(dir, false)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.scan(false)
}

// A list does not stop anyone, changes nothing, and needs no folder.
func TestList(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if list, err := List(none); err != nil || list != nil {
		t.Errorf("%v %v", list, err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made")
	}
	dir, d := t.TempDir(), []Device{device(0, 10*gib)}
	dead := filepath.Join(dir, "GPU-00000000.lease.1.9999999999.dead")
	if err := os.WriteFile(dead, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	if _, err := os.Stat(dead); err != nil {
		t.Error(err)
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := scanned(dir); err != nil { // without the folder's lock
					t.Error(err)
				}
			}
		}
	}()
	for range 100 {
		l, err := Acquire(t.Context(), dir, d, 8*gib, Options{Warn: func(s string) { t.Error(s) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-ended
}

// as makes a process that of another user; the test binary must lie where that one
// can read it.
func as(uid uint32, binary string) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		c.Path, c.Args[0], c.Dir = binary, binary, "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
}

// Users share the folder: each sees the other's leases, those of the other's dead
// included, which it cannot remove.
func TestUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be several users")
	}
	binary := readableBinary(t)
	dir, d := filepath.Join(filepath.Dir(binary), "leases"), []Device{device(0, 11*gib)}
	a := start(t, dir, 6*gib, d, as(65533, binary))
	a.says("has")
	b := start(t, dir, 6*gib, d, as(65534, binary))
	b.says("waits")
	a.signal(syscall.SIGKILL)
	<-a.done
	b.says("has")
	if left := leases(t, dir); len(left) != 2 {
		t.Errorf("left: %q", left)
	}
	c := start(t, dir, 3*gib, d, as(65533, binary))
	c.says("has")
	c.end()
	b.end()
	if left := leases(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	// a folder that only its owner can write to
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e := start(t, dir, 3*gib, d, as(65534, binary))
	if text := e.says("warns"); !strings.Contains(text, "belongs to user 65533 and is not sticky (mode 0755)") {
		t.Error(text)
	}
	e.says("has")
	e.end()
}

// readableBinary is this binary in a folder that all users can read and write.
func readableBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "strata-lease-test-") // others may not see TMPDIR
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	path := filepath.Join(dir, "lease.test")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("STRATA_LEASE_DIR", "/x/y")
	if got := DefaultDir(); got != "/x/y" {
		t.Error(got)
	}
	t.Setenv("STRATA_LEASE_DIR", "")
	if got := DefaultDir(); filepath.Base(got) != "strata-lease" || !filepath.IsAbs(got) {
		t.Error(got)
	}
}

func FuzzName(f *testing.F) {
	f.Add("GPU-00000000.lease.1.9999999999.k2")
	f.Add("GPU-00000000.queue.9007199254740992.1.0")
	f.Fuzz(func(t *testing.T, name string) {
		e, ok := parseName(name)
		if !ok {
			return
		}
		if e.turn < 1 || e.turn > maxTurn || e.bytes < 1 || strings.ContainsAny(e.uuid, "/.") {
			t.Errorf("%q: %+v", name, e)
		}
		again, ok := parseName(e.name())
		if again.file = e.file; !ok || again != e {
			t.Errorf("%q: %+v, read back %+v", name, e, again)
		}
	})
}

func ExampleAcquire() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	devices := []Device{{"GPU-5a1c", 16 << 30}, {"GPU-77fe", 24 << 30}}
	l, err := Acquire(context.Background(), dir, devices, 6<<30, Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Device().UUID)
	fmt.Println(l.Release())
	// Output:
	// GPU-77fe
	// <nil>
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		dir: nil, filepath.Join(dir, "a", "b"): nil, file: unix.ENOTDIR, filepath.Join(file, "a"): unix.ENOTDIR,
	} {
		if err := Check(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made")
	}
}
