package store

import (
	"fmt"
	"strings"
)

// ValidKey reports whether key may name an object: segments joined by single
// slashes, none of them empty, "." or "..", and no NUL byte. Such a key never
// leads out of its store.
func ValidKey(key string) bool {
	for start := 0; ; {
		n := strings.IndexByte(key[start:], '/')
		seg := key[start:]
		if n >= 0 {
			seg = seg[:n]
		}
		if seg == "" || seg == "." || seg == ".." || strings.IndexByte(seg, 0) >= 0 {
			return false
		}
		if n < 0 {
			return true
		}
		start += n + 1
	}
}

// Join joins path and name to a key; either may be "".
func Join(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "":
		return path
	}
	return path + "/" + name
}

// checkKey returns an error for a key that [ValidKey] refuses.
func checkKey(key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("%w %q: want segments joined by single slashes, none of them empty, \".\" or \"..\"", ErrKey, key)
	}
	return nil
}

// checkPrefix returns an error for a prefix that is neither the root nor a valid key.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkKey(prefix)
}
