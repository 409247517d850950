"""Writes czi.json: the JPEG XR sub-blocks of a CZI corpus, whose manifest has the SHA-256 of their pixels.  python3 czi.py CORPUS > czi.json"""
import base64, json, os, sys

corpus = sys.argv[1]
tiles = []
for f in json.load(open(os.path.join(corpus, 'manifest.json')))['files']:
    data = open(os.path.join(corpus, f['file']), 'rb').read()
    for i, s in enumerate(f['subblocks']):
        if s['compression'] == 'jpegxr':
            tiles.append({'Name': f"{f['file']} {i}", 'Format': s['pixel_type'].replace('Bgr', 'BGR'), 'Shape': s['decoded']['shape'][:2],
                          'Sum': s['decoded']['sha256'], 'Data': base64.b64encode(data[s['data_offset']:][:s['data_size']]).decode()})
json.dump(tiles, sys.stdout, indent='\t')
print()
