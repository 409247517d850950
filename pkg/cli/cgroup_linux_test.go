package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strata/pkg/runrecord"
)

// groups makes control groups of the machine with limits of memory and CPU time,
// where this process may, else the test is skipped. Their folders are returned.
func groups(t *testing.T, memory, quota int64) []string {
	t.Helper()
	name := fmt.Sprintf("strata-test-%d", os.Getpid())
	var made []string
	group := func(parent string, files map[string]string) {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no control group can be made: %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0); err != nil {
				t.Skipf("no limit can be set: %v", err)
			}
		}
		made = append(made, dir)
	}
	const root = "/sys/fs/cgroup"
	if controllers, err := os.ReadFile(root + "/cgroup.controllers"); err == nil {
		for _, c := range []string{"memory", "cpu"} {
			if !strings.Contains(string(controllers), c) {
				t.Skipf("the machine's control groups have no %s", c)
			}
		}
		// Where a group holds processes, its children get no controllers: then the limits cannot be set.
		_ = os.WriteFile(root+"/cgroup.subtree_control", []byte("+memory +cpu"), 0)
		group(root, map[string]string{"memory.max": fmt.Sprint(memory), "cpu.max": fmt.Sprintf("%d 100000", quota)})
		return made
	}
	group(root+"/memory", map[string]string{"memory.limit_in_bytes": fmt.Sprint(memory)})
	group(root+"/cpu", map[string]string{"cpu.cfs_quota_us": fmt.Sprint(quota)})
	return made
}

// inGroups runs demo there, and returns its record.
func inGroups(t *testing.T, dirs []string, args ...string) (*runrecord.Record, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), make([]byte, 100), 0o666); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, d := range dirs {
		script += fmt.Sprintf("echo $$ >'%s/cgroup.procs' && ", d)
	}
	cmd := exec.Command("sh", append([]string{"-c", script + `exec demo in out --no-use_gpu --report r.json "$@"`, "sh"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rec, err := runrecord.Read(t.Context(), filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(err)
	}
	return rec, string(out)
}

func TestControlGroup(t *testing.T) {
	const memory = 256 << 20
	dirs := groups(t, memory, 150000)

	rec, out := inGroups(t, dirs)
	if rec.Cgroup.Memory == nil || *rec.Cgroup.Memory != memory || rec.Cgroup.CPUs == nil || *rec.Cgroup.CPUs != 1.5 {
		t.Errorf("limits found: %+v", rec.Cgroup)
	}
	if rec.Mem != memory/2 || rec.Threads != min(runtime.NumCPU(), 2) || strings.Contains(out, "--mem") {
		t.Errorf("defaults: %d threads, memory %d, %q", rec.Threads, rec.Mem, out)
	}

	rec, out = inGroups(t, dirs, "--mem", "224MiB")
	if rec.Mem != 224<<20 || strings.Contains(out, "--mem") {
		t.Errorf("what just fits: memory %d, %q", rec.Mem, out)
	}

	rec, out = inGroups(t, dirs, "--mem", "4GiB")
	const want = "--mem 4 GiB is more than this job has: its control group allows 256 MiB, buffers get 224 MiB"
	if rec.Mem != 224<<20 || !strings.Contains(out, want) || len(rec.Warnings) != 1 || rec.Warnings[0] != want {
		t.Errorf("too much: memory %d, %q, %q", rec.Mem, rec.Warnings, out)
	}
}

// A job that is bound to CPUs, as SLURM does it, has as many workers.
func TestAffinity(t *testing.T) {
	runtime.LockOSThread() // and ends with the test: nothing else is to run there
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skip(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Skip(err)
	}
	if rec, _ := inGroups(t, nil); rec.Threads != 1 {
		t.Errorf("%d threads on one CPU", rec.Threads)
	}
}
