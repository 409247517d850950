"""From a folder of TIFF tiles to an image, by other programs.

usage: peers_folder.py cut MOSAIC FOLDER
       peers_folder.py ashlar|m2stitch FOLDER OVERLAP OUT

cut writes the tiles of a mosaic grid (OME-Zarr whose chunks are whole tiles) to FOLDER/r<row>_c<col>.tif, 16 bits, of 1 µm a pixel.
The others read FOLDER, find the places of its tiles, of which neighbours share the fraction OVERLAP, and print one JSON object:
"positions", (y, x) in px, row by row, null if it gives up, and "said", why. ashlar then writes the stitched image to OUT (OME-TIFF with a pyramid), as its command
does; m2stitch writes no image.
"""

import contextlib
import json
import pathlib
import re
import sys

import numpy as np
import tifffile
from peers_tiles import import_ashlar, m2stitch, read_tiles

NAME = "r{row:02}_c{col:02}.tif"


def cut(mosaic, folder):
    pathlib.Path(folder).mkdir(parents=True)
    for i, row in enumerate(read_tiles(mosaic)):
        for j, tile in enumerate(row):
            name = pathlib.Path(folder, NAME.format(row=i, col=j))
            tifffile.imwrite(name, tile, resolution=(1e4, 1e4), resolutionunit="CENTIMETER")


def ashlar(folder, overlap, out):
    reg = import_ashlar()
    from ashlar.filepattern import FilePatternReader

    aligner = reg.EdgeAligner(FilePatternReader(folder, NAME, overlap), do_make_thumbnail=False)
    aligner.run()
    positions = aligner.positions
    mosaic = reg.Mosaic(aligner, aligner.mosaic_shape)
    aligner.reader = aligner.reader.reader  # its command does so, too: the cache is not needed any more
    reg.PyramidWriter([mosaic], out).run()
    return positions


def by_m2stitch(folder, overlap, _):
    files = {}
    for name in pathlib.Path(folder).iterdir():
        files[tuple(map(int, re.fullmatch(r"r(\d+)_c(\d+)\.tif", name.name).groups()))] = name
    rows, columns = np.max(list(files), axis=0) + 1
    tiles = np.stack([np.stack([tifffile.imread(files[i, j]) for j in range(columns)]) for i in range(rows)])
    return m2stitch(tiles, overlap)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "cut":
        return cut(*sys.argv[2:])
    programs = {"ashlar": ashlar, "m2stitch": by_m2stitch}
    if len(sys.argv) != 5 or sys.argv[1] not in programs:
        raise SystemExit("usage: peers_folder.py cut MOSAIC FOLDER | ashlar|m2stitch FOLDER OVERLAP OUT")
    positions, said = None, ""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            positions = np.asarray(programs[sys.argv[1]](sys.argv[2], float(sys.argv[3]), sys.argv[4]), dtype=float).tolist()
        except Exception as e:  # whatever a program raises when it cannot stitch
            said = "%s: %s" % (type(e).__name__, e)
    print(json.dumps({"positions": positions, "told": said != "", "said": said}))


if __name__ == "__main__":
    main()
