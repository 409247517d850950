package deb

import (
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// Package is one package of an archive.
type Package struct {
	Name    string
	Version string
	Arch    string // Debian's name: "amd64", "all"
	Archive string // the mirror that has it: "debian" or "debian-security"
	File    string // path in the archive: "pool/main/b/bash/bash_5.2.15-2_amd64.deb"
	Size    int64  // of that file, bytes
	SHA256  string // of that file, hex

	depends  [][]Relation
	provides []Relation
}

// String returns the package's name in messages: "bash 5.2.15-2".
func (p *Package) String() string { return p.Name + " " + p.Version }

// check returns the faults of a package's entry in an index or a lock file.
func (p *Package) check() error {
	switch sum, err := hex.DecodeString(p.SHA256); {
	case !validName(p.Name):
		return fmt.Errorf("%q is not a package name", p.Name)
	case p.Version == "" || strings.ContainsAny(p.Version, " /\n"):
		return fmt.Errorf("package %s: %q is not a version", p.Name, p.Version)
	case p.Arch == "" || strings.ContainsAny(p.Arch, " /\n"):
		return fmt.Errorf("package %s: %q is not an architecture", p.Name, p.Arch)
	case err != nil || len(sum) != 32:
		return fmt.Errorf("package %s: %q is not a SHA-256", p.Name, p.SHA256)
	case p.Size <= 0 || p.Size > maxPackage:
		return fmt.Errorf("package %s: size %d is not from 1 to %d", p.Name, p.Size, int64(maxPackage))
	case p.File == "" || path.Clean(p.File) != p.File || path.IsAbs(p.File) || strings.HasPrefix(p.File, "..") || strings.ContainsAny(p.File, " \n?#"):
		return fmt.Errorf("package %s: %q is not a path in an archive", p.Name, p.File)
	}
	return nil
}

// validName accepts lower case, digits and "+-.", as deb-control(5) does.
func validName(name string) bool {
	for i, c := range []byte(name) {
		letter := isDigit(c) || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("+-.", rune(c))) {
			return false
		}
	}
	return name != ""
}

// Index lists the packages of one or several archives for one architecture.
type Index struct {
	packages map[string]*Package   // the newest of each name
	provided map[string][]*Package // by virtual name
}

// Read adds the packages in an uncompressed Packages file of the named archive.
func (x *Index) Read(r io.Reader, archive string) error {
	if x.packages == nil {
		x.packages, x.provided = map[string]*Package{}, map[string][]*Package{}
	}
	return readStanzas(r, func(s Stanza) error {
		size, err := strconv.ParseInt(s["Size"], 10, 64)
		if err != nil {
			return fmt.Errorf("package %q: size %q is not a number", s["Package"], s["Size"])
		}
		p := &Package{Name: s["Package"], Version: s["Version"], Arch: s["Architecture"], Archive: archive,
			File: s["Filename"], Size: size, SHA256: s["SHA256"]}
		if err := p.check(); err != nil {
			return err
		}
		if old := x.packages[p.Name]; old != nil && CompareVersions(old.Version, p.Version) >= 0 {
			return nil
		}
		for _, field := range []string{"Pre-Depends", "Depends"} {
			groups, err := ParseRelations(s[field])
			if err != nil {
				return fmt.Errorf("package %s: %s: %w", p.Name, field, err)
			}
			p.depends = append(p.depends, groups...)
		}
		groups, err := ParseRelations(s["Provides"])
		if err != nil {
			return fmt.Errorf("package %s: Provides: %w", p.Name, err)
		}
		for _, g := range groups {
			p.provides = append(p.provides, g[0])
			x.provided[g[0].Name] = append(x.provided[g[0].Name], p)
		}
		x.packages[p.Name] = p
		return nil
	})
}
