package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"strata/pkg/mem"
	"strata/pkg/zarr/meta"
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
	p := probe{ctx: ctx, st: st}
	key := store.Join(path, meta.KeyV3)
	if document, ok := p.document(key); ok {
		n, err := parseNode(st, path, document, o)
		return n, meta.InFile(st, key, err)
	}
	key = store.Join(path, meta.KeyV2Array)
	if document, ok := p.document(key); ok {
		attrs, some := p.document(store.Join(path, meta.KeyV2Attributes))
		if p.err != nil {
			return nil, p.err
		}
		md, err := meta.ParseV2Array(document, nil)
		if err != nil {
			return nil, meta.InFile(st, key, err)
		}
		if some {
			if md.Attributes, err = meta.ParseAttributesFile(attrs); err != nil {
				return nil, meta.InFile(st, store.Join(path, meta.KeyV2Attributes), err)
			}
		}
		return newArray(st, path, md, o), nil
	}
	key = store.Join(path, meta.KeyV2Group)
	if document, ok := p.document(key); ok {
		return openV2Group(ctx, st, path, document, o)
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.denied != nil:
		return nil, fmt.Errorf("%w: access to all that may be here is denied, or nothing is: %w", p.denied, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("%s: no Zarr array or group (no %s, %s or %s): %w",
		st.Location(path), meta.KeyV3, meta.KeyV2Array, meta.KeyV2Group, fs.ErrNotExist)
}

// probe looks for several metadata files in turn. A server that does not allow listing may answer "access denied" for a
// missing key; probe then tries the next one.
type probe struct {
	ctx    context.Context
	st     store.Store
	denied error // the first such answer
	err    error // what ended the search
}

// document returns a metadata file; ok is false if it is not there or the search has ended.
func (p *probe) document(key string) (document []byte, ok bool) {
	if p.err != nil {
		return nil, false
	}
	b, err := getDocument(p.ctx, p.st, key)
	switch {
	case err == nil:
		return b, true
	case errors.Is(err, fs.ErrNotExist):
	case deniedAfar(p.st, err):
		if p.denied == nil {
			p.denied = err
		}
	default:
		p.err = err
	}
	return nil, false
}

// deniedAfar reports whether a server denied access to an object, which may mean that it is absent.
func deniedAfar(st store.Store, err error) bool {
	far, ok := st.(store.Distant)
	return ok && far.Requests() > 0 && errors.Is(err, fs.ErrPermission)
}

// parseNode builds a node from a format 3 document.
func parseNode(st store.Store, path string, document json.RawMessage, o options) (Node, error) {
	m, nodeType, err := meta.ParseV3Node(document)
	if err != nil {
		return nil, err
	}
	if nodeType == "group" {
		return parseV3Group(st, path, m, document, o)
	}
	md, err := meta.ParseV3Array(m, document)
	if err != nil {
		return nil, err
	}
	return newArray(st, path, md, o), nil
}

// getDocument reads a metadata file.
func getDocument(ctx context.Context, st store.Store, key string) ([]byte, error) {
	b, err := st.Get(ctx, key, nil, meta.MaxDocument)
	if err != nil {
		return nil, err
	}
	if err := affordable(b); err != nil {
		return nil, fmt.Errorf("%s: %w", st.Location(key), err)
	}
	return meta.QuoteNonFinite(bytes.TrimPrefix(b, []byte(byteOrderMark))), nil
}

// byteOrderMark is written by some editors at the beginning of a text. Parsers may ignore it (RFC 8259, 8.1).
const byteOrderMark = "\xef\xbb\xbf"

// affordable refuses a document that would need more than half of the process's memory once parsed: a value of two
// characters needs dozens of bytes.
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

// getOptional reads a metadata file, or returns nil if it does not exist, or a server denies access to it.
func getOptional(ctx context.Context, st store.Store, key string) ([]byte, error) {
	b, err := getDocument(ctx, st, key)
	if errors.Is(err, fs.ErrNotExist) || deniedAfar(st, err) {
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
