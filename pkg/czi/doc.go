// Package czi reads CZI files, which Zeiss microscopes and slide scanners write: their directory of sub-blocks, the pixels of
// those, and what they show together.
//
//	f, err := czi.Open(ctx, source, "scan.czi")
//	sb := f.SubBlock(7)                                  // one entry of the directory: a tile and where it lies
//	pixels := make([]byte, sb.Bytes())
//	err = f.ReadSubBlock(ctx, 7, pixels)                 // the tile as the file holds it
//	i, ok := f.Tile(scene, f.Plane(c, z, t), m)          // the number of a tile by its coordinates
//	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(czi.AllScenes)}
//	err = f.ReadRegion(ctx, r, plane)                    // tiles put together
//
// A sub-block is a picture of one plane: a tile of a mosaic, or a part of the pyramid above it. All sub-blocks lie in one common
// pixel plane, in which tiles overlap and coordinates may be negative; where tiles overlap, the one of the highest mosaic
// index (M) is on top. A scene is a group of tiles, such as one piece of tissue. Colours are held in the order blue, green, red.
//
// Package czistore, on top of this one, shows a file as an OME-Zarr hierarchy, from which most programs read.
//
// # Speed and memory
//
// [Open] reads the header and, in one read, the directory; a sub-block takes 56 bytes of memory. Metadata and attachments are read when
// they are asked for. Regions find their tiles in an index, which is made for the first. A [File] may be
// used by any number of goroutines; what they decode with comes from one budget for the process.
//
// # Hostile files
//
// Positions, counts and sizes are compared with the length of the file before memory is taken for them. What is wrong with a tile,
// the metadata or an attachment is an error when that is read, not before.
package czi
