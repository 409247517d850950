package meta

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
)

// KeyV3 is the metadata file of a format 3 node.
const KeyV3 = "zarr.json"

// ParseV3Node reads the fields that arrays and groups share.
func ParseV3Node(document json.RawMessage) (m map[string]json.RawMessage, nodeType string, err error) {
	if m, err = ParseDocument(document); err != nil {
		return nil, "", err
	}
	if err = ParseFormat(m, "3"); err != nil {
		return nil, "", err
	}
	if nodeType, err = required(m, "node_type", parseString); err != nil {
		return nil, "", err
	}
	if nodeType != "array" && nodeType != "group" {
		return nil, "", FieldError("node_type", "is %q, must be \"array\" or \"group\"", nodeType)
	}
	return m, nodeType, nil
}

// CheckUnknown refuses unknown fields unless must_understand is false.
func CheckUnknown(m map[string]json.RawMessage, known ...string) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(known, k) {
			continue
		}
		var x struct {
			MustUnderstand *bool `json:"must_understand"`
		}
		if json.Unmarshal(m[k], &x) != nil || x.MustUnderstand == nil || *x.MustUnderstand {
			return FieldError(Shorten(json.RawMessage(k)), "unknown field, which does not say \"must_understand\": false")
		}
	}
	return nil
}

// ParseV3Array reads the fields of an array's zarr.json.
func ParseV3Array(m map[string]json.RawMessage, document json.RawMessage) (*Array, error) {
	md := &Array{Format: 3, order: 'C', Document: document}
	if err := CheckUnknown(m, "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
		"codecs", "fill_value", "attributes", "dimension_names", "storage_transformers"); err != nil {
		return nil, err
	}
	if raw, ok := m["storage_transformers"]; ok && !IsNull(raw) {
		list, ok := ParseList(raw)
		if !ok {
			return nil, FieldError("storage_transformers", "is %s, must be a list", KindOf(raw))
		}
		if len(list) > 0 {
			e, err := parseExtension("storage_transformers[0]", list[0])
			if err != nil {
				return nil, err
			}
			return nil, foreign(FieldError("storage_transformers[0]", "storage transformer %q is not supported (none is)", e.name))
		}
	}
	var err error
	if md.Shape, err = required(m, "shape", parseSizes); err != nil {
		return nil, err
	}
	raw, err := need(m, "data_type")
	if err != nil {
		return nil, err
	}
	if md.DType, md.NumpyType, err = parseDataType(raw); err != nil {
		return nil, err
	}
	if md.Chunks, err = required(m, "chunk_grid", md.parseGrid); err != nil {
		return nil, err
	}
	if md.Keys, err = required(m, "chunk_key_encoding", parseKeyEncoding); err != nil {
		return nil, err
	}
	if md.Fill, err = required(m, "fill_value", md.parseFill); err != nil {
		return nil, err
	}
	if raw, err = need(m, "codecs"); err != nil {
		return nil, err
	}
	if md.Pipeline, err = parseCodecs("codecs", raw, md.Chunks, md.DType, 0); err != nil {
		return nil, err
	}
	if raw, ok := m["dimension_names"]; ok && !IsNull(raw) {
		if md.DimensionNames, err = parseDimensionNames(raw, len(md.Shape)); err != nil {
			return nil, err
		}
	}
	md.Attributes, err = ParseAttributes("attributes", m["attributes"])
	return md, err
}

// parseDimensionNames reads the names of the dimensions; null (unnamed) becomes "".
func parseDimensionNames(raw json.RawMessage, rank int) ([]string, error) {
	const field = "dimension_names"
	var list []*string
	if json.Unmarshal(raw, &list) != nil {
		return nil, FieldError(field, "is %s, must be a list of strings and nulls", Shorten(raw))
	}
	if len(list) != rank {
		return nil, FieldError(field, "has %d names, the array has %d dimensions", len(list), rank)
	}
	names := make([]string, rank)
	for i, s := range list {
		if s != nil {
			names[i] = *s
		}
	}
	return names, nil
}

// parseTranspose reads the order of a transpose codec. The letters come from an early draft.
func parseTranspose(at string, e extension, rank int) ([]int, error) {
	m, err := e.settings(at, "order")
	if err != nil {
		return nil, err
	}
	at += ".configuration.order"
	raw, ok := m["order"]
	if !ok {
		return nil, FieldError(at, "missing")
	}
	switch string(raw) {
	case `"C"`:
		return identity(rank), nil
	case `"F"`:
		return V2Order('F', rank), nil
	}
	order, err := parseSizes(at, raw)
	if err != nil {
		return nil, err
	}
	if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, identity(rank)) {
		return nil, FieldError(at, "is %v, must be a permutation of the numbers below %d", order, rank)
	}
	return order, nil
}

func identity(rank int) []int {
	p := make([]int, rank)
	for i := range p {
		p[i] = i
	}
	return p
}

// compose returns the permutation that applies first, then second.
func compose(first, second []int) []int {
	if first == nil {
		return second
	}
	return permuted(first, second)
}

// permuted returns v in the order of perm.
func permuted(v, perm []int) []int {
	out := make([]int, len(v))
	for i, d := range perm {
		out[i] = v[d]
	}
	return out
}

// parseBytes reads the byte order of a bytes codec. Only elements of one byte may omit it.
func parseBytes(at string, e extension, elem dtype.Type) (big bool, err error) {
	m, err := e.settings(at, "endian")
	if err != nil {
		return false, err
	}
	at += ".configuration.endian"
	raw, ok := m["endian"]
	if !ok || IsNull(raw) {
		if elem.SwapSize() > 1 {
			return false, FieldError(at, "missing, must be \"little\" or \"big\" for data type %s", elem)
		}
		return false, nil
	}
	switch string(raw) {
	case `"little"`:
		return false, nil
	case `"big"`:
		return elem.SwapSize() > 1, nil
	}
	return false, FieldError(at, "is %s, must be \"little\" or \"big\"", Shorten(raw))
}

// parseSharding reads a sharding_indexed codec (sharding codec 1.0) for shards of the given shape.
func parseSharding(at string, e extension, shard []int, elem dtype.Type, depth int) (*Sharding, error) {
	m, err := e.settings(at, "chunk_shape", "codecs", "index_codecs", "index_location")
	if err != nil {
		return nil, err
	}
	at += ".configuration"
	for _, k := range []string{"chunk_shape", "codecs", "index_codecs"} {
		if _, ok := m[k]; !ok {
			return nil, FieldError(at+"."+k, "missing")
		}
	}
	chunk, err := parseChunkShape(at+".chunk_shape", m["chunk_shape"], len(shard))
	if err != nil {
		return nil, err
	}
	for d, n := range shard {
		if n%chunk[d] != 0 {
			return nil, FieldError(fmt.Sprintf("%s.chunk_shape[%d]", at, d), "is %d, must divide the shard's %d", chunk[d], n)
		}
	}
	inner, err := parseCodecs(at+".codecs", m["codecs"], chunk, elem, depth+1)
	if err != nil {
		return nil, err
	}
	atEnd := true
	if raw, ok := m["index_location"]; ok {
		switch string(raw) {
		case `"end"`:
		case `"start"`:
			atEnd = false
		default:
			return nil, FieldError(at+".index_location", "is %s, must be \"start\" or \"end\"", Shorten(raw))
		}
	}
	// the index is an array of uint64: parsing it as such checks its codecs
	index, err := parseCodecs(at+".index_codecs", m["index_codecs"], []int{2}, dtype.Uint64, maxNesting)
	if err != nil {
		return nil, err
	}
	if index.Perm != nil {
		return nil, FieldError(at+".index_codecs", "\"transpose\" is not supported in an index")
	}
	s, err := newSharding(shard, inner, index.BigEndian, index.Chain, atEnd)
	if fe, ok := err.(*FormatError); ok {
		fe.Field = at + "." + fe.Field
	}
	return s, err
}

type extensionJSON struct {
	Name          string `json:"name"`
	Configuration any    `json:"configuration,omitempty"`
}

// EncodeV3 returns the zarr.json of an array.
func EncodeV3(md *Array) (json.RawMessage, error) {
	codecs, err := md.Pipeline.encodeCodecs()
	if err != nil {
		return nil, err
	}
	fill, err := md.encodeFill()
	if err != nil {
		return nil, err
	}
	name := "default"
	if md.Keys.v2 {
		name = "v2"
	}
	var names []any
	for _, n := range md.DimensionNames {
		if n == "" {
			names = append(names, nil)
		} else {
			names = append(names, n)
		}
	}
	return Marshal(struct {
		Shape        []int                      `json:"shape"`
		DataType     any                        `json:"data_type"`
		Grid         extensionJSON              `json:"chunk_grid"`
		Keys         extensionJSON              `json:"chunk_key_encoding"`
		Fill         json.RawMessage            `json:"fill_value"`
		Codecs       []any                      `json:"codecs"`
		Attributes   map[string]json.RawMessage `json:"attributes"`
		Names        []any                      `json:"dimension_names,omitempty"`
		Format       int                        `json:"zarr_format"`
		NodeType     string                     `json:"node_type"`
		Transformers []any                      `json:"storage_transformers"`
	}{
		md.Shape, dataTypeJSON(md.DType, md.NumpyType),
		extensionJSON{"regular", map[string]any{"chunk_shape": md.Chunks}},
		extensionJSON{name, map[string]any{"separator": string(md.Keys.Separator)}},
		fill, codecs, md.Attributes, names, 3, "array", []any{},
	})
}

// filters returns how many codecs are written in front of "bytes".
func (p *Pipeline) filters() int {
	if p.BigEndian || p.Shard != nil {
		return 0
	}
	filters := p.Chain.Filters(p.DType)
	scattered := func(c codec.Codec) bool { return !codec.Elementwise(c) }
	if p.Perm != nil && slices.ContainsFunc(filters, scattered) {
		return 0
	}
	return len(filters)
}

// encodeCodecs returns the list of codecs for metadata.
func (p *Pipeline) encodeCodecs() ([]any, error) {
	var list []any
	filters := p.filters()
	if p.Perm != nil {
		list = append(list, extensionJSON{"transpose", map[string]any{"order": p.Perm}})
	}
	switch s := p.Shard; {
	case s != nil:
		inner, err := s.Inner.encodeCodecs()
		if err != nil {
			return nil, err
		}
		index := []any{bytesJSON(s.indexBig, dtype.Uint64)}
		for _, c := range s.IndexChain {
			m, err := c.MetadataV3()
			if err != nil {
				return nil, fmt.Errorf("codec %q: %w", c.Name(), err)
			}
			index = append(index, m)
		}
		location := "start"
		if s.IndexAtEnd {
			location = "end"
		}
		list = append(list, extensionJSON{"sharding_indexed", map[string]any{
			"chunk_shape": s.Inner.Shape, "codecs": inner, "index_codecs": index, "index_location": location,
		}})
	case filters == 0:
		list = append(list, bytesJSON(p.BigEndian, p.DType))
	}
	elem := p.DType
	for i, c := range p.Chain {
		m, err := c.MetadataV3()
		if err != nil {
			return nil, fmt.Errorf("codec %q: %w", c.Name(), err)
		}
		list = append(list, m)
		if elem = codec.Encoded(c, elem); i == filters-1 {
			list = append(list, bytesJSON(false, elem))
		}
	}
	return list, nil
}

func bytesJSON(big bool, elem dtype.Type) extensionJSON {
	switch {
	case elem.SwapSize() == 1:
		return extensionJSON{Name: "bytes"}
	case big:
		return extensionJSON{"bytes", map[string]any{"endian": "big"}}
	}
	return extensionJSON{"bytes", map[string]any{"endian": "little"}}
}
