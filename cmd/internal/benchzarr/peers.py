"""Other programs that read and write Zarr, for bench-zarr, which starts this script
for each of them and asks it to do one thing after the other. bench/peers.py has its
classes from here.

    python peers.py WHO THREADS IN_FLIGHT

WHO: zarr, zarr+zarrs, tensorstore, zarr+gpu, kvikio. A request is a line of JSON, and
so is the answer. The libraries are used as their documentation shows. Imports come
before the clock starts, and so does what looks at the result.

    {"do": "hello"}                                       → {"version": …} or {"missing": …}
    {"do": "check", "array": PATH, "format": 2|3, "shape": […], "boxes": [[start, shape], …], "whole": BOOL}
                                                          → {"ck": N}
    {"do": "read", … the same}                            → {"s": …, "cpu": …, "hwm": bytes}
    {"do": "write", "array": PATH, "format": …, "shape": …, "chunks": …, "shard": … or null, "dtype": …,
     "codec": NAME, "level": N, "data": FILE}             → the same
"""

import json
import os
import sys
import time

WHOLE_STEP, BOX_STEP = 65537, 4097


def library(who, threads, in_flight=0):
    """The library of that name; in_flight 0 is its own."""
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "NUMCODECS_NUM_THREADS", "KVIKIO_NTHREADS"):
        os.environ[name] = str(threads)
    return Tensorstore(threads, in_flight) if who == "tensorstore" else Zarr(who, threads, in_flight)


class Zarr:
    """zarr-python; with zarrs its codec pipeline is that of the zarrs crate."""

    gpu, store = False, None

    def __init__(self, who, threads, in_flight):
        import zarr

        self.zarr, self.version = zarr, zarr.__version__
        zarr.config.set({"threading.max_workers": threads})
        if in_flight:
            zarr.config.set({"async.concurrency": in_flight})
        if who == "zarr+zarrs":
            import zarrs

            self.version += ", zarrs " + getattr(zarrs, "__version__", "?")
            zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        elif who in ("zarr+gpu", "kvikio"):
            import cupy

            self.gpu, self.cupy = True, cupy
            cupy.cuda.runtime.getDevice()  # says so where there is none
            zarr.config.enable_gpu()
            if who == "kvikio":
                import kvikio
                import kvikio.zarr

                self.store = kvikio.zarr.GDSStore
                self.version = kvikio.__version__ + ", zarr " + self.version

    def open(self, path, _format=3):
        if self.store:
            path = self.store(path)
        return self.zarr.open_array(path, mode="r")

    def read(self, array, region):
        data = array[region]
        if self.gpu:
            self.cupy.cuda.Device().synchronize()
        return data

    def create(self, q):
        c, level = self.zarr.codecs, q["level"]
        name, _, inner = q["codec"].partition("-")
        if q["format"] == 2:
            import numcodecs as n

            one = {
                "raw": lambda: None,
                "zstd": lambda: n.Zstd(level=level),
                "lz4": lambda: n.LZ4(acceleration=max(level, 1)),
                "gzip": lambda: n.GZip(level=level),
                "blosc": lambda: n.Blosc(cname=inner, clevel=level, shuffle=n.Blosc.SHUFFLE),
            }[name]()
            compressors = [one] if one is not None else None
        else:
            import numpy

            size = numpy.dtype(q["dtype"]).itemsize
            compressors = {
                "raw": lambda: [],
                "zstd": lambda: [c.ZstdCodec(level=level)],
                "gzip": lambda: [c.GzipCodec(level=level)],
                "blosc": lambda: [c.BloscCodec(typesize=size, cname=inner, clevel=level, shuffle="shuffle")],
            }[name]()
        return self.zarr.create_array(
            q["array"], shape=q["shape"], chunks=q["chunks"], shards=q["shard"], dtype=q["dtype"],
            compressors=compressors, zarr_format=q["format"],
        )

    def write(self, array, data):
        array[...] = data


class Tensorstore:
    gpu = False

    def __init__(self, threads, in_flight):
        import tensorstore as ts
        from importlib.metadata import version

        self.ts, self.version = ts, version("tensorstore")
        limits = {"data_copy_concurrency": {"limit": threads}}
        if in_flight:
            limits["file_io_concurrency"] = {"limit": in_flight}
        self.context = ts.Context(limits)

    @staticmethod
    def place(path):
        scheme, has, rest = path.partition("://")
        if not has:
            return {"driver": "file", "path": os.path.abspath(path)}
        if scheme == "file":
            return {"driver": "file", "path": rest}
        if scheme == "s3":
            bucket, _, key = rest.partition("/")
            spec = {"driver": "s3", "bucket": bucket, "path": key.rstrip("/") + "/"}
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
            if endpoint:
                spec["endpoint"] = endpoint
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            return spec | ({"aws_region": region} if region else {})
        host, _, key = rest.partition("/")
        return {"driver": "http", "base_url": f"{scheme}://{host}", "path": "/" + key.rstrip("/") + "/"}

    def open(self, path, fmt=3):
        spec = {"driver": "zarr3" if fmt == 3 else "zarr", "kvstore": self.place(path)}
        return self.ts.open(spec, open=True, read=True, context=self.context).result()

    def read(self, array, region):
        return array[region].read().result()

    def create(self, q):
        import numpy

        level = q["level"]
        name, _, inner = q["codec"].partition("-")
        dtype = numpy.dtype(q["dtype"])
        shuffle = q.get("shuffle", "shuffle")
        blosc = {"cname": inner, "clevel": level, "shuffle": shuffle, "typesize": dtype.itemsize, "blocksize": 0}
        if q["format"] == 2:
            one = {
                "raw": None,
                "zstd": {"id": "zstd", "level": level},
                "gzip": {"id": "gzip", "level": level},
                "blosc": {"id": "blosc", "cname": inner, "clevel": level, "shuffle": 1},
            }[name]
            meta = {"shape": q["shape"], "chunks": q["chunks"], "dtype": dtype.str, "compressor": one, "fill_value": 0}
            spec = {"driver": "zarr", "kvstore": self.place(q["array"]), "metadata": meta}
            return self.ts.open(spec, create=True, context=self.context).result()
        codecs = {
            "raw": [],
            "zstd": [{"name": "zstd", "configuration": {"level": level}}],
            "gzip": [{"name": "gzip", "configuration": {"level": level}}],
            "blosc": [{"name": "blosc", "configuration": blosc}],
        }[name]
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}] + codecs
        if q["shard"]:
            codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": q["chunks"], "codecs": codecs}}]
        meta = {
            "shape": q["shape"],
            "data_type": q["dtype"],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": q["shard"] or q["chunks"]}},
            "codecs": codecs,
        }
        spec = {"driver": "zarr3", "kvstore": self.place(q["array"]), "metadata": meta}
        return self.ts.open(spec, create=True, context=self.context).result()

    def write(self, array, data):
        array.write(data).result()


class Clock:
    def __enter__(self):
        try:  # from here on the process's peak is a new one, where the system lets it be
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
        except OSError:
            pass
        self.t, self.c = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.s, self.cpu = time.perf_counter() - self.t, time.process_time() - self.c

    def answer(self):
        hwm = 0
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    hwm = int(line.split()[1]) << 10
        return {"s": self.s, "cpu": self.cpu, "hwm": hwm}


def regions(q):
    return [tuple(slice(a, a + n) for a, n in zip(start, shape)) for start, shape in q["boxes"]]


def read(peer, q):
    places = regions(q)
    with Clock() as clock:
        array = peer.open(q["array"], q["format"])
        for region in places:
            data = None  # of the part before
            data = peer.read(array, region)
    answer = clock.answer()
    del data
    return answer


def samples(data, index):
    """The bytes of elements as unsigned numbers."""
    flat = data.reshape(-1)[index]
    size = flat.dtype.itemsize
    flat = numpy.ascontiguousarray(flat.astype(flat.dtype.newbyteorder("<")))
    if size > 8:
        return flat.view("<u8").reshape(-1, 2).sum(axis=1, dtype=numpy.uint64)
    return flat.view(f"<u{size}").astype(numpy.uint64)


def check(peer, q):
    """The checksum as the documentation of bench-zarr defines it."""
    array = peer.open(q["array"], q["format"])
    total = numpy.uint64(0)
    if q["whole"]:
        every = numpy.arange(0, int(numpy.prod(q["shape"], dtype=numpy.int64)), WHOLE_STEP, dtype=numpy.int64)
        at = numpy.unravel_index(every, q["shape"])
    for (start, shape), region in zip(q["boxes"], regions(q)):
        data = peer.read(array, region)
        data = data.get() if peer.gpu else numpy.asarray(data)
        if q["whole"]:
            inside = numpy.ones(len(every), bool)
            for x, a, n in zip(at, start, shape):
                inside &= (x >= a) & (x < a + n)
            k = numpy.nonzero(inside)[0]
            index = numpy.ravel_multi_index([x[k] - a for x, a in zip(at, start)], shape)
        else:
            index = numpy.arange(0, data.size, BOX_STEP)
            k = numpy.arange(len(index))
        with numpy.errstate(over="ignore"):
            total += ((k.astype(numpy.uint64) + numpy.uint64(1)) * samples(data, index)).sum(dtype=numpy.uint64)
    n = int(total)
    return {"ck": (n ^ n >> 32) & 0xFFFFFFFF}


def write(peer, q):
    data = numpy.fromfile(q["data"], dtype=q["dtype"]).reshape(q["shape"])
    with Clock() as clock:
        peer.write(peer.create(q), data)
    return clock.answer()


def main():
    global numpy
    peer = None
    for line in sys.stdin:
        q = json.loads(line)
        try:
            if q["do"] == "hello":
                import numpy

                peer = library(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
                answer = {"version": peer.version}
            else:
                answer = {"check": check, "read": read, "write": write}[q["do"]](peer, q)
        except ImportError as e:
            answer = {"missing": str(e)}
        except KeyError as e:
            answer = {"error": f"has no {e.args[0]}"}
        except Exception as e:  # whatever a library raises is its answer
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
