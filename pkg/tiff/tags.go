package tiff

import "strconv"

// Tags that this package reads, by their names in TIFF 6.0 and its successors.
const (
	tagNewSubfileType            = 254
	tagImageWidth                = 256
	tagImageLength               = 257
	tagBitsPerSample             = 258
	tagCompression               = 259
	tagPhotometricInterpretation = 262
	tagFillOrder                 = 266
	tagImageDescription          = 270
	tagStripOffsets              = 273
	tagSamplesPerPixel           = 277
	tagRowsPerStrip              = 278
	tagStripByteCounts           = 279
	tagXResolution               = 282
	tagYResolution               = 283
	tagPlanarConfiguration       = 284
	tagResolutionUnit            = 296
	tagSoftware                  = 305
	tagXMP                       = 700
	tagPredictor                 = 317
	tagColorMap                  = 320
	tagTileWidth                 = 322
	tagTileLength                = 323
	tagTileOffsets               = 324
	tagTileByteCounts            = 325
	tagSubIFDs                   = 330
	tagExtraSamples              = 338
	tagSampleFormat              = 339
	tagJPEGTables                = 347
	tagYCbCrSubSampling          = 530
	tagImageDepth                = 32997 // SGI's volumetric tiles
	tagTileDepth                 = 32998
	tagUIC1                      = 33628 // MetaMorph
	tagUIC2                      = 33629
	tagUIC4                      = 33631
	tagGDALNoData                = 42113
	tagMicroManager              = 51123
)

// tagNames maps tags to their names in messages.
var tagNames = map[uint16]string{
	tagNewSubfileType: "NewSubfileType", tagImageWidth: "ImageWidth", tagImageLength: "ImageLength", tagBitsPerSample: "BitsPerSample",
	tagCompression: "Compression", tagPhotometricInterpretation: "PhotometricInterpretation", tagFillOrder: "FillOrder",
	tagImageDescription: "ImageDescription", tagStripOffsets: "StripOffsets", tagSamplesPerPixel: "SamplesPerPixel",
	tagRowsPerStrip: "RowsPerStrip", tagStripByteCounts: "StripByteCounts", tagXResolution: "XResolution", tagYResolution: "YResolution",
	tagPlanarConfiguration: "PlanarConfiguration", tagResolutionUnit: "ResolutionUnit", tagSoftware: "Software", tagPredictor: "Predictor",
	tagColorMap: "ColorMap", tagTileWidth: "TileWidth", tagTileLength: "TileLength", tagTileOffsets: "TileOffsets",
	tagTileByteCounts: "TileByteCounts", tagSubIFDs: "SubIFDs", tagExtraSamples: "ExtraSamples", tagSampleFormat: "SampleFormat",
	tagJPEGTables: "JPEGTables", tagYCbCrSubSampling: "YCbCrSubSampling", tagImageDepth: "ImageDepth", tagTileDepth: "TileDepth",
	tagUIC1: "UIC1", tagUIC2: "UIC2", tagUIC4: "UIC4", tagGDALNoData: "GDAL_NODATA", tagMicroManager: "MicroManagerMetadata",
	tagXMP: "XMP",
}

// fieldSizes are the bytes of a value of each field type: BYTE, ASCII, SHORT, LONG, RATIONAL, SBYTE,
// UNDEFINED, SSHORT, SLONG, SRATIONAL, FLOAT, DOUBLE, IFD, and BigTIFF's LONG8, SLONG8, IFD8.
var fieldSizes = [...]int64{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}

// Bits of NewSubfileType.
const reducedImage = 1

// compressionNone is the value of Compression for uncompressed samples; package tilecodec has the others.
const compressionNone = 1

// Values of PhotometricInterpretation.
const (
	MinIsWhite = 0
	MinIsBlack = 1
	RGB        = 2
	Palette    = 3
	YCbCr      = 6
)

// PhotometricName returns the name of a value of PhotometricInterpretation.
func PhotometricName(n int) string {
	names := map[int]string{0: "min-is-white", 1: "min-is-black", 2: "rgb", 3: "palette", 4: "mask", 5: "cmyk", 6: "ycbcr", 8: "cielab"}
	if name := names[n]; name != "" {
		return name
	}
	return strconv.Itoa(n)
}
