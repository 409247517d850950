// Package hiddenname names the files that a run writes beside its outputs until they are complete, and finds
// outputs under such names.
//
// A [Process] writes the output NAME under a hidden sibling, ".NAME.strata-HOST-PID-START.NAMESPACE.RANDOM".
// START (the process's start in clock ticks since boot) and NAMESPACE (of process ids) keep a reused process
// id, or one of another container, from being taken for the writer.
//
// Where two names cannot be exchanged in one step (NFS), an old folder is moved to the sibling's name with
// ".old" appended, and then the new one is renamed, so that NAME is missing in between. A process that dies
// there leaves the old folder and the new one, both hidden. Once the new one has its name, the old one is
// garbage, whole or not: only a folder whose new twin still exists is [Kept].
package hiddenname

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"strata/pkg/pattern"
)

// AsideSuffix follows the sibling's name in the name of an old folder.
const AsideSuffix = ".old"

// siblingName is the form of a sibling's name.
var siblingName = pattern.Lazy(`^\.(.+)\.strata-(.+)-(\d+)-([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)(\.old)?$`)

// Process identifies a process among all that may write to the same folder.
type Process struct {
	Host      string
	PID       int
	Start     string // base 36; "0" if unknown
	Namespace string // base 36; "0" if unknown
}

// Self returns the current process.
func Self() Process {
	pid := os.Getpid()
	return Process{hostName(), pid, startOf(pid), namespace()}
}

// hostName returns the host's name, with the machine id appended for machines that all call themselves
// localhost.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	if strings.HasPrefix(name, "localhost") {
		if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(id) >= 8 {
			name += "." + string(id[:8])
		}
	}
	if len(name) > 64 {
		name = name[:64]
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
}

// startOf returns the start time of a process: field 22 of /proc/PID/stat. The second field, in parentheses,
// may hold anything.
func startOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "0"
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "0"
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return "0"
	}
	return strconv.FormatUint(ticks, 36)
}

// namespace returns the process id namespace: "pid:[4026531836]" of /proc/self/ns/pid.
func namespace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "0"
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]"), 10, 64)
	if err != nil {
		return "0"
	}
	return strconv.FormatUint(n, 36)
}

// longest is the length of a name from which it may have been cut.
const longest = 255 - len(AsideSuffix) - utf8.UTFMax

// Name returns the hidden name for an output called base, at most 255 bytes long with the suffix. random, of
// digits and small letters, tells outputs of one process apart.
func (p Process) Name(base, random string) string {
	tail := ".strata-" + p.Host + "-" + strconv.Itoa(p.PID) + "-" + p.Start + "." + p.Namespace + "." + random
	if room := 255 - 1 - len(tail) - len(AsideSuffix); len(base) > room {
		for room > 0 && !utf8.RuneStart(base[room]) {
			room--
		}
		base = base[:room]
	}
	return "." + base + tail
}

// Hidden holds the parts of a hidden name.
type Hidden struct {
	Name   string // the whole name
	Base   string // of the output
	Writer Process
	Aside  bool // an old folder, set aside

	cut bool
}

// Cut reports whether Base may be only the beginning of the output's name, because the name was too long for
// a sibling.
func (h Hidden) Cut() bool { return h.cut }

// Of reports whether the name belongs to an output called base.
func (h Hidden) Of(base string) bool {
	return h.Base == base || h.cut && strings.HasPrefix(base, h.Base)
}

// Parse splits a hidden name into its parts.
func Parse(name string) (h Hidden, ok bool) {
	m := siblingName().FindStringSubmatch(name)
	if m == nil {
		return h, false
	}
	pid, err := strconv.Atoi(m[3])
	if err != nil || pid <= 0 {
		return h, false
	}
	return Hidden{name, m[1], Process{m[2], pid, m[4], m[5]}, m[7] != "", len(strings.TrimSuffix(name, AsideSuffix)) >= longest}, true
}

// State tells what is known of a process.
type State int

const (
	Unknown State = iota // on another host, or in another container
	Alive
	Dead
)

// State finds out whether another process is alive.
func (p Process) State(other Process) State {
	if other.Host != p.Host || other.Namespace != p.Namespace {
		return Unknown
	}
	if err := syscall.Kill(other.PID, 0); errors.Is(err, syscall.ESRCH) {
		return Dead
	}
	if other.Start != "0" && startOf(other.PID) != other.Start {
		return Dead
	}
	return Alive
}
