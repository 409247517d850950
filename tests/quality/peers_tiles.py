"""Where other programs for stitching put the tiles of a mosaic grid.

usage: peers_tiles.py PROGRAM OVERLAP MOSAIC...

PROGRAM is ashlar, m2stitch or multiview-stitcher. Each MOSAIC is a grid of tiles in OME-Zarr (z, y, x) whose chunks are whole
tiles. Planes are averaged, for two of the programs stitch planes. OVERLAP is the stated fraction that neighbours share.
Each program runs with its defaults, and begins with the places of the stated overlap.

Prints one JSON object for each mosaic: "positions", (y, x) of the tiles in px, row by row; "told", whether the program said that
something is amiss; "said", what; "seconds" of processor time, without reading the tiles and Python's start. A program
that gives up leaves the tiles at their stated places, and has told so.
"""

import contextlib
import json
import sys
import time
import types
import warnings
from unittest import mock

import numpy as np
import zarr


def read_tiles(path):
    """The tiles (rows, columns, y, x) as uint16, which all programs take."""
    a = zarr.open_group(path, mode="r")["0"]
    side = a.chunks[-2:]
    plane = a[:].mean(axis=0)
    rows, columns = plane.shape[0] // side[0], plane.shape[1] // side[1]
    tiles = plane.reshape(rows, side[0], columns, side[1]).swapaxes(1, 2)
    return np.round(tiles * (60000 / tiles.max())).astype(np.uint16)


def stated(tiles, overlap):
    """The places (rows · columns, 2) that the stated overlap gives."""
    steps = np.array(tiles.shape[2:]) * (1 - overlap)
    return np.array([(i, j) for i in range(tiles.shape[0]) for j in range(tiles.shape[1])]) * steps


def import_ashlar():
    """ASHLAR's registration. It reads files by Bio-Formats in a Java machine; arrays need neither, so mocks stand in."""
    sys.modules["jnius_config"] = types.SimpleNamespace(vm_running=True)
    sys.modules["jnius"] = mock.MagicMock()
    from ashlar import reg

    return reg


def ashlar(tiles, overlap):
    reg = import_ashlar()
    flat = tiles.reshape(-1, *tiles.shape[2:])
    places = stated(tiles, overlap)

    class Metadata(reg.Metadata):
        _num_images = len(flat)
        num_channels = 1
        pixel_size = 1.0
        pixel_dtype = flat.dtype

        def tile_position(self, i):
            return places[i]

        def tile_size(self, i):
            return np.array(flat.shape[1:])

    class Reader(reg.Reader):
        metadata = Metadata()

        def read(self, series, c):
            return flat[series]

    aligner = reg.EdgeAligner(Reader(), do_make_thumbnail=False)
    aligner.run()
    return aligner.positions


def m2stitch(tiles, overlap):
    from m2stitch import stitch_images

    rows, columns = np.divmod(np.arange(tiles.shape[0] * tiles.shape[1]), tiles.shape[1])
    # Its correlation coefficient divides by norms that include the mean, and must exceed 0.5: bright pictures would never do.
    tiles = tiles.astype(np.float32) - tiles.mean(dtype=np.float64)
    grid, _ = stitch_images(
        tiles.reshape(-1, *tiles.shape[2:]),
        rows=rows,
        cols=columns,
        position_initial_guess=np.round(stated(tiles, overlap)),
        row_col_transpose=False,
    )
    return grid[["y_pos", "x_pos"]].to_numpy(dtype=float)


def multiview_stitcher(tiles, overlap):
    import dask
    from multiview_stitcher import msi_utils, registration
    from multiview_stitcher import spatial_image_utils as si

    images = []
    for tile, (y, x) in zip(tiles.reshape(-1, *tiles.shape[2:]), stated(tiles, overlap)):
        image = si.get_sim_from_array(
            tile[None], dims=["c", "y", "x"], scale={"y": 1.0, "x": 1.0}, translation={"y": y, "x": x}, transform_key="stage"
        )
        images.append(msi_utils.get_msim_from_sim(image, scale_factors=[]))
    with dask.config.set(scheduler="threads"):  # in processes, it would import its modules again
        moved = registration.register(images, transform_key="stage", new_transform_key="found", reg_channel_index=0)
    return stated(tiles, overlap) + np.array([np.asarray(m).reshape(-1, 3, 3)[0, :2, 2] for m in moved])


PROGRAMS = {"ashlar": ashlar, "m2stitch": m2stitch, "multiview-stitcher": multiview_stitcher}


def run(program, overlap, path):
    tiles = read_tiles(path)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("always")
        begin = time.process_time()
        try:
            places = PROGRAMS[program](tiles, overlap)
            said = ""
        except Exception as e:  # whatever a program raises when it cannot stitch
            places, said = stated(tiles, overlap), "%s: %s" % (type(e).__name__, e)
        seconds = time.process_time() - begin
    # A program's own warnings for its user are UserWarnings; others tell programmers about libraries.
    own = program.replace("-", "_")
    folder = "/%s/" % own
    for w in caught:
        if issubclass(w.category, UserWarning) and (w.category.__module__.startswith(own) or folder in w.filename):
            said = said or str(w.message)
    return {"positions": places.tolist(), "told": said != "", "said": said, "seconds": seconds}


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in PROGRAMS:
        raise SystemExit("usage: peers_tiles.py %s OVERLAP MOSAIC..." % "|".join(PROGRAMS))
    program, overlap = sys.argv[1], float(sys.argv[2])
    if program == "ashlar":
        import_ashlar()  # what modules cost to import does not count
    elif program == "m2stitch":
        import m2stitch as _  # noqa: F401
    else:
        from multiview_stitcher import registration as _  # noqa: F401
    for path in sys.argv[3:]:
        print(json.dumps(run(program, overlap, path)), flush=True)


if __name__ == "__main__":
    main()
