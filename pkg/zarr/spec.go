package zarr

import (
	"encoding/json"
	"slices"
	"strata/pkg/dtype"
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

// metadata checks a Spec and converts it to an array's metadata.
func (s *Spec) metadata() (*metadata, error) {
	md := &metadata{format: s.Format, shape: slices.Clone(s.Shape), chunks: slices.Clone(s.Chunks), elem: s.DType, bigEndian: s.BigEndian, order: 'C'}
	if md.format == 0 {
		md.format = 3
	}
	if md.shape == nil {
		md.shape, md.chunks = []int{}, []int{}
	}
	if err := s.checkElements(md); err != nil {
		return nil, err
	}
	perm, err := s.order(md)
	if err != nil {
		return nil, err
	}
	if md.fill, err = md.fillBytes(s.Fill); err != nil {
		return nil, err
	}
	if err := s.name(md); err != nil {
		return nil, err
	}
	if md.attributes, err = attributesJSON(s.Attributes); err != nil {
		return nil, err
	}
	if n, ok := gridCount(md.shape, md.chunks); ok && s.Complete {
		if md.attributes[AccountKey], err = marshal(Account{n, n}); err != nil {
			return nil, err
		}
	}
	if err := s.Codecs.ReadOnly(); err != nil {
		return nil, fieldError("Codecs", "%w", err)
	}
	if md.pipe, err = newPipeline(md.chunks, perm, md.elem, md.bigEndian, slices.Clone(s.Codecs), nil); err != nil {
		return nil, err
	}
	if s.Shard != nil {
		if md.pipe, err = s.sharded(md); err != nil {
			return nil, err
		}
	}
	if md.format == 2 {
		md.document, err = encodeV2(md)
	} else {
		md.document, err = encodeV3(md)
	}
	return md, err
}

// checkElements checks the format, the element type and the lengths, and completes the element type.
func (s *Spec) checkElements(md *metadata) error {
	if md.format != 2 && md.format != 3 {
		return fieldError("Format", "is %d, must be 2 or 3", md.format)
	}
	if md.elem.Size() == 0 {
		return fieldError("DType", "is %s", md.elem)
	}
	if md.numpy = s.NumpyType; md.numpy == "" && (md.elem.IsFixedBytes() || md.elem.IsFixedText()) {
		md.numpy = md.elem.Typestr()[1:]
	}
	if t, ok, err := parseNumpyType(md.numpy); md.numpy != "" && (!ok || err != nil || t != md.elem) {
		return fieldError("NumpyType", "is %q, which is not an element type of %s", md.numpy, md.elem)
	}
	if len(md.shape) > maxRank || len(md.chunks) != len(md.shape) {
		return fieldError("Chunks", "has %d dimensions, the array has %d (at most %d are supported)", len(md.chunks), len(md.shape), maxRank)
	}
	for d, n := range md.shape {
		if n < 0 || md.chunks[d] < 1 {
			return fieldError("Chunks", "%v of an array of %v: lengths must be at least 1, the array's at least 0", md.chunks, md.shape)
		}
	}
	return nil
}

// order returns the order of dimensions in a chunk, nil if it is that of the array.
func (s *Spec) order(md *metadata) ([]int, error) {
	switch s.Order {
	case 0, 'C':
		return nil, nil
	case 'F':
		if md.format == 2 {
			md.order = 'F'
		}
		return v2Order('F', len(md.chunks)), nil
	}
	return nil, fieldError("Order", "is %q, must be 'C' or 'F'", s.Order)
}

// name sets the form of the chunks' keys and the names of dimensions.
func (s *Spec) name(md *metadata) error {
	md.keys = keyEncoding{v2: md.format == 2, separator: "/."[3-md.format]}
	switch s.Separator {
	case "":
	case ".", "/":
		md.keys.separator = s.Separator[0]
	default:
		return fieldError("Separator", "is %q, must be \".\" or \"/\"", s.Separator)
	}
	if s.DimensionNames == nil {
		return nil
	}
	if md.format == 2 || len(s.DimensionNames) != len(md.shape) {
		return fieldError("DimensionNames", "%q for %d dimensions in format %d (format 3 has one for each)", s.DimensionNames, len(md.shape), md.format)
	}
	md.names = slices.Clone(s.DimensionNames)
	return nil
}

// sharded turns the pipeline's chunks into inner chunks of shards with zarr-python's layout: index at the
// end, with a checksum.
func (s *Spec) sharded(md *metadata) (*pipeline, error) {
	if md.format == 2 {
		return nil, fieldError("Shard", "format 2 has no shards")
	}
	if len(s.Shard) != len(md.chunks) {
		return nil, fieldError("Shard", "has %d dimensions, the array has %d", len(s.Shard), len(md.chunks))
	}
	for d, n := range s.Shard {
		if n < 1 || n%md.chunks[d] != 0 {
			return nil, fieldError("Shard", "%v must be a multiple of the chunk's %v", s.Shard, md.chunks)
		}
	}
	sh, err := newSharding(s.Shard, md.pipe, false, codec.Chain{codec.CRC32C()}, true)
	if err != nil {
		return nil, err
	}
	md.chunks = slices.Clone(s.Shard)
	return newPipeline(md.chunks, nil, md.elem, false, nil, sh)
}

func attributesJSON(attrs map[string]any) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(attrs))
	for k, v := range attrs {
		raw, err := marshal(v)
		if err != nil {
			return nil, fieldError("Attributes", "%q: %w", k, err)
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

// gridCount returns the number of chunks of an array; ok is false if it overflows.
func gridCount(shape, chunks []int) (n int64, ok bool) {
	grid := make([]int, len(shape))
	for d := range grid {
		grid[d] = ceilDiv(shape[d], chunks[d])
	}
	v, ok := volume(grid, 1)
	return int64(v), ok
}
