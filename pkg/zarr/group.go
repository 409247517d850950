package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// Group opens the arrays and groups below a Zarr group in a store.
//
// A group with consolidated metadata lists and opens the nodes below it without reading other files. If that
// metadata is stale, nodes that it omits are still found by name, and an array that it names but that has
// gone reads as its fill value.
type Group struct {
	st     store.Store
	path   string
	format int
	opts   options

	consolidated map[string]meta.Consolidated // by path below the group; nil: none

	documents
}

// Path returns the group's key in its store; "" is the root.
func (g *Group) Path() string { return g.path }

// Location returns the place of the group as its store names it, for messages.
func (g *Group) Location() string { return g.st.Location(g.path) }

// Store returns the store that holds the group.
func (g *Group) Store() store.Store { return g.st }

// Format returns the Zarr format, 2 or 3.
func (g *Group) Format() int { return g.format }

// Consolidated reports whether the group has consolidated metadata.
func (g *Group) Consolidated() bool { return g.consolidated != nil }

func (g *Group) isNode() {}

// parseV3Group builds a group from its zarr.json.
func parseV3Group(st store.Store, path string, m map[string]json.RawMessage, document json.RawMessage, o options) (*Group, error) {
	if err := meta.CheckUnknown(m, "zarr_format", "node_type", "attributes", "consolidated_metadata"); err != nil {
		return nil, err
	}
	attrs, err := meta.ParseAttributes("attributes", m["attributes"])
	if err != nil {
		return nil, err
	}
	g := &Group{st: st, path: path, format: 3, opts: o, documents: documents{attributes: attrs, document: document}}
	if raw, ok := m["consolidated_metadata"]; ok && !meta.IsNull(raw) {
		if g.consolidated, err = meta.ParseConsolidatedV3(raw); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// openV2Group builds a group from its .zgroup and the files beside it.
func openV2Group(ctx context.Context, st store.Store, path string, document json.RawMessage, o options) (*Group, error) {
	key := store.Join(path, meta.KeyV2Group)
	m, err := meta.ParseDocument(document)
	if err == nil {
		err = meta.ParseFormat(m, "2")
	}
	if err != nil {
		return nil, meta.InFile(st, key, err)
	}
	g := &Group{st: st, path: path, format: 2, opts: o, documents: documents{attributes: map[string]json.RawMessage{}, document: document}}
	key = store.Join(path, meta.KeyV2Attributes)
	raw, err := getOptional(ctx, st, key)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		if g.attributes, err = meta.ParseAttributesFile(raw); err != nil {
			return nil, meta.InFile(st, key, err)
		}
	}
	key = store.Join(path, meta.KeyV2Consolidated)
	if raw, err = getOptional(ctx, st, key); err != nil {
		return nil, err
	}
	if raw != nil {
		if g.consolidated, err = meta.ParseConsolidatedV2(raw); err != nil {
			return nil, meta.InFile(st, key, err)
		}
	}
	return g, nil
}

// Open opens the node at a path below the group, such as "labels/cells".
func (g *Group) Open(ctx context.Context, path string) (Node, error) {
	full := store.Join(g.path, path)
	if !store.ValidKey(path) {
		return nil, fmt.Errorf("%s: %w %q", g.Location(), store.ErrKey, path)
	}
	if c, ok := g.consolidated[path]; ok {
		n, err := g.fromConsolidated(path, c)
		return n, meta.InFile(g.st, full, err)
	}
	return open(ctx, g.st, full, g.opts)
}

// Array opens the array at a path below the group.
func (g *Group) Array(ctx context.Context, path string) (*Array, error) {
	n, err := g.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return asArray(n)
}

// Group opens the group at a path below the group.
func (g *Group) Group(ctx context.Context, path string) (*Group, error) {
	n, err := g.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return asGroup(n)
}

// Children returns the sorted names of the arrays and groups directly below the group. Without consolidated
// metadata the store must be able to list; over HTTP the error wraps errors.ErrUnsupported.
func (g *Group) Children(ctx context.Context) ([]string, error) {
	if g.consolidated != nil {
		var names []string
		for p := range g.consolidated {
			if !strings.Contains(p, "/") {
				names = append(names, p)
			}
		}
		slices.Sort(names)
		return names, nil
	}
	entries, err := g.st.List(ctx, g.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.Dir && !e.Lost { // of what is lost, vacant says so
			continue
		}
		switch err := vacant(ctx, g.st, store.Join(g.path, e.Name)); {
		case errors.Is(err, fs.ErrExist):
			names = append(names, e.Name)
		case err != nil:
			return nil, err
		}
	}
	return names, nil
}

// CreateGroup writes the metadata of a new group of format 2 or 3 at path; "" is the root of the store. attrs
// may be nil. The error wraps fs.ErrExist if there is an array or group already.
func CreateGroup(ctx context.Context, st store.Writer, path string, format int, attrs map[string]any, opts ...Option) (*Group, error) {
	raw, err := meta.AttributesJSON(attrs)
	if err != nil {
		return nil, meta.InFile(st, path, err)
	}
	if err := vacant(ctx, st, path); err != nil {
		return nil, err
	}
	g := &Group{st: st, path: path, format: format, opts: newOptions(opts), documents: documents{attributes: raw}}
	switch format {
	case 2:
		g.document = json.RawMessage("{\n  \"zarr_format\": 2\n}")
		err = putV2(ctx, st, path, meta.KeyV2Group, g.document, raw)
	case 3:
		if g.document, err = meta.Marshal(groupJSON{raw, 3, "group"}); err == nil {
			err = st.Put(ctx, store.Join(path, meta.KeyV3), g.document)
		}
	default:
		err = meta.InFile(st, path, meta.FieldError("format", "is %d, must be 2 or 3", format))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

type groupJSON struct {
	Attributes map[string]json.RawMessage `json:"attributes"`
	Format     int                        `json:"zarr_format"`
	NodeType   string                     `json:"node_type"`
}

// SetAttributes replaces all user attributes. Consolidated metadata of the groups above (in format 2, also of
// the group itself) keeps the old ones until [Consolidate] is called.
func (g *Group) SetAttributes(ctx context.Context, attrs map[string]any) error {
	st, ok := g.st.(store.Writer)
	if !ok {
		return fmt.Errorf("%s: %w", g.Location(), ErrReadOnly)
	}
	return g.set(ctx, st, g.path, g.format, attrs)
}

// fromConsolidated builds the node at a path below g without reading any file.
func (g *Group) fromConsolidated(path string, c meta.Consolidated) (Node, error) {
	full := store.Join(g.path, path)
	var n Node
	if g.format == 3 {
		var err error
		if n, err = parseNode(g.st, full, c.Document, g.opts); err != nil {
			return nil, err
		}
	} else if c.Array {
		md, err := meta.ParseV2Array(c.Document, c.Attributes)
		if err != nil {
			return nil, err
		}
		n = newArray(g.st, full, md, g.opts)
	} else {
		attrs, err := meta.ParseAttributes("", c.Attributes)
		if err != nil {
			return nil, err
		}
		n = &Group{st: g.st, path: full, format: 2, opts: g.opts, documents: documents{attributes: attrs, document: c.Document}}
	}
	if sub, ok := n.(*Group); ok {
		// what the whole says of the group's children goes before its own word
		sub.consolidated = map[string]meta.Consolidated{}
		for p, c := range g.consolidated {
			if rest, ok := strings.CutPrefix(p, path+"/"); ok {
				sub.consolidated[rest] = c
			}
		}
	}
	return n, nil
}
