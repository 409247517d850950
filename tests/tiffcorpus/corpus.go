package tiffcorpus

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Manifest lists the files of a corpus, F, and the broken ones, B.
type Manifest[F, B any] struct {
	Files     []F
	Negatives []B
}

// Corpus is a manifest of files, which are read when they are first needed. Without all of them a test fails.
type Corpus[F, B any] struct {
	Readable, Broken int // numbers of files in the manifest
	// Load reads the manifest and returns the contents of the files by their names.
	Load func(m *Manifest[F, B]) (map[string][]byte, error)

	once     sync.Once
	manifest Manifest[F, B]
	data     map[string][]byte
	err      error
}

// Manifest returns the manifest.
func (c *Corpus[F, B]) Manifest(t testing.TB) Manifest[F, B] {
	t.Helper()
	c.once.Do(func() { c.data, c.err = c.Load(&c.manifest) })
	m := c.manifest
	if c.err != nil {
		t.Fatal(c.err)
	}
	if len(m.Files) != c.Readable || len(m.Negatives) != c.Broken {
		t.Fatalf("%d files and %d broken files in the manifest", len(m.Files), len(m.Negatives))
	}
	return m
}

// Bytes returns a file by its name in the manifest.
func (c *Corpus[F, B]) Bytes(t testing.TB, name string) []byte {
	t.Helper()
	c.Manifest(t)
	b, ok := c.data[name]
	if !ok {
		t.Fatalf("%s: not in the corpus", name)
	}
	return b
}

// Write writes a file to a temporary folder and returns its path.
func (c *Corpus[F, B]) Write(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, c.Bytes(t, name), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
