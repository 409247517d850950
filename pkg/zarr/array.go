package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// Array reads and writes a Zarr array in a store. All methods may be called concurrently.
type Array struct {
	st   store.Store
	path string
	meta *meta.Array
	opts options
	*shared
}

// shared holds the state that an Array shares with those derived from it by With.
type shared struct {
	objects *objectCache
	unit    []int // what one worker reads at a time
	far     int   // requests that are worth having on their way; 0: the store is near
	writing fileLocks
	omitted atomic.Int64 // chunks that writes left out

	documents
}

func newArray(st store.Store, path string, md *meta.Array, opts options) *Array {
	return &Array{st: st, path: path, meta: md, opts: opts,
		shared: &shared{objects: &objectCache{}, unit: md.Pipeline.Unit(), far: requests(st), documents: documents{attributes: md.Attributes, document: md.Document}}}
}

// With returns the same array with other options. Both share one cache of open files.
func (a *Array) With(opts ...Option) *Array {
	b := *a
	b.opts.apply(opts)
	return &b
}

// Close closes the chunk files that stay open between calls. It does not disturb reads in other goroutines,
// and the array can be used again afterwards. An array that is dropped without Close releases its files when
// it is garbage-collected.
func (a *Array) Close() { a.objects.clear() }

// Path returns the array's key in its store; "" is the root.
func (a *Array) Path() string { return a.path }

// Location returns the place of the array as its store names it, for messages.
func (a *Array) Location() string { return a.st.Location(a.path) }

// Store returns the store that holds the array.
func (a *Array) Store() store.Store { return a.st }

// Format returns the Zarr format, 2 or 3.
func (a *Array) Format() int { return a.meta.Format }

// Shape returns the number of elements along each dimension.
func (a *Array) Shape() []int { return slices.Clone(a.meta.Shape) }

// Bounds returns the region that covers all elements.
func (a *Array) Bounds() Region {
	return Region{Start: make([]int, len(a.meta.Shape)), Shape: a.Shape()}
}

// Chunks returns the shape of a chunk in elements; for a sharded array, that of an inner chunk.
func (a *Array) Chunks() []int {
	p := a.meta.Pipeline
	if p.Shard == nil {
		return slices.Clone(p.Shape)
	}
	return slices.Clone(p.Unpermuted(p.Shard.Inner.Shape))
}

// Shard returns the shape of a shard in elements, or nil if the array is not sharded.
func (a *Array) Shard() []int {
	if a.meta.Pipeline.Shard == nil {
		return nil
	}
	return slices.Clone(a.meta.Pipeline.Shape)
}

// DType returns the element type.
func (a *Array) DType() dtype.Type { return a.meta.DType }

// NumpyType returns numpy's type string, without the byte order, for elements that DType alone does not
// describe: dates "M8[ns]" and times "m8[s]", both Int64; text "U16"; bytes "S10" and "V10". For all others
// it returns "".
func (a *Array) NumpyType() string { return a.meta.NumpyType }

// BigEndian reports whether elements are stored most significant byte first. In memory they always have
// native order.
func (a *Array) BigEndian() bool { return a.innermost().BigEndian }

// Order returns the dimension order of stored chunks: 'C' if the last dimension varies fastest, 'F' if the
// first does, 'T' for any other transposition.
func (a *Array) Order() byte {
	switch perm := a.innermost().Perm; {
	case perm == nil:
		return 'C'
	case slices.Equal(perm, meta.V2Order('F', len(perm))):
		return 'F'
	}
	return 'T'
}

// Separator returns the separator of the numbers in a chunk key: "." or "/".
func (a *Array) Separator() string { return string(a.meta.Keys.Separator) }

// Fill returns the fill value as the bytes of one element in native order.
func (a *Array) Fill() []byte { return slices.Clone(a.meta.Fill) }

// Codecs returns the bytes-to-bytes codecs of a chunk (of an inner chunk in a sharded array) in encoding
// order.
func (a *Array) Codecs() codec.Chain { return slices.Clone(a.innermost().Chain) }

func (a *Array) innermost() *meta.Pipeline {
	p := a.meta.Pipeline
	for p.Shard != nil {
		p = p.Shard.Inner
	}
	return p
}

// DimensionNames returns the names of the dimensions, "" for an unnamed one, or nil if none has a name.
func (a *Array) DimensionNames() []string { return slices.Clone(a.meta.DimensionNames) }

func (a *Array) isNode() {}

// appendKey appends the key of a chunk file to b.
func (a *Array) appendKey(b []byte, file []int) []byte {
	if a.path != "" {
		b = append(append(b, a.path...), '/')
	}
	return a.meta.Keys.Append(b, file)
}

// ChunkKey returns the store key of the chunk file with the given index; in a sharded array, the index is
// that of a shard.
func (a *Array) ChunkKey(file []int) string { return string(a.appendKey(nil, file)) }

// CreateArray writes the metadata of a new array at path; "" is the root of the store. The caller creates the
// groups above it. The error wraps fs.ErrExist if there is an array or group already.
func CreateArray(ctx context.Context, st store.Writer, path string, spec Spec, opts ...Option) (*Array, error) {
	md, err := spec.Metadata()
	if err != nil {
		return nil, meta.InFile(st, path, err)
	}
	if err := vacant(ctx, st, path); err != nil {
		return nil, err
	}
	if md.Format == 3 {
		err = st.Put(ctx, store.Join(path, meta.KeyV3), md.Document)
	} else {
		err = putV2(ctx, st, path, meta.KeyV2Array, md.Document, md.Attributes)
	}
	if err != nil {
		return nil, err
	}
	return newArray(st, path, md, newOptions(opts)), nil
}

// vacant returns an error that wraps fs.ErrExist if there is a node at path.
func vacant(ctx context.Context, st store.Store, path string) error {
	for _, name := range []string{meta.KeyV3, meta.KeyV2Array, meta.KeyV2Group} {
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

// putV2 writes the two files of a format 2 node. It writes the attributes first, since the other file makes the node
// exist.
func putV2(ctx context.Context, st store.Writer, path, name string, document json.RawMessage, attrs map[string]json.RawMessage) error {
	raw, err := meta.Marshal(attrs)
	if err != nil {
		return meta.InFile(st, path, err)
	}
	if err := st.Put(ctx, store.Join(path, meta.KeyV2Attributes), raw); err != nil {
		return err
	}
	return st.Put(ctx, store.Join(path, name), document)
}

// SetAttributes replaces all user attributes. Consolidated metadata of the groups above keeps the old ones
// until [Consolidate] is called.
func (a *Array) SetAttributes(ctx context.Context, attrs map[string]any) error {
	st, err := a.writer()
	if err != nil {
		return err
	}
	return a.set(ctx, st, a.path, a.meta.Format, attrs)
}

// writer returns the array's store for writing, or an error that wraps ErrReadOnly.
func (a *Array) writer() (store.Writer, error) {
	if st, ok := a.st.(store.Writer); ok {
		return st, nil
	}
	return nil, fmt.Errorf("%s: %w", a.Location(), ErrReadOnly)
}

// IsKey reports whether a key below the array's folder, such as "zarr.json" or "c/0/3", names a metadata document or a
// chunk file of the array's grid or, if folder is set, whether such keys begin with it.
func (a *Array) IsKey(key string, folder bool) bool {
	if !folder && (key == meta.KeyV3 || key == meta.KeyV2Array || key == meta.KeyV2Attributes) {
		return true
	}
	return a.meta.IsChunkKey(key, folder)
}

// ErrBudget is wrapped by errors about a chunk that alone needs more memory than [Budget] grants.
var ErrBudget = mem.ErrBudget

// ErrReadOnly is wrapped by errors of writes to a read-only store.
var ErrReadOnly = errors.New("store cannot be written")

func checkElement[T dtype.Element](a *Array) error {
	if t := dtype.Of[T](); t != a.DType() {
		return fmt.Errorf("%s: elements are %s, not %s", a.Location(), a.DType(), t)
	}
	return nil
}
