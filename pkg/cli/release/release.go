// Package release tells which release this program is of, and from which revision it was built.
package release

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// version is set when a release is linked: -ldflags "-X strata/pkg/cli/release.version=1.2.3".
var version = "dev"

// linkedCommit is set likewise, for builds that the go command does not stamp.
var linkedCommit string

// Build is the version, and the version control revision that the
// binary was built from with "+dirty" if files had been changed; "" if unknown.
func Build() (release, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, linkedCommit
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if commit == "" {
		return version, linkedCommit
	}
	return version, commit + dirty
}

// Print prints the line of --version: "aip 0.1.0 (1a2b3c4d5e6f+dirty)".
func Print(w io.Writer, tool string) error {
	release, commit := Build()
	if commit == "" {
		_, err := fmt.Fprintln(w, tool, release)
		return err
	}
	hash, dirty, _ := strings.Cut(commit, "+")
	if dirty != "" {
		dirty = "+" + dirty
	}
	_, err := fmt.Fprintf(w, "%s %s (%s%s)\n", tool, release, hash[:min(12, len(hash))], dirty)
	return err
}

// Version is the release that this program is of; "dev" outside of releases.
func Version() string { release, _ := Build(); return release }

// Commit is the revision that this program was built from, with "+dirty" if files
// had been changed; "" if unknown.
func Commit() string { _, commit := Build(); return commit }
