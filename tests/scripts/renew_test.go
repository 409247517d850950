// Package scripts tests the shell scripts below scripts/ that other targets of the Makefile build on.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// scripts/renew.sh leaves a file that has the same bytes alone, whatever its time, and replaces another
// without writing into it: a program that runs, or a hard link, keeps the old bytes.
func TestRenew(t *testing.T) {
	for _, links := range []bool{false, true} {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "new folder")
		long := time.Now().Add(-time.Hour).Truncate(time.Second)
		renew := func() {
			t.Helper()
			args := []string{filepath.Join(from, "same"), filepath.Join(from, "other"), to}
			if links {
				args = append([]string{"--link"}, args...)
			}
			if out, err := exec.Command("../../scripts/renew.sh", args...).CombinedOutput(); err != nil {
				t.Fatalf("renew.sh: %v\n%s", err, out)
			}
		}
		write := func(name, text string) {
			t.Helper()
			// As a linker does it: a new file under the name.
			file := filepath.Join(from, name)
			if err := os.WriteFile(file+".part", []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".part", file); err != nil {
				t.Fatal(err)
			}
		}
		stat := func(name string) os.FileInfo {
			t.Helper()
			info, err := os.Stat(filepath.Join(to, name))
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		write("same", "1")
		write("other", "1")
		renew()
		if stat("same").Mode().Perm() != 0o755 {
			t.Errorf("links %v: a program is no program any more: %v", links, stat("same").Mode())
		}
		for _, name := range []string{"same", "other"} {
			if err := os.Chtimes(filepath.Join(to, name), long, long); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(filepath.Join(to, "other"), filepath.Join(to, "kept")); err != nil {
			t.Fatal(err)
		}
		write("same", "1")
		write("other", "2")
		before := stat("same")
		renew()
		if after := stat("same"); !os.SameFile(before, after) || !after.ModTime().Equal(long) {
			t.Errorf("links %v: a file of the same bytes was written: %v, was of %v", links, after.ModTime(), long)
		}
		if text, err := os.ReadFile(filepath.Join(to, "other")); string(text) != "2" || err != nil {
			t.Errorf("links %v: the file that differs holds %q, %v", links, text, err)
		}
		if text, err := os.ReadFile(filepath.Join(to, "kept")); string(text) != "1" || err != nil {
			t.Errorf("links %v: it was written into: the old one holds %q, %v", links, text, err)
		}
		if names, err := filepath.Glob(filepath.Join(to, ".*")); len(names) > 0 || err != nil {
			t.Errorf("links %v: left %v, %v", links, names, err)
		}
	}
}

// Symbolic links, which the programs' names are, stay links, and keep their times as long as they have the same target;
// a program of an older build makes way for one.
func TestRenewLinks(t *testing.T) {
	for _, how := range [][]string{nil, {"--link"}} {
		from, to := t.TempDir(), t.TempDir()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(os.WriteFile(filepath.Join(from, "strata"), []byte("new"), 0o755))
		check(os.Symlink("strata", filepath.Join(from, "aip")))
		check(os.WriteFile(filepath.Join(to, "aip"), []byte("old"), 0o755))
		renew := func() os.FileInfo {
			t.Helper()
			if out, err := exec.Command("../../scripts/renew.sh", append(how, filepath.Join(from, "strata"), filepath.Join(from, "aip"), to)...).CombinedOutput(); err != nil {
				t.Fatalf("renew.sh: %v\n%s", err, out)
			}
			info, err := os.Lstat(filepath.Join(to, "aip"))
			check(err)
			return info
		}
		first := renew()
		if target, err := os.Readlink(filepath.Join(to, "aip")); target != "strata" || err != nil {
			t.Fatalf("%v: a link came as %q, %v", how, target, err)
		}
		check(os.Remove(filepath.Join(from, "aip")))
		check(os.Symlink("strata", filepath.Join(from, "aip")))
		if again := renew(); !os.SameFile(first, again) {
			t.Errorf("%v: a link with the same target was made anew", how)
		}
	}
}
