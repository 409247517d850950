package host

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits holds the limits of the process's control groups; nil (null in JSON) means no limit.
type Limits struct {
	CPUs   *float64 `json:"cpus"`   // processors' worth of time
	Memory *int64   `json:"memory"` // bytes
}

// CgroupLimits reads the limits that apply to this process: the smallest on the path from its group to the
// root, for cgroup versions 1 and 2. Systems without control groups have no limits.
func CgroupLimits() Limits { return CgroupLimitsBy(os.ReadFile) }

// CgroupLimitsBy reads the limits like [CgroupLimits] by means of read, which may return files of another
// machine.
func CgroupLimitsBy(read func(name string) ([]byte, error)) Limits {
	var l Limits
	eachGroup(read, func(g group) {
		switch g.controller {
		case "":
			l.cpus(quotaV2(read, g.dir))
			l.memory(number(read, g.dir, "memory.max"))
			l.memory(number(read, g.dir, "memory.high")) // beyond it nothing is killed, but all but stands still
		case "memory":
			l.memory(number(read, g.dir, "memory.limit_in_bytes"))
		case "cpu":
			l.cpus(ratio(number(read, g.dir, "cpu.cfs_quota_us"), number(read, g.dir, "cpu.cfs_period_us")))
		}
	})
	return l
}

// cgroupLeft returns the bytes that the process's control groups leave to programs: their limits less what is in use
// and is not the cache of a file. limited is false if no group has a limit.
func cgroupLeft(read func(name string) ([]byte, error)) (left int64, limited bool) {
	eachGroup(read, func(g group) {
		var l Limits
		var usage float64
		cached := []string{"inactive_file", "active_file"}
		switch g.controller {
		case "":
			l.memory(number(read, g.dir, "memory.max"))
			l.memory(number(read, g.dir, "memory.high"))
			usage = number(read, g.dir, "memory.current")
		case "memory":
			l.memory(number(read, g.dir, "memory.limit_in_bytes"))
			usage = number(read, g.dir, "memory.usage_in_bytes")
			cached = []string{"total_inactive_file", "total_active_file"}
		}
		if l.Memory == nil || math.IsNaN(usage) {
			return
		}
		for _, name := range cached {
			usage -= counted(read, g.dir, name)
		}
		if n := max(0, *l.Memory-int64(max(0, usage))); !limited || n < left {
			left, limited = n, true
		}
	})
	return left, limited
}

// counted returns a number of memory.stat; 0 if it is not there.
func counted(read func(name string) ([]byte, error), dir, name string) float64 {
	text, err := read(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err == nil {
				return float64(n)
			}
		}
	}
	return 0
}

// group is the folder of a control group; controller is "" in version 2, in which a group has all of them.
type group struct{ controller, dir string }

// eachGroup visits the process's groups of memory and processors, and all above them.
func eachGroup(read func(name string) ([]byte, error), visit func(g group)) {
	groups, err := read("/proc/self/cgroup")
	if err != nil {
		return
	}
	mounts, err := read("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(groups)) {
		// "4:memory:/path", or "0::/path" of version 2.
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			walk(string(mounts), "cgroup2", "", parts[2], func(dir string) { visit(group{"", dir}) })
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "memory" || controller == "cpu" {
				walk(string(mounts), "cgroup", controller, parts[2], func(dir string) { visit(group{controller, dir}) })
			}
		}
	}
}

// walk calls visit for a group's folder and all above it, up to the mount
// point. In a container the mount may show only a part of the hierarchy.
func walk(mounts, fsType, controller, group string, visit func(dir string)) {
	for line := range strings.Lines(mounts) {
		// 36 35 98:0 /root /mount/point options … - type source superoptions
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 || r[0] != fsType {
			continue
		}
		if controller != "" && !strings.Contains(","+r[2]+",", ","+controller+",") {
			continue
		}
		top := filepath.Clean(unescape(l[4]))
		below, err := filepath.Rel(unescape(l[3]), group)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			below = "."
		}
		dir := filepath.Join(top, below)
		for {
			visit(dir)
			if dir == top || len(dir) <= len(top) {
				return
			}
			dir = filepath.Dir(dir)
		}
	}
}

// unescape undoes the octal escapes of mountinfo: "\040" is a space.
func unescape(s string) string {
	for _, e := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return s
}

// number reads a file with one whole number; it returns NaN for "max" and other texts.
func number(read func(name string) ([]byte, error), dir, name string) float64 {
	text, err := read(filepath.Join(dir, name))
	if err != nil {
		return math.NaN()
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return math.NaN()
	}
	return float64(n)
}

// quotaV2 reads cpu.max: "150000 100000", or "max 100000".
func quotaV2(read func(name string) ([]byte, error), dir string) float64 {
	text, err := read(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return math.NaN()
	}
	f := strings.Fields(string(text))
	if len(f) != 2 {
		return math.NaN()
	}
	quota, err1 := strconv.ParseFloat(f[0], 64)
	period, err2 := strconv.ParseFloat(f[1], 64)
	if err1 != nil || err2 != nil {
		return math.NaN()
	}
	return ratio(quota, period)
}

// ratio returns the processors' worth of a quota; version 1 says -1 for none.
func ratio(quota, period float64) float64 {
	if quota <= 0 || period <= 0 {
		return math.NaN()
	}
	return quota / period
}

func (l *Limits) cpus(n float64) {
	if n > 0 && (l.CPUs == nil || n < *l.CPUs) {
		l.CPUs = &n
	}
}

// memory takes a limit; version 1 writes a huge number for none.
func (l *Limits) memory(bytes float64) {
	if bytes > 0 && bytes < 1<<60 && (l.Memory == nil || int64(bytes) < *l.Memory) {
		n := int64(bytes)
		l.Memory = &n
	}
}
