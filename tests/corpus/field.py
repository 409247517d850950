#!/usr/bin/env python3
"""Make the cases "field/…": arrays as other writers leave them, which a strict reader would refuse, in field.zip and manifest.json of this folder.
usage: field.py          needs zarr 3.1 or newer and numcodecs

zarr-python writes each array; what is edited afterwards does not change what it means: by the specification's text, by numcodecs' own
fixtures, or as the libraries behind the codecs take it. A case's "behaviour" says what was met."""
import codecs, json, os, shutil, tempfile, warnings, zipfile
import numpy as np, zarr, numcodecs as F, numcodecs.zarr3 as n3
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = tempfile.mkdtemp()
CASES = []
RNG = np.random.default_rng(3)


def array(name, data, fmt, met, edit=None, chunk=None, want=None, **how):
    """Writes an array, changes its document and its first chunk, and notes the case."""
    where = f"field/{name}.zarr"
    path = os.path.join(ROOT, where)
    how.setdefault("chunks", (4, 5))
    how.setdefault("compressors", None)
    z = zarr.create_array(path, shape=data.shape, dtype=data.dtype, zarr_format=fmt, **how)
    z[...] = data
    want = z[...] if want is None else want
    document = os.path.join(path, "zarr.json" if fmt == 3 else ".zarray")
    if edit:
        with open(document, "rb") as f:
            raw = edit(json.load(f))
        with open(document, "wb") as f:
            f.write(raw if isinstance(raw, bytes) else json.dumps(raw).encode())
    if chunk:
        file = os.path.join(path, "c/0/0" if fmt == 3 else "0.0")
        with open(file, "rb") as f:
            raw = chunk(f.read())
        with open(file, "wb") as f:
            f.write(raw)
    expected = f"expected/field_{name}.npy"
    os.makedirs(os.path.join(ROOT, "expected"), exist_ok=True)
    np.save(os.path.join(ROOT, expected), np.ascontiguousarray(want))
    CASES.append({"id": f"field/{name}", "path": where, "kind": "array", "zarr_format": fmt, "expected": expected, "shape": list(want.shape), "dtype": want.dtype.str,
                  "features": ["field"], "must": "read", "behaviour": met, "oracle": f"zarr-python {zarr.__version__}"})


def setting(*where, value):
    """An edit that sets a member, or removes it."""

    def edit(doc):
        at = doc
        for k in where[:-1]:
            at = at[k]
        if value is None:
            del at[where[-1]]
        else:
            at[where[-1]] = value
        return doc

    return edit


def text(old, new):
    """An edit of the document's text."""

    def edit(doc):
        raw = json.dumps(doc)
        assert old in raw, (old, raw)
        return raw.replace(old, new).encode()

    return edit


def bom(doc):
    return codecs.BOM_UTF8 + json.dumps(doc).encode()


ints = RNG.integers(0, 1000, (7, 9)).astype("u2")
floats = (RNG.normal(size=(7, 9)) * 50 + 60).astype("f4")

# What only an encoder needs.
array("v2_gzip_level", ints, 2, "gzip level -1, zlib's default", setting("compressor", "level", value=-1), compressors=F.GZip(5))
array("v2_zstd_level", ints, 2, "zstd level 100, as numcodecs' fixtures have it", compressors=F.Zstd(100))
array("v2_zstd_level_fraction", ints, 2, "zstd level 1.0", text('"level": 1', '"level": 1.0'), compressors=F.Zstd(1))
array("v2_blosc_more", ints, 2, "blosc with nthreads and what else a writer notes", setting("compressor", "nthreads", value=8), compressors=F.Blosc("lz4", 5, 1))
array("v2_shuffle_0", ints, 2, "shuffle with elementsize 0, which does nothing", filters=[F.Shuffle(0)])
array("v3_blosc_typesize", ints, 3, "blosc with typesize 0, which its header overrules", setting("codecs", 1, "configuration", "typesize", value=0), compressors=[BloscCodec(cname="zstd", typesize=2, shuffle="shuffle")])
# Numbers in every form.
array("v2_fill_string", ints, 2, "fill value in a string, as old Java writers have it", setting("fill_value", value="0"))
array("v2_shape_fractions", ints, 2, "whole numbers as fractions", text('"shape": [7, 9]', '"shape": [7.0, 9e0]'))
array("v3_checksum_number", ints, 3, "a boolean as 0", setting("codecs", 1, "configuration", "checksum", value=0), compressors=[ZstdCodec(level=1)])
array("v3_fill_hex", floats, 3, "NaN as its bits", setting("fill_value", value="0x7fc00000"), fill_value=np.nan)
# Documents.
array("v2_bom", ints, 2, "a byte order mark", bom)
array("v3_bom", ints, 3, "a byte order mark", bom)
array("v3_attributes_null", ints, 3, "attributes of null", text('"attributes": {}', '"attributes": null'))
array("v2_no_filters", ints, 2, "neither filters nor compressor", lambda d: {k: v for k, v in d.items() if k not in ("filters", "compressor")})
# Chunks.
array("v2_gzip_zeros", ints, 2, "zero bytes behind a gzip member", chunk=lambda b: b + bytes(100), compressors=F.GZip(5))
array("v2_zlib_zeros", ints, 2, "zero bytes behind a zlib stream", chunk=lambda b: b + bytes(100), compressors=F.Zlib(5))
array("v3_gzip_zeros", ints, 3, "zero bytes behind a gzip member", chunk=lambda b: b + bytes(100), compressors=[GzipCodec(level=5)])
# Filters of numcodecs in format 3, in front of "bytes".
FILTERS = [("delta", ints.astype("i4"), [n3.Delta(dtype="int32")]), ("delta_astype", ints, [n3.Delta(dtype="uint16", astype="int32")]),
           ("fixedscaleoffset", floats, [n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int16")]),
           ("quantize", floats.astype("f8"), [n3.Quantize(digits=2, dtype="float64")]), ("bitround", floats, [n3.BitRound(keepbits=5)]),
           ("packbits", ints > 500, [n3.PackBits()]), ("astype", floats, [n3.AsType(encode_dtype="float64", decode_dtype="float32")]),
           ("two", floats, [n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int32"), n3.Delta(dtype="int32")]),
           ("transposed", floats, [TransposeCodec(order=(1, 0)), n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int32")])]
for name, data, filters in FILTERS:
    array(f"v3_filter_{name}", data, 3, "a filter of numcodecs in front of bytes", filters=filters, compressors=[ZstdCodec(level=1)])
inner = ShardingCodec(chunk_shape=(2, 5), codecs=[n3.FixedScaleOffset(offset=3, scale=2, dtype="float32", astype="int16"), BytesCodec(), ZstdCodec(level=1)])
array("v3_filter_in_shards", floats, 3, "a filter of numcodecs in the chunks of a shard", serializer=inner)
# New codecs and grids, by the text of zarr-extensions: what is stored is an array of bytes, or one in regular chunks.
stored = RNG.integers(0, 256, (7, 9)).astype("u1")


def converted(codec_list, dtype):
    def edit(doc):
        doc["data_type"], doc["codecs"] = dtype, codec_list + doc["codecs"]
        return doc

    return edit


cast = {"name": "cast_value", "configuration": {"data_type": "uint8", "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}}
array("v3_scale_offset", stored, 3, "scale_offset and cast_value: the third example of scale_offset's text",
      converted([{"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.1}}, cast], "float64"), want=np.where(stored == 0, np.nan, stored / 0.1 + -10.0))
array("v3_scale_offset_integers", stored, 3, "scale_offset and cast_value: the second example",
      converted([{"name": "scale_offset", "configuration": {"offset": 1000}}, {"name": "cast_value", "configuration": {"data_type": "uint8"}}], "uint16"), want=stored.astype("u2") + np.uint16(1000))
array("v3_rectilinear", stored, 3, "a rectilinear grid whose chunks have one shape",
      setting("chunk_grid", value={"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [4, [[5, 2]]]}}))

with zipfile.ZipFile(os.path.join(HERE, "field.zip"), "w", zipfile.ZIP_DEFLATED) as z:
    for folder, _, files in sorted(os.walk(ROOT)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                z.writestr(zipfile.ZipInfo(os.path.relpath(path, ROOT)), f.read(), zipfile.ZIP_DEFLATED)
shutil.rmtree(ROOT)
manifest = os.path.join(HERE, "manifest.json")
with open(manifest) as f:
    m = json.load(f)
m["cases"] = [c for c in m["cases"] if not c["id"].startswith("field/")] + CASES
m["count"] = len(m["cases"])
with open(manifest, "w") as f:
    json.dump(m, f, indent=1)
print(len(CASES), "cases")
