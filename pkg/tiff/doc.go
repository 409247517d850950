// Package tiff reads the structure of TIFF files: the images that they hold, the pages of each image, and the
// places of a page's tiles or strips in the file.
//
//	f, err := tiff.Open(ctx, source, "scan.svs")
//	for _, im := range f.Images {
//		level0 := im.Levels[0]              // pages by time, channel and depth
//		page := level0.Pages[0]
//		off, n, err := page.Segment(ctx, 7) // the eighth tile's bytes
//	}
//
// A page is a picture of Width × Height pixels of Samples samples, described by an image file directory
// (IFD). An [Image] is what users call an image: a whole-slide pyramid, a stack, an OME-TIFF of several
// channels. [Open] derives images from OME-XML, from the descriptions that Aperio scanners and ImageJ write,
// and from the shapes of pages.
//
// Package tiffstore builds on this one and shows a file as an OME-Zarr hierarchy, which most programs read;
// package tilecodec decodes the content of a segment.
//
// # Hostile files
//
// Counts, sizes and offsets are compared with the length of the file before memory is allocated for them.
// Directories may neither loop nor overlap: together they cannot be larger than the file. Tables of tile
// offsets are not read as a whole but looked up through a cache of [CacheBytes].
//
// Specifications: TIFF 6.0 (1992), its Supplement 2 (JPEG), Adobe's TechNote 3 (predictor 3), the BigTIFF
// design of libtiff, OME-TIFF 6 and the OME schema 2016-06.
package tiff
