"""Tiles in files, as microscopes write them.

    peers_tiles.py DIR BIN    DIR is an empty folder, BIN the folder of the programs

tifffile, Pillow and numpy write folders of tiles; the mosaic grids that the program mosaic makes of them must hold the
same voxels, read by zarr-python, at the places, with the voxel sizes and with the positions that the files were written with.
"""

import collections
import itertools
import json
import os
import struct
import subprocess
import sys

import numpy as np
import tifffile
import zarr
from PIL import Image

DIR, BIN = sys.argv[1], sys.argv[2]
RNG = np.random.default_rng(11)
PASSED, FAILED = collections.Counter(), collections.Counter()
ROWS, COLS = 3, 4
TIFF = dict(photometric="minisblack")


def picture(dtype, *shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return RNG.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def case(name, check):
    group = name.split(":")[0]
    try:
        check()
        PASSED[group] += 1
    except Exception as e:  # whatever is wrong, the others are tried
        FAILED[group] += 1
        print(f"{name}: {type(e).__name__}: {e}")


def mosaic(folder, pattern, *args, voxel=(3, 0.5, 0.25), code=0):
    """Runs mosaic; returns level 0, the image's attributes, and the positions or None."""
    out = os.path.join(DIR, "out.ome.zarr")
    given = ["--voxel_size", ",".join(map(str, voxel))] if voxel else []
    p = subprocess.run([os.path.join(BIN, "mosaic"), folder, out, "--pattern", pattern, "-q", "-f", *given, *map(str, args)], capture_output=True, text=True)
    assert p.returncode == code, f"exit {p.returncode}: {p.stderr.strip()}"
    if code:
        return p.stderr
    group = zarr.open_group(out, mode="r")
    positions = os.path.join(DIR, "out_positions.json")
    found = None
    if os.path.exists(positions):
        found = {tuple(t["tile"]): tuple(t["position_um"]) for t in json.load(open(positions))["positions"]}
        os.remove(positions)
    return group["0"][...], dict(group.attrs), found


def assembled(tiles):
    """The mosaic of tiles by place; what is missing is 0."""
    rows, cols = (1 + max(p[d] for p in tiles) for d in range(2))
    one = next(iter(tiles.values()))
    h, w = one.shape[-2:]
    out = np.zeros((*one.shape[:-2], rows * h, cols * w), one.dtype)
    for (i, j), t in tiles.items():
        out[..., i * h : (i + 1) * h, j * w : (j + 1) * w] = t
    return out


def same(got, want):
    want = want.reshape(got.shape) if want.size == got.size and want.ndim < got.ndim else want
    assert got.shape == want.shape and got.dtype == want.dtype.newbyteorder("="), f"{got.shape} {got.dtype}, want {want.shape} {want.dtype}"
    assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), f"{np.sum(got != want)} of {got.size} voxels differ"


def scale(attributes):
    return tuple(attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"])


def folder(name):
    path = os.path.join(DIR, name)
    os.makedirs(path)
    return path


PLACES = list(itertools.product(range(ROWS), range(COLS)))


def kinds():
    """Every type and encoding, as one file per tile."""

    def tiff(dtype, shape, **how):
        def write(path, a):
            tifffile.imwrite(path, a, **{**TIFF, **how})

        return write, ".tif", lambda: picture(dtype, *shape), []

    def pillow(make, ending=".png", **how):
        return lambda path, a: Image.fromarray(a).save(path, **how), ending, make, []

    def npy(dtype, *shape, axes=None):
        return lambda path, a: np.save(path, a.astype(dtype)), ".npy", lambda: picture(np.dtype(dtype).newbyteorder("="), *shape), ["--axes", axes] if axes else []

    flat, deep = (30, 41), (4, 30, 41)
    all = {
        "tiff uint8": tiff("u1", flat), "tiff uint16": tiff("u2", deep), "tiff int16": tiff("i2", deep), "tiff float32": tiff("f4", deep), "tiff float64": tiff("f8", flat),
        "tiff big-endian": tiff("u2", deep, byteorder=">"), "bigtiff": tiff("u2", deep, bigtiff=True), "tiff lzw": tiff("u2", deep, compression="lzw", predictor=True),
        "tiff zstd": tiff("u2", deep, compression="zstd"), "tiff deflate": tiff("f4", deep, compression="zlib", predictor=True), "tiff tiled": tiff("u2", deep, tile=(16, 16)),
        "tiff strips": tiff("u2", deep, rowsperstrip=7), "pillow tiff": pillow(lambda: picture("u1", *flat), ".tif"), "pillow tiff lzw": pillow(lambda: picture("u1", *flat), ".tif", compression="tiff_lzw"),
        "png grey": pillow(lambda: picture("u1", *flat)), "png 16 bits": pillow(lambda: picture("u2", *flat)),
        "npy uint16": npy("u2", *deep), "npy float32": npy("f4", *flat), "npy big-endian": npy(">u2", *deep),
    }  # fmt: skip
    for name, (write, ending, make, args) in all.items():

        def check():
            path, tiles = folder(name.replace(" ", "_")), {}
            for i, j in PLACES:
                tiles[i, j] = make()
                write(os.path.join(path, f"t_{i}_{j}{ending}"), tiles[i, j])
            got, attributes, positions = mosaic(path, "t_{row}_{col}" + ending, *args)
            same(got, assembled(tiles))
            assert scale(attributes) == (3, 0.5, 0.25) and positions is None

        case(f"kinds: {name}", check)


def colours():
    """Samples of pixels become channels, whoever wrote them."""
    writers = {
        "tiff": (lambda p, a: tifffile.imwrite(p, a, photometric="rgb"), ".tif", 3, "u1"),
        "tiff planes": (lambda p, a: tifffile.imwrite(p, np.moveaxis(a, -1, 0), photometric="rgb", planarconfig="separate"), ".tif", 3, "u2"),
        "pillow tiff": (lambda p, a: Image.fromarray(a).save(p), ".tif", 3, "u1"),
        "png": (lambda p, a: Image.fromarray(a).save(p), ".png", 3, "u1"),
        "png with opacity": (lambda p, a: Image.fromarray(a).save(p), ".png", 4, "u1"),
        "npy": (lambda p, a: np.save(p, a), ".npy", 3, "u2"),
    }
    for name, (write, ending, n, dtype) in writers.items():

        def check():
            path, tiles = folder("rgb_" + name.replace(" ", "_")), {}
            for i, j in PLACES:
                a = picture(dtype, 30, 41, n)
                write(os.path.join(path, f"t_{i}_{j}{ending}"), a)
                tiles[i, j] = np.moveaxis(a, -1, 0)[:, None]
            got, attributes, _ = mosaic(path, "t_{row}_{col}" + ending, *(["--axes", "yx"] if ending == ".npy" else []))
            same(got, assembled(tiles))
            assert [a["name"] for a in attributes["ome"]["multiscales"][0]["axes"]] == ["c", "z", "y", "x"]

        case(f"colours: {name}", check)

    def palette():
        path, tiles = folder("palette"), {}
        for i, j in PLACES:
            im = Image.fromarray(picture("u1", 30, 41)).convert("P", palette=Image.Palette.ADAPTIVE, colors=17)
            im.putpalette(picture("u1", 768).tobytes())
            im.save(os.path.join(path, f"t_{i}_{j}.png"))
            tiles[i, j] = np.moveaxis(np.asarray(im.convert("RGB")), -1, 0)[:, None]
        same(mosaic(path, "t_{row}_{col}.png")[0], assembled(tiles))

    case("colours: palette", palette)


def orders():
    """Numbered tiles, in every order, from 0 and from 1, with and without leading zeros."""
    names = itertools.cycle([("t{}.tif", 0), ("t{:03d}.tif", 1), ("t {} ä 層.tif", 1)])
    for columns, snake, start in itertools.product([False, True], [False, True], ["top-left", "top-right", "bottom-left", "bottom-right"]):

        def check():
            path, tiles = folder(f"order_{columns}_{snake}_{start}"), {}
            name, first = next(names)
            lines, along = (COLS, ROWS) if columns else (ROWS, COLS)
            n = first
            for line in range(lines):
                for k in range(along) if not (snake and line % 2) else reversed(range(along)):
                    i, j = (k, line) if columns else (line, k)
                    i = ROWS - 1 - i if "bottom" in start else i
                    j = COLS - 1 - j if "right" in start else j
                    tiles[i, j] = picture("u2", 20, 23)
                    tifffile.imwrite(os.path.join(path, name.format(n)), tiles[i, j], **TIFF)
                    n += 1
            pattern = name.replace("{:03d}", "{}").replace("{}", "{index}")
            args = ["--grid", f"{ROWS},{COLS}", "--order", "columns" if columns else "rows", "--start", start] + (["--snake"] if snake else [])
            same(mosaic(path, pattern, *args)[0], assembled(tiles))

        case(f"orders: columns {columns}, snake {snake}, {start}", check)


def frames():
    """Slices, planes, channels and times in names, in files, and in both."""

    def names():
        path, want = folder("frames"), np.zeros((2, 2, 3, ROWS * 20, COLS * 23), "u2")
        for (i, j), t, c, z in itertools.product(PLACES, range(2), range(2), range(3)):
            a = picture("u2", 20, 23)
            os.makedirs(f"{path}/sl07/c{c * 73 + 488}", exist_ok=True)
            tifffile.imwrite(f"{path}/sl07/c{c * 73 + 488}/r{i}c{j}_t{t}_z{10 * z:04d}.tif", a, **TIFF)
            want[t, c, z, i * 20 : i * 20 + 20, j * 23 : j * 23 + 23] = a
        same(mosaic(path, "sl{slice}/c{c}/r{row}c{col}_t{t}_z{z}.tif")[0], want)

    def hyperstack():
        path, tiles = folder("hyperstack"), {}
        for i, j in PLACES:
            a = picture("u2", 2, 3, 5, 20, 23)  # t, z, c
            tifffile.imwrite(f"{path}/r{i}c{j}.tif", a, imagej=True, resolution=(4, 2), metadata={"axes": "TZCYX", "spacing": 3.0, "unit": "um"})
            tiles[i, j] = np.swapaxes(a, 1, 2)
        got, attributes, _ = mosaic(path, "r{row}c{col}.tif", voxel=None)
        same(got, assembled(tiles))
        assert scale(attributes) == (1, 1, 3, 0.5, 0.25), scale(attributes)

    def channels():
        path, tiles = folder("channels"), {}
        for i, j in PLACES:
            tiles[i, j] = picture("f4", 3, 20, 23)
            tifffile.imwrite(f"{path}/r{i}c{j}.tif", tiles[i, j], **TIFF)
        got, attributes, _ = mosaic(path, "r{row}c{col}.tif", "--axes", "cyx")
        same(got, assembled({p: t[:, None] for p, t in tiles.items()}))
        assert attributes["ome"]["multiscales"][0]["axes"][0]["name"] == "c"

    def both():
        path, tiles = folder("both"), {p: np.zeros((4, 6, 20, 23), "u2") for p in PLACES}
        for (i, j), c, z in itertools.product(PLACES, range(2), range(2)):
            a = picture("u2", 3, 2, 20, 23)  # z, c
            tifffile.imwrite(f"{path}/r{i}c{j}_{c}_{z}.ome.tif", a, metadata={"axes": "ZCYX"})
            tiles[i, j][2 * c : 2 * c + 2, 3 * z : 3 * z + 3] = np.swapaxes(a, 0, 1)
        same(mosaic(path, "r{row}c{col}_{c}_{z}.ome.tif")[0], assembled(tiles))

    for f in names, hyperstack, channels, both:
        case(f"frames: {f.__name__}", f)


def missing():
    path, tiles = folder("missing"), {}
    for i, j in PLACES[:-1]:
        tiles[i, j] = picture("u2", 20, 23) if (i, j) != (1, 1) else np.zeros((20, 23), "u2")
        if (i, j) != (1, 1):
            tifffile.imwrite(f"{path}/r{i}c{j}.tif", tiles[i, j], **TIFF)
    tiles[ROWS - 1, COLS - 1] = np.zeros((20, 23), "u2")
    case("missing: zeros", lambda: same(mosaic(path, "r{row}c{col}.tif", "--grid", "3,4")[0], assembled(tiles)))
    for k, name in enumerate(sorted(os.listdir(path))):
        if k % 3 == 0:
            os.truncate(f"{path}/{name}", os.path.getsize(f"{path}/{name}") * 2 // 3)

    def cut():
        text = mosaic(path, "r{row}c{col}.tif", code=3)
        assert "4 of 10 files cannot be used: r0c0.tif: " in text and text.count("\n") == 1, text

    case("missing: cut off", cut)




def metamorph_stack(path, a, y, x, um=0.5, step=2.0):
    """Writes a MetaMorph stack: one directory, whose private tags say how many planes follow the first."""
    planes, h, w = a.shape
    pixels = a.astype("<u2").tobytes()
    units = b"um\0"
    at = 8
    parts, place = [pixels], {}

    def add(name, data):
        place[name] = at + sum(map(len, parts))
        parts.append(data + b"\0" * (len(data) % 2))

    add("x", struct.pack("<2I", int(um * 1000), 1000))
    add("units", struct.pack("<I", len(units)) + units)
    add("uic1", struct.pack("<8I", 3, 1, 4, place["x"], 5, place["x"], 6, place["units"]))
    add("uic2", struct.pack("<6I", int(step * 1000), 1000, 2451545, 0, 2451545, 0) * planes)
    add("uic3", struct.pack("<2I", 488, 1) * planes)
    stage = struct.pack("<4i", round(x * 1000), 1000, round(y * 1000), 1000)
    add("uic4", struct.pack("<H", 28) + stage * planes + struct.pack("<H", 0))
    entries = [(256, 4, 1, w), (257, 4, 1, h), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, at), (277, 3, 1, 1), (278, 4, 1, h), (279, 4, 1, h * w * 2),
        (33628, 4, 4, place["uic1"]), (33629, 5, planes, place["uic2"]), (33630, 5, planes, place["uic3"]), (33631, 4, planes, place["uic4"])]  # fmt: skip
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries) + b"\0" * 4
    body = b"".join(parts)
    with open(path, "wb") as f:
        f.write(b"II*\0" + struct.pack("<I", at + len(body)) + body + directory)


def metadata():
    """Voxel sizes and positions where microscopes write them."""
    at = {(i, j): (15.0 * i + RNG.normal(), 20.5 * j + RNG.normal()) for i, j in PLACES}  # µm

    def write(name, each):
        path, tiles = folder(name), {}
        for k, (i, j) in enumerate(PLACES):
            tiles[i, j] = picture("u2", 2, 40, 48)
            each(f"{path}/t{k:02d}.tif", tiles[i, j], *at[i, j])
        return path, tiles

    def compare(path, tiles, pattern, size, *args, voxel=None, sign=(1, 1)):
        got, attributes, positions = mosaic(path, pattern, *args, voxel=voxel)
        same(got, assembled(tiles))
        assert scale(attributes) == size, scale(attributes)
        for p in PLACES:
            assert np.allclose(positions[p], np.multiply(at[p], sign), atol=1e-3), f"{p}: {positions[p]}, want {at[p]}"

    def ome(path, a, y, x, unit="µm", per=1.0):
        tifffile.imwrite(path, a, ome=True, metadata={"axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 2.0,
            "Plane": {"PositionX": [x / per] * 2, "PositionY": [y / per] * 2, "PositionXUnit": [unit] * 2, "PositionYUnit": [unit] * 2}})  # fmt: skip

    case("metadata: OME-XML", lambda: compare(*write("ome", ome), "t{index}.tif", (2, 0.5, 0.5)))
    case("metadata: OME-XML in mm", lambda: compare(*write("ome_mm", lambda *a: ome(*a, "mm", 1000)), "t{index}.tif", (2, 0.5, 0.5)))
    case("metadata: OME-XML, reversed", lambda: compare(*write("ome_turned", lambda p, a, y, x: ome(p, a, -y, x)), "t{index}.tif", (2, 0.5, 0.5), "--grid", "3,4"))

    def micro_manager(path, a, y, x):
        text = json.dumps({"XPositionUm": x, "YPositionUm": y, "PixelSizeUm": 0.5}).encode() + b"\0"
        tifffile.imwrite(path, a, **TIFF, extratags=[(51123, 2, len(text), text, True)])

    case("metadata: Micro-Manager", lambda: compare(*write("mm", micro_manager), "t{index}.tif", (2, 0.5, 0.5), voxel=(2, 0.5, 0.5)))

    def meta_xml(path, a, y, x):
        text = ('<MetaData><PlaneInfo><prop id="spatial-calibration-x" type="float" value="0.5"/><prop id="spatial-calibration-y" type="float" value="0.5"/>'
            f'<prop id="spatial-calibration-units" type="string" value="um"/><prop id="stage-position-x" type="float" value="{x}"/>'
            f'<prop id="stage-position-y" type="float" value="{y}"/></PlaneInfo></MetaData>')  # fmt: skip
        tifffile.imwrite(path, a[0], **TIFF, description=text, metadata=None)

    path, tiles = write("metamorph", meta_xml)
    case("metadata: MetaMorph", lambda: compare(path, {p: t[0] for p, t in tiles.items()}, "t{index}.tif", (0.5, 0.5)))

    def stack():
        path, tiles = write("stk", metamorph_stack)
        with tifffile.TiffFile(f"{path}/t00.tif") as f:  # it is one for tifffile, too
            assert f.is_stk and f.series[0].shape == (2, 40, 48) and np.array_equal(f.asarray(), tiles[0, 0])
            stk = f.stk_metadata
            assert abs(stk["XCalibration"] - 0.5) < 1e-9 and abs(stk["ZDistance"][0] - 2) < 1e-9 and stk["CalibrationUnits"] == "um"
            if at[0, 0][0] > 0 < at[0, 0][1]:
                assert np.allclose(stk["StagePosition"][0], (at[0, 0][1], at[0, 0][0]), atol=1e-3)
        compare(path, tiles, "t{index}.tif", (2, 0.5, 0.5))

    case("metadata: MetaMorph stack", stack)

    def resolution():
        path, tiles = write("resolution", lambda p, a, y, x: tifffile.imwrite(p, a[0], **TIFF, resolution=(20000, 40000), resolutionunit="CENTIMETER"))
        got, attributes, _ = mosaic(path, "t{index}.tif", "--grid", "3,4", voxel=None)
        same(got, assembled({p: t[0] for p, t in tiles.items()}))
        assert np.allclose(scale(attributes), (0.25, 0.5)), scale(attributes)
        text = mosaic(path, "t{index}.tif", "--grid", "3,3", code=2, voxel=None)
        assert "--grid" in text, text

    case("metadata: resolution", resolution)

    def names():
        path, tiles = folder("names"), {}
        for i, j in PLACES:
            tiles[i, j] = picture("u1", 40, 48)
            y, x = at[i, j]
            Image.fromarray(tiles[i, j]).save(f"{path}/x{x:+.4f} y{y:.4f}.png")
        compare(path, tiles, "x{x_um} y{y_um}.png", (2, 0.5, 0.5), voxel=(2, 0.5, 0.5))

    case("metadata: names", names)


kinds()
colours()
orders()
frames()
missing()
metadata()
for group in sorted({*PASSED, *FAILED}):
    print(f"{group}: {PASSED[group]} passed, {FAILED[group]} failed")
print(f"total: {sum(PASSED.values())} passed, {sum(FAILED.values())} failed")
sys.exit(bool(FAILED))
