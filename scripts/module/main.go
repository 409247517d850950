// Command module copies the sources under another module path, so that other modules can import them from where
// they are published (make module): strata itself is not an address. It rewrites import paths, the linker's flags
// and documents that name packages.
//
//	go run ./scripts/module -name example.org/owner/strata -out build/module
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
)

func main() {
	root := flag.String("root", ".", "folder of the sources, a checkout of git")
	name := flag.String("name", "", "new path of the module")
	out := flag.String("out", "", "folder for the copy; it must not exist")
	flag.Parse()
	if err := rename(*root, *name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
}

// rename copies the tracked files of root to out, as the module name.
func rename(root, name, out string) error {
	if err := module.CheckPath(name); err != nil || out == "" {
		return fmt.Errorf("usage: module -name HOST/OWNER/NAME -out DIR: %w", err)
	}
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("folder %s exists: remove it, or name another", out)
	}
	c := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	c.Dir = root
	list, err := c.Output()
	if err != nil {
		return fmt.Errorf("folder %s: git ls-files: %w", root, err)
	}
	part := out + ".part"
	if err := os.RemoveAll(part); err != nil { // of a run that was killed
		return err
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, file), filepath.Join(part, file), name); err != nil {
			_ = os.RemoveAll(part)
			return err
		}
	}
	return os.Rename(part, out)
}

func copyFile(from, to, name string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return nil // removed, not committed yet
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if !bytes.Contains(text[:min(len(text), 8000)], []byte{0}) { // as git tells binary files
		text = rewrite(text, name)
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

var (
	// Lines of go.mod, and of that of the laboratory, which requires the module beside it.
	moduleLine = regexp.MustCompile(`(?m)^(module strata(/lab)?|\tstrata v0\.0\.0|replace strata => \.\./)$`)
	// A package, not a folder of that name: nothing of a path stands before it.
	packagePath = regexp.MustCompile(`(^|[^\w./-])strata/(pkg|cmd|tests|lab|scripts)\b`)
	prefix      = []byte(`"strata/"`) // in tests that look at import paths
)

// rewrite replaces the module path in a text.
func rewrite(text []byte, name string) []byte {
	text = moduleLine.ReplaceAllFunc(text, func(line []byte) []byte { return bytes.Replace(line, []byte("strata"), []byte(name), 1) })
	text = packagePath.ReplaceAll(text, []byte("${1}"+name+"/${2}"))
	return bytes.ReplaceAll(text, prefix, []byte(`"`+name+`/"`))
}
