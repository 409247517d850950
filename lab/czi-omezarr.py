#!/usr/bin/env python3
"""czi-omezarr.py LIBRARY IN.czi OUT.ome.zarr: a mosaic as a multi-resolution image, by bioio's reader and writer, for `make bench
PARTS=czi`. LIBRARY is the one below bioio-czi: pylibCZIrw or aicspylibczi. bioio-conversion, which does the same from a command line,
takes no mosaics. Chunks and codec are those of ours: 1024², Blosc with zstd:1, five levels below the first."""

import sys

import bioio_czi
from bioio import BioImage
from bioio_ome_zarr.writers import OMEZarrWriter
from zarr.codecs import BloscCodec


def main(library, source, target):
    image = BioImage(source, reader=bioio_czi.Reader, use_aicspylibczi=library == "aicspylibczi")
    data = image.get_image_dask_data("CYX")
    channels, height, width = data.shape
    shapes = [(channels, max(height >> k, 1), max(width >> k, 1)) for k in range(6)]
    writer = OMEZarrWriter(
        target, shapes, data.dtype, chunk_shape=(1, 1024, 1024), zarr_format=3, axes_names=["c", "y", "x"], axes_types=["channel", "space", "space"],
        compressor=BloscCodec(cname="zstd", clevel=1, shuffle="shuffle"),
    )  # fmt: skip
    writer.write_full_volume(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
