"""Writes golden.json: what numcodecs makes of small arrays, and the metadata that zarr-python writes for its codecs in v3.

    python -m venv env && env/bin/pip install numcodecs==0.16.6 zarr==3.1.6
    env/bin/python make_golden.py

One object per line: "config" (numcodecs), "dtype" of the array, "decoded" and "encoded" bytes (base64). "original" is there when
encoding does not keep the values: "decoded" is what comes back.
"""
import base64
import json
import lzma
import pathlib
import warnings

import numcodecs
import numpy as np

warnings.filterwarnings("ignore")
rng = np.random.default_rng(3)
lines = []


def b64(a):
    return base64.b64encode(bytes(memoryview(np.ascontiguousarray(a)).cast("B")) if isinstance(a, np.ndarray) else bytes(a)).decode()


def add(codec, a, lossy=False):
    enc = codec.encode(a)
    try:
        dec = np.frombuffer(bytes(memoryview(np.ascontiguousarray(codec.decode(enc))).cast("B")), a.dtype)
    except ValueError:  # numcodecs cannot read its own .xz with filters
        dec = a
    lines.append({"config": codec.get_config(), "dtype": a.dtype.str, "decoded": b64(dec), "encoded": b64(np.asarray(enc) if isinstance(enc, np.ndarray) else enc)})
    if lossy:
        lines[-1]["original"] = b64(a)
    assert lossy or dec.tobytes() == a.tobytes()


def ints(t, n=23):
    i = np.iinfo(t)
    a = rng.integers(i.min, i.max, n, dtype=np.dtype(t).newbyteorder("="), endpoint=True)
    a[:4] = [i.min, i.max, 0, 1]
    return a.astype(t)


for t in ("|i1", "|u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", "<u8", ">i8"):
    add(numcodecs.Delta(t), ints(t))
for t, e in (("<i2", "<i4"), ("<u2", "<i8"), ("<i4", "<i2"), ("<u1", ">i2"), ("<i4", "<f8")):
    add(numcodecs.Delta(t, e), np.cumsum(rng.integers(0, 9, 20)).astype(t))
for t, e in (("<f4", "<f4"), ("<f8", ">f8"), (">f4", "<f4"), ("<f8", "<f4"), ("<f2", "<f2")):
    add(numcodecs.Delta(t, e), (100 * rng.standard_normal(20)).astype(t), lossy=True)
for t, e in (("<f4", "|u1"), ("<f8", "<i2"), ("<f4", "<f4"), ("<f8", "<f4"), ("<f4", "<f8"), ("<f2", "<i4"), ("<f4", "<f2"), (">f4", ">u2")):
    add(numcodecs.FixedScaleOffset(20.5, 2.1, t, e), (20 + 100 * rng.random(20)).astype(t), lossy=True)
add(numcodecs.FixedScaleOffset(1000, 10, "<f8", "<u2"), 1000 + rng.random(20) * 50, lossy=True)
add(numcodecs.FixedScaleOffset(3, 2, "<i4", "<i4"), rng.integers(0, 1000, 20).astype("<i4"), lossy=True)
for digits in (0, 1, 3, -2):
    for t, e in (("<f4", "<f4"), ("<f8", "<f4"), (">f8", ">f8")):
        add(numcodecs.Quantize(digits, t, e), (1000 * rng.standard_normal(20)).astype(t), lossy=True)
for t, bits in (("<f2", 4), ("<f4", 7), ("<f4", 0), ("<f4", 23), ("<f8", 20)):
    a = (1000 * rng.standard_normal(20)).astype(t)
    a[0] = 0
    add(numcodecs.BitRound(bits), a, lossy=True)
for n in (1, 7, 8, 9, 20):
    add(numcodecs.PackBits(), rng.integers(0, 2, n).astype(bool))
for e, t in (("<f4", "<f8"), ("<i2", "<i4"), ("<f2", "<f4"), ("<f8", "<i4"), ("<u1", "<f4"), (">i4", "<i2"), ("<f4", "<u8"), ("<i8", "<u4"), ("|b1", "<i4"),
             ("<f2", "<f8"), ("<f4", "<i8"), ("<u8", "<f4")):
    a = (rng.integers(0, 2, 20) if e == "|b1" else rng.integers(0, 200, 20)).astype(t)
    if e == "<f2" and t == "<f8":  # halfway cases, which round once
        a[:3] = [1 + 2**-11, 1 + 2**-11 + 2**-40, 1 + 3 * 2**-11 - 2**-40]
    if e == "<f4" and t in ("<u8", "<i8"):
        a[:3] = [2**60 + 2**36 + 1, 2**60 + 2**36, 2**62 + 1]
    if e == "<u8":
        a[0] = 2**63
    add(numcodecs.AsType(e, t), a, lossy=True)
for size in (1, 2, 4, 8):
    add(numcodecs.Shuffle(size), rng.integers(0, 256, 48).astype("u1"))
some = np.arange(40, dtype="<i4") ** 2
for cls in (numcodecs.CRC32, numcodecs.Adler32, numcodecs.CRC32C):
    for where in ("start", "end"):
        c = cls(location=where)
        add(c, some)
        lines[-1]["config"]["location"] = where
for c in (numcodecs.GZip(1), numcodecs.Zlib(1), numcodecs.Zlib(-1), numcodecs.Zstd(1), numcodecs.Zstd(3, checksum=True), numcodecs.Zstd(-3), numcodecs.LZ4(), numcodecs.BZ2(9),
          numcodecs.LZMA(), numcodecs.LZMA(check=lzma.CHECK_NONE), numcodecs.LZMA(check=lzma.CHECK_CRC32), numcodecs.LZMA(check=lzma.CHECK_SHA256, preset=9),
          numcodecs.LZMA(format=lzma.FORMAT_ALONE, preset=1), numcodecs.LZMA(filters=[{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]),
          numcodecs.LZMA(format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]),
          numcodecs.LZMA(format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "lc": 2, "lp": 1, "pb": 1}])):
    add(c, some)
# old containers say nothing about splitting: flag 0x10 cleared in a block that is too short to be split
for cname in ("lz4", "blosclz"):
    e = bytearray(numcodecs.Blosc(cname, 5, 1, 0).encode(np.repeat(np.arange(20, dtype="<f8"), 3)))
    e[2] &= ~0x10
    lines.append({"config": {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": 1, "blocksize": 0}, "dtype": "<f8",
                  "decoded": b64(np.repeat(np.arange(20, dtype="<f8"), 3)), "encoded": b64(bytes(e))})
# BloscLZ: every length and distance, far ones too
noise = rng.integers(0, 256, 9000).astype("u1")
far = np.concatenate([noise[:300], np.zeros(700, "u1"), noise, noise[:300], noise[100:140], np.tile(noise[:5], 60), noise[200:204]])
lines.append({"config": {"id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": 0, "blocksize": 0}, "dtype": "|u1", "decoded": b64(far),
              "encoded": b64(numcodecs.Blosc("blosclz", 9, 0, 0).encode(far))})

v3 = []
try:
    import zarr
    import zarr.codecs.numcodecs as zn

    def meta(dtype, **kw):
        store = zarr.storage.MemoryStore()
        a = zarr.create_array(store, shape=(8,), chunks=(8,), dtype=dtype, fill_value=0, **kw)
        for c in json.loads(json.dumps(a.metadata.to_dict()["codecs"] if not hasattr(a.metadata.codecs[0], "to_dict") else [k.to_dict() for k in a.metadata.codecs])):
            if c["name"] not in ("bytes",):
                v3.append({"dtype": dtype, "codec": c})

    for dtype, f in (("int32", zn.Delta(dtype="int32")), ("int16", zn.Delta(dtype="<i2", astype="<i4")), ("float32", zn.FixedScaleOffset(offset=1, scale=2.5, dtype="float32", astype="int16")),
                     ("float32", zn.BitRound(keepbits=5)), ("float64", zn.Quantize(digits=3, dtype="float64")), ("bool", zn.PackBits()), ("float64", zn.AsType(encode_dtype="float32", decode_dtype="float64"))):
        meta(dtype, filters=[f], compressors=None)
    for c in (zn.Zlib(level=3), zn.LZ4(acceleration=2), zn.BZ2(level=2), zn.LZMA(preset=1), zn.Shuffle(elementsize=4), zn.CRC32(), zn.Adler32(), zn.CRC32C(), zn.GZip(level=2), zn.Zstd(level=2),
              zn.Blosc(cname="zstd", clevel=3, shuffle=2), zarr.codecs.ZstdCodec(level=3), zarr.codecs.GzipCodec(level=3), zarr.codecs.BloscCodec(cname="lz4", clevel=3, shuffle="bitshuffle"),
              zarr.codecs.Crc32cCodec()):
        meta("int32", compressors=[c])
except ImportError as e:
    raise SystemExit(f"zarr-python is needed: {e}")

out = pathlib.Path(__file__).with_name("golden.json")
out.write_text('{"codecs": [\n' + ",\n".join(map(json.dumps, lines)) + '\n],\n"v3": [\n' + ",\n".join(map(json.dumps, v3)) + "\n]}\n")
print(len(lines), len(v3), out.stat().st_size)
