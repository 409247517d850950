"""Writes small JPEG streams and golden.json, which says what libjpeg-turbo makes of them.

    apt-get install libjpeg-turbo-progs
    python -m venv env && env/bin/pip install imagecodecs==2026.3.6
    env/bin/python make.py

cjpeg (of the variable CJPEG) makes the streams, since it takes any sampling factors and scan scripts; those with four components are
imagecodecs'. An object of golden.json has the name of a stream, its shape, and SHA-256 of the pixels as stored and as RGB (CMYK for four
components), decoded by libjpeg-turbo's default: accurate integer DCT, fancy upsampling. cjpeg_*.jpg are what the encoder must make of
picture.rgb.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

import imagecodecs
import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(15)
cjpeg = os.environ.get("CJPEG", "cjpeg")


def picture(w, h, n=3):
    """Slopes, edges, fine texture and noise, in saturated colours too."""
    y, x = np.mgrid[:h, :w]
    c = [127 + 120 * np.sin(x / 9 + y / 5), 255 * ((x // 7 + y // 11) % 2), 4 * x + rng.normal(0, 25, (h, w)), 255 * (np.hypot(x - w / 2, y - h / 2) < min(w, h) / 3)]
    return np.clip(np.stack(c[:n], -1), 0, 255).astype("u1")


lines = []


def add(name, data, colours):
    (here / f"{name}.jpg").write_bytes(data)
    line = {"name": name}
    for key, out in colours.items():
        a = imagecodecs.jpeg8_decode(data, outcolorspace=out)
        line["shape"] = a.shape
        line[key] = hashlib.sha256(a.tobytes()).hexdigest()
    lines.append(line)


def make(name, w, h, *options, grey=False, scans=None):
    a = picture(w, h, 1 if grey else 3)
    with tempfile.TemporaryDirectory() as d:
        if scans:
            pathlib.Path(d, "scans").write_text(scans)
            options += ("-scans", f"{d}/scans")
        pnm = (b"P5" if grey else b"P6") + f" {w} {h} 255\n".encode() + a.tobytes()
        data = subprocess.run([cjpeg, *options], input=pnm, check=True, capture_output=True).stdout
    stored = "GRAYSCALE" if grey else "RGB" if "-rgb" in options else "YCBCR"
    add(name, data, {"stored": stored, "rgb": "GRAYSCALE" if grey else "RGB"})


for s in ("1x1", "2x1", "1x2", "2x2", "4x1", "1x4", "4x2", "2x4", "3x1", "1x3", "3x2"):
    make(f"sample_{s}", 61, 45, "-quality", "80", "-sample", s)
make("sample_mixed", 61, 45, "-sample", "2x2,2x1,1x2")
make("sample_cb", 61, 45, "-sample", "2x2,2x2,1x1")
make("sample_luma_less", 61, 45, "-sample", "1x1,2x2,1x2")
make("sample_equal", 61, 45, "-sample", "2x2,2x2,1x2")
make("sample_4x4", 61, 45, "-sample", "4x4", scans="0;\n1;\n2;\n")
for w, h in ((1, 1), (2, 2), (4, 4), (5, 3), (6, 1), (1, 9), (16, 16), (17, 33), (130, 20)):
    for s in ("1x1", "2x1", "2x2", "1x2"):
        make(f"size_{w}x{h}_{s}", w, h, "-quality", "90", "-sample", s)
make("grey", 61, 45, grey=True)
make("grey_restart", 61, 45, "-restart", "3B", grey=True)
make("grey_progressive", 61, 45, "-progressive", grey=True)
make("quality_1_16bit", 61, 45, "-quality", "1")
make("quality_10", 61, 45, "-quality", "10")
make("quality_100", 61, 45, "-quality", "100")
make("quality_100_444", 61, 45, "-quality", "100", "-sample", "1x1")
make("optimized", 61, 45, "-quality", "95", "-optimize")
make("restart_1", 61, 45, "-restart", "1B")
make("restart_row", 61, 45, "-restart", "1")
make("rgb", 61, 45, "-rgb")
make("progressive_420", 61, 45, "-progressive")
make("progressive_444", 61, 45, "-progressive", "-sample", "1x1", "-quality", "95")
make("progressive_422_restart", 61, 45, "-progressive", "-sample", "2x1", "-restart", "2B")
make("progressive_spectral", 61, 45, scans="0,1,2: 0-0, 0, 0;\n0: 1-9, 0, 0;\n1: 1-63, 0, 0;\n2: 1-63, 0, 0;\n0: 10-63, 0, 0;\n")
make("progressive_refined", 61, 45, scans="0,1,2: 0-0, 0, 2;\n0: 1-63, 0, 3;\n1: 1-63, 0, 1;\n2: 1-63, 0, 1;\n0,1,2: 0-0, 2, 1;\n0: 1-63, 3, 2;\n0: 1-63, 2, 1;\n0,1,2: 0-0, 1, 0;\n0: 1-63, 1, 0;\n1: 1-63, 1, 0;\n2: 1-63, 1, 0;\n")
make("scans_three", 61, 45, scans="0;\n1;\n2;\n")
make("scans_two", 61, 45, "-restart", "2B", scans="0;\n1,2;\n")
a = picture(61, 45, 4)
add("cmyk", imagecodecs.jpeg8_encode(a, 85, colorspace="CMYK", outcolorspace="CMYK"), {"stored": "CMYK", "rgb": "CMYK"})
add("ycck", imagecodecs.jpeg8_encode(a, 85, colorspace="CMYK", outcolorspace="YCCK"), {"stored": "YCCK", "rgb": "CMYK"})
add("ycck_420", imagecodecs.jpeg8_encode(a, 85, colorspace="CMYK", outcolorspace="YCCK", subsampling="420"), {"stored": "YCCK", "rgb": "CMYK"})

encoder = np.random.default_rng(16)
a = np.clip(picture(61, 45).astype(int) + encoder.integers(-9, 9, (45, 61, 3)), 0, 255).astype("u1")
(here / "picture.rgb").write_bytes(a.tobytes())
for name, options in {"1x1": ["-sample", "1x1"], "2x1": ["-sample", "2x1"], "2x2": [], "q1": ["-quality", "1", "-baseline"], "q30": ["-quality", "30"], "q100": ["-quality", "100", "-sample", "1x1"],
                      "q95": ["-quality", "95"], "grey": [], "rgb": ["-rgb"], "part": []}.items():
    b = a[..., 1] if name == "grey" else a[:19, :37] if name == "part" else a  # whose MCUs have blocks beyond it
    pnm = (b"P5" if name == "grey" else b"P6") + f" {b.shape[1]} {b.shape[0]} 255\n".encode() + b.tobytes()
    (here / f"cjpeg_{name}.jpg").write_bytes(subprocess.run([cjpeg, *options], input=pnm, check=True, capture_output=True).stdout)

with open(here / "golden.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
