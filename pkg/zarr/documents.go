package zarr

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// documents holds the metadata of a node as it is stored.
type documents struct {
	mu         sync.Mutex // guards the two below
	attributes map[string]json.RawMessage
	document   json.RawMessage
}

// Attributes returns a copy of the user attributes as JSON.
func (d *documents) Attributes() map[string]json.RawMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.attributes)
}

// MetadataJSON returns a copy of the metadata document: zarr.json, .zarray or .zgroup.
func (d *documents) MetadataJSON() json.RawMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.document)
}

// set replaces the user attributes of the node at a path.
func (d *documents) set(ctx context.Context, st store.Writer, path string, format int, attrs map[string]any) error {
	raw, err := meta.AttributesJSON(attrs)
	if err != nil {
		return meta.InFile(st, path, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	document, err := putAttributes(ctx, st, path, format, d.document, raw)
	if err != nil {
		return err
	}
	d.attributes, d.document = raw, document
	return nil
}

// putAttributes writes attributes to the file that holds them and returns the node's document with the new
// attributes. All other fields stay unchanged.
func putAttributes(ctx context.Context, st store.Writer, path string, format int, document json.RawMessage, attrs map[string]json.RawMessage) (json.RawMessage, error) {
	if format == 2 {
		raw, err := meta.Marshal(attrs)
		if err != nil {
			return nil, meta.InFile(st, path, err)
		}
		return document, st.Put(ctx, store.Join(path, meta.KeyV2Attributes), raw)
	}
	m, err := meta.ParseDocument(document)
	if err != nil {
		return nil, meta.InFile(st, store.Join(path, meta.KeyV3), err)
	}
	if m["attributes"], err = meta.Marshal(attrs); err != nil {
		return nil, meta.InFile(st, path, err)
	}
	if document, err = meta.Marshal(m); err != nil {
		return nil, meta.InFile(st, path, err)
	}
	return document, st.Put(ctx, store.Join(path, meta.KeyV3), document)
}
