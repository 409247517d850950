package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"strata/pkg/mem"
	"strata/pkg/zarr/store"
)

// Node is an *[Array] or a *[Group].
type Node interface {
	Path() string
	Location() string
	Format() int
	Attributes() map[string]json.RawMessage
	MetadataJSON() json.RawMessage
	isNode()
}

// Open opens the array or group at path; "" is the root of the store. The error wraps fs.ErrNotExist if there
// is none, and is a [*FormatError] if its metadata is wrong.
func Open(ctx context.Context, st store.Store, path string, opts ...Option) (Node, error) {
	return open(ctx, st, path, newOptions(opts))
}

func open(ctx context.Context, st store.Store, path string, o options) (Node, error) {
	key := store.Join(path, keyV3)
	document, err := getDocument(ctx, st, key)
	if err == nil {
		n, err := parseNode(st, path, document, o)
		return n, inFile(st, key, err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = store.Join(path, keyV2Array)
	document, err = getDocument(ctx, st, key)
	if err == nil {
		attrs, err := getOptional(ctx, st, store.Join(path, keyV2Attributes))
		if err != nil {
			return nil, err
		}
		md, err := parseV2Array(document, nil)
		if err != nil {
			return nil, inFile(st, key, err)
		}
		if attrs != nil {
			if md.attributes, err = parseDocument(attrs); err != nil {
				return nil, inFile(st, store.Join(path, keyV2Attributes), err)
			}
		}
		return newArray(st, path, md, o), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = store.Join(path, keyV2Group)
	document, err = getDocument(ctx, st, key)
	if err == nil {
		return openV2Group(ctx, st, path, document, o)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: no Zarr array or group (no %s, %s or %s): %w",
		st.Location(path), keyV3, keyV2Array, keyV2Group, fs.ErrNotExist)
}

// parseNode builds a node from a format 3 document.
func parseNode(st store.Store, path string, document json.RawMessage, o options) (Node, error) {
	m, nodeType, err := parseV3Node(document)
	if err != nil {
		return nil, err
	}
	if nodeType == "group" {
		return parseV3Group(st, path, m, document, o)
	}
	md, err := parseV3Array(m, document)
	if err != nil {
		return nil, err
	}
	return newArray(st, path, md, o), nil
}

// getDocument reads a metadata file.
func getDocument(ctx context.Context, st store.Store, key string) ([]byte, error) {
	b, err := st.Get(ctx, key, nil, maxMetadata)
	if err != nil {
		return nil, err
	}
	if err := affordable(b); err != nil {
		return nil, fmt.Errorf("%s: %w", st.Location(key), err)
	}
	return quoteNonFinite(b), nil
}

// affordable refuses a document whose parsed form would take more than half of the process's memory: a value
// of two characters becomes dozens of bytes.
func affordable(document []byte) error {
	const perValue, perMember = 64, 128 // bytes
	limit := mem.Limit()
	if limit <= 0 {
		return nil
	}
	values, members := bytes.Count(document, []byte{','})+bytes.Count(document, []byte{'['})+bytes.Count(document, []byte{'{'}), bytes.Count(document, []byte{':'})
	if n, most := int64(len(document)+perValue*values+perMember*members), max(limit/2, 64<<20); n > most {
		return fmt.Errorf("%d values of JSON take about %d bytes: %w of %d", values, n, ErrBudget, most)
	}
	return nil
}

// getOptional reads a metadata file, or returns nil if it does not exist.
func getOptional(ctx context.Context, st store.Store, key string) ([]byte, error) {
	b, err := getDocument(ctx, st, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// OpenArray opens the array at path, like [Open]. A group there is an error.
func OpenArray(ctx context.Context, st store.Store, path string, opts ...Option) (*Array, error) {
	n, err := Open(ctx, st, path, opts...)
	if err != nil {
		return nil, err
	}
	return asArray(n)
}

// OpenGroup opens the group at path, like [Open]. An array there is an error.
func OpenGroup(ctx context.Context, st store.Store, path string, opts ...Option) (*Group, error) {
	n, err := Open(ctx, st, path, opts...)
	if err != nil {
		return nil, err
	}
	return asGroup(n)
}

func asArray(n Node) (*Array, error) {
	if a, ok := n.(*Array); ok {
		return a, nil
	}
	return nil, &FormatError{Path: n.Location(), Err: errors.New("is a group, not an array")}
}

func asGroup(n Node) (*Group, error) {
	if g, ok := n.(*Group); ok {
		return g, nil
	}
	return nil, &FormatError{Path: n.Location(), Err: errors.New("is an array, not a group")}
}
