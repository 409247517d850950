// Package tiff reads the structure of TIFF files: which images they hold, of which pages,
// and where in the file the tiles or strips of a page lie.
//
//	f, err := tiff.Open(ctx, source, "scan.svs")
//	for _, im := range f.Images {
//		level0 := im.Levels[0]              // pages by time, channel and depth
//		page := level0.Pages[0]
//		off, n, err := page.Segment(ctx, 7) // the eighth tile's bytes
//	}
//
// A page is what an image file directory (IFD) describes: a picture of Width × Height pixels of Samples samples.
// An [Image] is what a user calls one: a whole-slide pyramid, a stack, an OME-TIFF of several
// channels. [Open] works out images from OME-XML, from the descriptions that Aperio scanners and ImageJ
// write, and from the shapes of pages.
//
// Package tiffstore, on top of this one, shows a file as an OME-Zarr hierarchy, from
// which most programs read; package tilecodec decodes what a segment holds.
//
// # Hostile files
//
// Counts, sizes and offsets are compared with the length of the file before memory is taken for
// them. Directories may neither loop nor overlap: together they cannot be larger than the file. Tables of tile
// offsets are not read as a whole but looked up through a cache of [CacheBytes].
//
// Specifications: TIFF 6.0 (1992), its Supplement 2 (JPEG), Adobe's TechNote 3 (predictor 3), the BigTIFF
// design of libtiff, OME-TIFF 6 and the OME schema 2016-06.
package tiff
