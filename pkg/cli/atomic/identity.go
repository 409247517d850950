package atomic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

// Hidden names: ".NAME.strata-HOST-PID-START.NAMESPACE.RANDOM", and the same
// with asideSuffix for an old output while it is replaced. START (the
// process's start in clock ticks since boot) and NAMESPACE (of process ids)
// keep a reused process id, or one of another container, from being taken for
// the writer.
const asideSuffix = ".old"

// siblingPattern is compiled when first needed: a start-up that only prints the
// version must not pay for it.
var siblingPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\.(.+)\.strata-(.+)-(\d+)-([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)(\.old)?$`)
})

// identity tells a process apart from all others that may write to the same folder.
type identity struct {
	host      string
	pid       int
	start     string // base 36; "0" where the system does not tell
	namespace string // base 36; "0" where the system does not tell
}

func self() identity {
	pid := os.Getpid()
	return identity{hostName(), pid, startOf(pid), namespace()}
}

// hostName is the host's name; machines that all call themselves localhost are
// told apart by their machine id.
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

// startOf is the start time of a process: field 22 of /proc/PID/stat. The
// second field, in parentheses, may hold anything.
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

// namespace is the process id namespace: "pid:[4026531836]" of /proc/self/ns/pid.
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

// sibling is the hidden name for an output called base, at most 255 bytes long.
func (id identity) sibling(base, random string) string {
	tail := ".strata-" + id.host + "-" + strconv.Itoa(id.pid) + "-" + id.start + "." + id.namespace + "." + random
	if room := 255 - 1 - len(tail) - len(asideSuffix); len(base) > room {
		for room > 0 && !utf8.RuneStart(base[room]) {
			room--
		}
		base = base[:room]
	}
	return "." + base + tail
}

// parseSibling reads a hidden name back.
func parseSibling(name string) (base string, id identity, aside, ok bool) {
	m := siblingPattern().FindStringSubmatch(name)
	if m == nil {
		return "", identity{}, false, false
	}
	pid, err := strconv.Atoi(m[3])
	if err != nil || pid <= 0 {
		return "", identity{}, false, false
	}
	return m[1], identity{m[2], pid, m[4], m[5]}, m[7] != "", true
}

// dead says whether another process on this host has surely ended.
func (id identity) dead(other identity) bool {
	if other.host != id.host || other.namespace != id.namespace {
		return false // cannot know
	}
	if err := syscall.Kill(other.pid, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	return other.start != "0" && startOf(other.pid) != other.start
}

// clean removes the remains of dead processes in the output's folder. An old
// output that a dead process had set aside goes back to its place if nothing
// took it.
func (g *Group) clean(o *Output) {
	dir, base := filepath.Split(o.final)
	names, err := readNames(dir)
	if err != nil {
		return // a folder that can be written to need not be readable
	}
	for _, name := range names {
		wrote, id, aside, ok := parseSibling(name)
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		switch {
		case !g.self.dead(id):
			if wrote == base && !aside && (id.host != g.self.host || id.pid != g.self.pid) && recent(path) {
				g.opt.Warn("process %d on %s seems to write %s too: the first that is complete stays, or the last with --overwrite", id.pid, id.host, o.path)
			}
		case aside:
			final := filepath.Join(dir, wrote)
			if _, err := os.Lstat(final); errors.Is(err, fs.ErrNotExist) {
				if err := g.ops.renameNew(path, final); err == nil {
					g.opt.Warn("%s was put back: a process had died while it replaced it", final)
				}
				continue
			}
			g.remove(path)
		default:
			g.remove(path)
		}
	}
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// recent tells a writer from remains of another host: those stay silent after a day.
func recent(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) < 24*time.Hour
}
