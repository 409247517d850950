package zarr

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
	keyV2Array        = ".zarray"
	keyV2Group        = ".zgroup"
	keyV2Attributes   = ".zattrs"
	keyV2Consolidated = ".zmetadata"
)

// parseFormat checks the field zarr_format.
func parseFormat(m map[string]json.RawMessage, want string) error {
	raw, err := need(m, "zarr_format")
	if err != nil {
		return err
	}
	if got, _ := number.Text(raw); got != want {
		return fieldError("zarr_format", "is %s, must be %s in this file", shorten(raw), want)
	}
	return nil
}

// parseV2Array reads a .zarray and its .zattrs, nil if there is none.
func parseV2Array(document, attributes json.RawMessage) (*metadata, error) {
	m, err := parseDocument(document)
	if err != nil {
		return nil, err
	}
	if err := parseFormat(m, "2"); err != nil {
		return nil, err
	}
	md := &metadata{format: 2, document: document}
	if md.shape, md.chunks, err = parseGrid(m, "shape", "shape", "chunks", "chunks"); err != nil {
		return nil, err
	}
	raw, err := need(m, "dtype")
	if err != nil {
		return nil, err
	}
	if kindOf(raw) == "a list" {
		return nil, foreign(fieldError("dtype", "is a structured type (%s), which is not supported", shorten(raw)))
	}
	typestr, err := parseString("dtype", raw)
	if err != nil {
		return nil, err
	}
	if md.elem, md.numpy, md.bigEndian, err = parseTypestr(typestr); err != nil {
		return nil, foreign(fieldError("dtype", "%w", err))
	}
	if raw, err = need(m, "order"); err != nil {
		return nil, err
	}
	switch string(raw) {
	case `"C"`, `"F"`:
		md.order = raw[1]
	default:
		return nil, fieldError("order", "is %s, must be \"C\" or \"F\"", shorten(raw))
	}
	if md.fill, err = required(m, "fill_value", md.parseFill); err != nil {
		return nil, err
	}
	md.keys = keyEncoding{v2: true, separator: '.'}
	if raw, ok := m["dimension_separator"]; ok && !isNull(raw) {
		if md.keys.separator, err = parseSeparator("dimension_separator", raw); err != nil {
			return nil, err
		}
	}
	compressor := m["compressor"] // absent is null, as some writers mean it
	if compressor == nil {
		compressor = json.RawMessage("null")
	}
	var filters []json.RawMessage
	if raw := m["filters"]; raw != nil && !isNull(raw) {
		var ok bool
		if filters, ok = parseList(raw); !ok {
			return nil, fieldError("filters", "is %s, must be null or a list", kindOf(raw))
		}
	}
	chain, err := codec.ParseChainV2(filters, bytes.TrimSpace(compressor), md.elem)
	if err != nil {
		if errors.Is(err, codec.ErrUnknown) {
			err = foreign(err)
		}
		return nil, &FormatError{Err: err} // names its field itself
	}
	if md.pipe, err = newPipeline(md.chunks, v2Order(md.order, len(md.chunks)), md.elem, md.bigEndian, chain, nil); err != nil {
		return nil, err
	}
	if attributes == nil {
		md.attributes = map[string]json.RawMessage{}
		return md, nil
	}
	md.attributes, err = parseAttributesFile(attributes)
	return md, err
}

// parseAttributesFile reads a .zattrs; null means none.
func parseAttributesFile(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if isNull(raw) {
		return map[string]json.RawMessage{}, nil
	}
	return parseDocument(raw)
}

// parseGrid reads the shape of the array and of its chunks.
func parseGrid(m map[string]json.RawMessage, shapeKey, shapeField, chunkKey, chunkField string) (shape, chunks []int, err error) {
	raw, ok := m[shapeKey]
	if !ok {
		return nil, nil, fieldError(shapeField, "missing")
	}
	if shape, err = parseSizes(shapeField, raw); err != nil {
		return nil, nil, err
	}
	if raw, ok = m[chunkKey]; !ok {
		return nil, nil, fieldError(chunkField, "missing")
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
		return nil, fieldError(field, "has %d dimensions, the array has %d", len(chunks), rank)
	}
	return chunks, nil
}

// v2Order returns the transposition for an order, 'C' or 'F'.
func v2Order(order byte, rank int) []int {
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
func encodeV2(md *metadata) (json.RawMessage, error) {
	filters, compressor, err := md.pipe.chain.MetadataV2()
	if err != nil {
		return nil, err
	}
	typestr := md.elem.Typestr()
	if md.numpy != "" {
		typestr = typestr[:1] + md.numpy
	}
	fill, err := md.encodeFill()
	if err != nil {
		return nil, err
	}
	if md.bigEndian && md.elem.SwapSize() > 1 {
		typestr = ">" + typestr[1:]
	}
	return marshal(struct {
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
		slices.Clone(md.shape), md.chunks, typestr, fill, string(md.order),
		filters, string(md.keys.separator), compressor, 2,
	})
}

// marshal returns JSON in zarr-python's layout: indented by two spaces, without HTML escapes.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
