#!/usr/bin/env python3
"""Pack a folder of CZI fixtures (*.czi, neg/*.czi, manifest.json) into files.zip and manifest.json of this folder.
usage: pack.py FOLDER

Broken files are kept as edits of a whole one; pixels as their SHA-256."""
import json, os, sys, zipfile

SRC, HERE = sys.argv[1], os.path.dirname(os.path.abspath(__file__))
KEEP = ('file', 'sha256', 'version', 'directory_position', 'metadata_position', 'attachment_directory_position', 'dims', 'attachments', 'xml_sha256',
        'total_bounding_rectangle', 'total_bounding_rectangle_no_pyramid', 'scenes_bounding_rectangle_no_pyramid', 'channel_pixel_types')
SUB = ('pixel_type', 'compression', 'file_position', 'pyramid_type', 'dims', 'metadata_offset', 'metadata_size', 'data_offset', 'data_size',
       'attachment_offset', 'attachment_size')


def expect(e):
    return {k: e[k] for k in ('shape', 'dtype', 'sha256')}


def read(name):
    with open(os.path.join(SRC, name), 'rb') as f:
        return f.read()


def edits(base, b):
    """[[offset, hex], ...] that turn base into b, which is not longer"""
    out, i = [], 0
    while i < len(b):
        if b[i] == base[i]:
            i += 1
            continue
        k = i
        while k < len(b) and b[k] != base[k]:
            k += 1
        out.append([i, b[i:k].hex()])
        i = k
    return out


m = json.load(open(os.path.join(SRC, 'manifest.json')))
files = []
for f in m['files']:
    o = {k: f[k] for k in KEEP if k in f}
    o['subblocks'] = [{**{k: s[k] for k in SUB}, 'expect': expect(s['decoded'])} for s in f['subblocks']]
    o['composites'] = [{'name': c['name'], 'args': c['args'], 'expect': expect(c['expect'])} for c in f.get('composites', [])]
    files.append(o)
bases = {f['file']: read(f['file']) for f in m['files']}
negatives, whole = [], []
for n in m['negatives']:
    b = read(n['file'])
    near = [(sum(len(h) // 2 + 8 for _, h in e), name, e) for name, base in bases.items() if len(base) >= len(b) for e in [edits(base, b)]]
    cost, name, e = min(near) if near else (1 << 30, '', [])
    o = {'file': n['file'], 'why': n['why'], 'must': n['must']}
    if cost < len(b) // 4 or not b:
        o.update(base=name, bytes=len(b), edits=e)
    else:
        whole.append(n['file'])
    negatives.append(o)
with open(os.path.join(HERE, 'manifest.json'), 'w') as f:
    f.write('{"files": [\n' + ',\n'.join(json.dumps(o, separators=(',', ':')) for o in files) + '\n], "negatives": [\n' +
            ',\n'.join(json.dumps(o, separators=(',', ':')) for o in negatives) + '\n]}\n')
with zipfile.ZipFile(os.path.join(HERE, 'files.zip'), 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as z:
    for name in sorted(bases) + whole:
        z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), read(name), zipfile.ZIP_DEFLATED)
print(len(files), 'files,', len(negatives), 'broken ones,', len(whole), 'of them whole:', *whole)
