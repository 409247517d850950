"""CZI traded with other programs.

    peers_czi.py DIR BIN    DIR is an empty folder, BIN the folder of the programs

libCZI (pylibCZIrw) writes files of all kinds, of which zarr-tool cat must read the same planes and tiles; what phantom --czi writes must
be read as equal by libCZI, by aicspylibczi and, uncompressed, by czifile.
"""

import collections
import itertools
import os
import subprocess
import sys

import aicspylibczi
import czifile
import numpy as np
from pylibCZIrw import czi

DIR, BIN = sys.argv[1], sys.argv[2]
RNG = np.random.default_rng(7)
PASSED, FAILED = collections.Counter(), collections.Counter()


def run(program, *args):
    p = subprocess.run([os.path.join(BIN, program), *map(str, args), "-q"], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{program} {' '.join(map(str, args))}: exit {p.returncode}: {p.stderr.strip()}")


def at(name):
    return os.path.join(DIR, name)


def cat(file, *args):
    run("zarr-tool", "cat", file, "-o", at("out.npy"), "--overwrite", *args)
    return np.load(at("out.npy"))


def case(group, name, check):
    try:
        check()
        PASSED[group] += 1
    except Exception as e:  # whatever is wrong, the others are tried
        FAILED[group] += 1
        print(f"{group}: {name}: {type(e).__name__}: {e}")


def same(got, want):
    want = np.squeeze(np.asarray(want))
    got = np.squeeze(got)
    assert got.shape == want.shape and got.dtype == want.dtype, f"{got.shape} {got.dtype}, want {want.shape} {want.dtype}"
    assert np.array_equal(got, want), f"{np.sum(got != want)} of {got.size} samples differ"


def tile(dtype, samples, h, w):
    a = RNG.integers(0, 60, (h, w, samples)) + np.arange(w)[:, None]
    return (a * (1.5 if dtype == "f4" else 1)).astype(dtype)


def libczi_writes():
    options = [None, "zstd0:ExplicitLevel=3", "zstd1:ExplicitLevel=2", "zstd1:ExplicitLevel=2;PreProcess=HiLoByteUnpack"]
    for (dtype, samples), option, scenes in itertools.product([("u1", 1), ("u2", 1), ("f4", 1), ("u1", 3), ("u2", 3)], options, [0, 2]):
        file = at("peer.czi")

        def check(dtype=dtype, samples=samples, option=option, scenes=scenes):
            tiles = {}
            with czi.create_czi(file, exist_ok=True, compression_options=option) as w:
                for scene, c, z, m in itertools.product(range(max(scenes, 1)), range(2), range(2), range(4)):
                    a = tile(dtype, samples, 50, 60)
                    tiles[f"{scene}.{c}.{z}.0.{m}"] = a
                    w.write(a, location=(-30 + 400 * scene + m % 2 * 53, 7 + m // 2 * 44), plane={"C": c, "Z": z}, **({"scene": scene} if scenes else {}))
            for key in RNG.choice(list(tiles), 4, replace=False):
                same(cat(f"{file}/tiles/{key}"), tiles[key])
            if samples == 3 and dtype == "u2" and option and "HiLo" in option:
                return  # libCZI does not read what it has written
            with czi.open_czi(file) as r:
                for c, z, scene in itertools.product(range(2), range(2), range(scenes) or [None]):
                    box = r.scenes_bounding_rectangle[scene] if scenes else r.total_bounding_rectangle
                    want = r.read(plane={"C": c, "Z": z}, roi=tuple(box), **({"scene": scene} if scenes else {}))
                    same(cat(file, "--plane", f"{c},{z},0", *(["--scene", scene] if scenes else [])), want)

        case("libCZI writes", f"{dtype} {samples} {option} {scenes}", check)


def scenes_overlap():
    for seed in range(8):
        file = at("scenes.czi")

        def check(seed=seed):
            rng = np.random.default_rng(seed)
            tiles = [s for s in range(3) for _ in range(3)]
            if seed % 2:
                rng.shuffle(tiles)
            with czi.create_czi(file, exist_ok=True) as w:
                for k, scene in enumerate(tiles):
                    w.write(np.full((24, 32), k + 1, "u2"), location=(int(rng.integers(60)), int(rng.integers(40))), scene=scene)
            with czi.open_czi(file) as r:
                box = r.total_bounding_rectangle
                same(cat(file, "--plane", "0,0,0"), r.read(plane={"C": 0, "Z": 0, "T": 0}, roi=tuple(box)))

        case("scenes that overlap, as libCZI draws them", str(seed), check)


def peers_read():
    for dtype, codec, levels in itertools.product(["uint8", "uint16", "float32"], ["raw", "zstd:1"], [0, 1]):
        def check(dtype=dtype, codec=codec, levels=levels):
            run("phantom", at("scan"), "--czi", "--tiles", "3,4", "--tile", "2,64,80", "--channels", 2, "--jitter", 2, "--dtype", dtype, "--codec", codec, "--n_levels", levels, "-f")
            file = at("scan/scan_z00.czi")
            with czi.open_czi(file) as r:
                box = r.total_bounding_rectangle_no_pyramid
                for c, z in itertools.product(range(2), range(2)):
                    same(cat(file, "--plane", f"{c},{z},0"), r.read(plane={"C": c, "Z": z}, roi=tuple(box)))
                if levels:
                    same(cat(file + "/1")[0, 0], r.read(plane={"C": 0, "Z": 0}, roi=(box.x, box.y, box.w // 2 * 2, box.h // 2 * 2), zoom=0.5))
                scale = {d["@Id"]: float(d["Value"]) for d in r.metadata["ImageDocument"]["Metadata"]["Scaling"]["Items"]["Distance"]}
                assert scale == {"X": 2e-06, "Y": 2e-06, "Z": 3.5e-06}, scale
            tiles = aicspylibczi.CziFile(file)
            for m, c, z in itertools.product(range(0, 12, 5), range(2), range(2)):
                same(cat(file + f"/tiles/0.{c}.{z}.0.{m}"), tiles.read_image(S=0, C=c, Z=z, T=0, M=m)[0])
            if codec == "raw":
                with czifile.CziFile(file) as f:
                    for i in range(0, len(f.subblock_directory), 7):
                        same(cat(file, "--subblock", i), f.subblock_directory[i].data_segment().data(resize=False))

        case("libCZI, aicspylibczi and czifile read ours", f"{dtype} {codec} {levels}", check)


libczi_writes()
scenes_overlap()
peers_read()
for group in sorted(PASSED | FAILED):
    print(f"{group}: {PASSED[group]} passed, {FAILED[group]} failed")
print(f"total: {sum(PASSED.values())} passed, {sum(FAILED.values())} failed")
sys.exit(1 if FAILED else 0)
