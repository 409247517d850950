// Package ngff reads, checks and writes OME-Zarr images: the metadata of
// OME-NGFF 0.4 (on Zarr v2) and 0.5 (on Zarr v3), and resolution pyramids.
//
// To read, [Open] is enough. An [Image] has its axes, one [Level] per
// resolution with the array to read from, and the voxel size in micrometres:
//
//	im, err := ngff.Open(ctx, store.Folder("mosaic_grid_z03.ome.zarr"), "")
//	level0 := im.Levels[0].Array
//	um := im.VoxelSize // one number per axis, in the order of im.Axes
//
// To write, [Create] returns a [Writer] that takes level 0 tile by tile, from
// many goroutines and in any order, and makes the levels below it on the way:
//
//	w, err := ngff.Create(ctx, out, "", ngff.ImageSpec{
//		Format: 3, Shape: []int{500, 4096, 4096}, Chunks: []int{64, 256, 256}, DType: dtype.Float32,
//		Axes:   ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{3.5, 2, 2}, Levels: 5,
//	})
//	err = w.WriteTile(ctx, start, shape, data) // for each tile
//	err = w.Close(ctx)                         // until then, readers see no image
//
// [RebuildPyramid] makes the levels of an image that has its level 0, [Adopt]
// gives NGFF metadata to arrays that have none, and [Validate] lists what is
// wrong with an image, by field.
//
// # Reading is tolerant where nothing can go wrong
//
// Open refuses metadata that cannot be understood in one way only: an unknown
// version, axes that do not fit the arrays, a scale that is no positive number, a
// dataset path that leads out of the group. It lets pass, with a note in
// [Image.Warnings], what it can make sense of: a missing unit, a second
// multiscale, broken display settings, the older versions 0.1 to 0.3. Validate
// is strict, and reports both.
//
// # Pyramids
//
// Level k+1 has half the voxels of level k along each spatial axis, rounded
// down, and is interpolated linearly between the voxel centres of level k as
// stored (no filter before): for an even axis that is the mean of two. See
// [Downsample] for the order of the operations, which is fixed, so that the
// result depends on nothing but the data.
//
// A Writer makes a part of level k+1 from each chunk of level k that it has
// just stored. What cannot be finished yet waits in memory: a chunk of the next
// level until its last part arrives, and, where an output voxel lies between
// two chunks, their touching planes. [ImageSpec.Budget] bounds that memory. A
// chunk that does not fit is made later from stored data, which costs one more
// reading; tiles in the order of [TileOrder] wait least.
//
// Specifications: https://ngff.openmicroscopy.org/0.4 and /0.5.
package ngff
