// Package czi reads CZI files, which Zeiss microscopes and slide scanners write: their directory of
// sub-blocks, the pixels of sub-blocks, and regions assembled from them.
//
//	f, err := czi.Open(ctx, source, "scan.czi")
//	sb := f.SubBlock(7)                                  // one entry of the directory: a tile and where it lies
//	pixels := make([]byte, sb.Bytes())
//	err = f.ReadSubBlock(ctx, 7, pixels)                 // the tile as the file holds it
//	i, ok := f.Tile(scene, f.Plane(c, z, t), m)          // the number of a tile by its coordinates
//	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(czi.AllScenes)}
//	err = f.ReadRegion(ctx, r, plane)                    // tiles put together
//
// A sub-block is a picture of one plane: a tile of a mosaic, or a part of the pyramid above it. All
// sub-blocks lie in one common pixel plane, in which coordinates may be negative. Where tiles overlap, the
// one with the highest mosaic index (M) is on top. A scene is a group of tiles, such as one piece of tissue.
// Colours have the order blue, green, red.
//
// Package czistore builds on this one and shows a file as an OME-Zarr hierarchy, which most programs read.
//
// # Speed and memory
//
// [Open] reads the header and, in one read, the directory; a sub-block takes 56 bytes of memory. Metadata and
// attachments are read on demand. Regions find their tiles in an index, which the first region builds. A
// [File] may be used concurrently; the decoders of all goroutines share one budget of the process.
//
// # Hostile files
//
// Positions, counts and sizes are compared with the length of the file before memory is allocated for them.
// Faults of a tile, the metadata or an attachment give an error when that is read, not before.
package czi
