package atomic

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/hiddenname"
)

// dieVariable makes the process replace "image" in that folder, in steps, and kill
// itself where diesVariable says: after so many renames.
const (
	dieVariable  = "ATOMIC_TEST_DIE"
	diesVariable = "ATOMIC_TEST_DIE_AFTER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dieVariable); dir != "" {
		if err := replaceAndDie(dir, os.Getenv(diesVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func replaceAndDie(dir, after string) error {
	calls := 0
	dying := func(op func(a, b string) error) func(a, b string) error {
		return func(a, b string) error {
			err := op(a, b)
			if calls++; fmt.Sprint(calls) == after {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return err
		}
	}
	g := NewGroup(Options{Overwrite: true})
	ops := variants()["in steps"]
	g.ops = operations{dying(ops.renameNew), ops.exchange, dying(ops.rename)}
	out, err := g.Folder(filepath.Join(dir, "image"), without("notes"))
	if err == nil {
		err = os.WriteFile(filepath.Join(out.Work(), "zarr.json"), []byte("new"), 0o666)
	}
	if err == nil {
		err = g.Commit()
	}
	return err
}

// A process that is killed after any of its renames: whoever reads finds the old
// output or the new one, whole, and the next run, on this host or another, puts the old
// one back if the name is free.
func TestKilledBetweenRenames(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		killed, kept := 0, 0
		for n := 1; ; n++ {
			dir := t.TempDir()
			image := filepath.Join(dir, "image")
			write(t, filepath.Join(image, "zarr.json"), "old")
			write(t, filepath.Join(image, "old"), "old chunk")
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), dieVariable+"="+dir, diesVariable+"="+fmt.Sprint(n))
			out, err := c.CombinedOutput()
			if err == nil {
				break
			}
			if c.ProcessState.ExitCode() != -1 {
				t.Fatalf("%v: %s", err, out)
			}
			killed++
			at := image
			if k := hiddenname.Find(image); k != nil {
				kept++
				at = k.Path
			}
			seen := read(filepath.Join(at, "zarr.json"))
			if seen != "new" && (seen != "old" || read(filepath.Join(at, "old")) != "old chunk") {
				t.Fatalf("after rename %d a reader sees %q", n, seen)
			}
			var warned []string
			g := NewGroup(Options{Warn: func(f string, a ...any) { warned = append(warned, fmt.Sprintf(f, a...)) }})
			if elsewhere {
				g.self.Host = "elsewhere"
			}
			if _, err := g.Folder(image, nil); !errors.Is(err, ErrExists) {
				t.Errorf("after rename %d: %v", n, err)
			}
			g.Abort()
			if got := read(filepath.Join(image, "zarr.json")); got != seen {
				t.Errorf("after rename %d there is %q, a reader saw %q", n, got, seen)
			}
			if back := slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "was put back") }); back != (at != image) {
				t.Errorf("after rename %d: warnings %q", n, warned)
			}
			if left := hiddenIn(t, dir); !elsewhere && left != nil {
				t.Errorf("after rename %d: left over: %q", n, left)
			}
		}
		if killed < 3 || kept != 1 {
			t.Errorf("killed %d times, %d times between the two names", killed, kept)
		}
	}
}

// Another run on another host takes a living one for dead and puts the old output back
// between its two renames: the living one replaces it all the same, and nothing is lost.
func TestPutBackUnderALivingRun(t *testing.T) {
	dir := old(t)
	image := filepath.Join(dir, "image")
	ops := variants()["in steps"]
	interfered := false
	rename := func(a, b string) error {
		err := os.Rename(a, b)
		if !interfered && a == image {
			interfered = true
			other := NewGroup(Options{})
			other.self.Host = "elsewhere"
			if _, err := other.Folder(image, nil); !errors.Is(err, ErrExists) {
				t.Errorf("the other run: %v", err)
			}
			other.Abort()
			if read(filepath.Join(image, "old")) != "old chunk" {
				t.Error("the old one was not put back")
			}
		}
		return err
	}
	g := start(t, dir, Options{Overwrite: true}, operations{ops.renameNew, ops.exchange, rename})
	if err := g.Commit(); err != nil || !interfered {
		t.Fatal(err)
	}
	if read(filepath.Join(image, "zarr.json")) != "new" || read(filepath.Join(image, "old")) != "" || hiddenIn(t, dir) != nil {
		t.Errorf("not replaced; left over: %q", hiddenIn(t, dir))
	}
}

// Another run puts an output of its own where this one has just set the old one aside.
func TestAnotherBetweenRenames(t *testing.T) {
	dir := old(t)
	image := filepath.Join(dir, "image")
	ops := variants()["in steps"]
	done := false
	rename := func(a, b string) error {
		err := os.Rename(a, b)
		if !done && a == image {
			done = true
			write(t, filepath.Join(image, "zarr.json"), "other")
		}
		return err
	}
	g := start(t, dir, Options{Overwrite: true}, operations{ops.renameNew, ops.exchange, rename})
	if err := g.Commit(); err != nil || !done {
		t.Fatal(err)
	}
	if read(filepath.Join(image, "zarr.json")) != "new" || hiddenIn(t, dir) != nil {
		t.Errorf("not replaced; left over: %q", hiddenIn(t, dir))
	}
}

// Neither the new nor the old one can get the name: both stay, and the next run puts
// the old one back.
func TestStranded(t *testing.T) {
	dir := old(t)
	image := filepath.Join(dir, "image")
	broken := false
	ops := operations{func(a, b string) error {
		if broken && b == image {
			return syscall.EIO
		}
		return renameNewInSteps(a, b)
	}, variants()["in steps"].exchange, func(a, b string) error {
		broken = broken || a == image
		return os.Rename(a, b)
	}}
	g := start(t, dir, Options{Overwrite: true}, ops)
	if err := g.Commit(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "the old one lies at ") {
		t.Errorf("error %v", err)
	}
	if k := hiddenname.Find(image); k == nil || read(filepath.Join(k.Path, "old")) != "old chunk" {
		t.Fatalf("found %+v", k)
	}
	next := NewGroup(Options{})
	next.self.PID = 1 << 30 // another process; this one has ended
	next.self.Host = "elsewhere"
	if _, err := next.Folder(image, nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if read(filepath.Join(image, "old")) != "old chunk" || read(filepath.Join(dir, "picture")) != "old picture" {
		t.Error("not put back")
	}
}

// Remains of dead processes of this host go; all others stay.
func TestRemains(t *testing.T) {
	me := hiddenname.Self()
	if me.Start == "0" || me.Namespace == "0" {
		t.Skip("the system does not tell when a process started")
	}
	const nobody = 1 << 30 // above the largest process id
	for _, c := range []struct {
		name  string
		id    hiddenname.Process
		stays bool
	}{
		{"dead", hiddenname.Process{Host: me.Host, PID: nobody, Start: "abc", Namespace: me.Namespace}, false},
		{"its id is reused", hiddenname.Process{Host: me.Host, PID: me.PID, Start: "1", Namespace: me.Namespace}, false},
		{"alive", me, true},
		{"another host", hiddenname.Process{Host: "elsewhere-1", PID: nobody, Start: "abc", Namespace: me.Namespace}, true},
		{"another container", hiddenname.Process{Host: me.Host, PID: nobody, Start: "abc", Namespace: "1"}, true},
	} {
		dir := t.TempDir()
		for _, base := range []string{"image", "other"} {
			write(t, filepath.Join(dir, c.id.Name(base, "xyz"), "c/0"), "half")
		}
		var warned []string
		g := NewGroup(Options{Warn: func(f string, a ...any) { warned = append(warned, fmt.Sprintf(f, a...)) }})
		if _, err := g.Folder(filepath.Join(dir, "image"), nil); err != nil {
			t.Fatal(err)
		}
		g.Abort()
		left := hiddenIn(t, dir)
		if c.stays && len(left) != 2 || !c.stays && len(left) != 0 {
			t.Errorf("%s: left over: %q", c.name, left)
		}
		if want := c.stays && c.id != me; (len(warned) == 1) != want {
			t.Errorf("%s: warnings %q", c.name, warned)
		}
	}
}

// An old output whose successor got the name and was removed by hand is not brought
// back: its removal may have been interrupted half way.
func TestRubbishStaysAway(t *testing.T) {
	me := hiddenname.Self()
	dead := hiddenname.Process{Host: me.Host, PID: 1 << 30, Start: "abc", Namespace: me.Namespace}
	dir := t.TempDir()
	write(t, filepath.Join(dir, dead.Name("image", "xyz")+hiddenname.AsideSuffix, "half"), "of a chunk")
	g := NewGroup(Options{})
	if _, err := g.Folder(filepath.Join(dir, "image"), nil); err != nil {
		t.Error(err)
	}
	g.Abort()
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left over: %v", entries)
	}
}
