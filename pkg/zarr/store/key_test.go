package store

import (
	"path/filepath"
	"strings"
	"testing"
)

var badKeys = []string{"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/..", "../a", "a/../b", "a/./b", "a\x00b", "\x00"}

func TestValidKey(t *testing.T) {
	for _, key := range badKeys {
		if ValidKey(key) {
			t.Errorf("%q is valid", key)
		}
	}
	for key := range objects() {
		if !ValidKey(key) {
			t.Errorf("%q is not valid", key)
		}
	}
	for _, key := range []string{"...", "a/...", "a..b", ".a", "a\\b", "c/0/0"} {
		if !ValidKey(key) {
			t.Errorf("%q is not valid", key)
		}
	}
}

// FuzzValidKey: what is valid stays below the root, under that very name.
func FuzzValidKey(f *testing.F) {
	for _, key := range badKeys {
		f.Add(key)
	}
	for key := range objects() {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		path := filepath.Clean("/root/" + key)
		same := path == "/root/"+key && len(path) > len("/root/")
		if want := same && !strings.Contains(key, "\x00"); ValidKey(key) != want {
			t.Errorf("ValidKey(%q) = %v, but it leads to %q", key, !want, path)
		}
	})
}

func TestJoin(t *testing.T) {
	for _, c := range [][3]string{{"", "a", "a"}, {"a", "", "a"}, {"a/b", "c", "a/b/c"}, {"", "", ""}} {
		if got := Join(c[0], c[1]); got != c[2] {
			t.Errorf("Join(%q, %q) = %q", c[0], c[1], got)
		}
	}
}
