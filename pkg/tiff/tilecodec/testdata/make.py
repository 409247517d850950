"""Makes streams.json: tiles stored by imagecodecs (libtiff's algorithms, zlib, libzstd, liblzma, libjpeg-turbo, OpenJPEG) and their samples.

    pip install numpy imagecodecs && python make.py > streams.json

What imagecodecs has no encoder for is put together with numpy: byte order and predictors of big-endian data, fill order.
"""

import base64
import json
import zlib

import imagecodecs as ic
import numpy as np

rng = np.random.default_rng(347)
cases = []


def picture(dtype, height, width, samples):
    y, x, s = np.mgrid[0:height, 0:width, 0:samples]
    v = 0.5 + 0.3 * np.sin(x / 7 + s) * np.cos(y / 5) + 0.04 * rng.standard_normal((height, width, samples))
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (v * 100).astype(dtype)
    info = np.iinfo(dtype)
    span = float(info.max) - float(info.min)
    return (np.clip(v, 0.01, 0.99) * span * 0.99 + float(info.min)).astype(dtype)


def name(dtype):
    d = np.dtype(dtype)
    return {"u": "uint", "i": "int", "f": "float"}[d.kind] + str(8 * d.itemsize)


def predicted(a, predictor, big):
    """The samples as a compressor gets them."""
    if predictor == 2:
        u = a.view("u%d" % a.itemsize)
        d = np.diff(u, axis=1, prepend=np.zeros_like(u[:, :1]))
        return d.astype(d.dtype.newbyteorder(">" if big else "<")).tobytes()
    if predictor == 3:
        return ic.floatpred_encode(np.ascontiguousarray(a), axis=1).tobytes()
    return a.astype(a.dtype.newbyteorder(">" if big else "<")).tobytes()


COMPRESS = {
    1: bytes,
    5: ic.lzw_encode,
    8: lambda b: ic.zlib_encode(b, level=6),
    32946: lambda b: ic.deflate_encode(b, level=9),
    32773: ic.packbits_encode,
    34925: ic.lzma_encode,
    34926: lambda b: ic.zstd_encode(b, level=3),
    50000: lambda b: ic.zstd_encode(b, level=9),
}


def add(label, fmt, stored, samples):
    text = lambda b: base64.b64encode(bytes(b)).decode()
    cases.append({"name": label, "format": fmt, "stored": text(stored), "samples": text(zlib.compress(samples.tobytes(), 9))})


def tile(dtype, compression, predictor=1, big=False, height=3, width=13, samples=1):
    a = picture(dtype, height, width, samples)
    fmt = {"compression": compression, "predictor": predictor, "data_type": name(dtype), "samples": samples, "width": width, "height": height,
           "big_endian": big, "photometric": 1}
    label = "%s %d predictor %d samples %d %s" % (name(dtype), compression, predictor, samples, "big" if big else "little")
    add(label, fmt, COMPRESS[compression](predicted(a, predictor, big)), a)


integers = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]
for big in (False, True):
    for dtype in integers + ["f2", "f4", "f8"]:
        tile(dtype, 1, 1, big)
        tile(dtype, 8, 2, big)
        for samples in (2, 3, 4, 5):
            tile(dtype, 8, 2, big, samples=samples, height=1)
    for dtype in ("f2", "f4", "f8"):
        for samples in (1, 3):
            tile(dtype, 8, 3, big, samples=samples, height=2)
tile("f4", 8, 3, samples=20, height=2)
for compression in COMPRESS:
    tile("u1", compression, samples=3)
    tile("u2", compression, big=True)
    if compression not in (1, 32773):
        tile("i2", compression, 2, samples=3)
        tile("f4", compression, 3)

# LZW past several clears, and of strings that are completed by their own code
noise = rng.integers(0, 256, (80, 80, 1), "u1")
grey = {"data_type": "uint8", "width": 80, "height": 80, "photometric": 1}
add("lzw noise", grey | {"compression": 5}, ic.lzw_encode(noise), noise)
smooth = picture("u1", 80, 80, 1) // 8
add("lzw smooth", grey | {"compression": 5}, ic.lzw_encode(smooth), smooth)
zeros = np.zeros((80, 80, 1), "u1")
add("lzw zeros", grey | {"compression": 5}, ic.lzw_encode(zeros), zeros)

# samples that are not whole bytes; rows begin at whole ones
for bits in (1, 2, 4, 10, 12, 14):
    for width in (1, 7, 21):
        a = rng.integers(0, 1 << bits, (4, width, 1), "u2").astype("u1" if bits < 8 else "u2")
        packed = b"".join(ic.packints_encode(row.reshape(-1), bits) for row in a)
        fmt = {"data_type": name(a.dtype), "bits": bits, "width": width, "height": 4, "photometric": 1}
        add("%d bits, width %d" % (bits, width), fmt | {"compression": 1}, packed, a)
        add("%d bits, width %d, deflate" % (bits, width), fmt | {"compression": 8}, ic.zlib_encode(packed), a)
        add("%d bits, width %d, fill order 2, lzw" % (bits, width), fmt | {"compression": 5, "fill_order": 2},
            ic.bitorder_encode(ic.lzw_encode(packed)), a)

# JPEG: the samples are libjpeg-turbo's
for space, photometric, samples in (("RGB", 2, 3), ("YCBCR", 6, 3), ("GRAYSCALE", 1, 1)):
    a = picture("u1", 17, 24, samples)
    for subsampling in ("444", "420") if photometric == 6 else ("444",):
        stored = ic.jpeg8_encode(np.squeeze(a), level=85, colorspace="RGB" if samples == 3 else space, outcolorspace=space, subsampling=subsampling)
        want = ic.jpeg8_decode(stored, colorspace=space, outcolorspace="RGB" if samples == 3 else space)
        add("jpeg %s %s" % (space, subsampling), {"compression": 7, "data_type": "uint8", "samples": samples, "width": 24, "height": 17,
            "photometric": photometric}, stored, want)

# JPEG 2000, lossless
for compression, codecformat in ((33005, "J2K"), (34712, "JP2")):
    for dtype, samples in (("u1", 3), ("u1", 1), ("u2", 1), ("i2", 1)):
        a = picture(dtype, 13, 24, samples)
        stored = ic.jpeg2k_encode(np.squeeze(a), level=0, codecformat=codecformat, reversible=True, resolutions=3)
        add("jpeg 2000 %s %s %d" % (codecformat, name(dtype), samples), {"compression": compression, "data_type": name(dtype), "samples": samples,
            "width": 24, "height": 13, "photometric": 2 if samples == 3 else 1}, stored, a)

print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")
