package sysinfo

import (
	"strconv"
	"strings"

	"strata/pkg/host"
)

// Limits holds the resource limits of the process.
type Limits struct {
	Locked Fact[int64]   `json:"memlock"`       // bytes that may be locked in memory; -1: unlimited
	Files  Fact[int64]   `json:"nofile"`        // files that may be open; -1: unlimited
	CPUs   Fact[float64] `json:"cgroup_cpus"`   // of the control group
	Memory Fact[int64]   `json:"cgroup_memory"` // bytes, of the control group
}

func (r Root) limits() Limits {
	var l Limits
	b, err := r.read("/proc/self/limits")
	if err != nil {
		reason := why("/proc/self/limits", err)
		l.Locked, l.Files = Fact[int64]{Reason: reason}, Fact[int64]{Reason: reason}
	} else {
		l.Locked = parseLimit(string(b), "Max locked memory")
		l.Files = parseLimit(string(b), "Max open files")
	}
	c := host.CgroupLimitsBy(r.read)
	l.CPUs, l.Memory = unknown[float64]("the control group sets none"), unknown[int64]("the control group sets none")
	if c.CPUs != nil {
		l.CPUs = known(*c.CPUs)
	}
	if c.Memory != nil {
		l.Memory = known(*c.Memory)
	}
	return l
}

// parseLimit returns the soft limit of a line such as
// "Max open files            1024                 524288               files".
func parseLimit(text, name string) Fact[int64] {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			break
		}
		if soft, ok := limitOf(f[0]); ok {
			return known(soft)
		}
		break
	}
	return unknown[int64]("/proc/self/limits has no usable line %q", name)
}

func limitOf(word string) (int64, bool) {
	if word == "unlimited" {
		return -1, true
	}
	n, err := strconv.ParseInt(word, 10, 64)
	return n, err == nil && n >= 0
}
