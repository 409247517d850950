package zarr

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"strata/pkg/zarr/internal/number"
	"strata/pkg/zarr/store"
)

// consolidatedNode holds the consolidated metadata of one node.
type consolidatedNode struct {
	document   json.RawMessage // zarr.json, .zarray or .zgroup
	attributes json.RawMessage // .zattrs of format 2; nil: none
	array      bool            // of format 2: the document is a .zarray
}

// parseConsolidatedV3 reads the inline form that zarr-python writes into a group's zarr.json. It ignores an
// unknown kind if must_understand allows that.
func parseConsolidatedV3(raw json.RawMessage) (map[string]consolidatedNode, error) {
	const field = "consolidated_metadata"
	m, err := parseObject(field, raw)
	if err != nil {
		return nil, err
	}
	if len(m) == 0 { // as if there were none
		return nil, nil
	}
	if kind := string(m["kind"]); kind != `"inline"` {
		if string(m["must_understand"]) == "false" {
			return nil, nil
		}
		return nil, fieldError(field+".kind", "is %s, must be \"inline\"", shorten(m["kind"]))
	}
	all, err := parseObject(field+".metadata", m["metadata"])
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]consolidatedNode, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !store.ValidKey(key) {
			return nil, fieldError(field+".metadata", "%w %q", store.ErrKey, key)
		}
		nodes[key] = consolidatedNode{document: all[key]}
	}
	return nodes, nil
}

// isOne reports whether a value is the number 1.
func isOne(raw json.RawMessage) bool {
	n, ok := number.Int(raw)
	return ok && n == 1
}

// parseConsolidatedV2 reads a .zmetadata, which need not state its version.
func parseConsolidatedV2(raw json.RawMessage) (map[string]consolidatedNode, error) {
	m, err := parseDocument(raw)
	if err != nil {
		return nil, err
	}
	if v, ok := m["zarr_consolidated_format"]; ok && !isOne(v) {
		return nil, fieldError("zarr_consolidated_format", "is %s, must be 1", shorten(v))
	}
	all, err := parseObject("metadata", m["metadata"])
	if err != nil {
		return nil, err
	}
	nodes := map[string]consolidatedNode{}
	attributes := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !store.ValidKey(key) {
			return nil, fieldError("metadata", "%w %q", store.ErrKey, key)
		}
		path, name := "", key
		if i := strings.LastIndexByte(key, '/'); i >= 0 {
			path, name = key[:i], key[i+1:]
		}
		switch name {
		case keyV2Array:
			nodes[path] = consolidatedNode{document: all[key], array: true}
		case keyV2Group:
			if !nodes[path].array {
				nodes[path] = consolidatedNode{document: all[key]}
			}
		case keyV2Attributes:
			attributes[path] = all[key]
		}
	}
	for path, a := range attributes {
		if n, ok := nodes[path]; ok {
			n.attributes = a
			nodes[path] = n
		}
	}
	delete(nodes, "") // the group itself
	return nodes, nil
}

// fromConsolidated builds the node at a path below g without reading any file.
func (g *Group) fromConsolidated(path string, c consolidatedNode) (Node, error) {
	full := store.Join(g.path, path)
	var n Node
	if g.format == 3 {
		var err error
		if n, err = parseNode(g.st, full, c.document, g.opts); err != nil {
			return nil, err
		}
	} else if c.array {
		md, err := parseV2Array(c.document, c.attributes)
		if err != nil {
			return nil, err
		}
		n = newArray(g.st, full, md, g.opts)
	} else {
		attrs, err := parseAttributes("", c.attributes)
		if err != nil {
			return nil, err
		}
		n = &Group{st: g.st, path: full, format: 2, opts: g.opts, documents: documents{attributes: attrs, document: c.document}}
	}
	if sub, ok := n.(*Group); ok {
		// what the whole says of the group's children goes before its own word
		sub.consolidated = map[string]consolidatedNode{}
		for p, c := range g.consolidated {
			if rest, ok := strings.CutPrefix(p, path+"/"); ok {
				sub.consolidated[rest] = c
			}
		}
	}
	return n, nil
}

// Consolidate writes the metadata of all nodes below the group at path into the group's own metadata, as
// zarr-python does: .zmetadata in format 2, inline in zarr.json in format 3. It reads each node's own file
// and ignores earlier consolidated metadata.
func Consolidate(ctx context.Context, st store.Writer, path string) error {
	g, err := OpenGroup(ctx, st, path)
	if err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if g.format == 2 {
		if err := addV2(all, "", g); err != nil {
			return inFile(st, path, err)
		}
	}
	if err := walk(ctx, g, "", func(rel string, n Node) error {
		if n.Format() != g.format {
			return nil // a hierarchy of the other format is not this group's
		}
		if g.format == 2 {
			return addV2(all, rel, n)
		}
		document := n.MetadataJSON()
		m, err := parseDocument(document)
		if err != nil {
			return err
		}
		if _, ok := n.(*Group); ok {
			m["consolidated_metadata"] = json.RawMessage(`{"kind":"inline","must_understand":false,"metadata":{}}`)
			document, err = marshal(m)
		}
		all[rel] = document
		return err
	}); err != nil {
		return err
	}
	if g.format == 2 {
		raw, err := marshal(map[string]any{"metadata": all, "zarr_consolidated_format": 1})
		if err != nil {
			return inFile(st, path, err)
		}
		return st.Put(ctx, store.Join(path, keyV2Consolidated), raw)
	}
	m, err := parseDocument(g.document)
	if err != nil {
		return inFile(st, path, err)
	}
	if m["consolidated_metadata"], err = marshal(map[string]any{"kind": "inline", "must_understand": false, "metadata": all}); err != nil {
		return inFile(st, path, err)
	}
	raw, err := marshal(m)
	if err != nil {
		return inFile(st, path, err)
	}
	return st.Put(ctx, store.Join(path, keyV3), raw)
}

func addV2(all map[string]json.RawMessage, rel string, n Node) error {
	name := keyV2Group
	if _, ok := n.(*Array); ok {
		name = keyV2Array
	}
	all[store.Join(rel, name)] = n.MetadataJSON()
	attrs := n.Attributes()
	if len(attrs) == 0 {
		return nil
	}
	raw, err := marshal(attrs)
	all[store.Join(rel, keyV2Attributes)] = raw
	return err
}

// walk calls visit for all nodes below g, from their own files.
func walk(ctx context.Context, g *Group, rel string, visit func(rel string, n Node) error) error {
	bare := &Group{st: g.st, path: g.path, format: g.format, opts: g.opts}
	names, err := bare.Children(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := bare.Open(ctx, name)
		if err != nil {
			return err
		}
		if err := visit(store.Join(rel, name), n); err != nil {
			return err
		}
		if sub, ok := n.(*Group); ok {
			if err := walk(ctx, sub, store.Join(rel, name), visit); err != nil {
				return err
			}
		}
	}
	return nil
}
