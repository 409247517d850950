"""Other programs that read TIFF, for bench-tiff, which asks them by the lines of JSON that
benchkit/asked.py describes. The requests are those of bench-zarr, where "array" is FILE/pages/N or
FILE/pages/N.K, and "level_of_pyramid" the page's level of the first image, or -1. The libraries are used
as their documentation shows.

WHO: tifffile, cucim, openslide, tensorstore, kvikio, kvikio+gpu.

    {"do": "check", "array": …, "shape": […], "boxes": [[start, shape], …], "whole": BOOL}   → {"ck": N}
    {"do": "read", … the same}                    → {"s": …, "cpu": …, "hwm": bytes}
    {"do": "copy", "source": FILE/pages/N, "array": PATH, "format": …, "chunks": …, "codec": NAME, "level": N, …}   → the same
"""

import os

import asked


def library(who, threads, in_flight=0):
    """The library of that name."""
    asked.environment(threads, "TIFFFILE_NUM_THREADS", "BLOSC_NTHREADS")
    return {"tifffile": Tifffile, "cucim": Cucim, "openslide": Openslide, "tensorstore": Tensorstore, "kvikio": Kvikio,
            "kvikio+gpu": KvikioGPU}[who](threads, in_flight)  # fmt: skip


class Page:
    """A page of a file, and what is asked of it."""

    def __init__(self, q, key="array"):
        self.path, _, name = q[key].rpartition("/pages/")
        n, _, sub = name.partition(".")
        self.page, self.sub = int(n), int(sub) if sub else None
        self.shape, self.level = q["shape"], q.get("level_of_pyramid", 0)


class Base:
    def read(self, opened, start, shape):
        raise NotImplementedError

    def looked_at(self, data):
        """What a checksum is made of."""
        return data

    def boxes(self, q):
        """The boxes of a request, as (y, x) and (h, w): the other axes are whole."""
        for start, shape in q["boxes"]:
            if len(shape) > 3 or len(shape) == 3 and shape[2] != q["shape"][2]:
                raise ValueError("is asked for rows and columns of pixels only")
            yield start, shape


class Tifffile(Base):
    """tifffile, with the codecs of imagecodecs; regions by the Zarr store that it shows a page as."""

    def __init__(self, threads, _):
        import tifffile
        import zarr

        self.t, self.zarr, self.threads = tifffile, zarr, threads
        self.version = tifffile.__version__
        try:
            import imagecodecs

            self.version += ", imagecodecs " + imagecodecs.__version__
        except ImportError:
            self.version += ", without imagecodecs"
        zarr.config.set({"threading.max_workers": threads})

    def open(self, page):
        file = self.t.TiffFile(page.path)
        p = file.pages[page.page]
        return (file, p if page.sub is None else p.pages[page.sub]), page

    def read(self, opened, start, shape):
        (file, p), page = opened
        if list(shape) == list(page.shape):
            return p.asarray(maxworkers=self.threads)
        z = self.zarr.open(p.aszarr(maxworkers=self.threads), mode="r")
        return z[tuple(slice(a, a + n) for a, n in zip(start, shape))]

    def copy(self, page, q):
        create(self.zarr, q)[...] = self.open(page)[0][1].asarray(maxworkers=self.threads)


class Cucim(Base):
    """cuCIM on the CPU, without its cache."""

    def __init__(self, threads, _):
        import numpy
        import cucim
        from cucim import CuImage

        self.np, self.image, self.threads, self.version = numpy, CuImage, threads, cucim.__version__

    def open(self, page):
        if page.level < 0 or page.sub is not None:
            raise ValueError("reads levels of a pyramid only")
        image = self.image(page.path)
        if page.level >= image.resolutions["level_count"]:
            raise ValueError(f"sees {image.resolutions['level_count']} levels")
        return image, page

    def read(self, opened, start, shape):
        image, page = opened
        whole = list(shape) == list(page.shape)
        if page.level and not whole:
            raise ValueError("places of a lower level are in pixels of level 0")
        more = {"num_workers": self.threads} if self.threads > 1 and whole else {}
        return self.np.asarray(image.read_region((start[1], start[0]), (shape[1], shape[0]), level=page.level, **more))

    def copy(self, page, q):
        import zarr

        create(zarr, q)[...] = self.read(self.open(page), [0, 0, 0], q["shape"])


class Openslide(Base):
    """OpenSlide, which knows no threads; its RGBA pixels lose their opacity where the result is looked at."""

    def __init__(self, _threads, _in_flight):
        import numpy
        import openslide

        self.np, self.o = numpy, openslide
        self.version = f"{openslide.__version__}, library {openslide.__library_version__}"

    def open(self, page):
        if page.level < 0 or page.sub is not None or len(page.shape) != 3 or page.shape[2] != 3:
            raise ValueError("reads RGB levels of a pyramid only")
        slide = self.o.OpenSlide(page.path)
        if page.level >= slide.level_count:
            raise ValueError(f"sees {slide.level_count} levels")
        return slide, page

    def read(self, opened, start, shape):
        slide, page = opened
        if page.level and list(shape) != list(page.shape):
            raise ValueError("places of a lower level are in pixels of level 0")
        return self.np.asarray(slide.read_region((start[1], start[0]), page.level, (shape[1], shape[0])))

    def looked_at(self, data):
        return data[..., :3]


class Tensorstore(Base):
    """tensorstore; what it copies, tifffile reads: its own driver, as of 0.1.86, mixes up the samples of RGB tiles."""

    def __init__(self, threads, in_flight):
        import tensorstore as ts
        from importlib.metadata import version

        self.ts, self.version, self.threads = ts, version("tensorstore"), threads
        limits = {"data_copy_concurrency": {"limit": threads}}
        if in_flight:
            limits["file_io_concurrency"] = {"limit": in_flight}
        self.context = ts.Context(limits)

    def open(self, page):
        if page.sub is not None:
            raise ValueError("reads pages of the file only, no sub-IFDs")
        spec = {"driver": "tiff", "kvstore": {"driver": "file", "path": os.path.abspath(page.path)}, "page": page.page}
        return self.ts.open(spec, open=True, read=True, context=self.context).result(), page

    def read(self, opened, start, shape):
        region = tuple(slice(a, a + n) for a, n in zip(start, shape))
        return opened[0][region].read().result()

    def copy(self, page, q):
        import numpy
        import tifffile

        with tifffile.TiffFile(page.path) as file:
            p = file.pages[page.page]
            data = (p if page.sub is None else p.pages[page.sub]).asarray(maxworkers=self.threads)
        dtype = numpy.dtype(q["dtype"])
        name, _, inner = q["codec"].partition("-")
        v2 = q["format"] == 2
        if name == "lz4":
            raise ValueError("has no codec lz4; blosc-lz4 is")
        one = {
            "raw": lambda: None,
            "zstd": lambda: ("zstd", {"level": q["level"]}),
            "gzip": lambda: ("gzip", {"level": q["level"]}),
            "blosc": lambda: ("blosc", {"cname": inner, "clevel": q["level"], "shuffle": 1 if v2 else "shuffle", "blocksize": 0}),
        }[name]()
        kvstore = {"driver": "file", "path": os.path.abspath(q["array"])}
        if v2:
            meta = {"shape": q["shape"], "chunks": q["chunks"], "dtype": dtype.str, "fill_value": 0,
                    "compressor": one and {"id": {"gzip": "zlib"}.get(one[0], one[0])} | one[1]}  # fmt: skip
            spec = {"driver": "zarr", "kvstore": kvstore, "metadata": meta}
        else:
            if one and one[0] == "blosc":
                one[1]["typesize"] = dtype.itemsize
            codecs = [{"name": "bytes", "configuration": {"endian": "little"}}] + ([{"name": one[0], "configuration": one[1]}] if one else [])
            meta = {"shape": q["shape"], "data_type": q["dtype"], "codecs": codecs,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": q["chunks"]}}}  # fmt: skip
            spec = {"driver": "zarr3", "kvstore": kvstore, "metadata": meta}
        self.ts.open(spec, create=True, context=self.context).result().write(data).result()


class Kvikio(Base):
    """KvikIO, as cuCIM's examples use it: uncompressed tiles, several at a time, then to their rows."""

    def __init__(self, threads, in_flight):
        import kvikio
        import kvikio.defaults
        import numpy
        import tifffile

        self.k, self.t, self.np, self.version = kvikio, tifffile, numpy, kvikio.__version__
        self.buffers = in_flight or 2 * threads
        self.prepare()

    def prepare(self):
        pass

    def open(self, page):
        file = self.t.TiffFile(page.path)
        p = file.pages[page.page]
        p = p if page.sub is None else p.pages[page.sub]
        if p.compression != 1 or not p.is_tiled:
            raise ValueError("reads uncompressed tiles only")
        return p, page

    def read(self, opened, start, shape):
        p, page = opened
        if list(shape) != list(page.shape):
            raise ValueError("reads whole levels only")
        np, side = self.np, (p.tilelength, p.tilewidth, p.samplesperpixel)
        out = np.empty((p.imagelength, p.imagewidth, p.samplesperpixel), p.dtype)
        tiles = [np.empty(side, p.dtype) for _ in range(self.buffers)]
        across = -(-p.imagewidth // p.tilewidth)
        n = len(p.dataoffsets)
        with self.k.CuFile(page.path, "r") as f:
            for first in range(0, n, self.buffers):
                some = range(first, min(first + self.buffers, n))
                waiting = [f.pread(tiles[i - first], p.databytecounts[i], p.dataoffsets[i]) for i in some]
                for i, w in zip(some, waiting):
                    w.get()
                    y, x = i // across * p.tilelength, i % across * p.tilewidth
                    h, w = min(p.tilelength, p.imagelength - y), min(p.tilewidth, p.imagewidth - x)
                    out[y : y + h, x : x + w] = tiles[i - first][:h, :w]
        return out.reshape(shape)


class KvikioGPU(Kvikio):
    def prepare(self):
        import cupy

        cupy.cuda.runtime.getDevice()  # says so where there is none
        self.np, self.cupy = cupy, cupy

    def read(self, opened, start, shape):
        out = super().read(opened, start, shape)
        self.cupy.cuda.Device().synchronize()
        return out


def create(zarr, q):
    """An array of zarr-python."""
    name, _, inner = q["codec"].partition("-")
    level = q["level"]
    if q["format"] == 2:
        import numcodecs as n

        one = {
            "raw": lambda: None,
            "zstd": lambda: n.Zstd(level=level),
            "lz4": lambda: n.LZ4(acceleration=max(level, 1)),
            "gzip": lambda: n.GZip(level=level),
            "blosc": lambda: n.Blosc(cname=inner, clevel=level, shuffle=n.Blosc.SHUFFLE),
        }[name]()
    else:
        c = zarr.codecs

        def lz4():
            from zarr.codecs.numcodecs import LZ4

            return LZ4(acceleration=max(level, 1))

        one = {
            "raw": lambda: None,
            "zstd": lambda: c.ZstdCodec(level=level),
            "lz4": lz4,
            "gzip": lambda: c.GzipCodec(level=level),
            "blosc": lambda: c.BloscCodec(cname=inner, clevel=level, shuffle="shuffle"),
        }[name]()
    return zarr.create_array(q["array"], shape=q["shape"], chunks=q["chunks"], dtype=q["dtype"], compressors=one, zarr_format=q["format"])


def read(peer, q):
    boxes = list(peer.boxes(q))
    page = Page(q)
    with asked.Clock() as clock:
        opened = peer.open(page)
        for start, shape in boxes:
            data = None  # of the part before
            data = peer.read(opened, start, shape)
    answer = clock.answer()
    del data
    return answer


def copy(peer, q):
    page = Page(q, "source")
    with asked.Clock() as clock:
        peer.copy(page, q)
    return clock.answer()


def check(peer, q):
    opened = peer.open(Page(q))
    list(peer.boxes(q))  # says what it is not asked for
    return {"ck": asked.checksum(q, lambda start, shape: peer.looked_at(peer.read(opened, start, shape)))}


if __name__ == "__main__":
    asked.serve(library, read=read, check=check, copy=copy)
