"""The peers of the benchmark: zarr-python, zarr-python with the zarrs codec
pipeline, and tensorstore, with two threads each, on the same arrays.

    peers.py WHO OP PATH [--threads N] [--out DIR --shape … --chunks … --shard … --codec …]

PATH and DIR may be http:// and s3:// addresses; for these Amazon's variables hold.
WHO: zarr, zarr+zarrs, tensorstore. OP: full, random, slab, open, write, mean.
Prints one line of JSON as bench/arrays does. Each library is used as its
documentation shows (the classes are those of bench-zarr); imports and one small read
come before the clock starts.
"""

import argparse
import importlib.util
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


def library(a):
    """The library as bench-zarr uses it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cmd/internal/benchzarr/peers.py")
    spec = importlib.util.spec_from_file_location("benchzarr_peers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.library(a.who, a.threads)


def description(a):
    """The array to be made, as bench-zarr describes it."""
    name, _, level = a.codec.partition(":")
    shuffle = "shuffle"
    if name.endswith("-bit"):
        name, shuffle = name.removesuffix("-bit"), "bitshuffle"
    return {"array": a.out, "format": 3, "shape": a.shape, "chunks": a.chunks, "shard": a.shard, "dtype": "float32",
            "codec": name, "level": int(level or 0), "shuffle": shuffle}  # fmt: skip


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
    peer = library(a)
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
            peer.write(peer.create(description(a)), data)
        nbytes = data.nbytes
    else:
        raise SystemExit(f"peers.py: unknown operation {a.op!r}")
    hwm = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"s": clock.s, "cpu_s": clock.cpu, "bytes": nbytes, "hwm_kb": hwm, "ck": ck}))


main()
