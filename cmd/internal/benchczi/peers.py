"""Other programs that read CZI files, for bench-czi, which asks them by the lines of JSON that benchkit/asked.py
describes. The libraries are used as their documentation shows; several threads are a pool of Python's.

WHO: aicspylibczi, pylibCZIrw, czifile, bioio-czi.

    {"do": "check", "op": OP, "file": …, "tiles": [TILE, …], "plane": PLANE, "overlap": BOOL}   → {"ck": N}
    {"do": "read", … the same}                    → {"s": …, "cpu": …, "hwm": bytes}

OP is "tiles", which reads the pixels of each tile and drops them; "mosaic", which puts the tiles of PLANE together; or
"open", which opens the file and reads where its tiles lie. A TILE is {"x", "y", "w", "h", "at": {"C": c, "M": m, …}, "n": number of the
sub-block}, "at" having the dimensions that it has; a PLANE is {"x", "y", "w", "h", "C", "Z", "T"}. overlap: some tiles do.

The checksum of tiles is the sum of (2k + 1) × CRC-32 of the pixels of tile k, modulo 2^32, samples in the order of the file (blue, green,
red), little-endian; of a mosaic it is that of one tile; of open the sum of x + 3y + 5w + 7h of all tiles of level 0.
"""

import zlib
from concurrent.futures import ThreadPoolExecutor

import asked


def library(who, threads, in_flight=0):
    """The library of that name."""
    asked.environment(threads)
    return {"aicspylibczi": Aicspylibczi, "pylibCZIrw": PylibCZIrw, "czifile": Czifile, "bioio-czi": BioioCzi}[who](threads)


class Base:
    def __init__(self, threads):
        import numpy

        self.np, self.threads = numpy, threads

    def prepare(self, f, q):
        """What tile() needs and no user's time goes to."""

    def close(self, f):
        pass

    def tiles(self, q, take=None):
        """Opens the file and reads its tiles."""
        f = self.open(q["file"])
        self.prepare(f, q)

        def one(k):
            data = self.tile(f, q["tiles"][k])
            if take:
                take(k, data)

        if self.threads == 1:
            for k in range(len(q["tiles"])):
                one(k)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                for _ in pool.map(one, range(len(q["tiles"]))):
                    pass
        self.close(f)

    def mosaic(self, q, take=None):
        """Opens the file and puts a plane together."""
        f = self.open(q["file"])
        data = self.plane(f, q["plane"])
        if take:
            take(0, data)
        self.close(f)

    def checksum(self, data):
        data = self.np.squeeze(self.np.asarray(data))
        return zlib.crc32(self.np.ascontiguousarray(data.astype(data.dtype.newbyteorder("<"))).tobytes())


class Aicspylibczi(Base):
    """aicspylibczi, one image for each tile."""

    def __init__(self, threads):
        super().__init__(threads)
        import aicspylibczi
        from importlib.metadata import version

        self.CziFile, self.version = aicspylibczi.CziFile, version("aicspylibczi")

    def open(self, path):
        return self.CziFile(path)

    def boxes(self, f):
        every = f.get_all_mosaic_tile_bounding_boxes() if f.is_mosaic() else f.get_all_tile_bounding_boxes()
        return [(b.x, b.y, b.w, b.h) for b in every.values()]

    def prepare(self, f, q):
        self.dims = f.dims

    def tile(self, f, tile):
        return f.read_image(**{d: i for d, i in tile["at"].items() if d in self.dims})[0]

    def plane(self, f, p):
        if not f.is_mosaic():
            raise ValueError("puts the tiles of files with mosaic indexes together only")
        return f.read_mosaic((p["x"], p["y"], p["w"], p["h"]), scale_factor=1.0, **{d: p[d] for d in "CZT" if d in f.dims})


class PylibCZIrw(Base):
    """pylibCZIrw, which reads regions: a tile is the region that it lies in."""

    def __init__(self, threads):
        super().__init__(threads)
        from importlib.metadata import version

        from pylibCZIrw import czi

        self.czi, self.version = czi, version("pylibCZIrw")

    def open(self, path):
        self.held = self.czi.open_czi(path)
        return self.held.__enter__()

    def close(self, f):
        self.held.__exit__(None, None, None)

    def boxes(self, f):
        out = []

        def one(_, info):
            r, size = info.logicalRect, info.physicalSize
            if (r.w, r.h) == (size.w, size.h):
                out.append((r.x, r.y, r.w, r.h))
            return True

        f.enumerate_subblocks(one)
        return out

    def prepare(self, f, q):
        if q["overlap"]:
            raise ValueError("reads regions, no single tiles, and these overlap")

    def tile(self, f, tile):
        return f.read(roi=(tile["x"], tile["y"], tile["w"], tile["h"]), plane={d: i for d, i in tile["at"].items() if d in "CZTRIHVB"}, scene=tile["at"].get("S"))

    def plane(self, f, p):
        return f.read(roi=(p["x"], p["y"], p["w"], p["h"]), plane={d: p[d] for d in "CZT"})


class Czifile(Base):
    """czifile, which turns colours around to red, green, blue."""

    def __init__(self, threads):
        super().__init__(threads)
        import czifile

        self.CziFile, self.version = czifile.CziFile, czifile.__version__

    def open(self, path):
        return self.CziFile(path)

    def close(self, f):
        f.close()

    def boxes(self, f):
        return [self.box(e) for e in f.filtered_subblock_directory if e.pyramid_type == 0]

    def box(self, e):
        at = {d.dimension: d for d in e.dimension_entries}
        return at["X"].start, at["Y"].start, at["X"].size, at["Y"].size

    def prepare(self, f, q):
        self.entries = f.subblock_directory
        f._fh.lock = self.threads > 1  # as its asarray does with several workers

    def tile(self, f, tile):
        try:
            return self.entries[tile["n"]].data_segment().data(resize=False)
        except KeyError as e:
            raise ValueError(f"has no decoder for compression {e.args[0]}") from None

    def plane(self, f, p):
        raise ValueError("puts whole files together only, no planes")

    def checksum(self, data):
        data = self.np.squeeze(self.np.asarray(data))
        if data.ndim == 3 and data.shape[2] == 3:
            data = data[..., ::-1]
        return super().checksum(data)


class BioioCzi(Base):
    """bioio-czi, as bioio calls it: tiles by their index, planes as a mosaic."""

    def __init__(self, threads):
        super().__init__(threads)
        from importlib.metadata import version

        from bioio_czi import Reader

        self.Reader, self.version = Reader, version("bioio-czi")

    def open(self, path):
        return self.Reader(path)

    def boxes(self, f):
        raise ValueError("lists the tiles of one plane only, without their sizes")

    def prepare(self, f, q):
        scenes = {t["at"].get("S", 0) for t in q["tiles"]}
        if len(scenes) > 1 and self.threads > 1:
            raise ValueError("has one scene at a time, for all threads")

    def tile(self, f, tile):
        scene = tile["at"].get("S", 0)
        if f.current_scene_index != scene:
            f.set_scene(scene)
        dims = "YXS" if "S" in f.dims.order else "YX"
        return f.get_image_data(dims, **{d: i for d, i in tile["at"].items() if d != "S" and d in f.dims.order})

    def plane(self, f, p):
        if len(f.scenes) > 1 or "M" not in f.dims.order:
            raise ValueError("puts the tiles of one scene with mosaic indexes together only")
        places = f.get_mosaic_tile_positions()
        y, x = (p[d] - min(place[k] for place in places) for k, d in enumerate("yx"))
        data = f.mosaic_xarray_dask_data
        data = data.isel({d: p[d] for d in "CZT" if d in data.dims})
        return data.isel(Y=slice(y, y + p["h"]), X=slice(x, x + p["w"])).data.compute(num_workers=self.threads)


def read(peer, q):
    with asked.Clock() as clock:
        if q["op"] == "open":
            f = peer.open(q["file"])
            peer.boxes(f)
            peer.close(f)
        else:
            getattr(peer, q["op"])(q)
    return clock.answer()


def check(peer, q):
    if q["op"] == "open":
        f = peer.open(q["file"])
        total = sum(x + 3 * y + 5 * w + 7 * h for x, y, w, h in peer.boxes(f))
        peer.close(f)
        return {"ck": total % 2**32}
    sums = {}
    getattr(peer, q["op"])(q, lambda k, data: sums.__setitem__(k, peer.checksum(data)))
    return {"ck": sum((2 * k + 1) * c for k, c in sums.items()) % 2**32}


if __name__ == "__main__":
    asked.serve(library, read=read, check=check)
