"""Elements of the arrays that peers write."""

import numpy as np


def values(dtype, shape, seed, smooth=True):
    """Elements with the numbers that programs stumble over."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape, dtype=int))
    wave = 100 * np.sin(np.arange(n) / 37) + rng.normal(size=n)
    dtype = np.dtype(dtype)
    if dtype == bool:
        v = wave > 0 if smooth else rng.integers(0, 2, n) > 0
    elif dtype.kind in "iu":
        v = (wave + 1000).astype(np.int64) if smooth else rng.integers(0, 2**63, n)
    else:
        v = wave.astype(dtype)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0, 1e-45])
        v[:6] = special[: len(v)]
        if dtype.kind == "c":
            v = v + 1j * np.where(np.isfinite(wave), wave[::-1], 0)
    with np.errstate(all="ignore"):
        return v.astype(dtype).reshape(shape)
