// Package smallfile reads the small files that accompany a run's images: tables, transforms, settings,
// records.
//
// [Read] and [Text] read the whole file at a path within limits: a document has at most [MaxBytes], a line of
// a text at most [MaxLine], and a silent pipe or terminal is abandoned when the context ends. Parsers that
// take an io.Reader use [All] or [Lines], with the same limits:
//
//	f, err := smallfile.Open(ctx, "shifts_xy.csv") // waits for a pipe's writer
//	text, err := smallfile.Lines(f, "shifts_xy.csv")
package smallfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Limits of a document. Those of real data are smaller by far.
const (
	MaxBytes = 16 << 20
	MaxLine  = 1 << 20
)

// Read returns the content of a file of at most [MaxBytes]. Errors name it.
func Read(ctx context.Context, path string) ([]byte, error) { return read(ctx, path, All) }

// Text returns the content of a file of lines of at most [MaxLine]. Errors name it.
func Text(ctx context.Context, path string) ([]byte, error) { return read(ctx, path, Lines) }

func read(ctx context.Context, path string, all func(io.Reader, string) ([]byte, error)) ([]byte, error) {
	f, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return all(f, path)
}

// All returns the rest of a reader, at most [MaxBytes]. name is used in errors.
func All(r io.Reader, name string) ([]byte, error) {
	b, whole, err := limited(r, name)
	if err == nil && !whole {
		err = fmt.Errorf("%s: is longer than %d MiB", name, MaxBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Lines returns the rest of a text like [All]; a line longer than [MaxLine] is an error.
func Lines(r io.Reader, name string) ([]byte, error) {
	b, whole, err := limited(r, name)
	if err != nil {
		return nil, err
	}
	line := 1
	for rest := b; len(rest) > 0; line++ {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		if n > MaxLine+1 {
			return nil, fmt.Errorf("%s:%d: the line is longer than %d MiB", name, line, MaxLine>>20)
		}
		rest = rest[n:]
	}
	if !whole {
		return nil, fmt.Errorf("%s:%d: the file is longer than %d MiB", name, line, MaxBytes>>20)
	}
	return b, nil
}

// limited reads up to the limit of a document; whole reports whether that was all.
func limited(r io.Reader, name string) (b []byte, whole bool, err error) {
	b, err = io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, cause(err))
	}
	if len(b) > MaxBytes {
		return b[:MaxBytes], false, nil
	}
	return b, true, nil
}

// Digest returns "sha256:" and the hash of a document, as records and metrics state it.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
