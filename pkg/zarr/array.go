package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Array is a Zarr array in a store.
type Array struct {
	st   store.Store
	path string
	meta *metadata
	opts options
	*shared
}

// shared is what an Array has in common with those made of it by With.
type shared struct {
	objects *objectCache
	unit    []int // what one worker reads at a time
	far     int   // requests that are worth having on their way; 0: the store is near
	locks   [64]sync.Mutex
	omitted atomic.Int64 // chunks that writes left out

	mu         sync.Mutex // guards the two below
	attributes map[string]json.RawMessage
	document   json.RawMessage
}

func newArray(st store.Store, path string, md *metadata, opts options) *Array {
	return &Array{st: st, path: path, meta: md, opts: opts,
		shared: &shared{objects: &objectCache{}, unit: md.pipe.unit(), far: requests(st), attributes: md.attributes, document: md.document}}
}

// With returns the same array with other options. Both use one set of open files.
func (a *Array) With(opts ...Option) *Array {
	b := *a
	b.opts.apply(opts)
	return &b
}

// Close closes the chunk files that are kept open between calls. The array can
// be used again; a read in another goroutine is not disturbed. An array that is
// dropped without Close gives them up when it is collected.
func (a *Array) Close() { a.objects.clear() }

// Path is the array's key in its store, "" for the root.
func (a *Array) Path() string { return a.path }

// Location is where the array lies, in the words of its store, for messages.
func (a *Array) Location() string { return a.st.Location(a.path) }

// Store is the store that the array lies in.
func (a *Array) Store() store.Store { return a.st }

// Format is the Zarr format, 2 or 3.
func (a *Array) Format() int { return a.meta.format }

// Shape is the number of elements along each dimension.
func (a *Array) Shape() []int { return slices.Clone(a.meta.shape) }

// Bounds is the region of all elements.
func (a *Array) Bounds() Region {
	return Region{Start: make([]int, len(a.meta.shape)), Shape: a.Shape()}
}

// Chunks is the shape of a chunk, in elements: of an inner chunk in a sharded
// array.
func (a *Array) Chunks() []int {
	p := a.meta.pipe
	if p.shard == nil {
		return slices.Clone(p.shape)
	}
	return slices.Clone(p.unpermuted(p.shard.inner.shape))
}

// Shard is the shape of a shard, in elements; nil when the array is not sharded.
func (a *Array) Shard() []int {
	if a.meta.pipe.shard == nil {
		return nil
	}
	return slices.Clone(a.meta.pipe.shape)
}

// DType is the element type.
func (a *Array) DType() dtype.Type { return a.meta.elem }

// NumpyType is what elements stand for where DType alone does not tell, as numpy writes it without the byte
// order: dates "M8[ns]" and times "m8[s]", which are Int64, text "U16", bytes "S10" and "V10"; else "".
func (a *Array) NumpyType() string { return a.meta.numpy }

// BigEndian reports whether elements are stored most significant byte first.
// In memory they are always in native order.
func (a *Array) BigEndian() bool { return a.innermost().big }

// Order is 'C' when chunks are stored with the last dimension fastest, 'F' when
// with the first, and 'T' for any other transposition.
func (a *Array) Order() byte {
	switch perm := a.innermost().perm; {
	case perm == nil:
		return 'C'
	case slices.Equal(perm, v2Order('F', len(perm))):
		return 'F'
	}
	return 'T'
}

// Separator is what stands between the numbers of a chunk key: "." or "/".
func (a *Array) Separator() string { return string(a.meta.keys.separator) }

// Fill is the fill value: the bytes of one element in native order.
func (a *Array) Fill() []byte { return slices.Clone(a.meta.fill) }

// Codecs are the codecs that work on the bytes of a chunk, in the order of
// encoding; of an inner chunk in a sharded array.
func (a *Array) Codecs() codec.Chain { return slices.Clone(a.innermost().chain) }

func (a *Array) innermost() *pipeline {
	p := a.meta.pipe
	for p.shard != nil {
		p = p.shard.inner
	}
	return p
}

// DimensionNames are the names of the dimensions, "" for one that has none, or
// nil when none has.
func (a *Array) DimensionNames() []string { return slices.Clone(a.meta.names) }

// Attributes are the user attributes as JSON.
func (a *Array) Attributes() map[string]json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.attributes)
}

// MetadataJSON is the array's metadata document: zarr.json or .zarray.
func (a *Array) MetadataJSON() json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.document)
}

func (a *Array) isNode() {}

// appendKey adds the key of a chunk file to b.
func (a *Array) appendKey(b []byte, file []int) []byte {
	if a.path != "" {
		b = append(append(b, a.path...), '/')
	}
	return a.meta.keys.append(b, file)
}

// ChunkKey is the store's key of the file that holds the chunk with that index
// in the grid of files (of shards, in a sharded array).
func (a *Array) ChunkKey(file []int) string { return string(a.appendKey(nil, file)) }

// Spec describes an array to be created. Only Shape, Chunks and DType have no
// default.
type Spec struct {
	Format         int   // 2 or 3; 0 means 3
	Shape          []int // elements along each dimension
	Chunks         []int // shape of a chunk; of an inner chunk when Shard is set
	Shard          []int // shape of a shard, a multiple of Chunks; nil: not sharded (format 2 never is)
	DType          dtype.Type
	NumpyType      string      // numpy's type string without its byte order, of what DType alone does not tell; see [Array.NumpyType]
	Codecs         codec.Chain // bytes → bytes, in the order of encoding; in format 2 filters, then the compressor
	Fill           any         // a number, bool or "NaN", or the bytes of an element ([]byte); nil: 0
	Order          byte        // 'C' (also 0) or 'F': the dimension that is fastest in a chunk is the last or the first
	BigEndian      bool
	Separator      string         // between the numbers of chunk keys; "": "." in format 2, "/" in 3
	DimensionNames []string       // format 3 only; nil: none
	Attributes     map[string]any // made JSON of; nil: none
	Complete       bool           // every chunk will be stored: the attributes get an [Account] of them
}

// metadata checks a Spec and makes an array's metadata of it.
func (s *Spec) metadata() (*metadata, error) {
	md := &metadata{format: s.Format, shape: slices.Clone(s.Shape), chunks: slices.Clone(s.Chunks), elem: s.DType, bigEndian: s.BigEndian, order: 'C'}
	if md.format == 0 {
		md.format = 3
	}
	if md.shape == nil {
		md.shape, md.chunks = []int{}, []int{}
	}
	if md.format != 2 && md.format != 3 {
		return nil, fieldError("Format", "is %d, must be 2 or 3", md.format)
	}
	if md.elem.Size() == 0 {
		return nil, fieldError("DType", "is %s", md.elem)
	}
	if md.numpy = s.NumpyType; md.numpy == "" && (md.elem.IsFixedBytes() || md.elem.IsFixedText()) {
		md.numpy = md.elem.Typestr()[1:]
	}
	if t, ok, err := parseNumpyType(md.numpy); md.numpy != "" && (!ok || err != nil || t != md.elem) {
		return nil, fieldError("NumpyType", "is %q, which is not an element type of %s", md.numpy, md.elem)
	}
	if len(md.shape) > maxRank || len(md.chunks) != len(md.shape) {
		return nil, fieldError("Chunks", "has %d dimensions, the array has %d (at most %d are supported)", len(md.chunks), len(md.shape), maxRank)
	}
	for d, n := range md.shape {
		if n < 0 || md.chunks[d] < 1 {
			return nil, fieldError("Chunks", "%v of an array of %v: lengths must be at least 1, the array's at least 0", md.chunks, md.shape)
		}
	}
	var perm []int
	switch s.Order {
	case 0, 'C':
	case 'F':
		perm = v2Order('F', len(md.chunks))
		if md.format == 2 {
			md.order = 'F'
		}
	default:
		return nil, fieldError("Order", "is %q, must be 'C' or 'F'", s.Order)
	}
	var err error
	if md.fill, err = md.fillBytes(s.Fill); err != nil {
		return nil, err
	}
	md.keys = keyEncoding{v2: md.format == 2, separator: "/."[3-md.format]}
	switch s.Separator {
	case "":
	case ".", "/":
		md.keys.separator = s.Separator[0]
	default:
		return nil, fieldError("Separator", "is %q, must be \".\" or \"/\"", s.Separator)
	}
	if s.DimensionNames != nil {
		if md.format == 2 || len(s.DimensionNames) != len(md.shape) {
			return nil, fieldError("DimensionNames", "%q for %d dimensions in format %d (format 3 has one for each)", s.DimensionNames, len(md.shape), md.format)
		}
		md.names = slices.Clone(s.DimensionNames)
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

// sharded makes chunks of the pipeline into the inner chunks of shards, as
// zarr-python lays them out: index at the end, with a checksum.
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

// CreateArray writes the metadata of a new array; path "" is the root of the
// store. Groups above it are the caller's to create. It is fs.ErrExist when
// there is an array or group already.
func CreateArray(ctx context.Context, st store.Writer, path string, spec Spec, opts ...Option) (*Array, error) {
	md, err := spec.metadata()
	if err != nil {
		return nil, inFile(st, path, err)
	}
	if err := vacant(ctx, st, path); err != nil {
		return nil, err
	}
	if md.format == 3 {
		err = st.Put(ctx, store.Join(path, keyV3), md.document)
	} else {
		err = putV2(ctx, st, path, keyV2Array, md.document, md.attributes)
	}
	if err != nil {
		return nil, err
	}
	return newArray(st, path, md, newOptions(opts)), nil
}

// vacant reports fs.ErrExist if there is a node at path.
func vacant(ctx context.Context, st store.Store, path string) error {
	for _, name := range []string{keyV3, keyV2Array, keyV2Group} {
		key := store.Join(path, name)
		if o, err := st.Open(ctx, key); err == nil {
			_ = o.Close() // it was only opened
			return fmt.Errorf("%s: %w", st.Location(key), fs.ErrExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// putV2 writes the two files of a format 2 node, the one that makes it a node last.
func putV2(ctx context.Context, st store.Writer, path, name string, document json.RawMessage, attrs map[string]json.RawMessage) error {
	raw, err := marshal(attrs)
	if err != nil {
		return inFile(st, path, err)
	}
	if err := st.Put(ctx, store.Join(path, keyV2Attributes), raw); err != nil {
		return err
	}
	return st.Put(ctx, store.Join(path, name), document)
}

// SetAttributes replaces all user attributes. Consolidated metadata of groups
// above keeps the old ones until [Consolidate] is called.
func (a *Array) SetAttributes(ctx context.Context, attrs map[string]any) error {
	st, err := a.writer()
	if err != nil {
		return err
	}
	raw, err := attributesJSON(attrs)
	if err != nil {
		return inFile(a.st, a.path, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	document, err := putAttributes(ctx, st, a.path, a.meta.format, a.document, raw)
	if err != nil {
		return err
	}
	a.attributes, a.document = raw, document
	return nil
}

// putAttributes writes attributes to the file they belong in and returns the
// node's document with them. All other fields stay as they are.
func putAttributes(ctx context.Context, st store.Writer, path string, format int, document json.RawMessage, attrs map[string]json.RawMessage) (json.RawMessage, error) {
	if format == 2 {
		raw, err := marshal(attrs)
		if err != nil {
			return nil, inFile(st, path, err)
		}
		return document, st.Put(ctx, store.Join(path, keyV2Attributes), raw)
	}
	m, err := parseDocument(document)
	if err != nil {
		return nil, inFile(st, store.Join(path, keyV3), err)
	}
	if m["attributes"], err = marshal(attrs); err != nil {
		return nil, inFile(st, path, err)
	}
	if document, err = marshal(m); err != nil {
		return nil, inFile(st, path, err)
	}
	return document, st.Put(ctx, store.Join(path, keyV3), document)
}

// writer is the array's store as one that can be written.
func (a *Array) writer() (store.Writer, error) {
	if st, ok := a.st.(store.Writer); ok {
		return st, nil
	}
	return nil, fmt.Errorf("%s: %w", a.Location(), ErrReadOnly)
}
