package sif

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// image makes a root with folders, a file and links.
func image(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "usr/lib", "home", "run", "var", "data"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"bin": "usr/bin", "var/run": "/run", "lib": "../../../usr/lib", "loop": "loop", "up": "../.."} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "usr/bin/tool"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestInRoot(t *testing.T) {
	root := image(t)
	for name, want := range map[string]string{
		"/": "/", "bin": "/usr/bin", "/bin/tool": "/usr/bin/tool", "/var/run/x/y": "/run/x/y", "/lib/z": "/usr/lib/z", "/up/data": "/data",
		"/new/deep": "/new/deep", "/bin/../data": "/data", "/../../etc": "/etc",
	} {
		if got, err := inRoot(root, name); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := inRoot(root, "/loop/x"); !errors.Is(err, ErrBind) {
		t.Error(err)
	}
}

func TestArrange(t *testing.T) {
	root, source := image(t), t.TempDir()
	file := filepath.Join(source, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Mkdir(filepath.Join(source, "inner"), 0o755)); err != nil {
		t.Fatal(err)
	}
	p := plan{Root: root}
	err := p.arrange([]Bind{{Source: source, Target: "/data"}, {Source: source, Target: "/home/me/work"}, {Source: file, Target: "/bin/other"}, {Source: source, Target: "/well/x"},
		{Source: source, Target: "/well/x/inner"}, {Source: file, Target: "/bin/tool"}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(p.Open)
	if d := cmp.Diff([]string{"/", "/home", "/usr", "/usr/bin"}, p.Open); d != "" {
		t.Errorf("folders that are made anew: %s", d)
	}
	var made []string
	for _, b := range p.Make {
		made = append(made, b.Target)
	}
	if d := cmp.Diff([]string{"/home/me/work", "/usr/bin/other", "/well/x"}, made); d != "" {
		t.Errorf("made: %s", d)
	}
	for want, b := range map[string]Bind{
		"no such file or folder":                             {Source: source + "/nothing", Target: "/data"},
		"/usr/bin is a folder on one side and a file on the": {Source: file, Target: "/bin"},
		"/usr/bin/tool is a file":                            {Source: file, Target: "/bin/tool/x"},
		"the root of the image cannot be replaced":           {Source: source, Target: "/up"},
		"there is no /data/nothing in":                       {Source: source, Target: "/data/nothing"},
	} {
		p := plan{Root: root}
		if err := p.arrange([]Bind{{Source: source, Target: "/data"}, b}); !errors.Is(err, ErrBind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}
