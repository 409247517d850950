"""OME-Zarr images: what other readers and validators say to ours, and images of
other writers for us. See peers.py."""

import os

import ngff_zarr
import numpy as np
import ome_zarr_models
import zarr
from ngff_zarr.validate import validate as validate_schema
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from ome_zarr.writer import write_image

from values import values


def group_attributes(path):
    return dict(zarr.open_group(path, mode="r").attrs)


def expected(root, case, level):
    dtype = np.dtype(case["dtype"]).newbyteorder("<")
    return np.fromfile(os.path.join(root, case["values"][level]), dtype).reshape(case["shapes"][level])


def same(got, want):
    got = np.asarray(got)
    return got.shape == want.shape and got.dtype == want.dtype.newbyteorder("=") and np.ascontiguousarray(got).tobytes() == want.tobytes()


def centre(data, scale, translation):
    """The centre of mass, in the unit of the scale."""
    mass = data.sum(dtype=np.float64)
    return [float((data.sum(axis=tuple(e for e in range(data.ndim) if e != d), dtype=np.float64) * (np.arange(n) * s + t)).sum() / mass)
            for d, (n, s, t) in enumerate(zip(data.shape, scale, translation))]


def moves(case, centres):
    """What is wrong with where an object lies on the levels, by what a peer made of their metadata."""
    for level, c in enumerate(centres if case.get("object") else []):
        if any(abs(a - b) > 0.1 * s for a, b, s in zip(c, centres[0], case["scales"][0])):
            return f"the object lies at {c} on level {level}, at {centres[0]} on level 0"
    return ""


def ome_zarr_py(root, case):
    fmt = FormatV04() if case["version"] == "0.4" else FormatV05()
    nodes = list(Reader(parse_url(os.path.join(root, case["path"]), fmt=fmt))())
    if len(nodes) != 1:
        return f"{len(nodes)} nodes"
    node = nodes[0]
    if len(node.data) != len(case["values"]):
        return f"{len(node.data)} levels"
    axes = node.metadata["axes"]
    if [a["name"] for a in axes] != case["axes"] or [a.get("unit", "") for a in axes] != case["units"]:
        return f"axes {axes}"
    centres = []
    for level, (data, transforms) in enumerate(zip(node.data, node.metadata["coordinateTransformations"])):
        if not same(data.compute(), expected(root, case, level)):
            return f"other values in level {level}"
        if transforms[0]["type"] != "scale" or transforms[0]["scale"] != case["scales"][level]:
            return f"transformations {transforms} of level {level}"
        translation = transforms[1]["translation"] if len(transforms) > 1 else []
        if translation != case["translations"][level]:
            return f"transformations {transforms} of level {level}"
        centres.append(centre(data.compute(), transforms[0]["scale"], translation or [0] * data.ndim))
    return moves(case, centres)


def ngff_zarr_reads(root, case):
    m = ngff_zarr.from_ngff_zarr(os.path.join(root, case["path"]), validate=True)
    centres = []
    for level, image in enumerate(m.images):
        if list(image.dims) != case["axes"] or [image.scale[d] for d in image.dims] != case["scales"][level]:
            return f"{image.dims}, {image.scale} in level {level}"
        if not same(image.data.compute(), expected(root, case, level)):
            return f"other values in level {level}"
        translation = [image.translation[d] for d in image.dims]
        if translation != (case["translations"][level] or [0] * len(translation)):
            return f"translation {image.translation} in level {level}"
        centres.append(centre(image.data.compute(), [image.scale[d] for d in image.dims], translation))
    return moves(case, centres) if len(m.images) == len(case["values"]) else f"{len(m.images)} levels"


def schema(root, case):
    attributes = group_attributes(os.path.join(root, case["path"]))
    validate_schema(attributes, version=case["version"], model="image")
    # the strict schema also wants what is only recommended: how levels were made
    for m in attributes.get("ome", attributes)["multiscales"]:
        m.setdefault("type", "")
        m.setdefault("metadata", {})
    validate_schema(attributes, version=case["version"], model="image", strict=True)
    return ""


def models(root, case):
    g = ome_zarr_models.open_ome_zarr(zarr.open_group(os.path.join(root, case["path"]), mode="r"))
    return "" if type(g).__name__ == "Image" and g.ome_zarr_version == case["version"] else f"{type(g).__name__} {g.ome_zarr_version}"


CHECKS = {
    "read by ome-zarr-py": ome_zarr_py,
    "read by ngff-zarr": ngff_zarr_reads,
    "valid for the NGFF JSON schemas, strict": schema,
    "valid for ome-zarr-models": models,
}

MICROMETRES = {"micrometer": 1, "millimeter": 1000, "nanometer": 1e-3, "": 1}


def note(w, path, group, writer, version, name):
    """Enters an image into the manifest, as zarr-python and the metadata itself say it is."""
    full = os.path.join(w.root, path)
    attributes = group_attributes(full)
    m = attributes.get("ome", attributes)["multiscales"][0]
    entry = dict(path=path, group=group, writer=writer, version=version, name=m.get("name", ""), axes=[a["name"] for a in m["axes"]], units=[a.get("unit", "") for a in m["axes"]],
                 scales=[], translations=[], shapes=[], values=[])
    for d in m["datasets"]:
        a = zarr.open_array(os.path.join(full, d["path"]), mode="r")[...]
        file = f"values/image-{len(w.images)}-{len(entry['values'])}"
        a.astype(a.dtype.newbyteorder("<")).tofile(os.path.join(w.root, file))
        entry["values"].append(file)
        entry["shapes"].append(list(a.shape))
        entry["scales"].append([float(s) for s in d["coordinateTransformations"][0]["scale"]])
        entry["translations"].append([float(t) for c in d["coordinateTransformations"][1:] for t in c["translation"]])
        entry["dtype"] = str(a.dtype.newbyteorder("="))
    entry["voxel_size"] = [s * MICROMETRES[u] if u in MICROMETRES else s for s, u in zip(entry["scales"][0], entry["units"])]
    w.images.append(entry)


def write(w):
    cases = [("yx", (90, 70), "uint8", {"y": 0.5, "x": 0.25}, "micrometer"), ("zyx", (33, 65, 70), "uint16", {"z": 3.5, "y": 2, "x": 2}, "micrometer"),
             ("zyx", (20, 33, 40), "float32", {"z": 0.0035, "y": 0.002, "x": 0.002}, "millimeter"), ("czyx", (2, 12, 40, 40), "int16", {"z": 10, "y": 2.5, "x": 2.5}, "micrometer"),
             ("tczyx", (2, 2, 4, 20, 20), "uint16", {"z": 900, "y": 300, "x": 300}, "nanometer")]
    for i, (axes, shape, dtype, scale, unit) in enumerate(cases):
        data = np.nan_to_num(values(dtype, shape, i), posinf=1, neginf=-1)
        for fmt, version in ((FormatV04(), "0.4"), (FormatV05(), "0.5")):
            path = f"i/ome-zarr-py-{version}-{i}.zarr"
            full_scale = {a: float(scale.get(a, 1)) for a in axes}
            write_image(data, os.path.join(w.root, path), fmt=fmt, axes=axes, scale_factors=[2, 4], scale=full_scale, axes_units={a: unit for a in scale}, name=f"image {i}")
            note(w, path, f"NGFF {version} images", "ome-zarr-py", version, f"image {i}")
            path = f"i/ngff-zarr-{version}-{i}.zarr"
            image = ngff_zarr.to_ngff_image(data, dims=list(axes), scale={a: float(s) for a, s in scale.items()}, name=f"image {i}", axes_units={a: unit for a in scale})
            m = ngff_zarr.to_multiscales(image, scale_factors=[2] if min(shape[-2:]) >= 40 else [], chunks=16, method=ngff_zarr.Methods.ITKWASM_BIN_SHRINK)
            more = {"chunks_per_shard": 2} if version == "0.5" and i % 2 else {}
            ngff_zarr.to_ngff_zarr(os.path.join(w.root, path), m, version=version, **more)
            note(w, path, f"NGFF {version} images", "ngff-zarr", version, f"image {i}")
