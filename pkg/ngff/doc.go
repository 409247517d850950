// Package ngff reads, checks and writes OME-Zarr images: the metadata of OME-NGFF 0.4 (on Zarr v2) and 0.5
// (on Zarr v3), and resolution pyramids.
//
// To read, [Open] is enough. An [Image] has its axes, one [Level] per resolution with the array to read from,
// and the voxel size in micrometres:
//
//	im, err := ngff.Open(ctx, store.Folder("mosaic_grid_z03.ome.zarr"), "")
//	level0 := im.Levels[0].Array
//	um := im.VoxelSize // one number per axis, in the order of im.Axes
//
// To write, [Create] returns a [Writer] that takes level 0 tile by tile, from many goroutines and in any
// order, and computes the levels below it on the way:
//
//	w, err := ngff.Create(ctx, out, "", ngff.ImageSpec{
//		Format: 3, Shape: []int{500, 4096, 4096}, Chunks: []int{64, 256, 256}, DType: dtype.Float32,
//		Axes:   ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{3.5, 2, 2}, Levels: 5,
//	})
//	err = w.WriteTile(ctx, start, shape, data) // for each tile
//	err = w.Close(ctx)                         // until then, readers see no image
//
// [RebuildPyramid] computes the lower levels of an existing level 0, [Adopt] gives NGFF metadata to arrays
// that have none, and [Validate] lists the faults of an image by field.
//
// # Tolerant reading
//
// Open refuses metadata that it cannot interpret unambiguously: an unknown version, axes that do not fit the
// arrays, a scale that is not a positive number, a dataset path that leads out of the group. It accepts, with
// a note in [Image.Warnings], faults with an evident meaning: a missing unit, a second multiscale, broken
// display settings, the older versions 0.1 to 0.3. Validate is strict and reports both kinds.
//
// # Pyramids
//
// Level k+1 has half the voxels of level k along each spatial axis, rounded down. It is interpolated linearly
// between the voxel centres of the stored level k, without a filter before; for an even axis that is the mean
// of two. [Downsample] documents the order of the operations, which is fixed, so that the result depends only
// on the data.
//
// A Writer computes a part of level k+1 from each chunk of level k that it has just stored. Incomplete
// results wait in memory: a chunk of the next level until its last part arrives, and, where an output voxel
// lies between two chunks, their touching planes. [ImageSpec.Budget] limits that memory. A chunk that does
// not fit is computed later from stored data, at the cost of reading these again; tiles in the order of
// [TileOrder] wait least.
//
// Specifications: https://ngff.openmicroscopy.org/0.4 and /0.5.
package ngff
