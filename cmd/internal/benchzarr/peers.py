"""Other programs that read and write Zarr, for bench-zarr, which asks them by the lines of JSON that
benchkit/asked.py describes. lab/peers.py takes these classes from here. The libraries are used as their
documentation shows.

WHO: zarr, zarr+zarrs, tensorstore, zarr+gpu, kvikio.

    {"do": "check", "array": PATH, "format": 2|3, "shape": […], "boxes": [[start, shape], …], "whole": BOOL}
                                                          → {"ck": N}
    {"do": "read", … the same}                            → {"s": …, "cpu": …, "hwm": bytes}
    {"do": "write", "array": PATH, "format": …, "shape": …, "chunks": …, "shard": … or null, "dtype": …,
     "codec": NAME, "level": N, "data": FILE}             → the same
"""

import os

import asked


def library(who, threads, in_flight=0):
    """The library of that name; in_flight 0 is its own."""
    asked.environment(threads, "RAYON_NUM_THREADS")
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


def region(start, shape):
    return tuple(slice(a, a + n) for a, n in zip(start, shape))


def read(peer, q):
    places = [region(*box) for box in q["boxes"]]
    with asked.Clock() as clock:
        array = peer.open(q["array"], q["format"])
        for place in places:
            data = None  # of the part before
            data = peer.read(array, place)
    answer = clock.answer()
    del data
    return answer


def check(peer, q):
    array = peer.open(q["array"], q["format"])
    return {"ck": asked.checksum(q, lambda start, shape: peer.read(array, region(start, shape)))}


def write(peer, q):
    import numpy

    data = numpy.fromfile(q["data"], dtype=q["dtype"]).reshape(q["shape"])
    with asked.Clock() as clock:
        peer.write(peer.create(q), data)
    return clock.answer()


if __name__ == "__main__":
    asked.serve(library, read=read, check=check, write=write)
