package deb

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lock pins packages: the same lock gives the same bytes.
type Lock struct {
	Suite    string    // "bookworm"
	Arch     string    // Debian's name
	Date     time.Time // when it was made: at that time the archive had all of them
	Packages []*Package
	Extra    []*Package // further packages of a larger image
}

const lockHead = "# Debian packages of the image. `sif lock` renews this list.\n"

// Write writes the lock as text, a line per package.
func (l *Lock) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, lockHead)
	fmt.Fprintf(b, "suite %s\narchitecture %s\ndate %s\n", l.Suite, l.Arch, l.Date.UTC().Format(time.RFC3339))
	for i, p := range slices.Concat(l.Packages, l.Extra) {
		word := "package"
		if i >= len(l.Packages) {
			word = "extra"
		}
		fmt.Fprintf(b, "%s %s %s %s %s %s %d %s\n", word, p.Name, p.Version, p.Arch, p.Archive, p.File, p.Size, p.SHA256)
	}
	return b.Flush()
}

// ReadLock reads the output of Write. Errors name the line.
func ReadLock(r io.Reader) (*Lock, error) {
	l, lines, seen := new(Lock), bufio.NewScanner(r), map[string]bool{}
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		var err error
		switch {
		case f[0] == "suite" && len(f) == 2:
			l.Suite = f[1]
		case f[0] == "architecture" && len(f) == 2:
			l.Arch = f[1]
		case f[0] == "date" && len(f) == 2:
			l.Date, err = time.Parse(time.RFC3339, f[1])
		case (f[0] == "package" || f[0] == "extra") && len(f) == 8:
			p := &Package{Name: f[1], Version: f[2], Arch: f[3], Archive: f[4], File: f[5], SHA256: f[7]}
			if p.Size, err = strconv.ParseInt(f[6], 10, 64); err == nil {
				err = p.check()
			}
			if seen[p.Name] && err == nil {
				err = fmt.Errorf("package %s stands twice", p.Name)
			}
			seen[p.Name] = true
			if f[0] == "extra" {
				l.Extra = append(l.Extra, p)
			} else {
				l.Packages = append(l.Packages, p)
			}
		default:
			err = fmt.Errorf("%.60q: want suite, architecture, date, or package or extra with its name, version, architecture, archive, file, size and SHA-256", lines.Text())
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if l.Suite == "" || l.Arch == "" || l.Date.IsZero() || len(l.Packages) == 0 {
		return nil, fmt.Errorf("a lock file needs a suite, an architecture, a date and packages")
	}
	return l, nil
}

// Package returns the package with the given name, or nil if it is not in the lock.
func (l *Lock) Package(name string) *Package {
	for _, p := range slices.Concat(l.Packages, l.Extra) {
		if p.Name == name {
			return p
		}
	}
	return nil
}
