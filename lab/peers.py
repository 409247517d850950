"""The peers of the benchmark: zarr-python, zarr-python with the zarrs codec
pipeline, and tensorstore, with two threads each unless told otherwise, on the same arrays.

    peers.py WHO OP PATH [--threads N] [--again N] [--out DIR --shape … --chunks … --shard … --codec …]

PATH and DIR may be http:// and s3:// addresses; credentials come from the AWS_*
environment variables. WHO: zarr, zarr+zarrs, tensorstore. OP: full, random, slab, open,
write. Does OP once, as the first thing after the imports, and then --again times;
prints one line of JSON as lab/arrays does. Each library is used as its documentation
shows (the classes are those of bench-zarr).
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import sys
import time

import numpy as np


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("who", choices=["zarr", "zarr+zarrs", "tensorstore"])
    p.add_argument("op")
    p.add_argument("path")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--again", type=int, default=0)
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
    tools = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cmd/internal")
    sys.path.insert(0, os.path.join(tools, "benchkit"))
    path = os.path.join(tools, "benchzarr/peers.py")
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
    """The generator of places of lab/arrays: Knuth's MMIX constants."""

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
    """The sum of every step-th word of four bytes: of the bits of float32 numbers."""
    return int(data.reshape(-1).view(np.uint32)[::step].sum(dtype=np.uint64))


def full(a, peer, clock):
    with clock:
        data = peer.read(peer.open(a.path), ...)
    return data.nbytes, check(data, 65537)


def boxes(a, peer, clock, regions):
    with clock:
        array = peer.open(a.path)
    nbytes = ck = 0
    for region in regions(array.shape):
        with clock:
            data = peer.read(array, region)
        nbytes, ck = nbytes + data.nbytes, ck + check(data, 4097)
    return nbytes, ck


def random(a, peer, clock):
    places = Places()

    def regions(shape):
        for _ in range(40):
            start = [places.next(n - a.edge + 1) for n in shape]
            yield tuple(slice(s, s + a.edge) for s in start)

    return boxes(a, peer, clock, regions)


def slab(a, peer, clock):
    def regions(shape):
        for d, n in enumerate(shape):
            yield tuple(slice(n // 2 + 1, n // 2 + 2) if k == d else slice(None) for k in range(len(shape)))

    return boxes(a, peer, clock, regions)


def open_again(a, peer, clock):
    """One open of many: the first is not among them."""
    times, first = 200, peer.open(a.path)
    with clock:
        for _ in range(times):
            peer.open(a.path)
    clock.s, clock.cpu = clock.s / times, clock.cpu / times
    return 0, first.shape[0]


def write(a, peer, clock):
    data = np.fromfile(a.path, dtype=np.float32).reshape(a.shape)
    with clock:
        peer.write(peer.create(description(a)), data)
    return data.nbytes, 0


def main():
    a = arguments()
    peer = library(a)
    op = {"full": full, "random": random, "slab": slab, "open": open_again, "write": write}[a.op]
    clocks = []
    for _ in range(1 + a.again):
        clocks.append(Clock())
        nbytes, ck = op(a, peer, clocks[-1])
    out = {"first_s": clocks[0].s} if a.again else {}
    rest = clocks[1:] or clocks
    out |= {"s": statistics.median(c.s for c in rest), "cpu_s": statistics.median(c.cpu for c in rest), "bytes": nbytes, "ck": ck}
    out["hwm_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(out))


main()
