// Package virtual holds the common parts of stores that show a file of another format as an OME-Zarr hierarchy:
// documents of images and arrays, made on demand; keys of chunks; and errors that name the file once.
package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Axis describes a dimension of an array. Role tells the store what a chunk's index along it counts.
type Axis struct {
	Role        byte
	Name        string
	Size, Chunk int
}

// Along returns an axis of n elements in chunks.
func Along(role byte, name string, size, chunk int) Axis {
	return Axis{Role: role, Name: name, Size: size, Chunk: chunk}
}

// Count returns the number of chunks along the axis.
func (a Axis) Count() int { return (a.Size + a.Chunk - 1) / a.Chunk }

// Index parses the index of a chunk in a key of an array with the given axes.
func Index(axes []Axis, text string) (index []int, ok bool) {
	index = make([]int, 0, len(axes))
	for part := range strings.SplitSeq(text, "/") {
		i, ok := Number(part)
		if d := len(index); !ok || d >= len(axes) || i >= axes[d].Count() {
			return nil, false
		}
		index = append(index, i)
	}
	return index, len(index) == len(axes)
}

// Number parses a number in a key.
func Number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// ArrayDocument returns the zarr.json of an array with fill value 0.
func ArrayDocument(axes []Axis, t dtype.Type, codecs []any) ([]byte, error) {
	return FilledDocument(axes, t, codecs, 0)
}

// FilledDocument returns the zarr.json of an array with the given fill value.
func FilledDocument(axes []Axis, t dtype.Type, codecs []any, fill any) ([]byte, error) {
	var shape, chunks []int
	var names []string
	for _, x := range axes {
		shape, chunks, names = append(shape, x.Size), append(chunks, x.Chunk), append(names, x.Name)
	}
	return json.Marshal(map[string]any{
		"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": t.String(), "fill_value": fill,
		"chunk_grid":         Object("regular", map[string]any{"chunk_shape": chunks}),
		"chunk_key_encoding": Object("default", map[string]any{"separator": "/"}),
		"codecs":             codecs, "dimension_names": names, "attributes": map[string]any{},
	})
}

// Object returns a named object of Zarr's metadata, such as a codec, with its configuration unless that is nil.
func Object(name string, configuration map[string]any) any {
	o := map[string]any{"name": name}
	if configuration != nil {
		o["configuration"] = configuration
	}
	return o
}

// Document presents a metadata document as an object of a store.
type Document []byte

// Size returns the length of the document.
func (d Document) Size() int64 { return int64(len(d)) }

// Close does nothing.
func (d Document) Close() error { return nil }

// ReadAt reads a part of the document.
func (d Document) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(d)) {
		return 0, io.EOF
	}
	n := copy(p, d[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Contents implements Get and Open of a store whose chunks have no stored form, because [store.Decoder] makes them.
type Contents struct {
	content  func(ctx context.Context, key string) ([]byte, error)
	location func(key string) string
}

// NewContents returns the answers for a store that has the given content at a key: a metadata document, or a
// placeholder for a chunk that exists. location names the key in messages.
func NewContents(content func(ctx context.Context, key string) ([]byte, error), location func(key string) string) Contents {
	return Contents{content, location}
}

// Get returns the content at a key.
func (c Contents) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	doc, err := c.content(ctx, key)
	if err != nil {
		return nil, err
	}
	return Document(doc).Get(dst, limit, c.location(key))
}

// Open opens the result of Get for reading in parts.
func (c Contents) Open(ctx context.Context, key string) (store.Object, error) {
	doc, err := c.content(ctx, key)
	if err != nil {
		return nil, err
	}
	return Document(doc), nil
}

// FromSource reports whether an error comes from the machine and not from the file's content.
func FromSource(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable)
}

// Bare removes the file name at the beginning of an error, for callers that name the file themselves.
func Bare(err error, name string) error {
	if text, ok := strings.CutPrefix(err.Error(), name+": "); ok {
		return &named{text, err}
	}
	return err
}

// named is an error with another text.
type named struct {
	text string
	err  error
}

func (e *named) Error() string { return e.text }
func (e *named) Unwrap() error { return e.err }

// FileError turns an error about a file, which begins with its name, into a [zarr.FormatError] to mark it as
// permanent. It returns errors of the machine unchanged.
func FileError(err error, name string) error {
	if err == nil || FromSource(err) {
		return err
	}
	return &zarr.FormatError{Path: name, Err: Bare(err, name)}
}

// Absent returns the error for a key that does not exist.
func Absent(location string) error {
	return &fs.PathError{Op: "open", Path: location, Err: fs.ErrNotExist}
}

// Entries lists a group: its metadata, the arrays "0", "1" … of so many levels, and other groups, sorted by name.
func Entries(levels int, groups []string) []store.Entry {
	entries := []store.Entry{{Name: "zarr.json"}}
	for k := range levels {
		entries = append(entries, store.Entry{Name: strconv.Itoa(k), Dir: true})
	}
	for _, name := range groups {
		entries = append(entries, store.Entry{Name: name, Dir: true})
	}
	slices.SortFunc(entries, func(a, b store.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}
