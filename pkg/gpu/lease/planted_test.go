package lease

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// litterName is the name of a lease that looks dead.
const litterName = "GPU-00000000.lease.5.9999999999.mine"

// victim makes a folder with files that nobody may touch, and returns a function that checks them.
func victim(t *testing.T, dir string) (unharmed func()) {
	t.Helper()
	files := map[string]string{litterName: "x", "GPU-00000000.queue.1.1.empty": "", "notes": "y"}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != len(files) {
			t.Errorf("%v %v, want the %d files that were there", list, err, len(files))
		}
		for name, text := range files {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != text {
				t.Errorf("%s: %q %v", name, b, err)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Error(info, err)
		}
	}
}

// What another user plants in place of the folder is refused with a reason, and the run goes on.
func TestPlanted(t *testing.T) {
	defer func(d time.Duration) { lockPatience = d }(lockPatience)
	lockPatience = 100 * time.Millisecond
	open := func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|os.ModeSticky)) }
	for name, c := range map[string]struct {
		plant func(dir, victim string) error
		says  string
	}{
		"link to a folder":   {func(dir, victim string) error { return os.Symlink(victim, dir) }, "leases: is a link, which is not followed"},
		"relative link":      {func(dir, victim string) error { return os.Symlink("../victim", dir) }, "leases: is a link, which is not followed"},
		"link to nowhere":    {func(dir, victim string) error { return os.Symlink(victim+"/new", dir) }, "leases: is a link, which is not followed"},
		"pipe":               {func(dir, _ string) error { return unix.Mkfifo(dir, 0o666) }, "not a directory"},
		"without sticky bit": {func(dir, _ string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, "every user may replace the files in it (mode 0777): want mode 1777"},
		"link in the lock": {func(dir, victim string) error {
			return errors.Join(open(dir), os.Symlink(victim+"/notes", dir+"/lock"))
		}, "lock: too many levels"},
		"dangling lock":     {func(dir, victim string) error { return errors.Join(open(dir), os.Symlink(victim+"/new", dir+"/lock")) }, "lock: too many levels"},
		"hard link as lock": {func(dir, victim string) error { return errors.Join(open(dir), os.Link(victim+"/notes", dir+"/lock")) }, "lock: is not a file of its own"},
		"pipe as lock":      {func(dir, _ string) error { return errors.Join(open(dir), unix.Mkfifo(dir+"/lock", 0o666)) }, "lock: is not a file of its own"},
		"hard link as a lease": {func(dir, victim string) error {
			return errors.Join(open(dir), os.Link(victim+"/"+litterName, dir+"/"+litterName))
		}, ""},
		"link as a lease": {func(dir, victim string) error {
			return errors.Join(open(dir), os.Symlink(victim+"/"+litterName, dir+"/"+litterName))
		}, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			top := t.TempDir()
			unharmed := victim(t, filepath.Join(top, "victim"))
			dir := filepath.Join(top, "shm", "leases")
			if err := errors.Join(os.Mkdir(filepath.Dir(dir), 0o755), c.plant(dir, filepath.Join(top, "victim"))); err != nil {
				t.Fatal(err)
			}
			var warned []string
			l, err := Acquire(t.Context(), dir, []Device{device(0, 10*gib)}, gib, Options{Warn: func(s string) { warned = append(warned, s) }})
			if err != nil {
				t.Fatal(err)
			}
			unharmed()
			if text := strings.Join(warned, "\n"); (text == "") != (c.says == "") || !strings.Contains(text, c.says) || strings.Contains(text, "\n") {
				t.Errorf("warned %q, want %q", text, c.says)
			}
			if err := Check(dir); (c.says != "" && !strings.Contains(c.says, "lock")) != (err != nil) {
				t.Errorf("Check: %v", err)
			}
			if _, err := List(dir); err != nil && c.says == "" {
				t.Error(err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			unharmed()
			if c.says == "" {
				if _, err := os.Lstat(filepath.Join(dir, litterName)); err != nil {
					t.Errorf("what is no lease was removed: %v", err)
				}
			}
		})
	}
}

// Files with a lease's name are litter only if this user's process wrote them.
func TestLitter(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "", "b": `{"pid":3}`, "g": `{"pid":4}`, "c": "measured by hand", "d": `{"pid":0}`, "e": strings.Repeat(" ", maxDescription) + `{"pid":3}`} {
		if err := os.WriteFile(filepath.Join(dir, "GPU-1.lease.1.1."+name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "GPU-1.lease.1.1.b"), filepath.Join(dir, "GPU-1.lease.1.1.f")); err != nil { // of a file with two names, neither goes
		t.Fatal(err)
	}
	if err := acquire(t, dir, []Device{device(0, 10*gib)}, gib).Release(); err != nil {
		t.Fatal(err)
	}
	if left, want := leases(t, dir), []string{"GPU-1.lease.1.1.b", "GPU-1.lease.1.1.c", "GPU-1.lease.1.1.d", "GPU-1.lease.1.1.e", "GPU-1.lease.1.1.f"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

// A file that has taken the name of a lease is not removed in its place.
func TestReleaseSparesOthers(t *testing.T) {
	dir := t.TempDir()
	l := acquire(t, dir, []Device{device(0, 10*gib)}, gib)
	path := filepath.Join(dir, leases(t, dir)[0])
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// Where the default folder is spoiled, a user's processes share the GPUs out among themselves.
func TestOwnFolder(t *testing.T) {
	t.Setenv("STRATA_LEASE_DIR", "")
	defer func(s string) { memory = s }(memory)
	top := t.TempDir()
	memory = filepath.Join(top, "shm")
	unharmed := victim(t, filepath.Join(top, "victim"))
	if err := errors.Join(os.Mkdir(memory, 0o755), os.Symlink("../victim", DefaultDir())); err != nil {
		t.Fatal(err)
	}
	var warned []string
	warn := Options{Warn: func(s string) { warned = append(warned, s) }}
	l, err := Acquire(t.Context(), "", []Device{device(0, 10*gib)}, 6*gib, warn)
	if err != nil || len(warned) != 1 || !strings.HasPrefix(warned[0], "GPU memory is shared out between your own processes only: "+DefaultDir()+": is a link") {
		t.Fatalf("%v %q", err, warned)
	}
	if info, err := os.Stat(ownDir()); err != nil || info.Mode().Perm() != 0o700 || info.Mode()&os.ModeSticky != 0 {
		t.Error(info, err)
	}
	again := make(chan struct{})
	go func() {
		defer close(again)
		second, err := Acquire(t.Context(), "", []Device{device(0, 10*gib)}, 6*gib, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := second.Release(); err != nil {
			t.Error(err)
		}
	}()
	list := []Entry{}
	for len(list) < 2 {
		if list, err = List(""); err == nil {
			t.Fatal("the default folder can be read")
		}
		time.Sleep(time.Millisecond)
	}
	if list[0].Waiting || !list[1].Waiting {
		t.Errorf("%+v: want one that waits for the other", list)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	<-again
	unharmed()

	// Where the other folder is spoiled as well, nothing is shared out.
	if err := errors.Join(os.RemoveAll(ownDir()), os.Mkdir(ownDir(), 0o755)); err != nil {
		t.Fatal(err)
	}
	warned = nil
	if l, err := Acquire(t.Context(), "", []Device{device(0, 10*gib)}, 6*gib, warn); err != nil || l.Release() != nil || len(warned) != 1 || !strings.Contains(warned[0], "not shared out") {
		t.Errorf("%v %q", err, warned)
	}
}

// A process refuses what another user has planted in a sticky folder: links on the way to its folder, and folders
// in which that user's rules hold.
func TestPlantedByOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be several users")
	}
	const attacker, user = 65534, 65533
	binary := readableBinary(t)
	top := filepath.Dir(binary)
	shm, home := filepath.Join(top, "shm"), filepath.Join(top, "home")
	unharmed := victim(t, home)
	if err := errors.Join(os.Mkdir(shm, 0o700), os.Chmod(shm, 0o777|os.ModeSticky), os.Chown(home, user, user)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		plant func(path string) error
		below string
		says  string
		as    []func(*exec.Cmd)
	}{
		"link": {func(path string) error {
			return errors.Join(os.Symlink("../home", path), os.Lchown(path, attacker, attacker))
		}, "", "is a link", []func(*exec.Cmd){as(user, binary)}},
		"link, for root": {func(path string) error {
			return errors.Join(os.Symlink("../home", path), os.Lchown(path, attacker, attacker))
		}, "", "is a link", nil},
		"link above": {func(path string) error {
			return errors.Join(os.Symlink("../home", path), os.Lchown(path, attacker, attacker))
		}, "leases", "a link is not followed: " + filepath.Join(shm, "link_above") + ": user 65534 made it in a folder that everybody may write to", []func(*exec.Cmd){as(user, binary)}},
		"folder, for root": {func(path string) error { return errors.Join(os.Mkdir(path, 0o755), os.Chown(path, attacker, attacker)) }, "",
			"belongs to user 65534 and is not sticky (mode 0755)", nil},
		"open folder": {func(path string) error {
			return errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, 0o777), os.Chown(path, attacker, attacker))
		}, "", "belongs to user 65534 and is not sticky (mode 0777)", []func(*exec.Cmd){as(user, binary)}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			path := filepath.Join(shm, strings.ReplaceAll(name, " ", "_"))
			if err := c.plant(path); err != nil {
				t.Fatal(err)
			}
			p := start(t, filepath.Join(path, c.below), gib, []Device{device(0, 10*gib)}, c.as...)
			if text := p.says("warns"); !strings.Contains(text, c.says) {
				t.Errorf("%q, want %q", text, c.says)
			}
			p.says("has")
			p.end()
			unharmed()
		})
	}
}
