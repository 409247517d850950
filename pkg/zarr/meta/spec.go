package meta

import (
	"encoding/json"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/codec"
)

// Spec describes an array to create. Shape, Chunks and DType are required.
type Spec struct {
	Format         int   // 2 or 3; 0 means 3
	Shape          []int // elements along each dimension
	Chunks         []int // shape of a chunk; of an inner chunk when Shard is set
	Shard          []int // shape of a shard, a multiple of Chunks; nil: not sharded (format 2 never is)
	DType          dtype.Type
	NumpyType      string      // numpy's type string without byte order, where DType is not enough; see [Array.NumpyType]
	Codecs         codec.Chain // bytes-to-bytes codecs in encoding order; in format 2, filters and then the compressor
	Fill           any         // a number, a bool, "NaN", or the bytes of an element ([]byte); nil: 0
	Order          byte        // 'C' (or 0): last dimension varies fastest in a chunk; 'F': first dimension does
	BigEndian      bool
	Separator      string         // separator in chunk keys; "": "." in format 2, "/" in 3
	DimensionNames []string       // format 3 only; nil: none
	Attributes     map[string]any // encoded as JSON; nil: none
	Complete       bool           // the caller will store every chunk: the attributes get an [Account]
}

// Metadata checks a Spec and converts it to an array's metadata.
func (s *Spec) Metadata() (*Array, error) {
	md := &Array{Format: s.Format, Shape: slices.Clone(s.Shape), Chunks: slices.Clone(s.Chunks), DType: s.DType, bigEndian: s.BigEndian, order: 'C'}
	if md.Format == 0 {
		md.Format = 3
	}
	if md.Shape == nil {
		md.Shape, md.Chunks = []int{}, []int{}
	}
	if err := s.checkElements(md); err != nil {
		return nil, err
	}
	perm, err := s.order(md)
	if err != nil {
		return nil, err
	}
	if md.Fill, err = md.fillBytes(s.Fill); err != nil {
		return nil, err
	}
	if err := s.name(md); err != nil {
		return nil, err
	}
	if md.Attributes, err = AttributesJSON(s.Attributes); err != nil {
		return nil, err
	}
	if n, ok := GridCount(md.Shape, md.Chunks); ok && s.Complete {
		if md.Attributes[AccountKey], err = Marshal(Account{n, n}); err != nil {
			return nil, err
		}
	}
	if err := s.Codecs.ReadOnly(); err != nil {
		return nil, FieldError("Codecs", "%w", err)
	}
	if md.Pipeline, err = newPipeline(md.Chunks, perm, md.DType, md.bigEndian, slices.Clone(s.Codecs), nil); err != nil {
		return nil, err
	}
	if s.Shard != nil {
		if md.Pipeline, err = s.sharded(md); err != nil {
			return nil, err
		}
	}
	if md.Format == 2 {
		md.Document, err = encodeV2(md)
	} else {
		md.Document, err = EncodeV3(md)
	}
	return md, err
}

// checkElements checks the format, the element type and the lengths, and completes the element type.
func (s *Spec) checkElements(md *Array) error {
	if md.Format != 2 && md.Format != 3 {
		return FieldError("Format", "is %d, must be 2 or 3", md.Format)
	}
	if md.DType.Size() == 0 {
		return FieldError("DType", "is %s", md.DType)
	}
	if md.NumpyType = s.NumpyType; md.NumpyType == "" && (md.DType.IsFixedBytes() || md.DType.IsFixedText()) {
		md.NumpyType = md.DType.Typestr()[1:]
	}
	if t, ok, err := parseNumpyType(md.NumpyType); md.NumpyType != "" && (!ok || err != nil || t != md.DType) {
		return FieldError("NumpyType", "is %q, which is not an element type of %s", md.NumpyType, md.DType)
	}
	if len(md.Shape) > maxRank || len(md.Chunks) != len(md.Shape) {
		return FieldError("Chunks", "has %d dimensions, the array has %d (at most %d are supported)", len(md.Chunks), len(md.Shape), maxRank)
	}
	for d, n := range md.Shape {
		if n < 0 || md.Chunks[d] < 1 {
			return FieldError("Chunks", "%v of an array of %v: lengths must be at least 1, the array's at least 0", md.Chunks, md.Shape)
		}
	}
	return nil
}

// order returns the order of dimensions in a chunk, nil if it is that of the array.
func (s *Spec) order(md *Array) ([]int, error) {
	switch s.Order {
	case 0, 'C':
		return nil, nil
	case 'F':
		if md.Format == 2 {
			md.order = 'F'
		}
		return V2Order('F', len(md.Chunks)), nil
	}
	return nil, FieldError("Order", "is %q, must be 'C' or 'F'", s.Order)
}

// name sets the form of the chunks' keys and the names of dimensions.
func (s *Spec) name(md *Array) error {
	md.Keys = keyEncoding{v2: md.Format == 2, Separator: "/."[3-md.Format]}
	switch s.Separator {
	case "":
	case ".", "/":
		md.Keys.Separator = s.Separator[0]
	default:
		return FieldError("Separator", "is %q, must be \".\" or \"/\"", s.Separator)
	}
	if s.DimensionNames == nil {
		return nil
	}
	if md.Format == 2 || len(s.DimensionNames) != len(md.Shape) {
		return FieldError("DimensionNames", "%q for %d dimensions in format %d (format 3 has one for each)", s.DimensionNames, len(md.Shape), md.Format)
	}
	md.DimensionNames = slices.Clone(s.DimensionNames)
	return nil
}

// sharded turns the pipeline's chunks into inner chunks of shards with zarr-python's layout: index at the
// end, with a checksum.
func (s *Spec) sharded(md *Array) (*Pipeline, error) {
	if md.Format == 2 {
		return nil, FieldError("Shard", "format 2 has no shards")
	}
	if len(s.Shard) != len(md.Chunks) {
		return nil, FieldError("Shard", "has %d dimensions, the array has %d", len(s.Shard), len(md.Chunks))
	}
	for d, n := range s.Shard {
		if n < 1 || n%md.Chunks[d] != 0 {
			return nil, FieldError("Shard", "%v must be a multiple of the chunk's %v", s.Shard, md.Chunks)
		}
	}
	sh, err := newSharding(s.Shard, md.Pipeline, false, codec.Chain{codec.CRC32C()}, true)
	if err != nil {
		return nil, err
	}
	md.Chunks = slices.Clone(s.Shard)
	return newPipeline(md.Chunks, nil, md.DType, false, nil, sh)
}

// AttributesJSON encodes user attributes as JSON.
func AttributesJSON(attrs map[string]any) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(attrs))
	for k, v := range attrs {
		raw, err := Marshal(v)
		if err != nil {
			return nil, FieldError("Attributes", "%q: %w", k, err)
		}
		out[k] = raw
	}
	return out, nil
}

// Account records how many chunks of an array its writer stored. It tells a chunk that was lost from one that
// was deliberately left out; the format itself reads both as the fill value. It is stored as the attribute
// [AccountKey].
//
// Other programs do not know it: if they change the shape or the chunk grid, the account no longer fits and
// is ignored; if they remove chunks that hold only the fill value, it is wrong.
type Account struct {
	Chunks int64 `json:"chunks"`        // chunks in the grid of [Array.Chunks]
	Stored int64 `json:"stored_chunks"` // chunks among these that were stored
}

// AccountKey names the attribute of an [Account].
const AccountKey = "strata"

// GridCount returns the number of chunks of an array; ok is false if it overflows.
func GridCount(shape, chunks []int) (n int64, ok bool) {
	grid := make([]int, len(shape))
	for d := range grid {
		grid[d] = box.CeilDiv(shape[d], chunks[d])
	}
	v, ok := box.Volume(grid, 1)
	return int64(v), ok
}
