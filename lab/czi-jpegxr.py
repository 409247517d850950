#!/usr/bin/env python3
"""czi-jpegxr.py IN.czi OUT.czi TILES: the first TILES tiles of an uncompressed CZI file of 16-bit grey pixels, as JPEG XR, for
`make bench PARTS=czi`. imagecodecs encodes them, by jxrlib, as microscopes do (lossy, quality 0.9)."""

import struct
import sys

import imagecodecs
import numpy

HEADER = 32  # of a segment: name, bytes allocated, bytes used
JPEG_XR = 4


def segment(data, at):
    """The name and data of a segment."""
    name, _, used = struct.unpack_from("<16sqq", data, at)
    return name.rstrip(b"\0"), data[at + HEADER : at + HEADER + used]


def packed(name, data):
    """A segment, filled up to a multiple of 32 bytes."""
    data = bytes(data) + bytes(-len(data) % 32)
    return struct.pack("<16sqq", name, len(data), len(data)) + data


def entries(directory):
    """The entries of the directory."""
    count = struct.unpack_from("<i", directory)[0]
    at = 128
    for _ in range(count):
        n = 32 + 20 * struct.unpack_from("<i", directory, at + 28)[0]
        yield bytearray(directory[at : at + n])
        at += n


def size(entry, name):
    for k in range(struct.unpack_from("<i", entry, 28)[0]):
        dimension, _, length = struct.unpack_from("<4sii", entry, 32 + 20 * k)
        if dimension.rstrip(b"\0") == name:
            return length
    return 1


def moved(entry, to):
    """The entry of a sub-block that lies elsewhere, compressed."""
    struct.pack_into("<q", entry, 6, to)
    struct.pack_into("<i", entry, 18, JPEG_XR)
    return bytes(entry)


def main(source, target, tiles):
    with open(source, "rb") as f:
        data = memoryview(f.read())
    header = bytearray(segment(data, 0)[1])
    directory_at, metadata_at = struct.unpack_from("<qq", header, 52)
    listed = list(entries(segment(data, directory_at)[1]))[:tiles]
    with open(target, "wb") as out:
        out.write(packed(b"ZISRAWFILE", header))
        new = []
        for entry in listed:
            (at,) = struct.unpack_from("<q", entry, 6)
            _, block = segment(data, at)
            metadata, _, length = struct.unpack_from("<iiq", block)
            start = max(256, 16 + len(entry)) + metadata
            pixels = numpy.frombuffer(block[start : start + length], "<u2").reshape(size(entry, b"Y"), size(entry, b"X"))
            image = imagecodecs.jpegxr_encode(pixels, level=0.9)
            entry = moved(entry, out.tell())
            fixed = struct.pack("<iiq", 0, 0, len(image)) + entry
            out.write(packed(b"ZISRAWSUBBLOCK", fixed + bytes(256 - len(fixed)) + image))
            new.append(entry)
        places = out.tell()
        out.write(packed(b"ZISRAWDIRECTORY", struct.pack("<i124x", len(new)) + b"".join(new)))
        struct.pack_into("<qq", header, 52, places, out.tell())
        out.write(packed(b"ZISRAWMETADATA", segment(data, metadata_at)[1]))
        out.seek(0)
        out.write(packed(b"ZISRAWFILE", header))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
