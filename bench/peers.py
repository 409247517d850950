"""The peers of the benchmark: zarr-python, zarr-python with the zarrs codec
pipeline, and tensorstore, with two threads each, on the same arrays.

    peers.py WHO OP PATH [--threads N] [--out DIR --shape … --chunks … --shard … --codec …]

PATH and DIR may be http:// and s3:// addresses; for these Amazon's variables hold.
WHO: zarr, zarr+zarrs, tensorstore. OP: full, random, slab, open, write, mean.
Prints one line of JSON as bench/arrays does. Each library is used as its
documentation shows; imports and one small read come before the clock starts.
"""

import argparse
import json
import os
import resource
import time

import numpy as np


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("who", choices=["zarr", "zarr+zarrs", "tensorstore"])
    p.add_argument("op")
    p.add_argument("path")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--edge", type=int, default=64)
    p.add_argument("--out")
    p.add_argument("--codec", default="raw")
    ints = lambda s: tuple(int(x) for x in s.split(","))
    p.add_argument("--shape", type=ints)
    p.add_argument("--chunks", type=ints)
    p.add_argument("--shard", type=ints)
    return p.parse_args()


class Zarr:
    def __init__(self, a):
        import zarr

        self.zarr, self.a = zarr, a
        zarr.config.set({"threading.max_workers": a.threads})
        if a.who == "zarr+zarrs":
            import zarrs  # noqa: F401

            zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def open(self, path):
        return self.zarr.open_array(path, mode="r")

    def read(self, array, region):
        return array[region]

    def create(self, a):
        c = self.zarr.codecs
        compressors = {
            "raw": [],
            "zstd:3": [c.ZstdCodec(level=3)],
            "blosc-zstd:1": [c.BloscCodec(typesize=4, cname="zstd", clevel=1, shuffle="shuffle")],
        }[a.codec]
        return self.zarr.create_array(
            a.out, shape=a.shape, chunks=a.chunks, shards=a.shard, dtype="float32", compressors=compressors, zarr_format=3
        )

    def write(self, array, data):
        array[...] = data


class Tensorstore:
    def __init__(self, a):
        import tensorstore as ts

        self.ts = ts
        self.context = ts.Context({"data_copy_concurrency": {"limit": a.threads}})

    def kvstore(self, path):
        if path.startswith("http://"):
            return {"driver": "http", "base_url": path + "/"}
        if path.startswith("s3://"):
            bucket, _, key = path.removeprefix("s3://").partition("/")
            endpoint, region = os.environ["AWS_ENDPOINT_URL_S3"], os.environ["AWS_REGION"]
            return {"driver": "s3", "bucket": bucket, "path": key + "/", "endpoint": endpoint, "aws_region": region}
        return {"driver": "file", "path": os.path.abspath(path)}

    def open(self, path):
        spec = {"driver": "zarr3", "kvstore": self.kvstore(path)}
        return self.ts.open(spec, open=True, read=True, context=self.context).result()

    def read(self, array, region):
        return array[region].read().result()

    def create(self, a):
        blosc = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
        codecs = {
            "raw": [],
            "zstd:3": [{"name": "zstd", "configuration": {"level": 3}}],
            "gzip:5": [{"name": "gzip", "configuration": {"level": 5}}],
            "blosc-zstd:1": [{"name": "blosc", "configuration": blosc}],
            "blosc-lz4:5": [{"name": "blosc", "configuration": blosc | {"cname": "lz4", "clevel": 5}}],
            "blosc-zstd-bit:3": [{"name": "blosc", "configuration": blosc | {"clevel": 3, "shuffle": "bitshuffle"}}],
        }[a.codec]
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}] + codecs
        if a.shard:
            codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": a.chunks, "codecs": codecs}}]
        spec = {
            "driver": "zarr3",
            "kvstore": self.kvstore(a.out),
            "metadata": {
                "shape": a.shape,
                "data_type": "float32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": a.shard or a.chunks}},
                "codecs": codecs,
            },
        }
        return self.ts.open(spec, create=True, context=self.context).result()

    def write(self, array, data):
        array.write(data).result()


class Places:
    """The generator of places of bench/arrays: Knuth's MMIX constants."""

    def __init__(self):
        self.x = 1

    def next(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.x >> 33) % n


class Clock:
    """Sums up what lies between start and stop."""

    def __init__(self):
        self.s = self.cpu = 0.0

    def __enter__(self):
        self.t, self.c = time.perf_counter(), time.process_time()

    def __exit__(self, *_):
        self.s += time.perf_counter() - self.t
        self.cpu += time.process_time() - self.c


def check(data, step):
    return int(data.reshape(-1)[::step].astype(np.uint64).sum())


def main():
    a = arguments()
    peer = Tensorstore(a) if a.who == "tensorstore" else Zarr(a)
    clock, nbytes, ck = Clock(), 0, 0
    if a.op != "write":
        warm = peer.open(a.path)
        peer.read(warm, tuple(slice(0, 1) for _ in warm.shape))
    if a.op == "full":
        with clock:
            array = peer.open(a.path)
            data = peer.read(array, ...)
        nbytes, ck = data.nbytes, check(data, 65537)
    elif a.op == "mean":  # the projection as a user of zarr-python writes it
        with clock:
            mean = peer.read(peer.open(a.path), ...).mean(axis=0)
        nbytes, ck = mean.nbytes, 0
    elif a.op == "random":
        places = Places()
        with clock:
            array = peer.open(a.path)
        for _ in range(40):
            start = [places.next(n - a.edge + 1) for n in array.shape]
            with clock:
                data = peer.read(array, tuple(slice(s, s + a.edge) for s in start))
            nbytes, ck = nbytes + data.nbytes, ck + check(data, 4097)
    elif a.op == "slab":
        with clock:
            array = peer.open(a.path)
        for d, n in enumerate(array.shape):
            at = n // 2 + 1
            region = tuple(slice(at, at + 1) if k == d else slice(None) for k in range(len(array.shape)))
            with clock:
                data = peer.read(array, region)
            nbytes, ck = nbytes + data.nbytes, ck + check(data, 4097)
    elif a.op == "open":
        times = 200
        with clock:
            for _ in range(times):
                array = peer.open(a.path)
        clock.s, clock.cpu, ck = clock.s / times, clock.cpu / times, array.shape[0]
    elif a.op == "write":
        data = np.fromfile(a.path, dtype=np.float32).reshape(a.shape)
        with clock:
            peer.write(peer.create(a), data)
        nbytes = data.nbytes
    else:
        raise SystemExit(f"peers.py: unknown operation {a.op!r}")
    hwm = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"s": clock.s, "cpu_s": clock.cpu, "bytes": nbytes, "hwm_kb": hwm, "ck": ck}))


main()
