package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree holds a hash of every file below a path, by name; for a single file it has one entry, "".
type tree map[string][sha256.Size]byte

// treeOf hashes the files at a path, or returns nil if there is nothing.
func treeOf(path string) (tree, error) {
	var t tree
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if t == nil {
			t = tree{}
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		t[strings.TrimPrefix(file, path)] = sha256.Sum256(b)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return t, err
}

// equal reports whether two trees have the same files with the same bytes.
func (t tree) equal(other tree) bool { return (t == nil) == (other == nil) && maps.Equal(t, other) }

// difference names a file in which two trees differ.
func (t tree) difference(other tree) string {
	names := slices.Sorted(maps.Keys(t))
	names = append(names, slices.Sorted(maps.Keys(other))...)
	for _, name := range names {
		a, inA := t[name]
		b, inB := other[name]
		switch {
		case !inA:
			return fmt.Sprintf("%s is missing", name)
		case !inB:
			return fmt.Sprintf("%s is too many", name)
		case a != b:
			return fmt.Sprintf("%s has other bytes", name)
		}
	}
	return "there is nothing"
}

// copyTree copies a file or folder.
func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o666)
}

// remains names a hidden file or folder that a run left in a folder.
func remains(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			return e.Name(), err
		}
	}
	return "", err
}
