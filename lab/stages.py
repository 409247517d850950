"""The stages as a user of numpy, scipy, scikit-image and basicpy writes them: one
measurement in one process.

    stages.py OP IN OUT         OP: aip, resample, focal, crop, stitch, estimate, stack
    stages.py stack SLICES OUT --shifts CSV
    stages.py diff OURS THEIRS  how far the level 0 of two images lies apart

Reads with zarr-python, calls the libraries' operators, on two threads where they
let go of the interpreter (scipy.ndimage does), and writes the result's level 0
as blosc-zstd:1, our default; no pyramid, except that stack's levels are what it
computes. The operators are those of the stages, so that numbers can be compared. Prints one line of
JSON as lab/arrays does; imports are counted in the wall time that
lab/compare takes, not in this line.
"""

import argparse
import json
import math
import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import zarr

THREADS = 2
zarr.config.set({"threading.max_workers": THREADS})
pool = ThreadPoolExecutor(THREADS)


def each(f, items):
    return list(pool.map(f, items))


def bands(n, parts=8):
    """Slices that cut an axis of n into so many parts."""
    at = np.linspace(0, n, min(parts, n) + 1).astype(int)
    return [slice(a, b) for a, b in zip(at[:-1], at[1:])]


def multiscale(path):
    with open(os.path.join(path, "zarr.json")) as f:
        return json.load(f)["attributes"]["ome"]["multiscales"][0]


def level0(path):
    inside = multiscale(path)["datasets"][0]["path"] if os.path.exists(os.path.join(path, "zarr.json")) else "0"
    return zarr.open_array(os.path.join(path, inside), mode="r")


def voxel_um(path):
    m = multiscale(path)
    unit = {"micrometer": 1.0, "millimeter": 1e3, "nanometer": 1e-3, "meter": 1e6}[m["axes"][0]["unit"]]
    return np.array(m["datasets"][0]["coordinateTransformations"][0]["scale"]) * unit


def create(path, shape, chunks, level=0, dtype="float32"):
    shape = tuple(int(n) for n in shape)
    chunks = tuple(min(int(c), n) for c, n in zip(chunks, shape))
    return zarr.create_array(os.path.join(path, str(level)), shape=shape, chunks=chunks, dtype=dtype, zarr_format=3,
                             compressors=[zarr.codecs.BloscCodec(typesize=np.dtype(dtype).itemsize, cname="zstd", clevel=1, shuffle="shuffle")])


def stored(v, dtype):
    """As an image of that type has it."""
    return np.rint(v).astype(dtype) if np.issubdtype(dtype, np.integer) else v.astype(dtype, copy=False)


def tiles(array):
    """Regions of whole depth, one for each tile of the grid."""
    ny, nx = array.chunks[1:]
    return [(slice(None), slice(y, min(y + ny, array.shape[1])), slice(x, min(x + nx, array.shape[2])))
            for y in range(0, array.shape[1], ny) for x in range(0, array.shape[2], nx)]


def aip(a):
    v = level0(a.path)
    mean = v[...].mean(axis=0, dtype=np.float64).astype(np.float32)
    create(a.out, mean.shape, v.chunks[1:])[...] = mean


def resample(a):
    v = level0(a.path)
    scale = voxel_um(a.path) / 10.0
    tile = (v.shape[0], *v.chunks[1:])
    size = [max(1, round(n * s)) for n, s in zip(tile, scale)]
    regions = tiles(v)
    nx = -(-v.shape[2] // tile[2])
    out = create(a.out, (size[0], size[1] * (len(regions) // nx), size[2] * nx), size, dtype=v.dtype)

    def one(k):
        i, j = divmod(k, nx)
        t = resize(v[regions[k]].astype(np.float32), size, "reflect", whole=True)
        out[:, i * size[1]:(i + 1) * size[1], j * size[2]:(j + 1) * size[2]] = stored(t, v.dtype)

    each(one, range(len(regions)))


def interface(v, sigma_xy=3.0, sigma_z=2.0):
    """Depth of the strongest rise of every A-line, and the rise."""
    from scipy import ndimage

    size = int(sigma_xy)
    smooth = np.empty(v.shape, np.float32)

    def mean(z):
        ndimage.uniform_filter(np.abs(v[z]).astype(np.float32, copy=False), (1, size, size), output=smooth[z], mode="reflect")

    each(mean, bands(v.shape[0]))
    at, rise = np.empty(v.shape[1:], np.intp), np.empty(v.shape[1:], np.float32)

    def derive(y):
        d = ndimage.gaussian_filter1d(smooth[:, y], sigma_z, axis=0, order=1, mode="reflect", truncate=4.0)
        at[y] = d.argmax(axis=0)
        rise[y] = d.max(axis=0)

    each(derive, bands(v.shape[1], 16))
    return np.ceil(at + 0.5 * sigma_z).astype(np.float32), rise


def focal(a):
    from basicpy import BaSiC
    from scipy import ndimage

    source = level0(a.path)
    v = source[...]
    z0, _ = interface(v)
    depth = v.shape[0]
    regions = tiles(source)
    images = np.stack([z0[r[1:]] for r in regions]) / np.float32(depth)
    model = BaSiC(get_darkfield=False, smoothness_flatfield=1, fitting_mode="approximate")
    model.fit(images)
    field = np.asarray(model.flatfield, np.float32)
    if field.shape != images.shape[1:]:
        field = ndimage.zoom(field, [m / n for n, m in zip(field.shape, images.shape[1:])], order=1)
    shift = (field - 1) * z0.mean(dtype=np.float64).astype(np.float32)
    k = np.floor(shift).astype(np.intp)
    t = (shift - k).astype(np.float32)
    out = create(a.out, v.shape, (depth, *source.chunks[1:]), dtype=v.dtype)
    z = np.arange(depth)[:, None, None]
    first, second = (z + k) % depth, (z + k + 1) % depth

    def roll(r):
        tile = v[r]
        out[r] = stored((1 - t) * np.take_along_axis(tile, first, 0) + t * np.take_along_axis(tile, second, 0), v.dtype)

    each(roll, regions)


def crop(a):
    from skimage.filters import threshold_otsu

    source = level0(a.path)
    v = source[...]
    search = v[: math.ceil(v.shape[0] * 0.5)]
    z0, rise = interface(np.minimum(search, np.float32(np.percentile(search, 99.9))))
    threshold = threshold_otsu(rise)
    at = int(round(float(np.median(z0[rise > threshold]))))
    end = min(v.shape[0], at + round(600 / voxel_um(a.path)[0]))
    out = create(a.out, (end, *v.shape[1:]), (end, *source.chunks[1:]), dtype=v.dtype)
    each(lambda r: out.__setitem__(r, v[:end, r[1], r[2]]), tiles(source))


def estimate(a):
    """Steps of the tiles from phase correlation of all neighbours."""
    from skimage.registration import phase_cross_correlation

    source = level0(a.path)
    ny, nx = source.chunks[1:]
    plane = source[...].mean(axis=0, dtype=np.float64)
    gy, gx = plane.shape[0] // ny, plane.shape[1] // nx
    oy, ox = round(ny * 0.2), round(nx * 0.2)
    tile = lambda i, j: plane[i * ny:(i + 1) * ny, j * nx:(j + 1) * nx]

    def pair(k):
        i, j, down = k
        one, two = (tile(i, j)[-oy:], tile(i + 1, j)[:oy]) if down else (tile(i, j)[:, -ox:], tile(i, j + 1)[:, :ox])
        shift, _, _ = phase_cross_correlation(one, two, upsample_factor=10)
        return down, (np.array([ny - oy, 0]) if down else np.array([0, nx - ox])) + shift

    pairs = [(i, j, True) for i in range(gy - 1) for j in range(gx)] + [(i, j, False) for i in range(gy) for j in range(gx - 1)]
    found = each(pair, pairs)
    steps = [np.median([s for d, s in found if d == down], axis=0).tolist() for down in (True, False)]
    os.makedirs(a.out, exist_ok=True)
    with open(os.path.join(a.out, "steps.json"), "w") as f:
        json.dump(steps, f)


def stitch(a):
    """Tiles every four fifths of a tile, whose weights fall towards their borders where they overlap: by the distance, where ours solve
    an equation for each tile."""
    from scipy import ndimage

    source = level0(a.path)
    ny, nx = source.chunks[1:]
    regions = tiles(source)
    at = [np.round((r[1].start * 0.8, r[2].start * 0.8)).astype(int) for r in regions]
    size = np.max(at, axis=0) + (ny, nx)
    own = ndimage.distance_transform_edt(np.pad(np.ones((ny, nx), bool), 1))[1:-1, 1:-1].astype(np.float32)
    weight = np.zeros(size, np.float32)
    for y, x in at:
        weight[y:y + ny, x:x + nx] += own
    v = source[...]
    out = create(a.out, (v.shape[0], *size), (128, 64, 64), dtype=v.dtype)
    whole = np.zeros((v.shape[0], *size), np.float32)

    def part(z):
        for (y, x), r in zip(at, regions):
            whole[z, y:y + ny, x:x + nx] += own * v[z, r[1], r[2]]
        whole[z] /= np.where(weight > 0, weight, 1)

    each(part, bands(v.shape[0], 50))
    out[...] = stored(whole, v.dtype)


def resize(v, shape, mode="mirror", whole=False):
    """Blurred where it shrinks, linear between voxel centres; whole: by one thread, of several that each have a tile."""
    from scipy import ndimage

    for d, m in enumerate(shape):
        f = v.shape[d] / m
        across = (d + 1) % 3  # cut into parts along another axis, so that both threads work
        size = list(v.shape)
        size[d] = m
        out = np.empty(size, np.float32)

        def part(s):
            at = [slice(None)] * 3
            at[across] = s
            p = v[tuple(at)]
            if f > 1:
                p = ndimage.gaussian_filter1d(p, (f - 1) / 2, axis=d, mode=mode, truncate=4.0)
            x = np.clip((np.arange(m) + 0.5) * f - 0.5, 0, v.shape[d] - 1)
            k = np.minimum(np.floor(x).astype(int), max(v.shape[d] - 2, 0))
            t = (x - k).astype(np.float32)
            one, two = np.take(p, k, d), np.take(p, np.minimum(k + 1, v.shape[d] - 1), d)
            t = t.reshape([-1 if e == d else 1 for e in range(3)])
            out[tuple(at)] = one * (1 - t) + two * t

        if whole:
            part(slice(None))
        else:
            each(part, bands(v.shape[across], 16))
        v = out
    return v


def stack(a, first_index=8, interval_um=200.0, range_um=100.0):
    import csv

    names = sorted(n for n in os.listdir(a.path) if n.startswith("slice_z") and n.endswith(".ome.zarr"))
    voxel = voxel_um(os.path.join(a.path, names[0]))
    slices = each(lambda n: level0(os.path.join(a.path, n))[...], names)
    at = [np.zeros(2)]
    with open(a.shifts) as f:
        for row in csv.DictReader(f):
            at.append(at[-1] + np.array([float(row["y_shift_mm"]), float(row["x_shift_mm"])]) * 1e3 / voxel[1:])
    at = np.array(at) - at[len(at) // 2]
    ny, nx = slices[0].shape[1:]
    low = at.min(0)
    size = np.ceil(at.max(0) + (ny, nx) - low).astype(int)
    place = np.round(at - low).astype(int)

    def overlap_of(fixed, moving):
        depth = min(len(fixed), len(moving))
        expect = depth - int(interval_um / voxel[0] + 1e-6)
        reach = int(range_um / voxel[0] + 1e-6)
        h, w = min(fixed.shape[1], moving.shape[1]), min(fixed.shape[2], moving.shape[2])
        m = min(h, w) // 4
        f, g = fixed[:, m:h - m, m:w - m], moving[:, m:h - m, m:w - m]

        def score(n):
            p, q = f[-n:].astype(np.float64), g[:n].astype(np.float64)
            return ((p - p.mean()) / (p.std() + 1e-8) * ((q - q.mean()) / (q.std() + 1e-8))).mean()

        candidates = range(max(1, expect - reach), min(depth, expect + reach) + 1)
        scores = each(score, candidates)
        best = int(np.argmax(scores))
        return candidates[best] if scores[best] >= 0.5 else max(1, expect)

    overlaps = [max(0, overlap_of(p, q) - first_index) for p, q in zip(slices, slices[1:])]
    depth = len(slices[0]) + sum(max(0, len(s) - first_index - o) for s, o in zip(slices[1:], overlaps))
    volume = np.zeros((depth, *size), np.float32)
    y, x = place[0]
    end = len(slices[0])
    volume[:end, y:y + ny, x:x + nx] = slices[0][:, : size[0] - y, : size[1] - x]
    for s, (y, x), n in zip(slices[1:], place[1:], overlaps):
        s = s[first_index:].astype(np.float32)
        h, w = min(s.shape[1], size[0] - y), min(s.shape[2], size[1] - x)
        s = s[:, :h, :w]
        old, new = volume[end - n:end, y:y + h, x:x + w], s[:n]
        both = (old > 0) & (new > 0)
        if both.sum() > 1000:
            p, q = np.median(old[both]), np.median(new[both])
            if p > 1e-6 and q > 1e-6 and abs(p / q - 1) > 0.01:
                s *= np.float32(np.clip(p / q, 0.5, 2))
                both = (old > 0) & (new > 0)
        for k in range(n):
            t = np.float32(0.5 * (1 - math.cos(math.pi * k / (n - 1)))) if n > 1 else np.float32(1)
            p, q = old[k], s[k]
            mixed = (1 - t) * p + t * q
            old[k] = np.where(both[k], mixed, np.where(p > 0, p, np.where(q > 0, q, 0)))
        stop = end + len(s) - n
        volume[end:stop, y:y + h, x:x + w] = s[n:]
        end = stop
    targets = [r for r in (10, 25, 50, 100) if r >= voxel.min()]
    top = None
    for level, r in enumerate(targets):
        shape = [max(1, int(n * e / r + 1e-9)) for n, e in zip(volume.shape, voxel)]
        v = resize(volume if top is None else top, shape)
        top = v if top is None else top
        create(a.out, v.shape, (128, 128, 128), level)[...] = v


def diff(ours, theirs):
    p, q = level0(ours)[...], level0(theirs)[...]
    if p.shape != q.shape:
        return {"shapes": [list(p.shape), list(q.shape)]}
    d = np.abs(p.astype(np.float64) - q)
    return {"max": float(d.max()), "mean": float(d.mean()), "range": float(np.abs(q).max()), "far": float((d > 1e-3 * np.abs(q).max()).mean())}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("op")
    p.add_argument("path")
    p.add_argument("out")
    p.add_argument("--shifts")
    a = p.parse_args()
    if a.op == "diff":
        print(json.dumps(diff(a.path, a.out)))
        return
    {"aip": aip, "resample": resample, "focal": focal, "crop": crop, "stitch": stitch, "estimate": estimate, "stack": stack}[a.op](a)


if __name__ == "__main__":
    sys.exit(main())
