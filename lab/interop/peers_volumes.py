"""NIfTI and NRRD traded with other programs.

    peers_volumes.py DIR BIN    DIR is an empty folder, BIN the folder of the programs

What nibabel, SimpleITK and pynrrd write must be read as equal by zarr-tool cat and import, voxel by voxel; what zarr-tool export writes must
be read as equal by them, and each corner must lie where it lay. Transforms in ITK's text form must be read by SimpleITK.
"""

import collections
import itertools
import os
import subprocess
import sys

import nibabel as nib
import nrrd
import numpy as np
import SimpleITK as sitk

DIR, BIN = sys.argv[1], sys.argv[2]
RNG = np.random.default_rng(11)
PASSED, FAILED = collections.Counter(), collections.Counter()


def tool(*args, program="zarr-tool"):
    p = subprocess.run([os.path.join(BIN, program), *map(str, args), "-q"], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{program} {' '.join(map(str, args))}: exit {p.returncode}: {p.stderr.strip()}")


def at(name):
    return os.path.join(DIR, name)


def cat(file, level=0):
    tool("cat", os.path.join(file, str(level)), "-o", at("out.npy"), "--overwrite")
    return np.load(at("out.npy"))


def case(group, name, check):
    try:
        check()
        PASSED[group] += 1
    except Exception as e:  # whatever is wrong, the others are tried
        FAILED[group] += 1
        print(f"{group}: {name}: {type(e).__name__}: {e}")


def same(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype.newbyteorder("="), f"{got.shape} {got.dtype}, want {want.shape} {want.dtype}"
    assert np.array_equal(got, want), f"{np.sum(got != want)} of {got.size} voxels differ"


def near(got, want, tolerance):
    worst = np.abs(np.asarray(got) - want).max()
    assert worst <= tolerance, f"{worst} apart"


def affines():
    """Along the axes, mirrored, turned, and with axes exchanged; in mm."""
    c, s = np.cos(0.3), np.sin(0.3)
    plain = np.diag([0.5, 0.25, 2, 1.0])
    plain[:3, 3] = 1, 2, 3
    turned = np.eye(4)
    turned[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.diag([0.5, 0.25, 2])
    turned[:3, 3] = -10, 20, 5
    exchanged = np.zeros((4, 4))
    exchanged[0, 2], exchanged[1, 0], exchanged[2, 1], exchanged[3, 3] = 2, -0.5, 0.25, 1
    exchanged[:3, 3] = 7, 8, 9
    return {"plain": plain, "mirrored": np.diag([-0.5, -0.25, 2, 1.0]), "turned": turned, "exchanged": exchanged}


def corners(shape):
    return [[i * (n - 1) for i, n in zip(c, shape)] for c in itertools.product([0, 1], repeat=3)]


def exported(image, values, affine):
    """An image as NIfTI and NRRD, by other readers. values have x first."""
    for name in ("b.nii", "b.nii.gz", "b.nrrd"):
        tool("export", image, at(name), "--overwrite")
        s = sitk.ReadImage(at(name))
        same(sitk.GetArrayFromImage(s), values.T)
        places = [affine @ [*c, 1] for c in corners(values.shape)]
        near([s.TransformIndexToPhysicalPoint(c) for c in corners(values.shape)], np.array(places)[:, :3] * [-1, -1, 1], 1e-4)  # ITK has LPS
        if name == "b.nrrd":
            same(nrrd.read(at(name))[0], values)
            continue
        b = nib.load(at(name))
        same(np.asarray(b.dataobj), values)
        near(b.affine, affine, 1e-5)
        near(b.get_qform(), affine, 1e-5)
        assert int(b.header["sform_code"]) == 2 and int(b.header["qform_code"]) == 1, "other codes"
    tool("export", image, at("turned.nii"), "--axes", "zyx", "--overwrite")
    turned = nib.load(at("turned.nii"))
    same(np.asarray(turned.dataobj), values.T)
    near(turned.affine, affine[:, [2, 1, 0, 3]], 1e-5)


def nifti(kind, affine, dtype, name):
    values = RNG.integers(0, 100, (5, 4, 3)).astype(dtype)
    image = kind(values, affine, header=kind.header_class(endianness=">" if dtype[0] == ">" else "<"), dtype=np.dtype(dtype))
    image.set_sform(affine, 2)
    image.set_qform(affine, 1)
    image.header.set_xyzt_units("mm", "sec")
    nib.save(image, at(name))
    same(cat(at(name)), values.T)
    tool("import", at(name), at("o.ome.zarr"), "--overwrite", "--n_levels", 1)
    same(cat(at("o.ome.zarr")), values.T)
    exported(at("o.ome.zarr"), values.astype(values.dtype.newbyteorder("=")), affine)


def by_itk(affine, name, compressed):
    values = RNG.integers(0, 100, (3, 4, 5)).astype("i2")
    image = sitk.GetImageFromArray(values)
    lps = np.diag([-1, -1, 1, 1]) @ affine
    spacing = np.linalg.norm(lps[:3, :3], axis=0)
    image.SetSpacing(spacing)
    image.SetDirection((lps[:3, :3] / spacing).ravel())
    image.SetOrigin(lps[:3, 3])
    sitk.WriteImage(image, at(name), compressed)
    same(cat(at(name)), values)
    tool("import", at(name), at("o.ome.zarr"), "--overwrite", "--n_levels", 0)
    tool("export", at("o.ome.zarr"), at("r.nii"), "--overwrite")
    near(nib.load(at("r.nii")).affine, affine, 1e-4)


def pairs():
    """Headers in files of their own; and Analyze, whose headers say no side, is refused by name."""
    affine = affines()["turned"]
    for kind in (nib.Nifti1Pair, nib.Nifti2Pair):
        for order in "<>":
            for file in ("p.img", "p.img.gz"):
                for old in ("p.hdr", "p.img", "p.hdr.gz", "p.img.gz"):
                    if os.path.exists(at(old)):
                        os.remove(at(old))
                values = RNG.integers(0, 100, (5, 4, 3)).astype("i2")
                image = kind(values, affine, header=kind.header_class(endianness=order))
                image.header.set_data_dtype("i2")
                nib.save(image, at(file))
                header = at("p.hdr.gz" if file.endswith("gz") else "p.hdr")
                same(cat(header), values.T)
                tool("import", header, at("o.ome.zarr"), "--overwrite", "--n_levels", 0)
                tool("export", at("o.ome.zarr"), at("r.nii"), "--overwrite")
                near(nib.load(at("r.nii")).affine, affine, 1e-4)
    nib.save(nib.Spm99AnalyzeImage(RNG.integers(0, 9, (5, 4, 3)).astype("i2"), affine), at("spm.img"))
    nib.save(nib.AnalyzeImage(RNG.integers(0, 9, (5, 4, 3)).astype("i2"), np.eye(4)), at("old.img"))
    for name in ("spm.hdr", "old.hdr"):
        says = subprocess.run([os.path.join(BIN, "zarr-tool"), "info", at(name)], capture_output=True, text=True)
        assert says.returncode == 3 and "Analyze 7.5" in says.stderr, says


def labels():
    """Levels of labels have every second voxel, whatever the type."""
    for dtype in ("u1", "i2", "u8"):
        values = RNG.integers(0, 120, (8, 6, 4)).astype(dtype)
        nib.save(nib.Nifti1Image(values, np.eye(4), dtype=np.dtype(dtype)), at("m.nii"))
        tool("import", at("m.nii"), at("o.ome.zarr"), "--overwrite", "--n_levels", 1, "--labels")
        same(cat(at("o.ome.zarr"), 1), values.T[::2, ::2, ::2])


def vectors():
    values = RNG.integers(0, 255, (3, 6, 5, 4)).astype("u1")  # channels first, and fastest
    nrrd.write(at("c.nrrd"), values, {"kinds": ["vector", "domain", "domain", "domain"], "space": "right-anterior-superior",
                                      "space directions": [[np.nan] * 3, [1, 0, 0], [0, 2, 0], [0, 0, 3]], "space origin": [0, 0, 0]})
    same(cat(at("c.nrrd")), values.transpose(0, 3, 2, 1))


def times():
    values = RNG.integers(0, 255, (4, 5, 6, 3)).astype("i2")
    image = nib.Nifti1Image(values, np.eye(4))
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = 2.5
    nib.save(image, at("t.nii"))
    same(cat(at("t.nii")), values.T)
    tool("import", at("t.nii"), at("o.ome.zarr"), "--overwrite", "--n_levels", 0)
    tool("export", at("o.ome.zarr"), at("r.nii"), "--overwrite")
    back = nib.load(at("r.nii"))
    same(np.asarray(back.dataobj), values)
    assert back.header.get_zooms()[3] == 2.5, back.header.get_zooms()


def scaled():
    image = nib.Nifti1Image(RNG.integers(0, 99, (4, 5, 6)) * 0.5 + 3, np.eye(4), dtype="i2")
    image.header.set_data_dtype("i2")
    image.header.set_slope_inter(0.5, 3)
    nib.save(image, at("s.nii"))
    near(cat(at("s.nii")), nib.load(at("s.nii")).get_fdata().T, 1e-6)


def colours():
    values = np.zeros((4, 5, 3), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    values["R"], values["B"] = RNG.integers(0, 255, values.shape), 7
    nib.save(nib.Nifti1Image(values, np.eye(4)), at("rgb.nii"))
    same(cat(at("rgb.nii")), np.stack([values[c].T for c in "RGB"]))


def levels():
    """A lower level lies where it lies: its corners are within the image's, half a voxel further in."""
    affine = affines()["turned"]
    values = RNG.integers(0, 99, (16, 16, 16)).astype("u1")
    image = nib.Nifti1Image(values, affine)
    image.set_sform(affine, 1)
    image.header.set_xyzt_units("mm", "sec")
    nib.save(image, at("l.nii"))
    tool("import", at("l.nii"), at("o.ome.zarr"), "--overwrite", "--n_levels", 2, "--chunks", "8,8,8")
    for level in (1, 2):
        tool("export", at("o.ome.zarr"), at("r.nii"), "--overwrite", "--level", level)
        low = nib.load(at("r.nii"))
        outer = np.array([affine @ [*(np.array(c) * 16 - 0.5), 1] for c in itertools.product([0, 1], repeat=3)])
        n = low.shape
        got = np.array([low.affine @ [*(np.array(c) * n - 0.5), 1] for c in itertools.product([0, 1], repeat=3)])
        near(got, outer, 1e-4)


def transform():
    """What align writes is a transform that SimpleITK reads."""
    subprocess.run([os.path.join(BIN, "phantom"), at("p"), "--slices", "1", "--tiles", "2,2", "--tile", "32,48,48", "--truth_slices", "-q"], check=True)
    slice0 = next(os.path.join(at("p"), "truth", n) for n in sorted(os.listdir(at("p/truth"))) if n.startswith("slice_z00"))
    tool("export", slice0, at("atlas.nii.gz"), "--overwrite")
    tool(slice0, at("aligned.ome.zarr"), "--template", at("atlas.nii.gz"), "--overwrite", "--level", 0, "--max_iterations", 5, program="align")
    t = sitk.ReadTransform(at("aligned_transform.tfm"))
    near(t.TransformPoint((0.0, 0.0, 0.0)), [0, 0, 0], 0.05)  # an image on itself


def main():
    types = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", ">i2", ">f4"]
    for name, affine in affines().items():
        for dtype in types:
            for kind in (nib.Nifti1Image, nib.Nifti2Image):
                for file in ("a.nii", "a.nii.gz") if dtype in ("i2", ">f4") else ("a.nii",):
                    case("nifti", f"{name} {dtype} {kind.__name__} {file}", lambda: nifti(kind, affine, dtype, file))
        for file in ("s.nrrd", "s.nhdr", "s.nii.gz"):
            for compressed in (True, False):
                case("itk", f"{name} {file} {compressed}", lambda: by_itk(affine, file, compressed))
    for check in (pairs, labels, vectors, times, scaled, colours, levels, transform):
        case("more", check.__name__, check)
    for group in sorted({*PASSED, *FAILED}):
        print(f"{group}: {PASSED[group]} passed, {FAILED[group]} failed")
    print(f"total: {sum(PASSED.values())} passed, {sum(FAILED.values())} failed")
    sys.exit(1 if FAILED else 0)


main()
