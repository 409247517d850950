"""What the peers write for `interop check`: see peers.py."""

import contextlib
import itertools
import json
import os
import warnings

import numcodecs
import numcodecs.zarr3 as n3
import numpy as np
import tensorstore as ts
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from values import values

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]

ATTRIBUTES = {
    "text": "µm „ü“ \u2028 <&> \"\\ \x01", "number": 1.5, "integer": 9007199254740991, "small": 1e-300, "true": True, "nothing": None,
    "list": [1, "two", [], {}], "nested": {"a": {"b": [1, 2, 3]}}, "": "no name", "a/b.c": 0,
}


class Writer:
    def __init__(self, root):
        self.root = root
        self.arrays, self.groups, self.images = [], [], []
        os.makedirs(os.path.join(root, "values"), exist_ok=True)

    def path(self, suffix=""):
        return f"a/{len(self.arrays):04}{suffix}"

    def note(self, path, group, writer, fmt, content, attributes=None, names=None):
        """Enters an array into the manifest; content is what it must read as."""
        content = np.asarray(content)
        dtype = content.dtype.newbyteorder("=")
        file = f"values/{len(self.arrays):04}"
        with open(os.path.join(self.root, file), "wb") as f:
            f.write(np.ascontiguousarray(content, dtype=dtype.newbyteorder("<")).tobytes())
        self.arrays.append(dict(path=path, group=group, writer=writer, format=fmt, dtype=str(dtype), shape=list(content.shape), values=file,
                                attributes=attributes or {}, dimension_names=names))


@contextlib.contextmanager
def pipeline(writer):
    """Runs zarr-python with its own codecs, or with those of zarrs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if writer == "zarrs":
            warnings.filterwarnings("error", message=".*unsupported by ZarrsCodecPipeline")
            with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
                yield
        else:
            yield


def zarr_array(w, writer, group, fmt, data, chunks, *, dtype=None, fill=0, region=None, lossy=False, store=None, **more):
    """Writes data, or its part region, with zarr-python or zarrs."""
    path = w.path() if store is None else w.path(".zip")
    full = os.path.join(w.root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    where = zarr.storage.ZipStore(full, mode="w") if store == "zip" else full
    names = more.get("dimension_names")
    attributes = more.get("attributes")
    with pipeline(writer):
        a = zarr.create_array(where, shape=data.shape, chunks=chunks, dtype=dtype or data.dtype, fill_value=fill, zarr_format=fmt, **more)
        if region is not None:
            all = np.full(data.shape, np.asarray(fill, data.dtype) if fill is not None else 0, data.dtype)
            all[region] = data[region]
            a[region] = data[region]
            data = all
        elif data.size or not data.shape:
            a[...] = data
    if store == "zip":
        where.close()
    if lossy:
        data = zarr.open_array(full, mode="r")[...]
    w.note(path, group, writer, fmt, data, attributes, names)


BLOSC = list(itertools.product(["blosclz", "lz4", "lz4hc", "zlib", "zstd"], ["noshuffle", "shuffle", "bitshuffle"], [0, 1, 5, 9]))


def v3_codecs(dtype, writer):
    size = np.dtype(dtype).itemsize
    chains = [[], [GzipCodec(level=1)], [GzipCodec(level=9)], [ZstdCodec(level=1)], [ZstdCodec(level=7, checksum=True)], [Crc32cCodec()],
              [GzipCodec(level=3), Crc32cCodec()], [ZstdCodec(level=0), GzipCodec(level=1)]]
    chains += [[BloscCodec(cname=c, shuffle=s, clevel=l, typesize=size)] for c, s, l in BLOSC]
    chains += [[BloscCodec(cname="lz4", typesize=size, shuffle="shuffle", blocksize=b)] for b in (256, 4096, 1 << 16)]
    if writer == "zarr-python":
        chains += [[c] for c in (n3.LZ4(acceleration=1), n3.Zlib(level=5), n3.BZ2(level=3), n3.LZMA(), n3.CRC32(), n3.Adler32(), n3.Zstd(level=2), n3.GZip(level=4))]
        chains += [[n3.Shuffle(elementsize=size), n3.Zlib(level=1)]]
    return chains


def v2_codecs(dtype, writer):
    B, shuffles = numcodecs.Blosc, {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
    chains = [[], [numcodecs.GZip(1)], [numcodecs.GZip(9)], [numcodecs.Zlib(6)], [numcodecs.Zstd(1)], [numcodecs.BZ2(5)]]
    chains += [[B(cname=c, shuffle=shuffles[s], clevel=l)] for c, s, l in BLOSC]
    if writer == "zarr-python":
        chains += [[numcodecs.Zstd(19, checksum=True)], [numcodecs.Zstd(-3)], [numcodecs.LZ4()], [numcodecs.LZ4(8)], [numcodecs.LZMA()], [numcodecs.CRC32()],
                   [numcodecs.CRC32C()], [numcodecs.Adler32()], [numcodecs.Shuffle(np.dtype(dtype).itemsize), numcodecs.Zlib(2)]]
    return chains


def zarr_python(w, writer):
    """All that zarr-python writes, with one of its two sets of codecs."""
    own = writer == "zarr-python"
    for fmt in (2, 3):
        for dtype in DTYPES:
            data = values(dtype, (5, 17, 40), len(w.arrays))
            zarr_array(w, writer, f"v{fmt} data types", fmt, data, (3, 5, 16))
            if own and data.dtype.itemsize > 1:
                how = {"dtype": data.dtype.newbyteorder(">")} if fmt == 2 else {"serializer": BytesCodec(endian="big")}
                zarr_array(w, writer, f"v{fmt} data types", fmt, data, (3, 5, 16), **how)
    for dtype in ("uint8", "uint16", "float32"):
        for i, chain in enumerate(v3_codecs(dtype, writer)):
            for shape, chunks in (((40, 50, 60), (33, 50, 31)), ((13,), (5,))):
                zarr_array(w, writer, "v3 codecs", 3, values(dtype, shape, i, i % 2 == 0), chunks, compressors=chain or None)
        for i, chain in enumerate(v2_codecs(dtype, writer)):
            for shape, chunks in (((40, 50, 60), (33, 50, 31)), ((13,), (5,))):
                zarr_array(w, writer, "v2 codecs", 2, values(dtype, shape, i, i % 2 == 0), chunks, filters=chain[:-1] or None, compressors=chain[-1] if chain else None)
    if own:
        F = numcodecs
        for dtype, f in (("int32", F.Delta("<i4")), ("uint16", F.Delta("<u2", astype="<i4")), ("float32", F.FixedScaleOffset(-5, 10, "<f4", "<i2")),
                         ("float64", F.Quantize(2, "<f8", "<f4")), ("float32", F.BitRound(7)), ("bool", F.PackBits()), ("float32", F.AsType("<f8", "<f4")),
                         ("int16", F.Shuffle(2))):
            data = np.nan_to_num(values(dtype, (4, 23), 5), posinf=1, neginf=1) if dtype.startswith("float") else values(dtype, (4, 23), 5)
            for compressor in (None, F.Zstd(1), F.Blosc()):
                zarr_array(w, writer, "v2 filters", 2, data, (4, 9), filters=[f], compressors=compressor, lossy=True)
        for dtype, filters in (("int32", [n3.Delta(dtype="int32")]), ("uint16", [n3.Delta(dtype="uint16", astype="int32")]),
                               ("float32", [n3.FixedScaleOffset(offset=-5, scale=10, dtype="float32", astype="int16")]), ("float64", [n3.Quantize(digits=2, dtype="float64")]),
                               ("float32", [n3.BitRound(keepbits=7)]), ("bool", [n3.PackBits()]), ("float32", [n3.AsType(encode_dtype="float64", decode_dtype="float32")]),
                               ("float32", [n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int32"), n3.Delta(dtype="int32")]),
                               ("float32", [TransposeCodec(order=(1, 0)), n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int32")])):
            data = np.nan_to_num(values(dtype, (4, 23), 5), posinf=1, neginf=1) if dtype.startswith("float") else values(dtype, (4, 23), 5)
            for compressors in (None, [ZstdCodec(level=1)], [n3.Shuffle(elementsize=2), n3.Zlib(level=1)]):
                zarr_array(w, writer, "v3 filters", 3, data, (4, 9), filters=filters, compressors=compressors, lossy=True)
            inside = ShardingCodec(chunk_shape=(2, 3), codecs=[*filters, BytesCodec(endian="little"), ZstdCodec(level=1)])
            zarr_array(w, writer, "v3 filters", 3, data, (4, 9), serializer=inside, compressors=None, lossy=True)
    shapes = [((), ()), ((1,), (1,)), ((7,), (100,)), ((1000,), (999,)), ((3, 0, 2), (2, 2, 2)), ((12, 8), (4, 8)), ((6, 7, 8), (5, 2, 8)), ((2, 3, 4, 5), (1, 2, 3, 4)), ((1, 2, 3, 6, 5), (1, 1, 2, 4, 2))]
    for shape, chunks in shapes:
        for sep in "./":
            data = values("float64", shape, len(w.arrays))
            if own:
                for order in "CF":
                    zarr_array(w, writer, "v2 shapes, orders, separators", 2, data, chunks, order=order, chunk_key_encoding={"name": "v2", "separator": sep})
            for key in ("v2", "default"):
                zarr_array(w, writer, "v3 shapes, orders, separators", 3, data, chunks, chunk_key_encoding={"name": key, "separator": sep})
        for perm in itertools.islice(itertools.permutations(range(len(shape))), 1, 20, 5):
            zarr_array(w, writer, "v3 transposes", 3, values("uint16", shape, 3), chunks, filters=[TransposeCodec(order=perm)])
    for fmt in (2, 3):
        for dtype, fill in (("bool", True), ("int8", -128), ("int64", -(2**63)), ("uint64", 2**64 - 1), ("float16", 1.5), ("float32", np.nan), ("float32", np.inf), ("float32", -np.inf),
                            ("float32", -0.0), ("float32", 0.1), ("float64", np.nan), ("float64", 5e-324), ("float64", 0.1), ("complex64", 1.5 - 2j), ("complex128", complex(np.nan, -np.inf))):
            zarr_array(w, writer, f"v{fmt} fill values", fmt, values(dtype, (9, 10), 2), (2, 3), fill=fill, region=(slice(3, 7), slice(2, 8)))
    for dtype, fill in (("uint8", 7), ("uint16", 7), ("float32", np.nan), ("complex128", 7 - 1j)):
        for inner in ([], [ZstdCodec(level=1)], [GzipCodec(level=5)], [Crc32cCodec()], [BloscCodec(cname="lz4", typesize=np.dtype(dtype).itemsize, shuffle="bitshuffle"), Crc32cCodec()]):
            for shape, shard, chunk in (((16, 16, 16), (8, 8, 8), (4, 4, 4)), ((11, 9, 13), (6, 4, 8), (3, 4, 2)), ((5, 6, 7), (16, 16, 16), (8, 4, 16))):
                data = values(dtype, shape, len(w.arrays))
                for region in (None, (slice(0, 4), slice(3, 5), slice(2, 6))):
                    if region is not None and not own:
                        continue
                    for index in ("start", "end"):
                        sharding = ShardingCodec(chunk_shape=chunk, codecs=[BytesCodec(endian="little"), *inner], index_codecs=[BytesCodec(endian="little"), Crc32cCodec()][: 1 + (index == "end")], index_location=index)
                        zarr_array(w, writer, "v3 shards", 3, data, shard, fill=fill, region=region, serializer=sharding, compressors=None)
    if own:
        data = values("uint16", (16, 24, 8), 9)
        inside = ShardingCodec(chunk_shape=(4, 2, 4), codecs=[TransposeCodec(order=(2, 0, 1)), BytesCodec(endian="big"), ZstdCodec()])
        zarr_array(w, writer, "v3 shards in shards", 3, data, (16, 12, 8), serializer=ShardingCodec(chunk_shape=(8, 4, 8), codecs=[inside]), compressors=None)
        zarr_array(w, writer, "v3 shards in shards", 3, data, (16, 12, 8), serializer=ShardingCodec(chunk_shape=(8, 4, 8), codecs=[inside, Crc32cCodec()]), compressors=[GzipCodec()])
        for fmt in (2, 3):
            zarr_array(w, writer, f"v{fmt} attributes", fmt, values("int16", (4, 5), 1), (2, 5), attributes=ATTRIBUTES)
            for dtype in ("uint8", "float32"):
                zarr_array(w, writer, f"v{fmt} zip files", fmt, values(dtype, (20, 30), 1), (7, 30), store="zip", attributes=ATTRIBUTES)
                zarr_array(w, writer, f"v{fmt} zip files", fmt, values(dtype, (20, 30), 1), (7, 30), store="zip", compressors=None)
        for names in (["z", "y", "x"], [None, "y", None], ["x", "x", "ü"]):
            zarr_array(w, writer, "v3 dimension names", 3, values("int16", (4, 5, 6), 1), (2, 5, 3), dimension_names=names)
        groups(w)


def groups(w):
    for fmt, consolidated in itertools.product((2, 3), (False, True)):
        path = f"g/{fmt}-{consolidated}"
        g = zarr.create_group(os.path.join(w.root, path), zarr_format=fmt, attributes=ATTRIBUTES)
        members = ["a", "a/b", "a/b/c", "d"]
        for m in members:
            g.create_group(m, attributes={"me": m})
        for m in ("a/x", "a/b/c/y", "z"):
            g.create_array(m, data=np.array([1, 2, 3], "u1"), chunks=(2,), attributes={"me": m})
            members.append(m)
        if consolidated:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                zarr.consolidate_metadata(g.store)
        w.groups.append(dict(path=path, group=f"v{fmt} groups", writer="zarr-python", format=fmt, attributes=ATTRIBUTES, members=members, consolidated=consolidated))


def ts_array(w, group, fmt, data, metadata, region=None, fill=0):
    path = w.path()
    spec = {"driver": "zarr" if fmt == 2 else "zarr3", "kvstore": {"driver": "file", "path": os.path.join(w.root, path) + "/"}, "metadata": metadata}
    a = ts.open(spec, create=True).result()
    if region is not None:
        all = np.full(data.shape, fill, data.dtype)
        all[region] = data[region]
        a[region].write(np.ascontiguousarray(data[region])).result()
        data = all
    else:
        a.write(data).result()
    w.note(path, group, "tensorstore", fmt, data, None, metadata.get("dimension_names"))


def tensorstore(w):
    def v3(shape, chunks, dtype, codecs, **more):
        return {"shape": shape, "data_type": dtype, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}, "codecs": codecs, **more}

    def bytes_(endian="little"):
        return {"name": "bytes", "configuration": {"endian": endian}}

    def codec(name, **configuration):
        return {"name": name, "configuration": configuration} if configuration else {"name": name}

    def blosc(size, cname, shuffle, level):
        return codec("blosc", cname=cname, clevel=level, shuffle=shuffle, typesize=size, blocksize=0)

    for dtype in DTYPES:
        data = values(dtype, (5, 17, 40), 1)
        for endian in ("little", "big"):
            ts_array(w, "v3 data types", 3, data, v3((5, 17, 40), (3, 5, 16), dtype, [bytes_(endian)]))
            order = "|" if data.dtype.itemsize == 1 else "<>"[endian == "big"]
            typestr = np.dtype(dtype).newbyteorder(order).str
            ts_array(w, "v2 data types", 2, data, {"shape": (5, 17, 40), "chunks": (3, 5, 16), "dtype": typestr, "compressor": None})
    for dtype in ("uint8", "uint16", "float32"):
        size = np.dtype(dtype).itemsize
        chains = [[], [codec("gzip", level=1)], [codec("gzip", level=9)], [codec("zstd", level=1)], [codec("zstd", level=5), codec("crc32c")], [codec("crc32c")]]
        chains += [[blosc(size, c, s, l)] for c, s, l in BLOSC]
        for i, chain in enumerate(chains):
            for shape, chunks in (((40, 50, 60), (33, 50, 31)), ((13,), (5,))):
                ts_array(w, "v3 codecs", 3, values(dtype, shape, i, i % 2 == 0), v3(shape, chunks, dtype, [bytes_(), *chain]))
        compressors = [{"id": "gzip", "level": 4}, {"id": "zlib", "level": 1}, {"id": "zstd", "level": 3}, {"id": "bz2", "level": 2}]
        compressors += [{"id": "blosc", "cname": c, "shuffle": ["noshuffle", "shuffle", "bitshuffle"].index(s), "clevel": l} for c, s, l in BLOSC]
        for i, compressor in enumerate(compressors):
            for order in "CF":
                ts_array(w, "v2 codecs", 2, values(dtype, (40, 50, 60), i, i % 2 == 0),
                         {"shape": (40, 50, 60), "chunks": (33, 50, 31), "dtype": np.dtype(dtype).str, "compressor": compressor, "order": order, "dimension_separator": "./"[i % 2]})
    for dtype, fill in (("uint8", 7), ("uint16", 7), ("float32", 0.5)):
        size = np.dtype(dtype).itemsize
        for inner in ([bytes_()], [bytes_("big"), codec("zstd", level=1)], [codec("transpose", order=(2, 0, 1)), bytes_(), codec("gzip", level=5)],
                      [bytes_(), blosc(size, "zstd", "shuffle", 1), codec("crc32c")]):
            for shape, shard, chunk in (((16, 16, 16), (8, 8, 8), (4, 4, 4)), ((11, 9, 13), (6, 4, 8), (3, 4, 2)), ((5, 6, 7), (16, 16, 16), (8, 4, 16))):
                for region in (None, (slice(0, 4), slice(3, 5), slice(2, 6))):
                    for index, ends in itertools.product(("start", "end"), ("little", "big")):
                        sharding = codec("sharding_indexed", chunk_shape=chunk, codecs=inner, index_codecs=[bytes_(ends), codec("crc32c")], index_location=index)
                        ts_array(w, "v3 shards", 3, values(dtype, shape, len(w.arrays)), v3(shape, shard, dtype, [sharding], fill_value=fill), region, fill)
    for names in (["z", "y", "x"], [None, "y", None]):
        ts_array(w, "v3 dimension names", 3, values("int16", (4, 5, 6), 1), v3((4, 5, 6), (2, 5, 3), "int16", [bytes_()], dimension_names=names))


def write(root):
    w = Writer(root)
    zarr_python(w, "zarr-python")
    zarr_python(w, "zarrs")
    tensorstore(w)
    import peers_images  # slow to load

    peers_images.write(w)
    with open(os.path.join(root, "manifest.json"), "w") as f:
        json.dump(dict(arrays=w.arrays, groups=w.groups, images=w.images), f)
    print(f"wrote {len(w.arrays)} arrays, {len(w.groups)} groups, {len(w.images)} images")
    return 0
