package meta

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"strata/pkg/zarr/internal/number"
	"strata/pkg/zarr/store"
)

// Consolidated holds the consolidated metadata of one node.
type Consolidated struct {
	Document   json.RawMessage // zarr.json, .zarray or .zgroup
	Attributes json.RawMessage // .zattrs of format 2; nil: none
	Array      bool            // of format 2: the document is a .zarray
}

// ParseConsolidatedV3 reads the inline form that zarr-python writes into a group's zarr.json. It ignores an
// unknown kind if must_understand allows that.
func ParseConsolidatedV3(raw json.RawMessage) (map[string]Consolidated, error) {
	const field = "consolidated_metadata"
	m, err := ParseObject(field, raw)
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
		return nil, FieldError(field+".kind", "is %s, must be \"inline\"", Shorten(m["kind"]))
	}
	all, err := ParseObject(field+".metadata", m["metadata"])
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]Consolidated, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !store.ValidKey(key) {
			return nil, FieldError(field+".metadata", "%w %q", store.ErrKey, key)
		}
		nodes[key] = Consolidated{Document: all[key]}
	}
	return nodes, nil
}

// isOne reports whether a value is the number 1.
func isOne(raw json.RawMessage) bool {
	n, ok := number.Int(raw)
	return ok && n == 1
}

// ParseConsolidatedV2 reads a .zmetadata, which need not state its version.
func ParseConsolidatedV2(raw json.RawMessage) (map[string]Consolidated, error) {
	m, err := ParseDocument(raw)
	if err != nil {
		return nil, err
	}
	if v, ok := m["zarr_consolidated_format"]; ok && !isOne(v) {
		return nil, FieldError("zarr_consolidated_format", "is %s, must be 1", Shorten(v))
	}
	all, err := ParseObject("metadata", m["metadata"])
	if err != nil {
		return nil, err
	}
	nodes := map[string]Consolidated{}
	attributes := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !store.ValidKey(key) {
			return nil, FieldError("metadata", "%w %q", store.ErrKey, key)
		}
		path, name := "", key
		if i := strings.LastIndexByte(key, '/'); i >= 0 {
			path, name = key[:i], key[i+1:]
		}
		switch name {
		case KeyV2Array:
			nodes[path] = Consolidated{Document: all[key], Array: true}
		case KeyV2Group:
			if !nodes[path].Array {
				nodes[path] = Consolidated{Document: all[key]}
			}
		case KeyV2Attributes:
			attributes[path] = all[key]
		}
	}
	for path, a := range attributes {
		if n, ok := nodes[path]; ok {
			n.Attributes = a
			nodes[path] = n
		}
	}
	delete(nodes, "") // the group itself
	return nodes, nil
}
