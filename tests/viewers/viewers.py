"""Other viewers open what strata serves, and show its voxels.

usage: viewers.py BIN DIR napari|neuroglancer

Makes an image with a pyramid and a label image in DIR with the programs in BIN, serves both with `view`, and opens them: in napari by its
plugin napari-ome-zarr, in a window on the display that DISPLAY names; in Neuroglancer's own page, which its Python package holds, in a
headless Chromium with WebGL in software. Levels, voxel sizes and contrast must be the image's, and the picture must show the plane.
Pictures stay in DIR.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

import numpy as np
import zarr

BIN, DIR = sys.argv[1], sys.argv[2]


def run(program, *args):
    subprocess.run([os.path.join(BIN, program), *map(str, args), "-q"], check=True)


def make():
    """An image of 40 × 200 × 260 voxels with two more levels, and labels of it."""
    rng = np.random.default_rng(5)
    z, y, x = np.mgrid[:40, :200, :260]
    v = 2000 * (1 + np.sin(x / 9.0) * np.cos(y / 13.0)) + 40 * z + 2000 * ((x // 65 + y // 50) % 2) + rng.normal(0, 20, z.shape)
    np.save(os.path.join(DIR, "v.npy"), v.astype("u2"))
    np.save(os.path.join(DIR, "l.npy"), ((x // 65 + y // 50) % 5).astype("u1"))
    image, labels = (os.path.join(DIR, n) for n in ("image.ome.zarr", "labels.ome.zarr"))
    for name, out, more in (("v", image, []), ("l", labels, ["--labels"])):
        array = os.path.join(DIR, name + ".zarr")
        run("zarr-tool", "import", os.path.join(DIR, name + ".npy"), array, "--chunks", "20,64,64", "--overwrite")
        run("zarr-tool", "ome", array, out, "--axes", "zyx", "--scale", "3.5,2,2", "--n_levels", 2, "--overwrite", *more)
    return image, labels


@contextlib.contextmanager
def served(path, origin):
    """The address below which `view` serves an image to pages of an origin."""
    with subprocess.Popen([os.path.join(BIN, "view"), path, "--allow_origin", origin, "--neuroglancer"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as p:
        try:
            for line in p.stdout:
                if found := re.search(r"#!(\S+)", line):
                    state = json.loads(urllib.parse.unquote(found[1]))
                    yield state["layers"][0]["source"].removeprefix("zarr://").rstrip("/")
                    return
            raise RuntimeError("view printed no address")
        finally:
            p.terminate()


def levels(path):
    group = zarr.open_group(path, mode="r")
    return [group[d["path"]] for d in group.attrs["ome"]["multiscales"][0]["datasets"]]


def alike(picture, plane):
    """The correlation of a picture with a plane, which may be scaled by a whole number."""
    a, b = np.asarray(picture, float).ravel(), np.asarray(plane, float).ravel()
    return np.corrcoef(a, b)[0, 1]


def napari():
    import napari as program
    from importlib.metadata import version

    image, _ = make()  # of labels the plugin opens only those in a group "labels" of an image
    viewer = program.Viewer(show=True)
    with served(image, "http://localhost") as url:
        opened = viewer.open(url, plugin="napari-ome-zarr")
        assert len(opened) == 1, f"{len(opened)} layers"
        layer = opened[0]
        own = levels(image)
        assert len(layer.data) == len(own), f"{len(layer.data)} levels, want {len(own)}"
        for got, want in zip(layer.data, own):
            assert np.array_equal(np.asarray(got), want[:]), f"other voxels in a level of {want.shape}"
        assert tuple(layer.scale) == (3.5, 2, 2), layer.scale
        window = zarr.open_group(image, mode="r").attrs["ome"]["omero"]["channels"][0]["window"]
        assert list(layer.contrast_limits) == [window["start"], window["end"]], (layer.contrast_limits, window)
        viewer.dims.set_point(0, 20 * 3.5)
        picture = shot(viewer)
        rows, columns = (np.flatnonzero(picture.max(axis=k) > 0) for k in (1, 0))
        seen = picture[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
        y, x = (np.arange(n) * m // n for n, m in zip(seen.shape, own[0].shape[1:]))
        r = alike(seen, own[0][20][np.ix_(y, x)])
        print(f"napari {program.__version__}, napari-ome-zarr {version('napari-ome-zarr')}: {len(own)} levels, contrast {layer.contrast_limits}, correlation with the plane {r:.4f}")
        assert r > 0.95, "the picture is not the plane"
    viewer.close()


def shot(viewer):
    from qtpy.QtWidgets import QApplication

    for _ in range(2):  # the window has its size only then
        viewer.reset_view()
        for _ in range(20):
            QApplication.processEvents()
            time.sleep(0.05)
    return viewer.screenshot(os.path.join(DIR, "napari.png"), canvas_only=True, flash=False)[..., :3].mean(axis=2)


def neuroglancer():
    import neuroglancer as program
    from importlib.metadata import version

    image, labels = make()
    program.set_server_bind_address("127.0.0.1")
    viewer = program.Viewer()
    page = viewer.get_viewer_url()
    origin = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(page))
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run",
                "--disable-background-networking", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--window-size=800,600",
                "--user-data-dir=" + os.path.join(DIR, "chromium"), "--remote-debugging-port=0", page]
    with subprocess.Popen(chromium, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            for path, kind in ((image, "image"), (labels, "labels")):
                with served(path, origin) as url:
                    plane = levels(path)[0][20]
                    shader = {"shader_controls": {"normalized": {"range": [0, 8000]}}} if kind == "image" else {}
                    layer = {"image": program.ImageLayer, "labels": program.SegmentationLayer}[kind](source="zarr://" + url, **shader)
                    viewer.set_state({})
                    with viewer.txn() as s:
                        s.layers[kind] = layer
                    for _ in range(100):  # the layer brings its dimensions
                        if sizes := viewer.state.dimensions.to_json():
                            break
                        time.sleep(0.1)
                    assert {d: [round(v[0], 12), v[1]] for d, v in sizes.items()} == {"z": [3.5e-6, "m"], "y": [2e-6, "m"], "x": [2e-6, "m"]}, sizes
                    with viewer.txn() as s:
                        s.dimensions = program.CoordinateSpace(names=["x", "y", "z"], units="m", scales=[2e-6, 2e-6, 3.5e-6])
                        s.position = [(plane.shape[1] - 1) / 2, (plane.shape[0] - 1) / 2, 20]  # the centre of a voxel has its index
                        s.layout = "xy"
                        s.cross_section_scale = 1  # a voxel to a pixel
                        s.show_axis_lines = s.show_scale_bar = s.show_default_annotations = False
                    for _ in range(20):
                        reply = viewer.screenshot(size=[plane.shape[1], plane.shape[0]]).screenshot
                        if reply.image_pixels[..., :3].std() > 5:
                            break
                        time.sleep(0.5)
                    with open(os.path.join(DIR, f"neuroglancer-{kind}.png"), "wb") as f:
                        f.write(reply.image)
                    picture = reply.image_pixels[..., :3].astype(float).mean(axis=2)
                    says = f"neuroglancer {version('neuroglancer')}: {kind}: "
                    if kind == "image":
                        print(says + f"correlation with the plane {alike(picture, plane):.4f}")
                        assert alike(picture, plane) > 0.99, "the picture is not the plane"
                    else:  # a colour for each label, and none for 0
                        colours = {n: np.unique(reply.image_pixels[plane == n][:, :3], axis=0) for n in range(1, 5)}
                        assert all(len(c) == 1 for c in colours.values()) and len({tuple(c[0]) for c in colours.values()}) == 4, colours
                        print(says + "a colour for each")
        finally:
            browser.terminate()


def main():
    os.makedirs(DIR, exist_ok=True)
    {"napari": napari, "neuroglancer": neuroglancer}[sys.argv[3]]()


main()
