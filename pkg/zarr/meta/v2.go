package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/internal/number"
)

// Files of a format 2 hierarchy.
const (
	KeyV2Array        = ".zarray"
	KeyV2Group        = ".zgroup"
	KeyV2Attributes   = ".zattrs"
	KeyV2Consolidated = ".zmetadata"
)

// ParseFormat checks the field zarr_format.
func ParseFormat(m map[string]json.RawMessage, want string) error {
	raw, err := need(m, "zarr_format")
	if err != nil {
		return err
	}
	if got, _ := number.Text(raw); got != want {
		return FieldError("zarr_format", "is %s, must be %s in this file", Shorten(raw), want)
	}
	return nil
}

// ParseV2Array reads a .zarray and its .zattrs, nil if there is none.
func ParseV2Array(document, attributes json.RawMessage) (*Array, error) {
	m, err := ParseDocument(document)
	if err != nil {
		return nil, err
	}
	if err := ParseFormat(m, "2"); err != nil {
		return nil, err
	}
	md := &Array{Format: 2, Document: document}
	if md.Shape, md.Chunks, err = parseGrid(m, "shape", "shape", "chunks", "chunks"); err != nil {
		return nil, err
	}
	raw, err := need(m, "dtype")
	if err != nil {
		return nil, err
	}
	if KindOf(raw) == "a list" {
		return nil, foreign(FieldError("dtype", "is a structured type (%s), which is not supported", Shorten(raw)))
	}
	typestr, err := parseString("dtype", raw)
	if err != nil {
		return nil, err
	}
	if md.DType, md.NumpyType, md.bigEndian, err = parseTypestr(typestr); err != nil {
		return nil, foreign(FieldError("dtype", "%w", err))
	}
	if raw, err = need(m, "order"); err != nil {
		return nil, err
	}
	switch string(raw) {
	case `"C"`, `"F"`:
		md.order = raw[1]
	default:
		return nil, FieldError("order", "is %s, must be \"C\" or \"F\"", Shorten(raw))
	}
	if md.Fill, err = required(m, "fill_value", md.parseFill); err != nil {
		return nil, err
	}
	md.Keys = keyEncoding{v2: true, Separator: '.'}
	if raw, ok := m["dimension_separator"]; ok && !IsNull(raw) {
		if md.Keys.Separator, err = parseSeparator("dimension_separator", raw); err != nil {
			return nil, err
		}
	}
	compressor := m["compressor"] // absent is null, as some writers mean it
	if compressor == nil {
		compressor = json.RawMessage("null")
	}
	var filters []json.RawMessage
	if raw := m["filters"]; raw != nil && !IsNull(raw) {
		var ok bool
		if filters, ok = ParseList(raw); !ok {
			return nil, FieldError("filters", "is %s, must be null or a list", KindOf(raw))
		}
	}
	chain, err := codec.ParseChainV2(filters, bytes.TrimSpace(compressor), md.DType)
	if err != nil {
		if errors.Is(err, codec.ErrUnknown) {
			err = foreign(err)
		}
		return nil, &FormatError{Err: err} // names its field itself
	}
	if md.Pipeline, err = newPipeline(md.Chunks, V2Order(md.order, len(md.Chunks)), md.DType, md.bigEndian, chain, nil); err != nil {
		return nil, err
	}
	if attributes == nil {
		md.Attributes = map[string]json.RawMessage{}
		return md, nil
	}
	md.Attributes, err = ParseAttributesFile(attributes)
	return md, err
}

// ParseAttributesFile reads a .zattrs; null means none.
func ParseAttributesFile(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if IsNull(raw) {
		return map[string]json.RawMessage{}, nil
	}
	return ParseDocument(raw)
}

// parseGrid reads the shape of the array and of its chunks.
func parseGrid(m map[string]json.RawMessage, shapeKey, shapeField, chunkKey, chunkField string) (shape, chunks []int, err error) {
	raw, ok := m[shapeKey]
	if !ok {
		return nil, nil, FieldError(shapeField, "missing")
	}
	if shape, err = parseSizes(shapeField, raw); err != nil {
		return nil, nil, err
	}
	if raw, ok = m[chunkKey]; !ok {
		return nil, nil, FieldError(chunkField, "missing")
	}
	chunks, err = parseChunkShape(chunkField, raw, len(shape))
	return shape, chunks, err
}

func parseChunkShape(field string, raw json.RawMessage, rank int) ([]int, error) {
	chunks, err := parseInts(field, raw, 1)
	if err != nil {
		return nil, err
	}
	if len(chunks) != rank {
		return nil, FieldError(field, "has %d dimensions, the array has %d", len(chunks), rank)
	}
	return chunks, nil
}

// V2Order returns the transposition for an order, 'C' or 'F'.
func V2Order(order byte, rank int) []int {
	if order != 'F' {
		return nil
	}
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = rank - 1 - i
	}
	return perm
}

// encodeV2 returns the .zarray of an array.
func encodeV2(md *Array) (json.RawMessage, error) {
	filters, compressor, err := md.Pipeline.Chain.MetadataV2()
	if err != nil {
		return nil, err
	}
	typestr := md.DType.Typestr()
	if md.NumpyType != "" {
		typestr = typestr[:1] + md.NumpyType
	}
	fill, err := md.encodeFill()
	if err != nil {
		return nil, err
	}
	if md.bigEndian && md.DType.SwapSize() > 1 {
		typestr = ">" + typestr[1:]
	}
	return Marshal(struct {
		Shape      []int             `json:"shape"`
		Chunks     []int             `json:"chunks"`
		DType      string            `json:"dtype"`
		Fill       json.RawMessage   `json:"fill_value"`
		Order      string            `json:"order"`
		Filters    []json.RawMessage `json:"filters"`
		Separator  string            `json:"dimension_separator"`
		Compressor json.RawMessage   `json:"compressor"`
		Format     int               `json:"zarr_format"`
	}{
		slices.Clone(md.Shape), md.Chunks, typestr, fill, string(md.order),
		filters, string(md.Keys.Separator), compressor, 2,
	})
}

// Marshal returns JSON in zarr-python's layout: indented by two spaces, without HTML escapes.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
