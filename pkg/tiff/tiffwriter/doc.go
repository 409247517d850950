// Package tiffwriter writes images as tiled, pyramidal TIFF files from a stream of bands:
//
//	spec := tiffwriter.Spec{Image: tiff.Image{Times: 1, Channels: 1, Depths: 1}, Width: 26420, Height: 19920,
//		Samples: 3, Type: dtype.Uint8, Tile: 512, Compression: tilecodec.JPEG, Quality: 90, Levels: 5}
//	w, err := tiffwriter.New(f, spec)
//	for w.Next() {                            // bands of rows, from the first plane to the last
//		b := w.Band()
//		… fill b.Data: b.Rows rows of b.Depths planes …
//		err = w.Write(ctx)
//	}
//	err = w.Close()
//
// A band is a row of tiles of one plane, or of several planes of a stack. Several goroutines encode its
// tiles, which lie in the file in image order, so that the same pixels give the same bytes. The levels below
// level 0 are means of 2 × 2 pixels, rounded half to even, computed from each band while it is in memory; a
// last odd row or column is dropped. They are sub-IFDs of their plane, as in OME-TIFF.
//
// Memory is [Spec.Bytes], about twice a band.
package tiffwriter
