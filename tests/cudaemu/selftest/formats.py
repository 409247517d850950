"""usage: formats.py FORMATS LIBNVCOMP_CPU

The decoders and encoders of nvCOMP's double (FORMATS, a library of formats.cpp) against libzstd,
liblz4 and zlib, and against NVIDIA's own LZ4 for the host. What both sides make of damaged
input must be the same.
"""

import ctypes
import random
import sys
import zlib

import numpy as np
from numcodecs import lz4, zstd

ours, theirs = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
for name in ("zstd", "lz4", "inflate"):
    getattr(ours, name).restype = ctypes.c_long
for name in ("zstd_room", "lz4_room", "zstd_pack", "lz4_pack"):
    getattr(ours, name).restype = ctypes.c_size_t
size = ctypes.c_size_t


def decode(name, src, n):
    """What our decoder makes of src in n bytes of room; None if it refuses."""
    out = ctypes.create_string_buffer(max(n, 1))
    k = getattr(ours, name)(out, size(n), src, size(len(src)))
    return out.raw[:k] if k >= 0 else None


def encode(name, data):
    out = ctypes.create_string_buffer(getattr(ours, name + "_room")(size(len(data))))
    k = getattr(ours, name + "_pack")(out, data, size(len(data)))
    return out.raw[:k]


def inflate(src, n):
    try:
        d = zlib.decompressobj(-15)
        out = d.decompress(src, n + 1)
        return out if d.eof and not d.unused_data and len(out) <= n else None
    except zlib.error:
        return None


def unlz4(src, n):
    out = ctypes.create_string_buffer(max(n, 1))
    k = theirs.LZ4_decompress_safe(src, out, len(src), n)
    return out.raw[:k] if k >= 0 else None


def unzstd(src, n):
    try:
        out = bytes(zstd.decompress(src))
        return out if len(out) <= n else None
    except RuntimeError:
        return None


def samples():
    rng = np.random.default_rng(1)
    for n in (1, 5, 12, 13, 100, 1000, 65536, 131072, 300001):
        yield rng.integers(0, 256, n, dtype=np.uint8).tobytes()
        yield bytes(n)
        yield rng.normal(100, 8, n).astype(np.uint8).tobytes()
        yield np.cumsum(rng.integers(-2, 3, n)).astype(np.int16).tobytes()[:n]
        yield (b"the quick brown fox %d " * (n // 10 + 1))[:n]


def damaged(src, r):
    for _ in range(20):
        i = r.randrange(len(src))
        yield src[:i]
        b = bytearray(src)
        b[i] ^= 1 << r.randrange(8)
        yield bytes(b)


r, checks = random.Random(2), 0


def check(what, got, want):
    global checks
    checks += 1
    if got != want:
        sys.exit(f"{what}: {None if got is None else len(got)} bytes, want {None if want is None else len(want)}")


for data in samples():
    n = len(data)
    for level in (-5, 1, 3, 9, 19):
        src = zstd.compress(data, level)
        check(f"zstd {level}", decode("zstd", src, n), data)
        check("zstd, little room", decode("zstd", src, n - 1), None)
    for bad in damaged(zstd.compress(data, 3), r):
        got, want = decode("zstd", bad, n), unzstd(bad, n)
        if want is not None and got is not None:  # numcodecs takes several frames, and wants their sizes
            check("damaged zstd", got, want)
    for level in (0, 1, 6, 9):
        c = zlib.compressobj(level, zlib.DEFLATED, -15)
        src = c.compress(data) + c.flush()
        check(f"deflate {level}", decode("inflate", src, n), data)
        for bad in damaged(src, r):
            check("damaged deflate", decode("inflate", bad, n), inflate(bad, n))
    out = ctypes.create_string_buffer(n + n // 255 + 16)
    k = theirs.LZ4_compress_HC(data, out, n, len(out), 9)
    for src in (lz4.compress(data)[4:], out.raw[:k]):
        check("lz4", decode("lz4", src, n), data)
        for bad in damaged(src, r):
            got, want = decode("lz4", bad, n), unlz4(bad, n)
            if got is not None and want is not None:  # liblz4 also insists on how an encoder ends a block
                check("damaged lz4", got, want)
    check("zstd of ours", unzstd(encode("zstd", data), n), data)
    check("lz4 of ours", unlz4(encode("lz4", data), n), data)
print(f"formats: {checks} checks passed")
