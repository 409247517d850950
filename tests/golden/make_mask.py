"""Remakes the golden cases of mask in this folder: volumes and what scipy.ndimage and scikit-image make of them. Everything is seeded.

  python -m venv V && V/bin/pip install -r requirements.txt
  V/bin/python make_mask.py [OUT_DIR]        (default: this folder)
"""
import sys
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi
from skimage.filters import threshold_otsu

import make


def volume(seed, shape, dtype):
    """A specimen with a closed cavity, a tunnel to the outside and a ring around an opening; a smaller piece beside it; no data at one side."""
    rng = np.random.default_rng(seed)
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, n) for n in shape], indexing="ij")
    inside = (z / 0.9) ** 2 + (y / 0.75) ** 2 + ((x + 0.2) / 0.7) ** 2 < 1
    inside &= ~(z**2 + (y - 0.1) ** 2 + (x + 0.3) ** 2 < 0.04)
    inside &= ~((np.abs(y + 0.35) < 0.12) & (np.abs(x + 0.1) < 0.12))
    inside |= (z / 0.5) ** 2 + ((y - 0.7) / 0.2) ** 2 + ((x - 0.75) / 0.2) ** 2 < 1
    v = np.where(inside, 100.0, 15.0) * rng.gamma(6, 1 / 6, shape)
    v[..., x[0, 0] > 0.93] = 0
    return np.rint(v).astype(dtype) if dtype[0] == "u" else v.astype(dtype)


def fill(m, how):
    if how == "none":
        return m
    m = ndi.binary_fill_holes(m)
    if how == "planes":
        for axis in range(3):
            for k in range(m.shape[axis]):
                at = [slice(None)] * 3
                at[axis] = k
                m[tuple(at)] = ndi.binary_fill_holes(m[tuple(at)])
        m = ndi.binary_fill_holes(m)
    return m


# name: shape, dtype, voxel size in µm (z, y, x), and the flags
CASES = {
    "defaults": ((22, 40, 45), "f4", (25.0, 25.0, 25.0), dict(smoothing=30.0, largest=True, fill="volume", median=1)),
    "anisotropic": ((20, 36, 41), "u2", (20.0, 10.0, 15.0), dict(smoothing=14.0, largest=True, fill="planes", median=1)),
    "ragged": ((13, 33, 30), "u1", (10.0, 10.0, 10.0), dict(smoothing=0.0, largest=False, fill="planes", median=5)),
    "largest": ((15, 30, 33), "u2", (10.0, 10.0, 10.0), dict(smoothing=0.0, largest=True, fill="none", median=1)),
    "wider_than_volume": ((3, 25, 31), "f4", (10.0, 10.0, 10.0), dict(smoothing=20.0, largest=True, fill="volume", median=3)),
}


def main(out):
    for seed, (name, (shape, dtype, voxel, flags)) in enumerate(CASES.items()):
        v = volume(seed, shape, dtype)
        s = ndi.gaussian_filter(v.astype(np.float64), np.array(flags["smoothing"]) / voxel, mode="reflect")
        t = float(threshold_otsu(s[s > 0]))
        m, components = s >= t, 0
        if flags["largest"]:
            labels, components = ndi.label(m)
            m = labels == 1 + np.argmax(np.bincount(labels.ravel())[1:])
        m = fill(m, flags["fill"])
        if flags["median"] > 1:
            m = ndi.median_filter(m, size=flags["median"])
        folder = out / "mask" / name
        make.dump(folder / "case.json", dict(stage="mask", params=flags, voxel_size_um=[list(voxel)], threshold=t, components=int(components),
                                             tolerance=dict(rel=4e-3, max_fraction_off=1e-3)))
        make.write_npz(folder / "expected.npz", dict(input=v, expected=m.astype(np.uint8)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
