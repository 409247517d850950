package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// files writes a fake root folder.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// below reads files of a root folder.
func below(root string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
}

func TestCgroupLimits(t *testing.T) {
	const (
		v2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
		v1 = "40 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"41 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none": {nil, `{"cpus":null,"memory":null}`},
		"version 2, the smallest on the way counts": {map[string]string{
			"proc/self/cgroup":                      "0::/slurm/job_7/step_0\n",
			"proc/self/mountinfo":                   v2,
			"sys/fs/cgroup/slurm/job_7/memory.max":  "8589934592\n",
			"sys/fs/cgroup/slurm/job_7/cpu.max":     "max 100000\n",
			"sys/fs/cgroup/slurm/memory.max":        "max\n",
			"sys/fs/cgroup/slurm/cpu.max":           "250000 100000\n",
			"sys/fs/cgroup/slurm/job_7/step_0/x":    "",
			"sys/fs/cgroup/slurm/job_8/memory.max":  "1\n",
			"sys/fs/cgroup/slurm/job_7x/memory.max": "1\n",
		}, `{"cpus":2.5,"memory":8589934592}`},
		"version 2, where a process slows down is a limit": {map[string]string{
			"proc/self/cgroup":                      "0::/slurm/job_7\n",
			"proc/self/mountinfo":                   v2,
			"sys/fs/cgroup/slurm/job_7/memory.max":  "4294967296\n",
			"sys/fs/cgroup/slurm/job_7/memory.high": "2147483648\n",
			"sys/fs/cgroup/slurm/memory.high":       "max\n",
		}, `{"cpus":null,"memory":2147483648}`},
		"version 2 in a container that sees its own group as root": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"proc/self/mountinfo":      "30 24 0:26 /../../docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "268435456\n",
			"sys/fs/cgroup/cpu.max":    "50000 100000\n",
		}, `{"cpus":0.5,"memory":268435456}`},
		"version 1": {map[string]string{
			"proc/self/cgroup":                                "4:memory:/a/b\n3:cpuset:/\n2:cpu,cpuacct:/a\n",
			"proc/self/mountinfo":                             v1,
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes":  "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":    "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      "9223372036854771712\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us":    "400000\n",
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us":   "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":      "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":     "100000\n",
			"sys/fs/cgroup/memory/a/b/c/memory.limit_in_byte": "1\n",
		}, `{"cpus":4,"memory":1073741824}`},
		"version 1 in a container, the mount shows its group": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"proc/self/mountinfo":                        "40 30 0:30 /docker/abc /cg\\040mem rw - cgroup cgroup rw,memory\n",
			"cg mem/memory.limit_in_bytes":               "536870912\n",
			"cg mem/docker/abc/memory.limit_in_bytes":    "1\n",
			"cg mem/docker/abc/abc/memory.limit_in_byte": "1\n",
		}, `{"cpus":null,"memory":536870912}`},
		"nonsense": {map[string]string{
			"proc/self/cgroup":         "0::/\nx\n1\n:::\n4:memory\n",
			"proc/self/mountinfo":      "\n - \na b c - cgroup2 d e\n" + v2,
			"sys/fs/cgroup/cpu.max":    "a b\n",
			"sys/fs/cgroup/memory.max": "lots\n",
		}, `{"cpus":null,"memory":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(CgroupLimitsBy(below(files(t, c.files))))
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestCPUModel(t *testing.T) {
	root := files(t, map[string]string{
		"amd64": "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7763\n\nprocessor\t: 1\n",
		"arm64": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xfff\n",
		"none":  "\n",
	})
	for name, want := range map[string]string{"amd64": "AMD EPYC 7763", "arm64": "implementer 0x41 part 0xd0c", "none": "", "missing": ""} {
		if got := cpuModel(filepath.Join(root, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPeakResident(t *testing.T) {
	before := PeakResident()
	b := make([]byte, 64<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	after := PeakResident()
	if before < 1<<20 || after < before || after < 64<<20 {
		t.Errorf("%d before, %d after touching %d bytes", before, after, len(b))
	}
	if now := Resident(); now < 64<<20 || now > after+1<<20 {
		t.Errorf("%d bytes now, %d at most", now, after)
	}
	b[0]++ // it is there until here
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{"MemTotal:       16315848 kB\nMemFree: 1 kB\n": 16315848 << 10, "MemFree: 1 kB\n": 0, "MemTotal: many kB\n": 0, "": 0} {
		root := files(t, map[string]string{"meminfo": text})
		if got := memory(filepath.Join(root, "meminfo"), "MemTotal:"); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if memory(filepath.Join(t.TempDir(), "none"), "MemTotal:") != 0 {
		t.Error("a machine that says nothing has memory")
	}
}

func TestAvailable(t *testing.T) {
	const (
		meminfo = "MemTotal:       24684084 kB\nMemFree:        13233612 kB\nMemAvailable:   8388608 kB\nBuffers: 1 kB\n"
		v2      = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"unknown":                       {nil, 0},
		"no group":                      {map[string]string{"proc/meminfo": meminfo}, 8 << 30},
		"a kernel that has no estimate": {map[string]string{"proc/meminfo": "MemTotal: 24684084 kB\nMemFree: 13233612 kB\n"}, 0},
		"a group that others fill, without their file cache": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job/step\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/job/memory.max": "4294967296\n", "sys/fs/cgroup/job/memory.current": "3221225472\n",
			"sys/fs/cgroup/job/memory.stat":     "anon 1\ninactive_file 1073741824\nactive_file 268435456\n",
			"sys/fs/cgroup/job/step/memory.max": "max\n", "sys/fs/cgroup/job/step/memory.current": "1\n",
		}, 1<<30 + 1<<30 + 1<<28},
		"a group that is full": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/job/memory.max": "1048576\n", "sys/fs/cgroup/job/memory.current": "1048576\n",
		}, 1},
		"a group larger than the machine": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/job/memory.max": "1099511627776\n", "sys/fs/cgroup/job/memory.current": "1048576\n",
		}, 8 << 30},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/a\n",
			"proc/self/mountinfo":                          "40 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "805306368\n",
			"sys/fs/cgroup/memory/a/memory.stat":           "cache 5\ntotal_inactive_file 268435456\n",
		}, 512 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := availableBy(below(files(t, c.files))); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	if n, all := Available(), Memory(); n < 0 || all > 0 && n > all {
		t.Errorf("%d bytes of %d are available", n, all)
	}
}
