"""Remakes the golden cases of crop and stitch in this folder. Own code on public libraries:
numpy, scipy, scikit-image and SimpleITK compute what docs/stages/ says. Everything is seeded.

  python -m venv V && V/bin/pip install -r requirements.txt
  V/bin/python make_assembly.py [OUT_DIR]        (default: this folder)
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi
import scipy.sparse as sparse
import SimpleITK as sitk
from scipy.sparse.linalg import spsolve
from skimage.filters import threshold_otsu
from skimage.registration import phase_cross_correlation

import make


# ---------------------------------------------------------------- crop
def crop(v, vox_z, depth, before, pad, percentile, fraction, sxy, sz, log):
    """The metrics of crop, and where every A-line has its interface."""
    x = np.abs(v.astype(np.float32))
    clip = 0.0
    if percentile < 100:
        clip = float(np.percentile(x, percentile))
        x = np.minimum(x, np.float32(clip))
    if log:
        x = np.where(x > 0, np.log(np.where(x > 0, x, 1)), x).astype(np.float32)
    n = int(sxy)
    if n > 1:
        x = ndi.uniform_filter1d(ndi.uniform_filter1d(x, n, axis=1), n, axis=2)
    searched = round(fraction * v.shape[0])
    rise = ndi.gaussian_filter1d(x, sz, axis=0, order=1)[:searched]
    depths, largest = np.ceil(rise.argmax(0) + 0.5 * sz), rise.max(0)
    threshold = threshold_otsu(largest)
    stands_out = largest > threshold
    # ITK bins and places its threshold on its own: it must split the A-lines alike
    itk = sitk.GetArrayFromImage(sitk.OtsuThreshold(sitk.GetImageFromArray(largest), 0, 1, 256)) > 0
    assert (itk != stands_out).mean() < 0.02, "skimage and ITK split the A-lines in different ways"
    median = float(np.median(depths[stands_out]))
    interface = int(np.rint(median))
    assert abs(np.median(depths[itk]) - median) < 0.5
    first = interface if before else 0
    wanted = interface + int(np.rint(depth / vox_z))
    end = min(wanted, v.shape[0])
    padded = wanted - end if pad else 0
    out = v[first:end]
    if padded:
        out = np.concatenate([out, np.zeros((padded, *v.shape[1:]), v.dtype)])
    return out, dict(interface_plane=interface, interface_median=median, first_plane=first, planes_kept=end - first, planes_padded=padded,
                     planes_missing=wanted - end - padded, a_lines=depths.size, a_lines_used=int(stands_out.sum()), gradient_threshold=float(threshold),
                     gradient_bin=float(np.ptp(largest)) / 256, clip=clip, planes_searched=searched)


CROPS = {
    "f32_below": ("c_f32", dict(depth=70, before=True, pad=False, percentile=99.9, fraction=0.5, sxy=3.0, sz=2.0, log=False)),
    "f32_pad": ("c_f32", dict(depth=140, before=True, pad=True, percentile=100.0, fraction=0.75, sxy=1.0, sz=1.5, log=False)),
    "f32_short": ("c_f32", dict(depth=140, before=False, pad=False, percentile=99.0, fraction=0.5, sxy=3.0, sz=2.0, log=False)),
    "u16_log": ("c_u16_edge", dict(depth=62.5, before=False, pad=False, percentile=99.9, fraction=0.5, sxy=4.0, sz=2.5, log=True)),
}


def crop_cases(root, tmp):
    um = [3.5, 2.0, 2.0]
    inputs = {
        "c_f32": make.input_case(root, tmp, "c_f32", make.mosaic(81, 48, 24, 28, 2, 2, depth=13.0, agar=0.02), (48, 24, 28), um, "v3", "zstd"),
        "c_u16_edge": make.input_case(root, tmp, "c_u16_edge", make.mosaic(82, 40, 22, 20, 2, 2, 5, 3, "uint16", depth=11.0, agar=0.02), (40, 22, 20), um, "v2", "lz4"),
    }
    for name, (src, p) in CROPS.items():
        out, metrics = crop(inputs[src], um[0], **p)
        arrays = dict(mean_per_plane=out.astype(np.float64).mean((1, 2)), first_plane=out[0], last_plane=out[-1])
        make.emit(root, "crop", name, dict(input=f"inputs/{src}.zip", **p), arrays, dict(metrics=metrics, voxel_size_um=[um]),
                  dict(a_lines_off=0.005, clip_rel=1e-6))


# ---------------------------------------------------------------- stitch: tiles at known places
def places(grid, tile, overlap, m):
    """The position of every tile, (y, x), by its place in the grid."""
    return {(i, j): np.asarray(m) @ (i * tile[0] * (1 - overlap), j * tile[1] * (1 - overlap)) for i in range(grid[0]) for j in range(grid[1])}


def cut(v, tile):
    """The tiles of a mosaic by their place in the grid."""
    return {(i, j): v[:, a, b] for i, j, a, b in make.tiles(v.shape, *tile)}


def footprints(tiles, at):
    """Each tile's first pixel on the canvas, and the canvas."""
    whole = {k: np.rint(p).astype(int) for k, p in at.items()}
    low = np.min(list(whole.values()), axis=0)
    first = {k: p - low for k, p in whole.items()}
    size = np.max([first[k] + t.shape[1:] for k, t in tiles.items()], axis=0)
    return first, tuple(int(n) for n in size)


def border_product(h, w):
    """Distance to the nearer border along y times that along x, from the pixel's centre."""
    d = [np.minimum(np.arange(n) + 0.5, n - 0.5 - np.arange(n)) for n in (h, w)]
    return np.outer(*d)


def diffused(covered, mine, y, x):
    """Laplace's equation on the overlap of one tile, five points, solved directly."""
    h, w = mine.shape
    count = covered[y:y + h, x:x + w]
    inside = (count > 1) & mine
    if not (mine & (count == 1)).any():
        return border_product(h, w) / border_product(h, w).max()
    number = np.full((h, w), -1)
    number[inside] = np.arange(inside.sum())
    rows, cols, values, right = [], [], [], np.zeros(inside.sum())
    for a, b in zip(*np.nonzero(inside)):
        k, flow = number[a, b], 0
        for c, d in ((a - 1, b), (a + 1, b), (a, b - 1), (a, b + 1)):
            if 0 <= c < h and 0 <= d < w and mine[c, d]:
                flow += 1
                if inside[c, d]:
                    rows.append(k), cols.append(number[c, d]), values.append(-1.0)
                else:
                    right[k] += 1.0  # alone
            else:
                c, d = y + c, x + d
                if 0 <= c < covered.shape[0] and 0 <= d < covered.shape[1] and covered[c, d] > 0:
                    flow += 1  # another tile goes on: 0
        rows.append(k), cols.append(k), values.append(float(flow))
    out = np.ones((h, w))
    out[inside] = spsolve(sparse.csc_matrix((values, (rows, cols)), shape=(right.size, right.size)), right)
    return np.maximum(out, 1e-6)


def fuse(tiles, at, blending, interpolate):
    """The slice, and per voxel how far the tiles that see it lie apart."""
    first, size = footprints(tiles, at)
    depth, dtype = next(iter(tiles.values())).shape[0], next(iter(tiles.values())).dtype
    covered, filled = np.zeros(size, int), np.zeros(size, bool)
    for k, t in tiles.items():
        (y, x), (h, w) = first[k], t.shape[1:]
        covered[y:y + h, x:x + w] += 1
        filled[y:y + h, x:x + w] |= t.any()
    total, weights = np.zeros((depth, *size)), np.zeros((depth, *size))
    low, high, top = np.full(total.shape, np.inf), np.full(total.shape, -np.inf), np.zeros(total.shape)
    for k, t in tiles.items():
        (y, x), (h, w) = first[k], t.shape[1:]
        if not t.any():
            continue  # left out by the microscope
        u = t.astype(np.float64)
        if interpolate:
            f = at[k] - np.rint(at[k])
            grid = np.meshgrid(np.arange(h) - f[0], np.arange(w) - f[1], indexing="ij")
            u = np.stack([ndi.map_coordinates(plane, grid, order=1, mode="nearest") for plane in u])
        g = {"average": lambda: np.ones((h, w)), "feather": lambda: border_product(h, w), "none": lambda: border_product(h, w),
             "diffusion": lambda: diffused(covered, np.ones((h, w), bool), y, x)}[blending]()
        here = (slice(None), slice(y, y + h), slice(x, x + w))
        g = np.where(np.isnan(u), 0, g)
        u = np.nan_to_num(u)
        if blending == "none":  # the highest takes it all
            wins = g > top[here]
            total[here] = np.where(wins, u, total[here])
            top[here], weights[here] = np.maximum(top[here], g), np.maximum(weights[here], g > 0)
        else:
            total[here] += g * u
            weights[here] += g
        low[here] = np.where(g > 0, np.minimum(low[here], u), low[here])
        high[here] = np.where(g > 0, np.maximum(high[here], u), high[here])
    out = np.divide(total, weights, out=np.zeros_like(total), where=weights > 0)
    out[(weights == 0) & filled] = np.nan  # nobody who sees it has a number
    span = np.where(np.isfinite(low), high - low, 0)
    return make.to_dtype(out, dtype), span.astype(np.float32)


TURNED = [[1.01, -0.03], [0.02, 0.99]]
FUSIONS = {
    "average": ("s_f32_edge", dict(overlap=0.2, blending="average", interpolate=False), None),
    "feather_matrix": ("s_f32_edge", dict(overlap=0.25, blending="feather", interpolate=False), TURNED),
    "none_matrix": ("s_u16", dict(overlap=0.3, blending="none", interpolate=False), TURNED),
    "diffusion": ("s_f32_edge", dict(overlap=0.25, blending="diffusion", interpolate=False), None),
    "diffusion_matrix": ("s_u16", dict(overlap=0.3, blending="diffusion", interpolate=False), TURNED),
    "average_between": ("s_u16", dict(overlap=0.3, blending="average", interpolate=True), TURNED),
}


def fusion_cases(root, tmp):
    um = [3.5, 2.0, 2.0]
    f32, u16 = make.mosaic(83, 3, 36, 40, 3, 3, 11, 7, depth=1.0), make.mosaic(84, 2, 34, 30, 3, 4, dtype="uint16", depth=1.0)
    f32[:, 36:72, 40:80] = 0  # a tile that the microscope left out
    f32[1, 5, 30:60] = np.nan
    inputs = {"s_f32_edge": (make.input_case(root, tmp, "s_f32_edge", f32, (3, 36, 40), um, "v3", "zstd"), (36, 40)),
              "s_u16": (make.input_case(root, tmp, "s_u16", u16, (2, 34, 30), um, "v2", "lz4"), (34, 30))}
    for name, (src, p, m) in FUSIONS.items():
        v, tile = inputs[src]
        tiles = cut(v, tile)
        grid = np.max(list(tiles), axis=0) + 1
        at = places(grid, tile, p["overlap"], np.eye(2) if m is None else m)
        out, span = fuse(tiles, at, p["blending"], p["interpolate"])
        first, size = footprints(tiles, at)
        arrays = dict(level0=out)
        tol = dict(rel=2e-6, abs=1e-4 if v.dtype == np.float32 else 0.0, max_fraction_off=0.0 if v.dtype == np.float32 else 1e-3)
        if p["blending"] == "diffusion":  # multigrid ends at 0.005 for every tile
            arrays["span"], tol["weight_abs"] = span, 0.012
        if p["blending"] == "none":
            tol["max_fraction_off"] = 0.003  # ties
        make.emit(root, "stitch", name, dict(input=f"inputs/{src}.zip", transform=m, **p), arrays,
                  dict(size_px=list(size), first_px=[[*k, *map(int, p)] for k, p in first.items()], voxel_size_um=[um]), tol)


# ---------------------------------------------------------------- stitch: places to be found
def tissue(seed, size):
    """A smooth image with structure of several sizes."""
    rng = np.random.default_rng(seed)
    out = np.zeros(size)
    for sigma in (1.6, 4, 10, 25):
        layer = ndi.gaussian_filter(rng.normal(size=size), sigma)
        out += layer / layer.std()
    return 800 + 160 * out


def seen(image, at, tile):
    """What a tile at that position sees: cubic splines of ITK."""
    r = sitk.ResampleImageFilter()
    r.SetSize([tile[1], tile[0]])
    r.SetInterpolator(sitk.sitkBSpline)
    r.SetOutputOrigin([float(at[1]), float(at[0])])
    return sitk.GetArrayFromImage(r.Execute(image))


def by_skimage(tiles, grid, tile, overlap):
    """M from scikit-image's phase correlation of the nominal overlaps: the medians of the
    displacements are the steps."""
    found = {0: [], 1: []}
    for (i, j), t in tiles.items():
        for axis, other in enumerate(((i + 1, j), (i, j + 1))):
            if other not in tiles:
                continue
            n = round(tile[axis] * overlap)
            one, two = t.mean(0), tiles[other].mean(0)
            one, two = (one[-n:], two[:n]) if axis == 0 else (one[:, -n:], two[:, :n])
            shift, _, _ = phase_cross_correlation(one - one.mean(), two - two.mean(), upsample_factor=20)
            step = np.zeros(2)
            step[axis] = tile[axis] - n
            found[axis].append(step + shift)
    steps = [np.median(found[axis], axis=0) for axis in (0, 1)]
    return np.stack([steps[0] / (tile[0] * (1 - overlap)), steps[1] / (tile[1] * (1 - overlap))], axis=1)


def estimation_cases(root, tmp):
    grid, tile, overlap, um = (4, 4), (64, 72), 0.25, [3.5, 2.0, 2.0]
    m = np.array([[1.012, -0.018], [0.021, 0.992]])
    for name, seed, jitter in (("estimate", 91, 0.0), ("refine", 92, 0.9)):
        rng = np.random.default_rng(seed)
        at = places(grid, tile, overlap, m)
        moved = {k: rng.normal(scale=jitter, size=2) if jitter else np.zeros(2) for k in at}
        mean = np.mean(list(moved.values()), axis=0)
        at = {k: p + moved[k] - mean for k, p in at.items()}
        low = np.min(list(at.values()), axis=0) - 8
        image = sitk.GetImageFromArray(tissue(seed, tuple(int(n) + 90 for n in np.max(list(at.values()), axis=0) - low)))
        yy, xx = np.mgrid[-1:1:tile[0] * 1j, -1:1:tile[1] * 1j]
        vignette = 1 - 0.18 * (yy**2 + xx**2) / 2
        v = np.zeros((2, grid[0] * tile[0], grid[1] * tile[1]))
        for (i, j), p in at.items():
            here = seen(image, p - low, tile) * vignette
            v[:, i * tile[0]:(i + 1) * tile[0], j * tile[1]:(j + 1) * tile[1]] = here * rng.gamma(60, 1 / 60, size=(2, *tile))
        v = make.to_dtype(v, "uint16")
        # the matrix that fits the true places best
        nominal = np.array([(i * tile[0] * (1 - overlap), j * tile[1] * (1 - overlap), 1) for i, j in at])
        truth = np.linalg.lstsq(nominal, np.array(list(at.values())), rcond=None)[0][:2].T
        make.input_case(root, tmp, f"s_{name}", v, (2, *tile), um, "v3", "zstd")
        peer = by_skimage(cut(v, tile), grid, tile, overlap)
        assert np.abs(peer - m).max() < 0.02, peer
        keys = sorted(at)
        make.emit(root, "stitch", name, dict(input=f"inputs/s_{name}.zip", overlap=overlap, estimate=True, max_refinement_px=4.0 if jitter else 0.0),
                  dict(position_px=np.array([at[k] for k in keys])),
                  dict(matrix=truth, matrix_skimage=peer, voxel_size_um=[um]), dict(step_px=0.2 if jitter else 0.1, step_skimage_px=1.0, position_px=0.35))


def main(root):
    with tempfile.TemporaryDirectory() as tmp:
        crop_cases(root, Path(tmp))
        fusion_cases(root, Path(tmp))
        estimation_cases(root, Path(tmp))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
