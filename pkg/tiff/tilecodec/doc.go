// Package tilecodec turns the stored bytes of one tile or strip of a TIFF image into samples, and back.
//
// A [Format] describes how all tiles of an image are stored, in terms of TIFF's tags. Each goroutine decodes
// tile after tile with a [Scratch] of its own:
//
//	f := tilecodec.Format{Compression: tilecodec.LZW, Predictor: tilecodec.PredictorHorizontal,
//		Type: dtype.Uint16, Samples: 3, Width: 256, Height: 256, BigEndian: true}
//	if err := f.Check(); err != nil { … } // what is not supported, by tag and number
//	tile := make([]byte, f.Bytes())
//	err := f.Decode(ctx, scratch, tile, stored, f.Height)
//
// The result is rows of Width pixels of Samples samples, each of the type's size in native byte order:
// predictors are undone, samples of fewer than 8 and of 10 to 14 bits are unpacked to one or two bytes, and
// YCbCr is converted to RGB. Palette indices and samples where 0 is white stay as they are.
//
// # Compressions
//
//	                tag 259              predictor  encodes  decoder
//	none            1                    –          yes
//	LZW             5                    1, 2, 3    yes      here; also the old bit order of libtiff
//	JPEG            7                    –          yes      strata/pkg/jpeg; baseline and progressive, 8 bits
//	Deflate         8, 32946             1, 2, 3    yes      strata/pkg/zarr/codec/inflate
//	PackBits        32773                –          yes      here
//	JPEG 2000       33003, 33005, 34712  –          no       libopenjp2, opened at run time: strata/pkg/jpeg2000
//	LZMA            34925                1, 2, 3    no       strata/pkg/zarr/codec/unxz
//	Zstd            50000, 34926         1, 2, 3    yes      strata/pkg/zarr/codec/unzstd
//
// A predictor is a step between samples and compressor. Like libtiff, this package ignores tag 317 where the
// table has no predictor.
//
// # Damaged and hostile tiles
//
// A decoder uses the memory that the tile's samples need, and never more because the data demand it. If a
// stream continues when the tile is full, the rest is ignored, except for Deflate, Zstd and LZMA, whose
// checksum would remain unverified: these are refused. A stream that ends early is an error unless it has the
// rows that the caller needs: the last strip of an image has fewer rows than the others, and some writers
// store only these. Damage shows as an error where a compression has checks, and else as an error or as wrong
// samples.
//
// # How it is fast
//
// Compressors decode straight into the caller's memory, where the predictor is undone in place, row by row.
// The LZW decoder keeps strings of up to seven bytes in registers and takes longer ones from the output; it
// looks at the position of its bits once in four codes. Running sums (predictors 2 and 3) are made 16 bytes
// at a time with AVX2, for any number of samples whose pixel has up to 16 bytes; other machines, and programs
// built with the tag noasm, take a scalar loop that gives the same bytes.
package tilecodec
