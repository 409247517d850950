// Package meta reads and writes the metadata documents of Zarr arrays, formats 2 and 3: .zarray, .zattrs and zarr.json.
//
// [ParseV2Array] and [ParseV3Array] return an [Array], the checked content of a document; [Spec.Metadata] makes one for
// an array that is to be created. Its [Pipeline] describes how a chunk is stored: the order of its dimensions, its
// inner chunks if it is a shard ([Sharding]), and its codecs. Nothing here reads or writes a chunk.
//
// Faults of a document are reported as [*FormatError] with the metadata field; [InFile] adds the file.
//
// Specifications: https://zarr-specs.readthedocs.io (v2; v3 core; sharding codec 1.0).
package meta
