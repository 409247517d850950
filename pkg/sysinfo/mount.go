package sysinfo

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Mount is a line of mountinfo.
type Mount struct {
	Device  string   `json:"device"`  // "259:1"; major number 0 has no block device
	Point   string   `json:"point"`   // where
	Type    string   `json:"type"`    // "ext4", "nfs4" …
	Source  string   `json:"source"`  // "/dev/md0", "server:/export"
	Options []string `json:"options"` // of the mount and of the file system
}

// option returns the value of an option name=value; ok reports whether the option exists, possibly without a
// value.
func (m Mount) option(name string) (value string, ok bool) {
	for _, o := range m.Options {
		k, v, _ := strings.Cut(o, "=")
		if k == name {
			return v, true
		}
	}
	return "", false
}

func (r Root) mounts() ([]Mount, error) {
	b, err := r.read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(b)), nil
}

// parseMounts reads lines of Linux, Documentation/filesystems/proc, section 3.5:
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
func parseMounts(text string) []Mount {
	var list []Mount
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		l, r := strings.Split(left, " "), strings.Split(right, " ")
		if !ok || len(l) < 6 || len(r) < 2 || l[4] == "" {
			continue
		}
		m := Mount{Device: l[2], Point: unescapeOctal(l[4]), Type: r[0], Source: unescapeOctal(r[1]), Options: []string{}}
		m.Options = append(m.Options, strings.Split(l[5], ",")...)
		if len(r) > 2 {
			for _, o := range strings.Split(r[2], ",") {
				if !slices.Contains(m.Options, o) {
					m.Options = append(m.Options, o)
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// unescapeOctal undoes escapes such as "\040".
func unescapeOctal(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mountOf returns the mount that contains a path, which must be absolute and free of symbolic links. It takes the
// deepest mount point; of several mounts there, the last one counts, because it covers the earlier ones.
func mountOf(mounts []Mount, name string) *Mount {
	var best *Mount
	for i := range mounts {
		m := &mounts[i]
		if (best == nil || len(m.Point) >= len(best.Point)) && below(name, m.Point) {
			best = m
		}
	}
	return best
}

func below(name, dir string) bool {
	dir = path.Clean(dir)
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}
