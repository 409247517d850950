"""TIFF traded with other programs.

    peers_tiff.py DIR BIN    DIR is an empty folder, BIN the folder of the programs

tifffile (with imagecodecs) writes files of all kinds, which zarr-tool cat and import must read as equal; what zarr-tool
export writes must be read as equal by tifffile, and by libtiff (tiffcp, where it is installed). OpenSlide and zarr-tool
must see the same in a slide.
"""

import base64
import collections
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import imagecodecs
import numpy as np
import openslide
import tifffile

DIR, BIN = sys.argv[1], sys.argv[2]
RNG = np.random.default_rng(7)
PASSED, FAILED = collections.Counter(), collections.Counter()


def tool(*args):
    p = subprocess.run([os.path.join(BIN, "zarr-tool"), *map(str, args), "-q"], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"zarr-tool {' '.join(map(str, args))}: exit {p.returncode}: {p.stderr.strip()}")


def at(name):
    return os.path.join(DIR, name)


def cat(file, *args):
    tool("cat", file, "-o", at("out.npy"), "--overwrite", *args)
    return np.load(at("out.npy"))


def case(group, name, check):
    try:
        check()
        PASSED[group] += 1
    except Exception as e:  # whatever is wrong, the others are tried
        FAILED[group] += 1
        print(f"{group}: {name}: {type(e).__name__}: {e}")


def same(got, want, tolerance=0):
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype.newbyteorder("="), f"{got.shape} {got.dtype}, want {want.shape} {want.dtype}"
    if tolerance:
        worst = np.abs(got.astype(int) - want.astype(int)).max()
        assert worst <= tolerance, f"samples are up to {worst} off"
    else:
        assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), f"{np.sum(got != want)} of {got.size} samples differ"


def picture(dtype, *shape):
    dtype = np.dtype(dtype)
    y, x = np.indices(shape[:2])
    a = 0.5 + 0.3 * np.sin(y / 9) * np.cos(x / 13) + RNG.normal(0, 0.02, shape[:2])
    a = np.clip(a, 0, 1)
    if len(shape) == 3:
        a = np.stack([a * f for f in np.linspace(1, 0.5, shape[2])], -1)
    if dtype.kind == "f":
        return (a * 600).astype(dtype)
    top = min(2.0 ** (8 * dtype.itemsize), 2.0**50) * 0.9
    if dtype.kind == "i":
        return ((a - 0.5) * top).astype(dtype)
    return (a * top).astype(dtype)


def tifffile_writes():
    layouts = {"tiles": {"tile": (32, 48)}, "strips": {"rowsperstrip": 7}}
    for dtype, order, (layout, how), samples, planar, compression, predictor in itertools.product(
        ["u1", "u2", "i2", "u4", "i8", "f2", "f4", "f8"], "<>", layouts.items(), [1, 3], [False, True], ["none", "lzw", "zlib", "zstd", "packbits", "lzma"], [False, True]
    ):
        size, kind = np.dtype(dtype).itemsize, np.dtype(dtype).kind
        if planar and samples == 1 or predictor and compression in ("none", "packbits") or predictor and size == 8 and kind != "f":
            continue
        if RNG.random() > 0.2:  # every fifth of them
            continue
        a = picture(dtype, 50, 70, samples) if samples > 1 else picture(dtype, 50, 70)
        if planar:
            a = np.moveaxis(a, -1, 0).copy()
        name = f"{dtype}{order} {layout} {samples} {'planes' if planar else ''} {compression} {predictor}"

        def check(a=a, order=order, how=how, samples=samples, planar=planar, compression=compression, predictor=predictor, kind=kind):
            file = at("peer.tif")
            tifffile.imwrite(file, a, byteorder=order, photometric="rgb" if samples == 3 else "minisblack", planarconfig="separate" if planar else None, metadata=None,
                             compression=None if compression == "none" else compression, predictor=(3 if kind == "f" else 2) if predictor else None, **how)
            same(cat(file, "--page", 0), a)

        case("tifffile writes pages", name, check)
    for sub, (h, w), compression in itertools.product([(1, 1), (2, 1), (2, 2)], [(50, 70), (256, 256)], [50, 75, 95]):
        a = picture("u1", h, w, 3)

        def check(a=a, sub=sub, compression=compression):
            file = at("peer.tif")
            tifffile.imwrite(file, a, photometric="rgb", compression="jpeg", compressionargs={"level": compression}, subsampling=sub, tile=(64, 64), metadata=None)
            same(cat(file, "--page", 0), tifffile.imread(file), 2)

        case("tifffile writes JPEG", f"{sub} {compression} {a.shape}", check)
    for axes, shape in {"ZYX": (5, 40, 50), "CYX": (3, 40, 50), "TCZYX": (2, 3, 4, 40, 50), "TZYX": (3, 4, 40, 50), "CZYX": (2, 4, 40, 50)}.items():
        a = np.stack([picture("u2", 40, 50) + k for k in range(int(np.prod(shape[:-2])))]).reshape(shape)
        for ending, extra in {".ome.tif": {"metadata": {"axes": axes, "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.25, "PhysicalSizeYUnit": "µm"}},
                              ".tif": {"imagej": True, "metadata": {"axes": axes}}}.items():
            def check(a=a, ending=ending, extra=extra, axes=axes):
                file = at("peer" + ending)
                b = a
                if ending == ".tif":  # ImageJ's order is TZCYX
                    b = np.moveaxis(a, axes.index("C"), -3) if "C" in axes and "Z" in axes else a
                    extra = {**extra, "metadata": {"axes": "".join(sorted(axes, key="TZCYX".index))}}
                tifffile.imwrite(file, b, **extra)
                same(cat(file + "/0"), a)
                tool("import", file, at("imported.zarr"), "--n_levels", 0, "--overwrite")
                same(cat(at("imported.zarr/0")), a)

            case("tifffile writes hyperstacks", axes + ending, check)


def tifffile_reads():
    n = 0
    for dtype, samples, compression, size, levels in itertools.product(["u1", "i1", "u2", "i2", "u4", "f4", "f8"], [1, 3], ["none", "zstd", "deflate", "lzw", "packbits"], [16, 64], [0, 2]):
        if samples == 3 and dtype != "u1" or RNG.random() > 0.5:
            continue
        a = picture(dtype, 75, 101, samples) if samples > 1 else picture(dtype, 75, 101)
        n += 1

        def check(a=a, samples=samples, compression=compression, size=size, levels=levels):
            zarr, file = at("ours.ome.zarr"), at("ours.ome.tif")
            np.save(at("in.npy"), np.moveaxis(a, -1, 0) if samples == 3 else a)
            tool("import", at("in.npy"), at("in.zarr"), "--overwrite")
            tool("ome", at("in.zarr"), zarr, "--axes", "cyx" if samples == 3 else "yx", "--overwrite", "--scale", "1,0.5,0.25" if samples == 3 else "0.5,0.25", "--n_levels", 0)
            tool("export", zarr, file, "--compression", compression, "--tile_size", size, "--n_levels", levels, "--overwrite", *(["--rgb", "yes"] if samples == 3 else []))
            with tifffile.TiffFile(file) as t:
                s = t.series[0]
                assert s.kind == "ome" and len(s.levels) == levels + 1, f"{s.kind}, {len(s.levels)} levels"
                assert 'PhysicalSizeX="0.25"' in t.ome_metadata and 'PhysicalSizeY="0.5"' in t.ome_metadata, t.ome_metadata
                same(s.asarray(), a)
                half = a[:74, :100].astype(float).reshape(37, 2, 50, 2, *a.shape[2:]).mean((1, 3))
                if levels:
                    got = s.levels[1].asarray().astype(float)
                    assert got.shape[:2] == (37, 50) and np.abs(got - half).max() <= max(0.5, 1e-6 * np.abs(half).max()), "level 1 is no mean of 2 × 2 pixels"
            if shutil.which("tiffcp") and compression != "zstd":  # Debian's libtiff has no zstd everywhere
                subprocess.run(["tiffcp", "-c", "none", "-s", file, at("copy.tif")], check=True, capture_output=True)
                same(tifffile.imread(at("copy.tif"), key=0), a)

        case("tifffile and libtiff read ours", f"{dtype} {samples} {compression} {size} {levels}", check)
    a = picture("u1", 300, 420, 3)
    for quality in (75, 95):
        def check(quality=quality):
            np.save(at("in.npy"), np.moveaxis(a, -1, 0))
            tool("import", at("in.npy"), at("in.zarr"), "--overwrite")
            tool("ome", at("in.zarr"), at("ours.ome.zarr"), "--axes", "cyx", "--n_levels", 0, "--overwrite")
            tool("export", at("ours.ome.zarr"), at("ours.ome.tif"), "--compression", f"jpeg:{quality}", "--rgb", "yes", "--tile_size", 128, "--overwrite")
            got = tifffile.imread(at("ours.ome.tif")).astype(int)
            assert np.abs(got - a).mean() < 4, f"mean difference {np.abs(got - a).mean()}"
            same(cat(at("ours.ome.tif"), "--page", 0), tifffile.imread(at("ours.ome.tif")), 2)
            if shutil.which("tiffcp"):
                subprocess.run(["tiffcp", "-c", "none", "-s", at("ours.ome.tif"), at("copy.tif")], check=True, capture_output=True)

        case("tifffile and libtiff read ours", f"jpeg {quality}", check)
    for axes, shape in {"tczyx": (2, 3, 4, 40, 50), "zyx": (6, 40, 50), "cyx": (2, 40, 50)}.items():
        a = np.arange(int(np.prod(shape)), dtype="u2").reshape(shape)

        def check(axes=axes, a=a):
            np.save(at("in.npy"), a)
            tool("import", at("in.npy"), at("in.zarr"), "--overwrite", "--chunks", ",".join(map(str, [2] * (a.ndim - 2) + [16, 16])))
            tool("ome", at("in.zarr"), at("ours.ome.zarr"), "--axes", axes, "--n_levels", 0, "--overwrite")
            tool("export", at("ours.ome.zarr"), at("ours.ome.tif"), "--tile_size", 16, "--overwrite")
            with tifffile.TiffFile(at("ours.ome.tif")) as t:
                assert t.series[0].axes.lower() == axes, t.series[0].axes
                same(t.series[0].asarray(), a)

        case("tifffile and libtiff read ours", axes, check)


def slides():
    """A slide as Aperio lays it out, by tifffile, imported and exported again: tifffile finds its pictures and magnification."""
    main, label, macro = picture("u1", 700, 900, 3), picture("u1", 130, 97, 3), picture("u1", 160, 400, 3)
    text = "Aperio Image Library v12\n900x700 (256x256) |AppMag = 20|MPP = 0.5"
    with tifffile.TiffWriter(at("slide.svs")) as w:
        w.write(main, tile=(256, 256), photometric="rgb", description=text, metadata=None)
        w.write(main[::4, ::4].copy(), photometric="rgb", rowsperstrip=16, description="Aperio", metadata=None)
        w.write(main[::2, ::2].copy(), tile=(256, 256), photometric="rgb", description=text, metadata=None)
        w.write(label, photometric="rgb", rowsperstrip=16, description="Aperio\nlabel 97x130", subfiletype=1, metadata=None)
        w.write(macro, photometric="rgb", rowsperstrip=16, description="Aperio\nmacro 400x160", subfiletype=9, metadata=None)
    for compression, straight in itertools.product(["none", "zstd", "deflate", "jpeg:90"], [False, True]):

        def check(compression=compression, straight=straight):
            source = at("slide.svs")
            if not straight:
                tool("import", source, at("slide.ome.zarr"), "--overwrite")
                source = at("slide.ome.zarr")
            tool("export", source, at("slide.ome.tif"), "--compression", compression, "--overwrite")
            with tifffile.TiffFile(at("slide.ome.tif")) as t:
                series = {s.name: s.asarray() for s in t.series[1:]}
                assert sorted(series) == ["label", "macro", "thumbnail"], sorted(series)
                for name, want in (("label", label), ("macro", macro), ("thumbnail", main[::4, ::4])):
                    same(series[name], want)
                same(t.series[0].asarray(), main, 0 if compression != "jpeg:90" else 255)
                assert 'NominalMagnification="20"' in t.ome_metadata

        case("slides with their pictures, by tifffile and back", f"{compression} {straight}", check)


def padded(a, tile=256):
    h, w = a.shape[:2]
    return np.pad(a, ((0, -h % tile), (0, -w % tile), (0, 0)), constant_values=255)


def vendors():
    """Slides as Leica, Philips and Ventana lay them out by their public descriptions, written by tifffile; OpenSlide knows the first two so, and of
    the third wants more than the layout."""
    main, macro, label = picture("u1", 1000, 1500, 3), picture("u1", 200, 300, 3), picture("u1", 100, 90, 3)
    options = {"photometric": "rgb", "metadata": None, "compression": "jpeg", "compressionargs": {"level": 95}}
    tiles = {**options, "tile": (256, 256)}
    strips = {**options, "rowsperstrip": 16}

    def region(name, ifds, size, view, offset, objective):
        sizes = "".join(f'<dimension sizeX="{size[0] >> r}" sizeY="{size[1] >> r}" r="{r}" ifd="{i}"/>' for r, i in enumerate(ifds))
        return (f'<image name="{name}" uuid="urn:{name}"><creationDate>2011</creationDate><device model="Leica SCN400" version="1"/><pixels sizeX="{size[0]}" sizeY="{size[1]}">{sizes}</pixels>'
                f'<view sizeX="{view[0]}" sizeY="{view[1]}" offsetX="{offset[0]}" offsetY="{offset[1]}" spacingZ="0"/><scanSettings><objectiveSettings><objective>{objective}</objective></objectiveSettings>'
                '<illuminationSettings><numericalAperture>0.4</numericalAperture><illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image>')

    whole = (26000000, 75000000)
    scn = (f'<?xml version="1.0"?><scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01"><collection name="c" uuid="urn:c" sizeX="{whole[0]}" sizeY="{whole[1]}"><barcode>YQ==</barcode>'
           + region("m", [0], (300, 200), whole, (0, 0), 1) + region("r", [1, 2], (1500, 1000), (750000, 500000), (100000, 200000), 20) + "</collection></scn>")
    with tifffile.TiffWriter(at("leica.scn"), bigtiff=True) as w:
        w.write(macro, description=scn, **tiles)
        w.write(main, **tiles)
        w.write(main[::2, ::2].copy(), **tiles)

    def spacing(mm):
        return f'<Attribute Name="DICOM_PIXEL_SPACING" Group="0x0028" Element="0x0030" PMSVR="IDoubleArray">&quot;{mm:.8f}&quot; &quot;{mm:.8f}&quot;</Attribute>'

    levels = [padded(main[:: 2**k, :: 2**k].copy()) for k in range(3)]
    parts = "".join(f'<DataObject ObjectType="PixelDataRepresentation">{spacing(0.00025 * 2**k)}<Attribute Name="PIIM_PIXEL_DATA_REPRESENTATION_NUMBER" Group="0x301D" Element="0x2003" '
                    f'PMSVR="IUInt16">{k}</Attribute></DataObject>' for k in range(3))
    philips = ('<?xml version="1.0" encoding="UTF-8" ?><DataObject ObjectType="DPUfsImport"><Attribute Name="PIM_DP_SCANNED_IMAGES" Group="0x301D" Element="0x1003" PMSVR="IDataObjectArray"><Array>'
               f'<DataObject ObjectType="DPScannedImage">{spacing(0.00025)}<Attribute Name="PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE" Group="0x301D" Element="0x2002" PMSVR="IDataObjectArray"><Array>{parts}'
               '</Array></Attribute><Attribute Name="PIM_DP_IMAGE_TYPE" Group="0x301D" Element="0x1004" PMSVR="IString">WSI</Attribute></DataObject></Array></Attribute></DataObject>')
    with tifffile.TiffWriter(at("philips.tiff")) as w:
        for k, a in enumerate(levels):
            w.write(a, description=f"level={k} mag=1 quality=80" if k else philips, software=False if k else "Philips DP v1.0", subfiletype=int(k > 0), **tiles)
        w.write(macro, description="Macro -offset=(0,0)", **strips)
        w.write(label, description="Label -offset=(0,0)", **strips)

    # the same with its pictures in the description alone, as older exports have them
    held = "".join(f'<DataObject ObjectType="DPScannedImage"><Attribute Name="PIM_DP_IMAGE_TYPE" Group="0x301D" Element="0x1004" PMSVR="IString">{kind}</Attribute>'
                   f'<Attribute Name="PIM_DP_IMAGE_DATA" Group="0x301D" Element="0x1005" PMSVR="IString">{base64.b64encode(imagecodecs.jpeg8_encode(a, level=95)).decode()}</Attribute></DataObject>'
                   for kind, a in (("MACROIMAGE", macro), ("LABELIMAGE", label)))
    with tifffile.TiffWriter(at("philips-xml.tiff")) as w:
        for k, a in enumerate(levels):
            text = philips.replace("</DataObject></Array></Attribute></DataObject>", "</DataObject>" + held + "</Array></Attribute></DataObject>")
            w.write(a, description=f"level={k} mag=1 quality=80" if k else text, software=False if k else "Philips DP v1.0", subfiletype=int(k > 0), **tiles)

    xmp = b'<?xml version="1.0"?><EncodeInfo Ver="2"><SlideInfo><iScan Magnification="40" ScanRes="0.2325"/></SlideInfo></EncodeInfo>'
    with tifffile.TiffWriter(at("ventana.bif"), bigtiff=True) as w:
        w.write(macro, description="Label_Image", **strips)
        w.write(main[::10, ::10].copy(), description="Thumbnail", **strips)
        for k in (1, 0):  # in any order
            w.write(levels[k], description=f"level={k} mag={40 / 2**k:g} quality=90", extratags=[(700, 1, len(xmp), xmp, True)], **tiles)

    for name, image, shapes, um, magnification, beside in [
        ("leica.scn", main, [(3, 1000, 1500), (3, 500, 750)], 0.5, 20, {"macro": macro}),
        ("philips.tiff", levels[0], [a.transpose(2, 0, 1).shape for a in levels], 0.25, None, {"macro": macro, "label": label}),
        ("philips-xml.tiff", levels[0], [a.transpose(2, 0, 1).shape for a in levels], 0.25, None, {"macro": macro, "label": label}),
        ("ventana.bif", levels[0], [a.transpose(2, 0, 1).shape for a in levels[:2]], 0.2325, 40, {"macro": macro}),
    ]:

        def check(name=name, image=image, shapes=shapes, um=um, magnification=magnification, beside=beside):
            tool("import", at(name), at("vendor.ome.zarr"), "--keep_levels", "--overwrite")
            with open(at("vendor.ome.zarr/zarr.json")) as f:
                attributes = json.load(f)["attributes"]
            scales = [d["coordinateTransformations"][0]["scale"][-2:] for d in attributes["ome"]["multiscales"][0]["datasets"]]
            assert np.allclose(scales, [[um * 2**k] * 2 for k in range(len(shapes))]), scales
            assert attributes["tiff"].get("magnification") == magnification, attributes["tiff"]
            for k, shape in enumerate(shapes):
                got = cat(at(f"vendor.ome.zarr/{k}"))
                assert got.shape == shape, (got.shape, shape)
            same(cat(at("vendor.ome.zarr/0")), image.transpose(2, 0, 1), 60)  # JPEG
            for key, want in beside.items():
                same(cat(at(f"vendor.ome.zarr/associated/{key}/0")), want.transpose(2, 0, 1), 60)
            if name == "ventana.bif":
                return
            with openslide.OpenSlide(at(name)) as s:
                assert s.detect_format(at(name)) == re.split("[.-]", name)[0]
                assert sorted(s.associated_images) == sorted(beside), list(s.associated_images)
                for key in beside:
                    same(cat(at(f"vendor.ome.zarr/associated/{key}/0")), np.asarray(s.associated_images[key])[..., :3].transpose(2, 0, 1), 2)
                assert list(s.level_downsamples) == [2.0**k for k in range(len(shapes))], s.level_downsamples
                if magnification:
                    assert float(s.properties["openslide.objective-power"]) == magnification
                else:
                    assert abs(float(s.properties["openslide.mpp-x"]) - um) < 1e-9, s.properties["openslide.mpp-x"]

        case("slides as other vendors lay them out", name, check)


def openslide_sees():
    file = at("slide.svs")
    a = picture("u1", 600, 840, 3)
    text = "Aperio Image Library v12.0.15\r\n840x600 [0,0 840x600] (128x128) JPEG/RGB Q=80|AppMag = 20|MPP = 0.4990"
    with tifffile.TiffWriter(file) as t:
        options = {"photometric": "rgb", "tile": (128, 128), "compression": "jpeg", "metadata": None}
        t.write(a, description=text, **options)
        t.write(a[::8, ::8], photometric="rgb", rowsperstrip=16, compression="jpeg", metadata=None, description="thumbnail")
        t.write(a[::4, ::4], description=text.replace("840x600 ", "840x600 -> 210x150 "), **options)
    s = openslide.OpenSlide(file)

    def levels():
        got = [cat(f"{file}/{k}").shape for k in range(2)]
        assert got == [(3, h, w) for w, h in s.level_dimensions], f"{got}, {s.level_dimensions}"

    case("OpenSlide sees the same", "levels", levels)
    for x, y, w, h in [(0, 0, 840, 600), (13, 21, 200, 150), (700, 500, 140, 100), (127, 127, 2, 2)]:
        def region(x=x, y=y, w=w, h=h):
            want = np.asarray(s.read_region((x, y), 0, (w, h)))[..., :3]
            same(cat(file, "--page", 0, "--region", f"{y}:{y + h},{x}:{x + w},:"), want, 2)

        case("OpenSlide sees the same", f"region {x}, {y}", region)

    def ours():
        np.save(at("in.npy"), np.moveaxis(a, -1, 0))
        tool("import", at("in.npy"), at("in.zarr"), "--overwrite")
        tool("ome", at("in.zarr"), at("ours.ome.zarr"), "--axes", "cyx", "--n_levels", 0, "--overwrite")
        tool("export", at("ours.ome.zarr"), at("ours.ome.tif"), "--compression", "deflate", "--rgb", "yes", "--tile_size", 128, "--overwrite")
        o = openslide.OpenSlide(at("ours.ome.tif"))
        assert o.level_dimensions[0] == (840, 600), o.level_dimensions
        same(np.asarray(o.read_region((100, 50), 0, (300, 200)))[..., :3], a[50:250, 100:400])

    case("OpenSlide sees the same", "our file", ours)


tifffile_writes()
tifffile_reads()
slides()
vendors()
openslide_sees()
for group in sorted(PASSED | FAILED):
    print(f"{group}: {PASSED[group]} passed, {FAILED[group]} failed")
print(f"total: {sum(PASSED.values())} passed, {sum(FAILED.values())} failed")
sys.exit(1 if FAILED else 0)
