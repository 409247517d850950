package zarr

import (
	"context"
	"encoding/json"

	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

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
			return meta.InFile(st, path, err)
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
		m, err := meta.ParseDocument(document)
		if err != nil {
			return err
		}
		if _, ok := n.(*Group); ok {
			m["consolidated_metadata"] = json.RawMessage(`{"kind":"inline","must_understand":false,"metadata":{}}`)
			document, err = meta.Marshal(m)
		}
		all[rel] = document
		return err
	}); err != nil {
		return err
	}
	if g.format == 2 {
		raw, err := meta.Marshal(map[string]any{"metadata": all, "zarr_consolidated_format": 1})
		if err != nil {
			return meta.InFile(st, path, err)
		}
		return st.Put(ctx, store.Join(path, meta.KeyV2Consolidated), raw)
	}
	m, err := meta.ParseDocument(g.document)
	if err != nil {
		return meta.InFile(st, path, err)
	}
	if m["consolidated_metadata"], err = meta.Marshal(map[string]any{"kind": "inline", "must_understand": false, "metadata": all}); err != nil {
		return meta.InFile(st, path, err)
	}
	raw, err := meta.Marshal(m)
	if err != nil {
		return meta.InFile(st, path, err)
	}
	return st.Put(ctx, store.Join(path, meta.KeyV3), raw)
}

func addV2(all map[string]json.RawMessage, rel string, n Node) error {
	name := meta.KeyV2Group
	if _, ok := n.(*Array); ok {
		name = meta.KeyV2Array
	}
	all[store.Join(rel, name)] = n.MetadataJSON()
	attrs := n.Attributes()
	if len(attrs) == 0 {
		return nil
	}
	raw, err := meta.Marshal(attrs)
	all[store.Join(rel, meta.KeyV2Attributes)] = raw
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
