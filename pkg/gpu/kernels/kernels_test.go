//go:build !nocuda

package kernels

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// TestAlone: all kernels of all files can be loaded one by one, and nothing but kernels
// is left behind: variables and functions would have to go with them.
func TestAlone(t *testing.T) {
	files, err := fs.Glob(ptx, "*.ptx")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	entries := regexp.MustCompile(`\.entry (\w+)\(`)
	comment := regexp.MustCompile(`(?m)^\s*//.*$`)
	seen := map[string]string{}
	for _, f := range files {
		b, err := ptx.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		file := string(b)
		head, rest, _ := strings.Cut(file, entry)
		rest = entry + rest
		for _, m := range entries.FindAllStringSubmatch(file, -1) {
			name := m[1]
			if other, twice := seen[name]; twice {
				t.Errorf("%s is in %s and %s", name, other, f)
			}
			seen[name] = f
			one, err := alone(file, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := entries.FindAllString(one, -1); len(got) != 1 || !strings.HasPrefix(one, head) || !strings.HasSuffix(one, "\n}\n") {
				t.Errorf("%s: kernels %v", name, got)
			}
			rest = strings.Replace(rest, strings.TrimPrefix(one, head), "", 1)
		}
		if left := strings.TrimSpace(comment.ReplaceAllString(rest, "")); left != "" {
			t.Errorf("%s: beside its kernels it has %q", f, left)
		}
	}
	if _, err := alone(entry+"a(\n)\n{\n}\n", "b"); err == nil {
		t.Error("found what is not there")
	}
	if _, err := alone(entry+"a(\n)\n{\n", "a"); err == nil {
		t.Error("found what does not end")
	}
}
