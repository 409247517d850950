"""What a Python user does on a GPU: aip and resample with CuPy.

usage: peers.py MOSAIC OUT [--repeat N] [--module cupy|numpy]

MOSAIC is a mosaic grid in OME-Zarr 0.5 whose chunks are raw files of whole tiles. Chunks are read by KvikIO into
device memory where it can be imported, else by NumPy and copied; results are copied back and written as raw files
into the folder OUT. Prints one JSON object: versions, and the median seconds of each stage, all of Python's
start-up left out; or why it cannot run. With numpy it does the same on the CPU: to try the script.
"""

import argparse
import importlib
import json
import math
import os
import statistics
import sys
import time


def modules(name):
    """The array module, its ndimage, and a function that reads a file into an array."""
    xp = importlib.import_module(name)
    ndimage = importlib.import_module("cupyx.scipy.ndimage" if name == "cupy" else "scipy.ndimage")
    versions = {name: xp.__version__}
    import numpy

    def read(path, shape, dtype):
        return xp.asarray(numpy.fromfile(path, dtype=dtype).reshape(shape))

    if name == "cupy":
        xp.cuda.Device(0).use()
        try:
            import kvikio
        except ImportError as e:
            versions["kvikio"] = "not used: %s" % e
        else:
            versions["kvikio"] = kvikio.__version__

            def read(path, shape, dtype):
                a = xp.empty(shape, dtype=dtype)
                with kvikio.CuFile(path, "r") as f:
                    f.read(a)
                return a

    return xp, ndimage, read, versions


def tiles(mosaic):
    """Shape and type of a chunk, and the files of all chunks by tile row and column."""
    with open(os.path.join(mosaic, "0", "zarr.json")) as f:
        meta = json.load(f)
    if [c["name"] for c in meta["codecs"]] != ["bytes"]:
        raise SystemExit("%s: chunks are encoded, wanted are raw ones" % mosaic)
    shape, chunk = meta["shape"], meta["chunk_grid"]["configuration"]["chunk_shape"]
    if shape[0] != chunk[0] or any(n % c for n, c in zip(shape, chunk)):
        raise SystemExit("%s: wanted are whole tiles of one chunk" % mosaic)
    grid = [n // c for n, c in zip(shape, chunk)]
    files = {
        (i, j): os.path.join(mosaic, "0", "c", "0", str(i), str(j)) for i in range(grid[1]) for j in range(grid[2])
    }
    with open(os.path.join(mosaic, "zarr.json")) as f:
        scales = json.load(f)["attributes"]["ome"]["multiscales"][0]
    unit = {"millimeter": 1e3, "micrometer": 1.0}[scales["axes"][0]["unit"]]
    voxel = [s * unit for s in scales["datasets"][0]["coordinateTransformations"][0]["scale"]]
    return chunk, meta["data_type"], files, voxel


def aip(xp, ndimage, volume, voxel):
    return volume.mean(axis=0, dtype=xp.float64).astype(xp.float32)


def resample(xp, ndimage, volume, voxel, target=10.0):
    v = volume.astype(xp.float32)
    n = [max(1, round(k * s / target)) for k, s in zip(v.shape, voxel)]
    sigma = [max(0.0, (k / m - 1) / 2) for k, m in zip(v.shape, n)]
    v = ndimage.gaussian_filter(v, sigma)
    v = ndimage.zoom(v, [m / k for k, m in zip(v.shape, n)], order=1)
    if volume.dtype.kind in "ui":
        info = xp.iinfo(volume.dtype)
        v = xp.clip(xp.rint(v), info.min, info.max)
    return v.astype(volume.dtype)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("mosaic")
    p.add_argument("out")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--module", default="cupy")
    a = p.parse_args()
    try:
        xp, ndimage, read, versions = modules(a.module)
    except Exception as e:  # whatever a half installed CuPy raises
        print(json.dumps({"skipped": "%s: %s" % (type(e).__name__, e)}))
        return
    chunk, dtype, files, voxel = tiles(a.mosaic)
    seconds = {}
    for stage in (aip, resample):
        folder = os.path.join(a.out, stage.__name__)
        os.makedirs(folder, exist_ok=True)
        times = []
        for _ in range(a.repeat):
            start = time.perf_counter()
            for (i, j), path in files.items():
                result = stage(xp, ndimage, read(path, chunk, dtype), voxel)
                host = result.get() if a.module == "cupy" else result
                host.tofile(os.path.join(folder, "%d.%d" % (i, j)))
            times.append(time.perf_counter() - start)
        seconds[stage.__name__] = statistics.median(times)
    size = len(files) * math.prod(chunk) * xp.dtype(dtype).itemsize
    print(json.dumps({"versions": versions, "bytes": size, "seconds": seconds}))


if __name__ == "__main__":
    sys.exit(main())
