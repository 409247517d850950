// Package zarr reads and writes Zarr arrays and groups, formats 2 and 3.
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
// [ReadSlice] and [WriteSlice] do the same with slices of numbers. [Open] opens an array or a group, and
// [OpenGroup] and [Group.Children] walk a hierarchy.
//
// # Elements in memory
//
// A region is a box of elements, half open along each dimension. In memory it has C order (last dimension
// fastest) and native byte order, whatever the file has; the platforms of this module (amd64, arm64) are
// little-endian. Elements of chunks that are not stored have the fill value. [NoteMissing] collects such
// chunks, and [Account] tells lost ones from those left out on purpose.
//
// numpy's dates and times become int64; its fixed-length text and bytes stay the bytes of an element.
// [Array.NumpyType] returns their meaning.
//
// # Chunks and shards
//
// A chunk is decoded as a whole; a shard is a file of many chunks. [Array.Chunks] returns the shape of a
// chunk, [Array.Shard] that of a shard, or nil if each chunk has a file of its own. Reading decodes only the
// chunks that the region touches; of a shard it reads only their bytes and the index. The chunks of a shard
// lie in grid order whatever the order of writing, so the same elements give the same bytes. Writing whole
// chunks (whole shards) reads nothing; other writes read, change and replace a file.
//
// # Work and memory
//
// A call works on its chunks with [Workers] goroutines and returns when all of them have ended; with
// Workers(1) it runs in the caller's goroutine. Uncompressed chunks, and decoded chunks that lie in the
// caller's memory as a whole, need no copy; everything else passes through scratch memory, which is reused
// and which [Budget] limits. A number in a file never causes an allocation that the file's size does not
// justify.
//
// # Guarantees
//
// Every file is replaced as a whole or not at all (see package store). All methods are safe for concurrent
// use, including writes of different regions of the same chunk through one Array. Two Arrays or processes
// that write parts of the same chunk at the same time lose one of the changes. An Array keeps some chunk
// files open between calls and may go on reading one that another Array or process has replaced;
// [Array.Close] releases them.
//
// Faults of stored data are reported as [*FormatError], with the file and the metadata field or chunk;
// mistakes in a call are plain errors.
//
// Specifications: https://zarr-specs.readthedocs.io (v2; v3 core; sharding codec 1.0; zarr-python's inline
// consolidated metadata).
package zarr
