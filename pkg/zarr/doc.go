// Package zarr reads and writes Zarr arrays and groups, format 2 and 3.
//
// Most callers need four functions. To read, [OpenArray] and [Array.Read]:
//
//	a, err := zarr.OpenArray(ctx, store.Folder("mosaic.zarr"), "0", zarr.Workers(4))
//	plane := make([]byte, 512*512*a.DType().Size())
//	err = a.Read(ctx, zarr.Region{Start: []int{7, 0, 0}, Shape: []int{1, 512, 512}}, plane)
//
// To write, [CreateArray] and [Array.Write]:
//
//	a, err := zarr.CreateArray(ctx, store.Folder("out.zarr"), "", zarr.Spec{
//		Shape: []int{200, 512, 512}, Chunks: []int{64, 64, 64}, DType: dtype.Uint16,
//	})
//	err = a.Write(ctx, a.Bounds(), dtype.Bytes(voxels))
//
// [ReadSlice] and [WriteSlice] do the same with slices of numbers. [Open] takes
// whatever is there, [OpenGroup] and [Group.Children] walk a hierarchy.
//
// # Elements in memory
//
// A region is a box of elements, half open along each dimension. In memory it
// is in C order (last dimension fastest) and in native byte order, whatever the
// order and the byte order in the file; the platforms of this module (amd64,
// arm64) are little-endian. Elements of chunks that are not stored have the
// fill value; [NoteMissing] collects such chunks, and [Account] tells those that
// got lost from those that were left out.
//
// Dates and times of numpy are int64, its text and bytes of fixed length the
// bytes of an element: [Array.NumpyType] says what they stand for.
//
// # Chunks and shards
//
// A chunk is the unit that is decoded as a whole; a shard is a file of many
// chunks. [Array.Chunks] is the chunk, [Array.Shard] the shard, nil when each
// chunk is a file of its own. Reading decodes only the chunks that the region
// touches, and of a shard reads only their bytes and its index. The chunks of a
// shard lie in it in the order of the grid, whoever wrote them when: the same
// elements make the same bytes. Writing regions
// that cover whole chunks (whole shards) needs no reading; others change a part
// of a file, which is read, changed and replaced.
//
// # Work and memory
//
// A call works on its chunks with [Workers] goroutines and returns when all of
// them have ended; with Workers(1) it starts none and works in the caller's.
// Uncompressed chunks are read straight into the caller's memory, and so are
// chunks decoded that lie there as a whole; anything else passes through
// scratch memory, which is reused, and which [Budget] limits. No allocation
// follows from a number in a file without the bytes that justify it.
//
// # Promises
//
// Every file is replaced as a whole or not at all (see package store). All
// methods are safe for concurrent use, also writes of different regions of the
// same chunk through one Array; two Arrays or processes that write parts of the
// same chunk at the same time lose one of the changes. An Array keeps some
// chunk files open between calls and may go on reading one that another Array
// or process has replaced meanwhile; [Array.Close] lets go of them.
//
// What is wrong with stored data is a [*FormatError], which names the file and
// the metadata field or chunk; what is wrong with a call is a plain error.
//
// Specifications: https://zarr-specs.readthedocs.io (v2; v3 core; sharding
// codec 1.0; zarr-python's inline consolidated metadata).
package zarr
