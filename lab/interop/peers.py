"""The other side of interop: see main.go.

    peers.py check DIR    reads what `interop write DIR` wrote, with every peer
    peers.py write DIR    writes arrays, groups and images with every peer

A peer is a program of its own: zarr-python, zarrs (Rust, through its codec
pipeline for zarr-python) and tensorstore (C++).
"""

import collections
import json
import os
import sys
import warnings

import numpy as np
import tensorstore as ts
import zarr

import peers_write

warnings.simplefilter("ignore")
zarr.config.set({"async.concurrency": 4, "threading.max_workers": 2})


def read_zarr_python(path, case, where):
    return zarr.open_array(path, mode="r", zarr_format=case["format"])[where]


def read_zarrs(path, case, where):
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}), warnings.catch_warnings():
        # else zarrs hands what it does not support back to zarr-python, with a warning
        warnings.filterwarnings("error", message=".*unsupported by ZarrsCodecPipeline")
        return zarr.open_array(path, mode="r", zarr_format=case["format"])[where]


def read_tensorstore(path, case, where):
    spec = {"driver": "zarr" if case["format"] == 2 else "zarr3", "kvstore": {"driver": "file", "path": path + "/"}}
    return ts.open(spec, read=True, open=True).result()[where].read().result()


READERS = {"zarr-python": read_zarr_python, "zarrs": read_zarrs, "tensorstore": read_tensorstore}


def unsupported(peer, path, case):
    """Why a peer, as pinned, cannot read a case; "" when it can."""
    v2 = case["format"] == 2
    with open(os.path.join(path, ".zarray" if v2 else "zarr.json")) as f:
        doc = json.load(f)
    if v2:
        codecs = [*(doc["filters"] or []), *([doc["compressor"]] if doc["compressor"] else [])]
        names = {c["id"] for c in codecs}
        zstd_checksum = any(c["id"] == "zstd" and c.get("checksum") for c in codecs)
    else:
        names = {c["name"] for c in doc["codecs"]}
        for c in doc["codecs"]:
            if c["name"] == "sharding_indexed":
                names |= {inner["name"] for inner in c["configuration"]["codecs"]}
    if peer == "zarrs":
        if v2 and case["big_endian"]:
            return "byte order of format 2"
        if v2 and doc["order"] == "F":
            return "order F of format 2"
        if v2 and zstd_checksum:
            return "zstd with a checksum in format 2"
        if v2 and (missing := names - {"blosc", "gzip", "zlib", "zstd", "bz2", "shuffle", "fixedscaleoffset"}):
            return f"{sorted(missing)[0]} in format 2"
        if v2 and "fixedscaleoffset" in names:
            return "fixedscaleoffset in format 2 (it rounds otherwise than numcodecs, which defines it)"
        if missing := names & {"numcodecs.lz4", "numcodecs.crc32", "numcodecs.adler32"}:
            return sorted(missing)[0]
        if case["big_endian"] and case["dtype"].startswith("complex"):
            return "big-endian complex numbers (it swaps the parts, too)"
    if peer == "tensorstore":
        if v2 and doc["filters"]:
            return "filters"
        if v2 and zstd_checksum:
            return "zstd with a checksum in format 2"
        if v2 and (missing := names - {"blosc", "gzip", "zlib", "zstd", "bz2"}):
            return f"{sorted(missing)[0]} in format 2"
        if missing := [n for n in names if n.startswith("numcodecs.")]:
            return missing[0]
        labels = [n for n in case["dimension_names"] or [] if n]
        if len(set(labels)) < len(labels):
            return "dimension names that repeat"
    return ""


def as_stored(a, dtype):
    """The bytes of an array in C order, little-endian; None if it is of another type."""
    a = np.asarray(a)
    want = np.dtype("bool" if dtype == "bool" else dtype)
    if a.dtype.newbyteorder("=") != want:
        return None
    return np.ascontiguousarray(a, dtype=want.newbyteorder("<")).tobytes()


def inner_box(shape):
    """A part of an array that starts and ends inside chunks."""
    return tuple(slice(n // 4, max(n // 4, n - n // 5)) for n in shape)


def check_array(peer, root, case):
    want = np.fromfile(os.path.join(root, case["values"]), dtype=np.uint8).tobytes()
    path = os.path.join(root, case["path"])
    got = as_stored(READERS[peer](path, case, ...), case["dtype"])
    if got is None:
        return "another data type"
    if got != want:
        return "other values"
    whole = np.frombuffer(want, np.dtype(case["dtype"]).newbyteorder("<")).reshape(case["shape"])
    box = inner_box(case["shape"])
    if case["shape"] and as_stored(READERS[peer](path, case, box), case["dtype"]) != whole[box].tobytes():
        return "other values in a part"
    if peer == "zarr-python":
        a = zarr.open_array(path, mode="r")
        if dict(a.attrs) != (case["attributes"] or {}):
            return f"attributes {dict(a.attrs)}"
        names = list(a.metadata.dimension_names or []) if case["format"] == 3 else []
        if names != (case["dimension_names"] or []):
            return f"dimension names {names}"
    return ""


def check_group(root, case):
    path = os.path.join(root, case["path"])
    g = zarr.open_group(path, mode="r", zarr_format=case["format"], use_consolidated=case["consolidated"])
    if dict(g.attrs) != case["attributes"]:
        return f"attributes {dict(g.attrs)}"
    members = dict(g.members(max_depth=None))
    if sorted(members) != sorted(case["members"]):
        return f"members {sorted(members)}"
    for name, m in members.items():
        if dict(m.attrs) != {"me": name}:
            return f"attributes of {name}: {dict(m.attrs)}"
        if isinstance(m, zarr.Array) and m[...].tolist() != [1, 2, 3]:
            return f"values of {name}"
    if (g.metadata.consolidated_metadata is not None) != case["consolidated"]:
        return "consolidated metadata was not seen"
    return ""


def check(root):
    with open(os.path.join(root, "manifest.json")) as f:
        manifest = json.load(f)
    passed, failed, beyond = collections.Counter(), collections.Counter(), collections.Counter()

    def one(group, path, reason, f, *args):
        if reason:
            beyond[group, reason] += 1
            return
        try:
            problem = f(*args)
        except Exception as e:
            problem = f"{type(e).__name__}: {e}".replace("\n", " ")[:300]
        if problem:
            failed[group] += 1
            print(f"FAIL {group}: {path}: {problem}")
        else:
            passed[group] += 1

    for case in manifest["arrays"]:
        for peer in READERS:
            one(f"{case['group']}, read by {peer}", case["path"], unsupported(peer, os.path.join(root, case["path"]), case), check_array, peer, root, case)
    for case in manifest["groups"]:
        one(f"{case['group']}, read by zarr-python", case["path"], "", check_group, root, case)
    if manifest["images"]:
        import peers_images

        for case in manifest["images"]:
            for name, f in peers_images.CHECKS.items():
                one(f"{case['group']}, {name}", case["path"], "", f, root, case)

    for group in sorted(passed.keys() | failed.keys()):
        print(f"{group:60} {passed[group]:4} passed, {failed[group]} failed")
    for (group, reason), n in sorted(beyond.items()):
        print(f"{group:60} {n:4} not supported by it: {reason}")
    print(f"total: {passed.total()} passed, {failed.total()} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    sys.exit(check(sys.argv[2]) if sys.argv[1] == "check" else peers_write.write(sys.argv[2]))
