"""Remakes the golden cases of smooth in this folder: images and what scipy.ndimage makes of them, in float64, before
anything is rounded to the type of the output. Everything is seeded.

  python -m venv V && V/bin/pip install -r requirements.txt
  V/bin/python make_smooth.py [OUT_DIR]        (default: this folder)
"""
import sys
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi

import make


def image(seed, shape, dtype):
    """Smooth structures, edges, noise, and outliers that only a median removes."""
    rng = np.random.default_rng(seed)
    grid = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    v = sum(np.sin((7 + 3 * k) * g + k) for k, g in enumerate(grid)) + 1.5 * (sum(grid) > 0.8 * len(shape) / 2)
    v = v + 0.3 * rng.standard_normal(shape)
    v = np.where(rng.random(shape) < 0.02, 9 * rng.choice([-1, 1], shape), v)
    if dtype.startswith("f"):
        return (100 * v).astype(dtype)
    info = np.iinfo(dtype)
    lo, hi = float(info.min), float(info.max)
    if info.bits == 64:  # what float64 counts exactly
        lo, hi = max(lo, -(2.0**50)), 2.0**50
    return np.clip(np.rint(lo + (hi - lo) * (v + 4) / 8), lo, hi).astype(dtype)


def filtered(v, sigma, median, gradient, border):
    """One image of space axes; axes of one voxel are left out."""
    shape, keep = v.shape, [n > 1 for n in v.shape]
    sigma = sigma and [s for s, k in zip(sigma, keep) if k]
    v = v.squeeze()
    mode = dict(mode=border, cval=0.0)
    if median:
        v = ndi.median_filter(v, size=median, **mode)
    v = v.astype(np.float64)
    if gradient and sigma:
        v = ndi.gaussian_gradient_magnitude(v, sigma, **mode)
    elif gradient:
        v = np.sqrt(sum(ndi.sobel(v, axis, **mode) ** 2 for axis in range(v.ndim)))
    elif sigma:
        v = ndi.gaussian_filter(v, sigma, **mode)
    return v.reshape(shape)


# name: shape, dtype, axes, voxel size in µm of the space axes, and the flags
CASES = {
    "gauss_u8_2d": ((61, 83), "u1", "yx", (2.0, 1.5), dict(sigma=[3.0])),
    "gauss_u16_3d": ((13, 30, 27), "u2", "zyx", (3.5, 2.0, 2.0), dict(sigma=[5.0])),
    "gauss_f32_3d": ((17, 26, 23), "f4", "zyx", (10.0, 2.0, 2.5), dict(sigma=[12.0, 2.0, 4.0])),
    "gauss_i16_nearest": ((20, 33), "i2", "yx", (1.0, 1.0), dict(sigma_px=[2.0, 5.5], border="nearest")),
    "gauss_u32_constant": ((21, 35), "u4", "yx", (1.0, 1.0), dict(sigma_px=[1.7], border="constant")),
    "gauss_i64": ((19, 22), "i8", "yx", (1.0, 1.0), dict(sigma_px=[1.0])),
    "gauss_f64": ((19, 22), "f8", "yx", (1.0, 1.0), dict(sigma_px=[1.0, 0.0])),
    "gauss_u8_as_f32": ((40, 41), "u1", "yx", (1.0, 1.0), dict(sigma_px=[1.4], dtype="float32")),
    "gauss_smaller_than_radius": ((3, 5, 4), "f4", "zyx", (1.0, 1.0, 1.0), dict(sigma_px=[4.0])),
    "gauss_smaller_than_radius_nearest": ((3, 5, 4), "u2", "zyx", (1.0, 1.0, 1.0), dict(sigma_px=[4.0], border="nearest")),
    "gauss_channels": ((3, 25, 31), "u1", "cyx", (1.0, 1.0), dict(sigma_px=[1.5])),
    "gauss_tczyx": ((2, 2, 1, 23, 19), "u2", "tczyx", (5.0, 1.0, 1.0), dict(sigma=[1.5])),
    "median3_u8_2d": ((50, 67), "u1", "yx", (1.0, 1.0), dict(median=3)),
    "median5_i16_2d": ((41, 37), "i2", "yx", (1.0, 1.0), dict(median=5)),
    "median9_u16_2d": ((40, 37), "u2", "yx", (1.0, 1.0), dict(median=9)),
    "median25_u16_2d": ((40, 37), "u2", "yx", (1.0, 1.0), dict(median=25)),
    "median3_f32_3d": ((9, 17, 21), "f4", "zyx", (1.0, 1.0, 1.0), dict(median=3)),
    "median5_u16_3d": ((9, 17, 21), "u2", "zyx", (1.0, 1.0, 1.0), dict(median=5)),
    "median9_u8_3d": ((11, 17, 14), "u1", "zyx", (1.0, 1.0, 1.0), dict(median=9)),
    "median9_f64_3d": ((11, 12, 14), "f8", "zyx", (1.0, 1.0, 1.0), dict(median=9)),
    "median9_smaller_than_radius": ((3, 4), "u2", "yx", (1.0, 1.0), dict(median=9)),
    "median5_constant": ((20, 21), "i4", "yx", (1.0, 1.0), dict(median=5, border="constant")),
    "median5_nearest": ((20, 21), "u8", "yx", (1.0, 1.0), dict(median=5, border="nearest")),
    "sobel_u8_2d": ((50, 43), "u1", "yx", (1.0, 1.0), dict(gradient=True)),
    "sobel_u16_3d": ((9, 20, 19), "u2", "zyx", (1.0, 1.0, 1.0), dict(gradient=True)),
    "sobel_f32_constant": ((27, 31), "f4", "yx", (1.0, 1.0), dict(gradient=True, border="constant")),
    "sobel_u8_as_u8": ((27, 31), "u1", "yx", (1.0, 1.0), dict(gradient=True, dtype="uint8")),
    "slope_f32_3d": ((15, 20, 19), "f4", "zyx", (3.0, 2.0, 2.0), dict(gradient=True, sigma=[3.0])),
    "slope_u16_nearest": ((33, 29), "u2", "yx", (1.0, 1.0), dict(gradient=True, sigma_px=[1.3, 2.0], border="nearest")),
    "median_gauss_reflect": ((25, 28), "u2", "yx", (1.0, 1.0), dict(median=3, sigma_px=[1.5])),
    "median_gauss_nearest": ((9, 12, 14), "f4", "zyx", (1.0, 1.0, 1.0), dict(median=3, sigma_px=[1.5], border="nearest")),
    "median_gauss_constant": ((25, 28), "u1", "yx", (1.0, 1.0), dict(median=5, sigma_px=[1.5], border="constant")),
    "median_sobel_nearest": ((25, 28), "u1", "yx", (1.0, 1.0), dict(median=5, gradient=True, border="nearest")),
    "median_slope_constant": ((12, 11, 13), "i2", "zyx", (1.0, 1.0, 1.0), dict(median=3, gradient=True, sigma_px=[1.0], border="constant")),
    "median_gauss_small": ((2, 3), "u2", "yx", (1.0, 1.0), dict(median=5, sigma_px=[3.0], border="nearest")),
}


def main(out):
    for seed, (name, (shape, dtype, axes, voxel, flags)) in enumerate(CASES.items()):
        v = image(seed, shape, dtype)
        lead = len(shape) - len(voxel)
        border = flags.get("border", "reflect")
        sigma = flags.get("sigma_px") or (flags.get("sigma") and np.broadcast_to(flags["sigma"], len(voxel)) / np.array(voxel))
        if sigma is not None:
            sigma = list(np.broadcast_to(sigma, len(voxel)).astype(float))
        want = np.empty(shape, v.dtype if flags.keys() <= {"median", "border"} else np.float64)
        for k in np.ndindex(*shape[:lead]):
            want[k] = filtered(v[k], sigma, flags.get("median"), flags.get("gradient"), border)
        folder = out / "smooth" / name
        make.dump(folder / "case.json", dict(stage="smooth", params=dict(axes=axes, **flags), voxel_size_um=[list(voxel)],
                                             tolerance=dict(rel=1e-13 if dtype in ("f8", "u4", "i4", "u8", "i8") else 1e-5)))
        make.write_npz(folder / "expected.npz", dict(input=v, expected=want))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
