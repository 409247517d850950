"""demo_tiles.py MOSAIC DIR: writes the tiles of a mosaic grid as a microscope does, one TIFF file each.

MOSAIC is an OME-Zarr mosaic grid (z, y, x), read by zarr-python. The files are stacks as ImageJ writes them, by tifffile:
DIR/tile_r1_c1.tif and so on, with the voxel size in their metadata.
"""

import itertools
import os
import sys

import tifffile
import zarr

mosaic, folder = sys.argv[1:]
group = zarr.open_group(mosaic, mode="r")
multiscale = group.attrs["ome"]["multiscales"][0]
level = group[multiscale["datasets"][0]["path"]]
z, y, x = multiscale["datasets"][0]["coordinateTransformations"][0]["scale"]
h, w = level.chunks[1:]
os.makedirs(folder)
for i, j in itertools.product(range(level.shape[1] // h), range(level.shape[2] // w)):
    tile = level[:, i * h : (i + 1) * h, j * w : (j + 1) * w]
    tifffile.imwrite(
        os.path.join(folder, f"tile_r{i + 1}_c{j + 1}.tif"), tile, imagej=True, resolution=(1 / x, 1 / y), metadata={"axes": "ZYX", "spacing": z, "unit": "um"}
    )
