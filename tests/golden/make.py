"""Remakes the golden set in this folder. Own code on public libraries; see README.md for versions.

  python make.py [OUT_DIR]        (default: this folder)

Oracles: numpy, scipy.ndimage, scikit-image, SimpleITK, basicpy. Cases of a stage follow
docs/stages/, its deliberate differences from linumpy included. Everything is seeded.
"""
import csv
import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi
import zarr

SEED = 7


# ---------------------------------------------------------------- files
def npy_bytes(a):
    b = io.BytesIO()
    np.save(b, np.ascontiguousarray(a))
    return b.getvalue()


def write_npz(path, arrays):
    """A .zip of .npy members (deflate): Go reads it with archive/zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for k, v in arrays.items():
            info = zipfile.ZipInfo(k + ".npy", (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, npy_bytes(v))


def zip_dir(src, dst):
    dst.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(dst, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for f in sorted(src.rglob("*")):
            if f.is_file():
                info = zipfile.ZipInfo(str(f.relative_to(src.parent)), (2020, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                z.writestr(info, f.read_bytes())


def dump(path, obj):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(obj, indent=1, default=lambda o: o.tolist() if hasattr(o, "tolist") else list(o)) + "\n")


# ---------------------------------------------------------------- synthetic data
def mosaic(seed, z, ty, tx, ny, nx, ey=0, ex=0, dtype="float32", depth=14.0, wobble=2.0, amp=5.0, mu=0.05, agar=0.15):
    """OCT-like mosaic: smooth surface + the same bowl in every tile, decay, speckle, background."""
    h, w = ny * ty + ey, nx * tx + ex
    rng = np.random.default_rng(seed)
    gy, gx = np.mgrid[0:h, 0:w].astype(float)
    by = 2 * (gy % ty) / (ty - 1) - 1
    bx = 2 * (gx % tx) / (tx - 1) - 1
    gy, gx = gy / h, gx / w
    z0 = depth + wobble * (np.sin(5.1 * gx + 0.3) * np.cos(3.7 * gy) + 0.4 * np.sin(9 * (gx + gy)))
    z0 = z0 + amp * (0.9 * by**2 + 0.6 * bx**2 + 0.25 * bx * by - 0.5)
    d = np.arange(z)[:, None, None] - z0[None]
    sig = np.exp(-np.clip(d, 0, None) * mu) / (1 + np.exp(np.clip(-d * 1.5, -60, 60)))
    body = 1 / (1 + np.exp(np.clip(((((gy - 0.5) / 0.47) ** 2 + ((gx - 0.5) / 0.46) ** 2) - 1) * 40, -60, 60)))
    sig *= agar + (1 - agar) * body * (1 + 0.35 * np.sin(60 * gx + 25 * gy) * np.cos(45 * gy))
    v = 1000 * sig * rng.gamma(4.0, 0.25, size=sig.shape) + rng.exponential(6.0, size=sig.shape)
    if dtype == "float32":
        return (np.rint(v * 8) / 8).astype(np.float32)
    info = np.iinfo(dtype)
    k = {"uint8": 0.08, "uint16": 4.0, "int16": 4.0}[dtype]
    return np.clip(np.rint(v * k) - (40 if dtype == "int16" else 0), info.min, info.max).astype(dtype)


def slices(seed, n, z, yx, step, dtype="uint16", shift_px=3.0, gain=True):
    """n slices cut from one virtual tissue every `step` planes; returns volumes and true XY offsets (x, y)."""
    rng = np.random.default_rng(seed)
    big = rng.normal(size=(z + step * n + 4, yx + 24, yx + 24))
    big = ndi.gaussian_filter(big, (1.6, 2.5, 2.5))
    big = (big - big.mean()) / big.std()
    c = (yx + 24) / 2
    yy, xx = np.mgrid[0:yx + 24, 0:yx + 24]
    body = ((yy - c) ** 2 + (xx - c) ** 2) < (0.47 * yx) ** 2
    vols, offs = [], []
    for s in range(n):
        ox, oy = (0, 0) if s == 0 else np.rint(rng.uniform(-shift_px, shift_px, 2)).astype(int)
        offs.append((int(ox), int(oy)))
        sub = slice(12 + oy, 12 + oy + yx), slice(12 + ox, 12 + ox + yx)
        v = 500 + 160 * big[s * step:s * step + z, sub[0], sub[1]]
        v = v * np.exp(-0.01 * np.arange(z))[:, None, None] * (1.0 + (0.12 * ((s % 3) - 1) if gain else 0))
        v = v * rng.gamma(300.0, 1 / 300.0, size=v.shape)
        v = np.where(body[sub][None], np.clip(v, 1, None), 0)
        vols.append(np.rint(v).astype(dtype) if np.issubdtype(np.dtype(dtype), np.integer) else (np.rint(v * 4) / 4).astype(dtype))
    return vols, offs


def write_omezarr(path, a, chunks, scale, fmt="v2", codec="lz4", shard=None, unit="millimeter"):
    axes = [dict({"name": n, "type": "space"}, **({"unit": unit} if unit else {})) for n in "zyx"[-a.ndim:]]
    ms = [{"name": path.name.split(".")[0], "axes": axes,
           "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": list(scale)}]}]}]
    root = zarr.open_group(str(path), mode="w", zarr_format=2 if fmt == "v2" else 3)
    if fmt == "v2":
        from numcodecs import Blosc, Zstd

        comp = {"raw": None, "lz4": Blosc(cname="lz4", clevel=5, shuffle=Blosc.SHUFFLE), "zstd": Zstd(level=5)}[codec]
        arr = root.create_array("0", shape=a.shape, chunks=chunks, dtype=a.dtype, compressors=comp, fill_value=0,
                                chunk_key_encoding={"name": "v2", "separator": "/"})
        root.attrs["multiscales"] = [dict(ms[0], version="0.4")]
    else:
        from zarr.codecs import BloscCodec, ZstdCodec

        comp = {"raw": None, "lz4": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), "zstd": ZstdCodec(level=5)}[codec]
        arr = root.create_array("0", shape=a.shape, chunks=chunks, shards=shard, dtype=a.dtype, compressors=comp,
                                fill_value=0, dimension_names=[x["name"] for x in axes])
        root.attrs["ome"] = {"version": "0.5", "multiscales": ms}
    arr[:] = a
    return arr


# ---------------------------------------------------------------- numeric rules
def to_dtype(x, dtype):
    if np.issubdtype(np.dtype(dtype), np.integer):
        i = np.iinfo(dtype)
        return np.clip(np.rint(x), i.min, i.max).astype(dtype)
    return x.astype(dtype)


def resize_centres(a, shape):
    """Linear between voxel centres, samples outside clamped to the edge, no pre-filter; float64."""
    x = a.astype(np.float64)
    for ax, m in enumerate(shape):
        n = x.shape[ax]
        p = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
        i0 = np.minimum(np.floor(p).astype(int), max(n - 2, 0))
        i1 = np.minimum(i0 + 1, n - 1)
        t = (p - i0).reshape([-1 if k == ax else 1 for k in range(x.ndim)])
        x = np.take(x, i0, ax) * (1 - t) + np.take(x, i1, ax) * t
    return x


def pyramid(level0, n_levels, scale):
    cap = min(int(np.floor(np.log2(s))) for s in level0.shape)
    levels, scales = [level0], [list(scale)]
    for k in range(min(n_levels, cap)):
        levels.append(to_dtype(resize_centres(levels[-1], [s // 2 for s in levels[-1].shape]), level0.dtype))
        scales.append([v * 2.0 ** (k + 1) for v in scale])
    return levels, scales


def resize_corners(a, shape):
    """The resample rule: Gaussian (f-1)/2 where f > 1 (scipy defaults), then corner-aligned linear."""
    x = a.astype(np.float32)
    f = [i / o for i, o in zip(a.shape, shape)]
    if any(v > 1 for v in f):
        x = ndi.gaussian_filter(x, [max(0.0, (v - 1) / 2) for v in f])
    return ndi.zoom(x, [o / i for i, o in zip(a.shape, shape)], order=1)


def tiles(shape, ty, tx):
    for i in range(-(-shape[1] // ty)):
        for j in range(-(-shape[2] // tx)):
            yield i, j, slice(i * ty, min(shape[1], (i + 1) * ty)), slice(j * tx, min(shape[2], (j + 1) * tx))


def resample(v, ty, tx, vox_um, target_um):
    sc = [u / target_um for u in vox_um]
    shp = lambda s: [max(1, round(n * k)) for n, k in zip(s, sc)]
    rows = []
    for i in range(-(-v.shape[1] // ty)):
        row = []
        for j in range(-(-v.shape[2] // tx)):
            t = v[:, i * ty:(i + 1) * ty, j * tx:(j + 1) * tx]
            row.append(to_dtype(resize_corners(t, shp(t.shape)), v.dtype))
        rows.append(np.concatenate(row, 2))
    return np.concatenate(rows, 1), shp((v.shape[0], ty, tx))


def interface(v, sxy, sz, use_log, cutting=False):
    x = np.abs(v.astype(np.float32))
    if use_log:
        x = np.where(x > 0, np.log(np.where(x > 0, x, 1)), x).astype(np.float32)
    n = int(sxy)
    if n > 1:
        x = ndi.uniform_filter1d(x, n, axis=1)
        x = ndi.uniform_filter1d(x, n, axis=2)
    z0 = np.ceil(ndi.gaussian_filter1d(x, sz, axis=0, order=1).argmax(0) + 0.5 * sz).astype(np.int64)
    if cutting:
        z1 = np.abs(ndi.gaussian_filter1d(x, sz, axis=0)).argmax(0)
        z0 = np.minimum(z0, z1)
    return z0


def flatfield(stack):
    from basicpy import BaSiC

    b = BaSiC(get_darkfield=False, smoothness_flatfield=1, device="cpu")
    b.fit(np.asarray(stack))
    return np.asarray(b.flatfield, np.float32), np.asarray(b._flatfield_small, dtype=np.float32)


def roll_tile(t, corr):
    nz, h, w = t.shape
    c = corr[:h, :w].astype(np.float32)
    k = np.floor(c).astype(np.int64)
    f = (c - k).astype(np.float32)
    z = np.arange(nz)[:, None, None]
    a = np.take_along_axis(t, (z + k) % nz, 0).astype(np.float32)
    b = np.take_along_axis(t, (z + k + 1) % nz, 0).astype(np.float32)
    return (1 - f) * a + f * b


def focal(v, ty, tx, sxy, sz, use_log):
    z0 = interface(v, sxy, sz, use_log)
    full = [z0[i * ty:(i + 1) * ty, j * tx:(j + 1) * tx] / v.shape[0]
            for i in range(v.shape[1] // ty) for j in range(v.shape[2] // tx)]
    ff, small = flatfield(full)
    corr = ((ff - 1) * z0.mean()).astype(np.float32)
    out = np.empty_like(v)
    for _, _, ys, xs in tiles(v.shape, ty, tx):
        out[:, ys, xs] = to_dtype(roll_tile(v[:, ys, xs], corr), v.dtype)
    return z0, ff, small, corr, out


# ---------------------------------------------------------------- stack
def vox(x):
    return int(np.floor(x + 1e-6))


def cumulative(pairs, ids):
    alls = sorted({i for p in pairs for i in p[:2]})
    look = {(a, b): (x, y) for a, b, x, y in pairs}
    cum = {alls[0]: (0.0, 0.0)}
    for a, b in zip(alls, alls[1:]):
        dx, dy = look.get((a, b), (0.0, 0.0))
        cum[b] = (cum[a][0] + dx, cum[a][1] + dy)
    return {i: cum.get(i, (0.0, 0.0)) for i in ids}


def centre_and_canvas(px, ids, shape):
    m = ids[len(ids) // 2]
    px = {k: (x - px[m][0], y - px[m][1]) for k, (x, y) in px.items()}
    x0, y0 = min(x for x, _ in px.values()), min(y for _, y in px.values())
    nx = int(np.ceil(max(x for x, _ in px.values()) + shape[2] - x0))
    ny = int(np.ceil(max(y for _, y in px.values()) + shape[1] - y0))
    return {k: (x - x0, y - y0) for k, (x, y) in px.items()}, ny, nx


def ncc(a, b):
    h, w = a.shape[1:]
    m = min(h, w) // 4
    a = a[:, m:h - m, m:w - m].astype(np.float64)
    b = b[:, m:h - m, m:w - m].astype(np.float64)
    return float((((a - a.mean()) / (a.std() + 1e-8)) * ((b - b.mean()) / (b.std() + 1e-8))).mean())


def z_search(fixed, moving, interval, rng):
    d = min(fixed.shape[0], moving.shape[0])
    e = d - interval
    lo, hi = max(1, e - rng), min(d, e + rng)
    if lo >= hi:
        return e, 0.0
    best = (e, -np.inf)
    for o in range(lo, hi + 1):
        c = ncc(fixed[-o:], moving[:o])
        if c > best[1]:
            best = (o, c)
    return best


def rotate_planes(v, angle, tx, ty, cx, cy):
    """ITK Euler2D resampling in pixel units: out(p) = in(R (p - c) + c + t), linear, per plane."""
    import SimpleITK as sitk

    t = sitk.Euler2DTransform()
    t.SetCenter([cx, cy])
    t.SetAngle(angle)
    t.SetTranslation([tx, ty])
    out = np.empty(v.shape, np.float32)
    for k, p in enumerate(v.astype(np.float32)):
        pos = p[p > 0]
        im = sitk.GetImageFromArray(p)
        out[k] = sitk.GetArrayFromImage(sitk.Resample(im, im, t, sitk.sitkLinear, float(np.percentile(pos, 1)) if pos.size else 0.0))
    return out


def hann(fixed, moving):
    n = fixed.shape[0]
    if n <= 1:
        return moving if (moving > 0).sum() >= (fixed > 0).sum() else fixed
    w = (0.5 * (1 - np.cos(np.linspace(0, np.pi, n))))[:, None, None]
    f, m = fixed > 0, moving > 0
    out = np.zeros(fixed.shape, np.float32)
    mix = (1 - w) * fixed + w * moving
    out[f & m] = mix[f & m]
    out[f & ~m] = fixed[f & ~m]
    out[m & ~f] = moving[m & ~f]
    return out


def consistency(matches, conf, high):
    log = []
    if len(matches) < 3:
        return log
    for key in ("overlap_voxels", "blend_overlap_voxels"):
        med = float(np.median([m[key] for m in matches]))
        for i, m in enumerate(matches):
            if conf.get(m["moving_id"], 0.5) >= high or abs(m[key] - med) <= 0.3 * max(med, 1.0):
                continue
            nb = [float(matches[j][key]) for j in (i - 1, i + 1) if 0 <= j < len(matches)]
            new = int(np.median(nb))
            log.append([m["moving_id"], key, m[key], new])
            m[key] = new
    return log


DEFAULTS = dict(slicing_interval_mm=0.2, search_range_mm=0.1, use_expected_overlap=False, moving_z_first_index=8,
                z_overlap_min_corr=0.5, blend=False, blend_z_refine_vox=0, blend_z_refine_min_confidence=0.5,
                no_xy_shift=False, rotation_only=False, max_rotation_deg=1.0, accumulate_translations=False,
                confidence_weight_translations=False, max_pairwise_translation=0.0, translation_min_zcorr=0.2,
                translation_smooth_sigma=0.0, max_cumulative_drift_px=0.0, smooth_window=0, confidence_low=0.3,
                confidence_high=0.6, skip_error_transforms=False, skip_warning_transforms=False, load_min_zcorr=0.0,
                load_max_rotation=0.0, pyramid_resolutions=[10, 25, 50, 100], make_isotropic=True)


def stack(vols, ids, vox_um, shifts, tfm, **kw):
    """vols by id; tfm: id -> dict(angle, tx, ty, cx, cy, fixed_z, moving_z, conf, status, zcorr, rot, mtx, mty)."""
    a = dict(DEFAULTS, **kw)
    z_um = vox_um[0]
    first = vols[ids[0]]
    interval, srange = vox(a["slicing_interval_mm"] * 1000 / z_um), vox(a["search_range_mm"] * 1000 / z_um)
    if a["no_xy_shift"]:
        px, ny, nx = {i: (0.0, 0.0) for i in ids}, first.shape[1], first.shape[2]
    else:
        cum = cumulative(shifts, ids)
        px = {i: (x * 1000 / vox_um[2], y * 1000 / vox_um[1]) for i, (x, y) in cum.items()}
        px, ny, nx = centre_and_canvas(px, ids, first.shape)
    metric_gate = a["load_min_zcorr"] > 0 and a["load_max_rotation"] > 0
    use, pair = {}, {}
    for i in ids[1:]:
        t = tfm.get(i)
        if t is None:
            continue
        if t.get("metrics", True):
            pair[i] = (t["mtx"], t["mty"], t["zcorr"])
            if metric_gate:
                ok = t["zcorr"] >= a["load_min_zcorr"] and abs(t["rot"]) <= a["load_max_rotation"]
            else:
                ok = not ((t["status"] == "error" and a["skip_error_transforms"]) or
                          (t["status"] == "warning" and a["skip_warning_transforms"]))
            if not ok:
                continue
        use[i] = t
    if a["accumulate_translations"] and (use or pair):
        cx = cy = 0.0
        acc = []
        for i in ids[1:]:
            if i in pair and not (a["translation_min_zcorr"] > 0 and pair[i][2] < a["translation_min_zcorr"]):
                tx, ty = pair[i][:2]
                if a["max_pairwise_translation"] > 0 and np.hypot(tx, ty) >= 0.95 * a["max_pairwise_translation"]:
                    tx = ty = 0.0
                if a["confidence_weight_translations"]:
                    c = use[i]["conf"] if i in use else 1.0
                    tx, ty = tx * c, ty * c
                cx, cy = cx + tx, cy + ty
            acc.append((cx, cy))
        acc = np.array(acc)
        if a["translation_smooth_sigma"] > 0 and len(acc) >= 3:
            acc = ndi.gaussian_filter1d(acc, a["translation_smooth_sigma"], axis=0)
        if a["max_cumulative_drift_px"] > 0:
            r = np.hypot(acc[:, 0], acc[:, 1])
            k = np.where(r > a["max_cumulative_drift_px"], a["max_cumulative_drift_px"] / np.maximum(r, 1e-12), 1.0)
            acc = acc * k[:, None]
        for i, (x, y) in zip(ids[1:], acc):
            px[i] = (px[i][0] - x, px[i][1] - y)
        px, ny, nx = centre_and_canvas(px, ids, first.shape)
    lim = np.radians(a["max_rotation_deg"])
    clamp = (lambda v: float(np.clip(v, -lim, lim))) if a["max_rotation_deg"] > 0 else float
    smooth = {}
    if a["smooth_window"] > 0 and use:
        k = sorted(use)
        raw = np.array([clamp(use[i]["angle"]) for i in k])
        w = min(a["smooth_window"], len(raw))
        s = raw.copy()
        if w >= 2:
            s = np.convolve(raw, np.ones(w) / w, mode="same")
            s[:w // 2], s[-(w // 2):] = raw[:w // 2], raw[-(w // 2):]
        smooth = dict(zip(k, s))
    matches, zsrc = [], {}
    for p, i in zip(ids, ids[1:]):
        v, f = vols[i], vols[p]
        t = use.get(i)
        fz, mz = (t.get("fixed_z"), t.get("moving_z")) if t else (None, None)
        fb = False
        expect = max(0, v.shape[0] - a["moving_z_first_index"] - interval)
        if a["use_expected_overlap"]:
            mz, ov, corr, src = a["moving_z_first_index"], expect, 0.0, "expected"
            bl = ov
            conf = t["conf"] if t else (0.0 if i in tfm else None)
            if a["blend_z_refine_vox"] > 0 and ov > 0 and (conf is None or conf >= a["blend_z_refine_min_confidence"]):
                best = -np.inf
                for o in range(max(1, ov - a["blend_z_refine_vox"]), ov + 1):
                    c = ncc(f[-o:], v[mz:mz + o])
                    if c > best:
                        best, bl = c, o
        elif fz is not None:
            ov, corr, src = max(0, f.shape[0] - fz), 1.0, "registration"
            bl = ov
        else:
            mz = a["moving_z_first_index"]
            ov, corr = z_search(f, v, interval, srange)
            src = "correlation"
            if a["z_overlap_min_corr"] > 0 and corr < a["z_overlap_min_corr"]:
                ov, fb, src = expect, True, "correlation_fallback"
            else:
                ov = max(0, ov - mz)  # FIX: the search counts from plane 0, the slice starts at mz
            bl = ov
        zsrc[i] = src
        matches.append(dict(fixed_id=p, moving_id=i, overlap_voxels=ov, blend_overlap_voxels=bl, moving_z_start=mz,
                            correlation=corr, correlation_fallback_used=fb))
    z_csv = [dict(m) for m in matches]
    fixes = consistency(matches, {i: t["conf"] for i, t in use.items()}, a["confidence_high"])
    depth = first.shape[0] + sum(max(0, vols[m["moving_id"]].shape[0] - m["moving_z_start"] - m["overlap_voxels"]) for m in matches)
    out = np.zeros((depth, ny, nx), np.float32)

    def place(v, i):
        dx, dy = round(px[i][0]), round(px[i][1])
        ys, xs = max(0, dy), max(0, dx)
        ye, xe = min(ny, dy + v.shape[1]), min(nx, dx + v.shape[2])
        return v[:, ys - dy:ye - dy, xs - dx:xe - dx], ys, ye, xs, xe

    s, ys, ye, xs, xe = place(first.astype(np.float32), ids[0])
    out[:first.shape[0], ys:ye, xs:xe] = s
    cur = first.shape[0]
    actions, gains = {}, {}
    for m in matches:
        i, ov = m["moving_id"], m["overlap_voxels"]
        bl = min(m["blend_overlap_voxels"], ov)
        v = vols[i][m["moving_z_start"]:].astype(np.float32)
        t = use.get(i)
        act = "none"
        if t is not None:
            if t["conf"] < a["confidence_low"]:
                act = "skip"
            else:
                rot_only = t["conf"] < a["confidence_high"] or a["rotation_only"] or a["accumulate_translations"]
                ang = smooth.get(i, clamp(t["angle"]))
                tx, ty = (0.0, 0.0) if rot_only else (t["tx"], t["ty"])
                if abs(ang) < 0.00175 and abs(tx) < 1 and abs(ty) < 1:
                    act = "identity"
                else:
                    act = "rotation" if rot_only else "full"
                    v = rotate_planes(v, ang, tx, ty, t["cx"], t["cy"])
        actions[i] = act
        s, ys, ye, xs, xe = place(v, i)
        zs = cur - ov
        ze = min(zs + s.shape[0], depth)
        s = s[:ze - zs]
        if a["blend"] and bl > 0 and zs < cur:
            old = out[cur - bl:cur, ys:ye, xs:xe]
            new = s[ov - bl:ov]
            both = (old > 0) & (new > 0)
            if both.sum() > 1000:
                mo, mn = np.median(old[both]), np.median(new[both])
                if mo > 1e-6 and mn > 1e-6:
                    g = np.float32(np.clip(mo / mn, 0.5, 2.0))
                    if abs(g - 1) > 0.01:
                        s = s * g
                        new = s[ov - bl:ov]
                        gains[i] = float(g)
            out[cur - bl:cur, ys:ye, xs:xe] = hann(old, new)
            out[cur:ze, ys:ye, xs:xe] = s[ov:]
        else:
            out[zs:ze, ys:ye, xs:xe] = s
        cur = ze
    dec = []
    for m in matches:
        i = m["moving_id"]
        t = use.get(i)
        dec.append(dict(slice_id=i, fixed_id=m["fixed_id"], transform_loaded=t is not None, transform_source="automated",
                        manual_override=False, confidence="" if t is None else round(t["conf"], 4), overlap_source=zsrc[i],
                        overlap_voxels=m["overlap_voxels"], blend_overlap_voxels=m["blend_overlap_voxels"],
                        correlation=round(m["correlation"], 4)))
    return dict(out=out, px=px, canvas=[ny, nx], z_matches=z_csv, decisions=dec, corrections=fixes, actions=actions, gains=gains)


def analysis_pyramid(v, vox_um, targets, isotropic=True):
    """Level k from v (k = 0) or from level 0 (k > 0): Gaussian (f-1)/2, boundary mirror, then voxel-centre linear."""
    base = min(vox_um)
    tg = sorted(t for t in targets if t >= base)
    levels, scales = [], []
    for k, t in enumerate(tg):
        f = [t / u for u in vox_um] if isotropic else [t / base] * v.ndim
        shp = [max(1, int(np.floor(n / q + 1e-9))) for n, q in zip(v.shape, f)]
        src = v if k == 0 else levels[0]
        q = [i / o for i, o in zip(src.shape, shp)]
        x = ndi.gaussian_filter(src.astype(np.float64), [max(0.0, (r - 1) / 2) for r in q], mode="mirror")
        levels.append(resize_centres(x, shp).astype(np.float32))
        scales.append([u * r for u, r in zip(vox_um, f)])
    return levels, scales


# ---------------------------------------------------------------- cases
def input_case(root, tmp, name, a, chunks, vox_um, fmt, codec, shard=None, unit="millimeter"):
    d = tmp / f"{name}.ome.zarr"
    k = {"millimeter": 1e-3, "micrometer": 1.0, "nanometer": 1e3, "meter": 1e-6, None: 1e-3}[unit]
    write_omezarr(d, a, chunks, [u * k for u in vox_um], fmt, codec, shard, unit)
    zip_dir(d, root / "inputs" / f"{name}.zip")
    return a


def emit(root, stage, name, params, arrays, meta, tol):
    d = root / stage / name
    d.mkdir(parents=True, exist_ok=True)
    write_npz(d / "expected.npz", arrays)
    dump(d / "case.json", dict(stage=stage, params=params, tolerance=tol,
                               arrays={k: dict(shape=list(v.shape), dtype=str(v.dtype)) for k, v in arrays.items()}, **meta))


def some_planes(v):
    n = v.shape[0]
    return np.array(sorted({0, 1, n // 4, n // 2, (3 * n) // 4, n - 1}))


def aip_cases(root, inputs, png=True):
    for name, (v, ty, tx, um) in inputs.items():
        e = v.astype(np.float64).mean(0).astype(np.float32)
        lv, sc = pyramid(e, 5, um[1:])
        arr = {f"level{k}": x for k, x in enumerate(lv)}
        if png:
            lo, hi = np.percentile(e, 0.1), np.percentile(e, 99.9)
            n = np.clip((e.astype(np.float64) - lo) / (hi - lo), 0, 1) if hi > lo else np.zeros(e.shape)
            arr["png16"] = np.rint(n * 65535).astype(np.uint16)
        emit(root, "aip", name, dict(input=f"inputs/{name}.zip", n_levels=5), arr,
             dict(voxel_size_um=sc, chunks=[ty, tx]), dict(rel=2e-6, abs=1e-4, png16_abs=1))


def resample_cases(root, inputs, todo):
    for name, src, r, nl in todo:
        v, ty, tx, um = inputs[src]
        out, ch = resample(v, ty, tx, um, r)
        lv, sc = pyramid(out, nl, [r] * 3)
        tol = dict(rel=1e-5, abs=1e-3) if v.dtype == np.float32 else dict(abs=1, max_fraction_off=0.01)
        emit(root, "resample", name, dict(input=f"inputs/{src}.zip", resolution=r, n_levels=nl),
             {f"level{k}": x for k, x in enumerate(lv)}, dict(voxel_size_um=sc, chunks=ch), tol)


def focal_cases(root, inputs, todo):
    for name, src, sxy, sz, log in todo:
        v, ty, tx, um = inputs[src]
        z0, ff, small, corr, out = focal(v, ty, tx, sxy, sz, log)
        pl = some_planes(out)
        lv, sc = pyramid(out, 5, um)
        emit(root, "focal", name, dict(input=f"inputs/{src}.zip", sigma_xy=sxy, sigma_z=sz, use_log=log, n_levels=5),
             dict(z0=z0.astype(np.int16), flatfield=ff, flatfield_128=small, corr=corr, planes=out[pl], level2=lv[2] if len(lv) > 2 else lv[-1],
                  mean_per_plane=out.astype(np.float64).mean((1, 2))),
             dict(plane_index=pl, z0_mean=float(z0.mean()), shape=out.shape, voxel_size_um=sc),
             dict(z0_equal_fraction=0.999, flatfield_abs=2e-5, corr_abs=1e-3, roll_with_given_corr=dict(rel=1e-5, abs=1e-3, int_abs=1)))


def euler3d_text(t):
    p = [0, 0, t["angle"], t["tx"], t["ty"], 0]
    f = [t["cx"], t["cy"], 0, 0]
    return ("#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\n"
            "Parameters: " + " ".join(f"{x:.17g}" for x in p) + "\nFixedParameters: " + " ".join(f"{x:.17g}" for x in f) + "\n")


def euler2d_text(t):
    return ("#Insight Transform File V1.0\n#Transform 0\nTransform: Euler2DTransform_double_2_2\n"
            f"Parameters: {t['angle']:.17g} {t['tx']:.17g} {t['ty']:.17g}\nFixedParameters: {t['cx']:.17g} {t['cy']:.17g}\n")


def write_transforms(d, tfm):
    for i, t in tfm.items():
        q = d / f"slice_z{i:02d}_normalize"
        q.mkdir(parents=True, exist_ok=True)
        (q / "transform.tfm").write_text(euler2d_text(t) if t.get("kind") == "euler2d" else euler3d_text(t))
        if t.get("fixed_z") is not None:
            (q / "offsets.txt").write_text(f"{t['fixed_z']}\n{t['moving_z']}\n")
        if t.get("metrics", True):
            val = dict(registration_confidence=t["conf"], translation_x=t["mtx"], translation_y=t["mty"],
                       z_correlation=t["zcorr"], rotation=t["rot"])
            dump(q / "pairwise_registration_metrics.json",
                 dict(overall_status=t["status"], metrics={k: dict(value=v) for k, v in val.items()}))


def T(angle_deg=0.0, tx=0.0, ty=0.0, c=(32.0, 32.0), fixed_z=None, moving_z=None, conf=1.0, status="ok", zcorr=0.9, **kw):
    return dict(angle=float(np.radians(angle_deg)), tx=tx, ty=ty, cx=c[0], cy=c[1], fixed_z=fixed_z, moving_z=moving_z, conf=conf,
                status=status, zcorr=zcorr, rot=angle_deg, mtx=kw.pop("mtx", tx), mty=kw.pop("mty", ty), **kw)


def slice_set(root, tmp, name, seed, n, z, yx, step, um, dtype="uint16", first_id=0, skip=(), fmt="v2", codec="lz4", gain=True, frac=0.37):
    vols, offs = slices(seed, n, z, yx, step, dtype, gain=gain)
    ids = [i for i in range(first_id, first_id + n + len(skip)) if i not in skip]
    d = tmp / name
    if d.exists():
        shutil.rmtree(d)
    d.mkdir(parents=True)
    for i, v in zip(ids, vols):
        write_omezarr(d / f"slice_z{i:02d}_normalize.ome.zarr", v, (min(z, 16), 32, 32), [u * 1e-3 for u in um], fmt, codec)
    rows = []
    for k, (a, b) in enumerate(zip(ids, ids[1:])):
        dx, dy = (offs[k + 1][0] - offs[k][0] + frac) * um[2] / 1000, (offs[k + 1][1] - offs[k][1] - frac) * um[1] / 1000
        rows.append((a, b, round(dx, 7), round(dy, 7)))
    with (d / "shifts_xy.csv").open("w", newline="") as f:
        w = csv.writer(f)
        w.writerow("fixed_id moving_id x_shift y_shift x_shift_mm y_shift_mm".split())
        for a, b, x, y in rows:
            w.writerow([a, b, round(x * 1000 / um[2], 4), round(y * 1000 / um[1], 4), x, y])
    zip_dir(d, root / "inputs" / f"{name}.zip")
    return dict(zip(ids, vols)), ids, rows


def stack_case(root, tmp, name, sset, setname, um, tfm, full=False, **kw):
    vols, ids, rows = sset
    r = stack(vols, ids, um, rows, tfm, **kw)
    pyr = kw.get("pyramid_resolutions", [10, 25, 50, 100])
    lv, sc = analysis_pyramid(r["out"], um, pyr, kw.get("make_isotropic", True))
    params = dict(kw, slices=f"inputs/{setname}.zip", shifts="shifts_xy.csv")
    if tfm:
        d = tmp / f"{name}_transforms"
        if d.exists():
            shutil.rmtree(d)
        write_transforms(d, tfm)
        zip_dir(d, root / "stack" / name / "transforms.zip")
        params["transforms_dir"] = "transforms.zip"
    idx = np.arange(r["out"].shape[0]) if full else np.arange(0, r["out"].shape[0], 3)
    arrays = {"volume_planes": r["out"][idx]}
    for k, x in enumerate(lv):
        if k or x.shape != r["out"].shape:
            arrays[f"level{k}"] = x
    emit(root, "stack", name, params, arrays,
         dict(volume_shape=r["out"].shape, plane_index=idx, voxel_size_um=sc, level_shapes=[x.shape for x in lv], canvas=r["canvas"],
              position_px={str(k): v for k, v in r["px"].items()}, z_matches=r["z_matches"], decisions=r["decisions"],
              corrections=r["corrections"], actions={str(k): v for k, v in r["actions"].items()}, gains={str(k): v for k, v in r["gains"].items()}),
         dict(volume=dict(rel=1e-4, abs=0.02, max_fraction_off=0.0005), levels=dict(rel=1e-4, abs=0.02), correlation_abs=1e-4,
              note="volume_planes = the assembled volume before the analysis pyramid; compare level0 when its shape differs"))


# ---------------------------------------------------------------- primitives
def primitives(root, seed, sizes=(37, 23, 41)):
    rng = np.random.default_rng(seed)
    d = root / "prim"
    index = []

    def put(op, name, args, tol, **arr):
        write_npz(d / f"{op}_{name}.npz", arr)
        index.append(dict(file=f"{op}_{name}.npz", op=op, args=args, tolerance=tol, arrays=list(arr)))

    line = (rng.gamma(2.0, 50.0, size=(6, sizes[0]))).astype(np.float32)
    outs = {"in": line}
    for s in (0.5, 0.75, 1.0, 1.6429, 2.0, 3.5, 12.0):
        for o in (0, 1):
            outs[f"s{s}_o{o}"] = ndi.gaussian_filter1d(line, s, axis=1, order=o)
            outs[f"kernel_s{s}_o{o}"] = ndi.gaussian_filter1d(np.eye(1, 2 * int(4 * s + 0.5) + 1, int(4 * s + 0.5)).ravel(), s, order=o, mode="constant")
    put("gaussian1d", "reflect", dict(axis=1, mode="reflect", truncate=4.0, keys="s<sigma>_o<order>; kernel_* = response to a unit impulse at its centre, float64"), dict(rel=1e-5, abs=1e-3), **outs)
    outs = {"in": line}
    for s in (0.5, 0.75, 2.0, 4.5):
        outs[f"s{s}"] = ndi.gaussian_filter1d(line.astype(float), s, axis=1, mode="mirror")
    put("gaussian1d", "mirror", dict(axis=1, mode="mirror", truncate=4.0), dict(rel=1e-9), **outs)
    img = rng.gamma(2.0, 50.0, size=sizes[1:]).astype(np.float32)
    outs = {"in": img}
    for n in range(1, 7):
        outs[f"n{n}"] = ndi.uniform_filter(img, n)
    put("uniform2d", "reflect", dict(mode="reflect", note="even n: window is [i-n/2, i+n/2-1]"), dict(rel=1e-5, abs=1e-3), **outs)
    vol = rng.gamma(2.0, 50.0, size=(11, 17, 14)).astype(np.float32)
    outs = {"in": vol}
    for shp in ((4, 3, 5), (11, 8, 1), (22, 17, 20), (1, 1, 1), (5, 9, 14)):
        outs["x".join(map(str, shp))] = ndi.zoom(vol, [o / i for i, o in zip(vol.shape, shp)], order=1)
    put("zoom3d", "linear", dict(order=1, grid_mode=False, keys="output shape"), dict(rel=1e-5, abs=1e-3), **outs)
    outs = {"in": vol}
    for shp in ((5, 8, 7), (3, 4, 4), (7, 13, 9), (20, 17, 14)):
        outs["x".join(map(str, shp))] = resize_centres(vol, shp)
    put("resize3d", "centres", dict(keys="output shape; no pre-filter; outside clamped"), dict(rel=1e-6), **outs)
    outs = {"in": vol}
    for shp in ((4, 3, 5), (8, 8, 3), (15, 30, 20)):
        outs["x".join(map(str, shp))] = resize_corners(vol, shp)
    put("resize3d", "corners_blur", dict(keys="output shape; the resample rule"), dict(rel=1e-5, abs=1e-3), **outs)
    rng.uniform(size=(2, 400))  # what follows keeps its numbers
    pl = np.pad(rng.gamma(2.0, 50.0, size=(40, 46)), 3).astype(np.float32)[None]
    outs, par = {"in": pl[0]}, {}
    for k, (ang, tx, ty) in enumerate(((0.7, 0, 0), (-1.0, 2.3, -1.6), (0.05, 4.0, 0.5), (3.0, -7.25, 6.75))):
        outs[f"t{k}"] = rotate_planes(pl, np.radians(ang), tx, ty, 25.5, 22.0)[0]
        par[f"t{k}"] = dict(angle_deg=ang, tx=tx, ty=ty, cx=25.5, cy=22.0)
    pos = pl[pl > 0]
    put("euler2d", "itk", dict(cases=par, fill=float(np.percentile(pos, 1)), note="out(p)=in(R(p-c)+c+t), p=(x,y); inside the half-voxel border the edge voxel is repeated; fill outside [-0.5,n-0.5]"),
        dict(rel=1e-5, abs=1e-3, max_fraction_off=0.002), **outs)
    x = rng.gamma(2.0, 50.0, size=1001).astype(np.float32)
    q = np.array([0, 0.1, 1, 25, 50, 66.6, 99, 99.9, 100.0])
    put("percentile", "linear", dict(method="linear, (n-1)*q/100"), dict(rel=1e-6), **{"in": x, "q": q, "out": np.percentile(x.astype(float), q)})
    base = ndi.gaussian_filter(rng.normal(size=(96, 110)), 2.0)
    sh = [(3, -5), (-7, 2), (0, 0), (11, 9)]
    fx = base[16:80, 20:84] + 1
    put("phase_correlation", "integer", dict(note="moved[k](p) = fixed(p + shift): content of moved lies at -shift; whole-pixel peaks; shift (dy, dx)"),
        dict(exact=True), fixed=fx.astype(np.float32), moved=np.stack([base[16 + a:80 + a, 20 + b:84 + b] + 1 for a, b in sh]).astype(np.float32),
        shift=np.array(sh), noise=(0.05 * rng.normal(size=(64, 64))).astype(np.float32))
    w = {f"n{n}": 0.5 * (1 - np.cos(np.linspace(0, np.pi, n))) for n in (2, 3, 7, 20)}
    put("hann", "ramp", dict(), dict(rel=1e-12, abs=1e-12), **w)
    for name, (ty, tx, n, noise) in dict(a=(32, 32, 12, 0.02), b=(48, 40, 9, 0.05), c=(160, 144, 6, 0.03)).items():
        y, xx = np.linspace(-1, 1, ty)[:, None], np.linspace(-1, 1, tx)[None, :]
        f = 1 + 0.18 * (0.9 * y**2 + 0.6 * xx**2 + 0.25 * xx * y)
        st = np.stack([np.ceil(48 * (rng.uniform(0.25, 0.4) * f / f.mean() + noise * rng.normal(size=(ty, tx)))) / 48 for _ in range(n)])
        ff, small = flatfield(st)
        import torch
        import torch.nn.functional as F
        work = F.interpolate(torch.from_numpy(st[:1, None].astype(np.float32)), (128, 128), mode="bilinear", align_corners=True, antialias=True)[0, 0].numpy()
        put("basic", name, dict(get_darkfield=False, smoothness_flatfield=1.0, fitting_mode="approximate", working_size=128),
            dict(flatfield_abs=2e-5, work0_abs=1e-4), **{"in": st.astype(np.float32),
                                                       "flatfield": ff, "flatfield_128": small, "work0": work.astype(np.float32)})
    dump(d / "index.json", index)


def versions():
    import importlib.metadata as md

    return {p: md.version(p) for p in ("numpy", "scipy", "scikit-image", "zarr", "numcodecs", "SimpleITK", "basicpy", "torch", "torch-dct")}


def main(root):
    tmp = root / "_tmp"
    for d in ("inputs", "aip", "resample", "focal", "stack", "prim", "_tmp"):
        if (root / d).exists():
            shutil.rmtree(root / d)
    U = (3.5, 2.0, 2.0)
    inp = {}
    inp["m_f32_v2lz4"] = (input_case(root, tmp, "m_f32_v2lz4", mosaic(SEED, 48, 32, 32, 3, 4), (48, 32, 32), U, "v2", "lz4"), 32, 32, U)
    inp["m_u16_v3shard"] = (input_case(root, tmp, "m_u16_v3shard", mosaic(SEED + 1, 40, 32, 40, 3, 4, dtype="uint16", depth=12), (40, 32, 40), U, "v3", "zstd", shard=(40, 96, 80)), 32, 40, U)
    inp["m_f32_raw_edge"] = (input_case(root, tmp, "m_f32_raw_edge", mosaic(SEED + 2, 24, 24, 24, 2, 3, ey=11, ex=7, depth=8, amp=3), (24, 24, 24), U, "v2", "raw", unit="micrometer"), 24, 24, U)
    inp["m_u8_v3raw"] = (input_case(root, tmp, "m_u8_v3raw", mosaic(SEED + 3, 20, 25, 21, 2, 3, dtype="uint8", depth=7, amp=3), (20, 25, 21), (5.0, 4.0, 3.0), "v3", "raw", unit=None), 25, 21, (5.0, 4.0, 3.0))
    inp["m_i16_v3lz4"] = (input_case(root, tmp, "m_i16_v3lz4", mosaic(SEED + 4, 21, 18, 22, 3, 2, dtype="int16", depth=7, amp=3), (21, 18, 22), (2.0, 2.0, 2.0), "v3", "lz4"), 18, 22, (2.0, 2.0, 2.0))
    aip_cases(root, inp)
    resample_cases(root, inp, [("f32_10um", "m_f32_v2lz4", 10.0, 5), ("u16_7.3um", "m_u16_v3shard", 7.3, 3), ("f32_edge_10um", "m_f32_raw_edge", 10.0, 5),
                               ("f32_edge_3um", "m_f32_raw_edge", 3.0, 1), ("u8_9um", "m_u8_v3raw", 9.0, 2), ("i16_30um_tiny", "m_i16_v3lz4", 30.0, 5)])
    focal_cases(root, inp, [("f32", "m_f32_v2lz4", 3.0, 2.0, False), ("u16", "m_u16_v3shard", 3.0, 2.0, False), ("f32_log_s4", "m_f32_v2lz4", 4.0, 1.5, True),
                            ("f32_edge", "m_f32_raw_edge", 3.0, 2.0, False)])
    um = (10.0, 10.0, 10.0)
    sa = slice_set(root, tmp, "slices_a", SEED + 10, 4, 24, 64, 14, um)
    stack_case(root, tmp, "expected_plain", sa, "slices_a", um, {}, slicing_interval_mm=0.14, use_expected_overlap=True, moving_z_first_index=2)
    stack_case(root, tmp, "corr_blend", sa, "slices_a", um, {}, full=True, slicing_interval_mm=0.15, search_range_mm=0.05, moving_z_first_index=0, blend=True)
    stack_case(root, tmp, "corr_skip2_blend", sa, "slices_a", um, {}, slicing_interval_mm=0.15, search_range_mm=0.05, moving_z_first_index=2, blend=True)
    stack_case(root, tmp, "fallback_noshift", sa, "slices_a", um, {}, slicing_interval_mm=0.18, search_range_mm=0.02, moving_z_first_index=1, no_xy_shift=True, blend=True, pyramid_resolutions=[20, 40])
    tf = {1: T(0.8, 2.4, -1.7, fixed_z=14, moving_z=2, conf=0.9), 2: T(-1.6, 5.0, 1.0, fixed_z=15, moving_z=1, conf=0.45),
          3: T(0.4, -3.0, 2.0, fixed_z=13, moving_z=3, conf=0.2)}
    stack_case(root, tmp, "transforms_gates", sa, "slices_a", um, tf, slicing_interval_mm=0.14, blend=True)
    um2 = (8.0, 10.0, 10.0)
    sb = slice_set(root, tmp, "slices_b", SEED + 20, 5, 20, 48, 12, um2, dtype="float32", first_id=3, skip=(6,), fmt="v3", codec="zstd")
    tb = {4: T(0.5, 3.2, -2.1, (24, 24), conf=0.8), 5: T(-0.9, -4.4, 1.3, (24, 24), conf=0.5, zcorr=0.1), 7: T(0.3, 12.0, 9.0, (24, 24), conf=0.7),
          8: T(1.4, 1.5, 2.5, (24, 24), conf=0.65, status="error")}
    stack_case(root, tmp, "accumulate", sb, "slices_b", um2, tb, slicing_interval_mm=0.096, use_expected_overlap=True, moving_z_first_index=1,
               accumulate_translations=True, max_pairwise_translation=14.0, confidence_weight_translations=True,
               translation_smooth_sigma=0.8, max_cumulative_drift_px=4.0, smooth_window=3, skip_error_transforms=True)
    tc = {4: T(0.0, 0, 0, (24, 24), fixed_z=13, moving_z=1, conf=0.5), 5: T(0.0, 0, 0, (24, 24), fixed_z=2, moving_z=1, conf=0.5),
          7: T(0.0, 0, 0, (24, 24), fixed_z=13, moving_z=1, conf=0.5), 8: T(0.6, 0, 0, (24, 24), fixed_z=5, moving_z=1, conf=0.95, kind="euler2d")}
    stack_case(root, tmp, "consistency_euler2d", sb, "slices_b", um2, tc, slicing_interval_mm=0.096, blend=True, make_isotropic=False, pyramid_resolutions=[10, 30])
    stack_case(root, tmp, "blend_refine", sb, "slices_b", um2, {}, slicing_interval_mm=0.096, use_expected_overlap=True, moving_z_first_index=1, blend=True, blend_z_refine_vox=4)
    primitives(root, SEED + 100)
    dump(root / "versions.json", versions())
    shutil.rmtree(tmp)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
