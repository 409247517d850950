package czi

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"math"
)

// SubBlock holds the directory entry of a sub-block.
type SubBlock struct {
	Offset      int64 // of its segment in the file
	Pixels      PixelType
	Compression Compression
	Part        int // of the file that it lies in; 0: this one
	Pyramid     int // pyramid type of the directory entry (legacy); see Level0

	Rect         image.Rectangle // in the common pixel plane
	StoredWidth  int             // pixels held
	StoredHeight int

	C, Z, T, S, M, R, I, H, V, B int // 0 for a dimension that the sub-block does not have
	dims                         uint16
}

// SubBlock returns entry i of the directory.
func (f *File) SubBlock(i int) SubBlock {
	e := &f.entries[i]
	k := &f.kinds[e.kind]
	v := &k.views
	sb := SubBlock{Offset: e.pos, Pixels: k.pixel, Compression: k.compression, Part: int(k.part), Pyramid: int(k.pyramid),
		Rect:        image.Rectangle{Min: image.Pt(int(e.x), int(e.y)), Max: image.Pt(int(e.x)+int(e.w), int(e.y)+int(e.h))},
		StoredWidth: int(e.sw), StoredHeight: int(e.sh), C: int(e.c), Z: int(e.z), T: int(e.t), S: int(e.s),
		R: int(v.r), I: int(v.i), H: int(v.h), V: int(v.v), B: int(v.b), dims: k.dims}
	if e.m != noM {
		sb.M = int(e.m)
	}
	return sb
}

// Has reports whether the entry has a dimension, such as 'M'.
func (s SubBlock) Has(dimension byte) bool {
	d := dimensionOf(dimension)
	return d >= 0 && s.dims>>d&1 != 0
}

// Level0 reports whether the sub-block is a tile of full resolution, not a part of the pyramid.
func (s SubBlock) Level0() bool { return s.Rect.Dx() == s.StoredWidth && s.Rect.Dy() == s.StoredHeight }

// Bytes returns the size of the decoded pixels; 0 if they cannot be read.
func (s SubBlock) Bytes() int {
	n := tileBytes(s.StoredWidth, s.StoredHeight, s.Pixels.Bytes())
	return int(n)
}

// tileBytes multiplies; 0 where a factor is not positive.
func tileBytes(w, h, pixel int) int64 {
	if w <= 0 || h <= 0 || pixel <= 0 || int64(w)*int64(h) > math.MaxInt64/int64(pixel) {
		return 0
	}
	return int64(w) * int64(h) * int64(pixel)
}

// Plane returns the plane of a channel, depth and time, at the first position along all other dimensions.
func (f *File) Plane(c, z, t int) Plane {
	first := func(d int) int { return int(f.extent[d].start) }
	return Plane{C: c, Z: z, T: t, R: first(dimR), I: first(dimI), H: first(dimH), V: first(dimV), B: first(dimB)}
}

// Plane identifies a plane of pixels.
type Plane struct{ C, Z, T, R, I, H, V, B int }

// Plane returns the plane that the sub-block lies in.
func (s SubBlock) Plane() Plane { return Plane{s.C, s.Z, s.T, s.R, s.I, s.H, s.V, s.B} }

// SubBlockSegment locates the parts of a sub-block in the file.
type SubBlockSegment struct {
	Metadata, Payload, Attachment                int64 // offsets
	MetadataBytes, PayloadBytes, AttachmentBytes int64
}

// subBlockFixed is the length of a sub-block's data before its variable part, unless its entry is longer.
const subBlockFixed = 256

// Segment reads the header of a sub-block, without its pixels.
func (f *File) Segment(ctx context.Context, i int) (SubBlockSegment, error) {
	s, err := f.subBlock(ctx, i)
	return s.SubBlockSegment, err
}

// subBlock is the header of a sub-block.
type subBlock struct {
	segment
	SubBlockSegment
}

func (f *File) subBlock(ctx context.Context, i int) (subBlock, error) {
	e := &f.entries[i]
	k := &f.kinds[e.kind]
	what := fmt.Sprintf("sub-block %d", i)
	if k.part != 0 {
		s := segment{f: f, what: what, at: e.pos}
		return subBlock{}, s.errorf("%w: part %d, which is not read; files in several parts must be joined by the program that wrote them", ErrPart, k.part)
	}
	var b [segmentHeader + subBlockFixed]byte
	s, err := f.readSegment(ctx, b[:], e.pos, what, idSubBlock)
	if err != nil {
		return subBlock{}, err
	}
	le := binary.LittleEndian
	o := subBlock{segment: *s}
	meta, attached := int32(le.Uint32(b[32:])), int32(le.Uint32(b[36:]))
	o.MetadataBytes, o.AttachmentBytes, o.PayloadBytes = int64(meta), int64(attached), int64(le.Uint64(b[40:]))
	n, err := e.agrees(k, b[segmentHeader+16:])
	if err != nil {
		return o, s.errorf("%w", err)
	}
	size := f.src.Size()
	o.Metadata = e.pos + segmentHeader + max(subBlockFixed, 16+int64(n))
	rest := size - o.Metadata
	if o.MetadataBytes < 0 || o.AttachmentBytes < 0 || o.PayloadBytes < 0 || rest < 0 ||
		o.MetadataBytes > rest || o.PayloadBytes > rest-o.MetadataBytes {
		return o, s.errorf("claims %d bytes of metadata, %d of pixels and %d of attachment; the file has %d behind its header",
			o.MetadataBytes, o.PayloadBytes, o.AttachmentBytes, max(rest, 0))
	}
	o.Payload = o.Metadata + o.MetadataBytes
	o.Attachment = o.Payload + o.PayloadBytes
	return o, nil
}

// agrees compares a sub-block's own copy of the entry, of which the first bytes are given, with that in the
// directory. It returns its length.
func (e *entry) agrees(k *kind, b []byte) (n int, err error) {
	le := binary.LittleEndian
	dims, pixel, c := int32(le.Uint32(b[28:])), PixelType(le.Uint32(b[2:])), Compression(le.Uint32(b[18:]))
	switch {
	case b[0] != 'D' || b[1] != 'V':
		return 0, fmt.Errorf("its entry has schema %q (must be \"DV\")", b[:2])
	case dims < 0 || dims > mostDimensions:
		return 0, fmt.Errorf("its entry claims %d dimensions (at most %d)", dims, mostDimensions)
	case pixel != k.pixel || c != k.compression:
		return 0, fmt.Errorf("is %s, %s, in the directory %s, %s", pixel, c, k.pixel, k.compression)
	}
	n = entryFixed + int(dims)*dimensionBytes
	for d := b[entryFixed:min(n, len(b))]; len(d) >= dimensionBytes && e.valid(); d = d[dimensionBytes:] {
		stored := int32(le.Uint32(d[16:]))
		if d[0] == 'X' && stored != e.sw || d[0] == 'Y' && stored != e.sh {
			return 0, fmt.Errorf("stores %d pixels along %c, in the directory %d × %d", stored, d[0], e.sw, e.sh)
		}
	}
	return n, nil
}

// mostText is the maximum length of metadata that are read as a whole.
const mostText = 64 << 20

// SubBlockMetadata reads the metadata of a sub-block, an XML document, or returns nil if it has none.
func (f *File) SubBlockMetadata(ctx context.Context, i int) ([]byte, error) {
	s, err := f.subBlock(ctx, i)
	if err != nil {
		return nil, err
	}
	return s.part(ctx, s.Metadata, s.MetadataBytes, "metadata")
}

// part reads bytes of the segment's data.
func (s *segment) part(ctx context.Context, at, n int64, what string) ([]byte, error) {
	switch size := s.f.src.Size(); {
	case n == 0:
		return nil, nil
	case n < 0 || at > size || n > size-at:
		return nil, s.errorf("%s: %d bytes at %d: %w of %d bytes", what, n, at, errOutside, size)
	case n > mostText:
		return nil, s.errorf("%s: %d bytes, at most %d are read", what, n, mostText)
	}
	b := make([]byte, n)
	if err := s.f.read(ctx, b, at); err != nil {
		return nil, s.errorf("%s: %w", what, err)
	}
	return b, nil
}

// tile is a sub-block whose pixels are to be read.
type tile struct {
	subBlock
	entry *entry
	kind  *kind
	bytes int64 // of its pixels
}

// tile checks that the pixels of a sub-block can be read.
func (f *File) tile(ctx context.Context, i int) (*tile, error) {
	e := &f.entries[i]
	t := &tile{entry: e, kind: &f.kinds[e.kind]}
	wrong := segment{f: f, what: fmt.Sprintf("sub-block %d", i), at: e.pos}
	switch {
	case !e.valid():
		return nil, wrong.errorf("its directory entry says %d × %d pixels, %d × %d stored", e.w, e.h, e.sw, e.sh)
	case t.kind.pixel.Bytes() == 0:
		return nil, wrong.errorf("%s is not supported", t.kind.pixel)
	}
	t.bytes = tileBytes(int(e.sw), int(e.sh), t.kind.pixel.Bytes())
	if t.bytes == 0 {
		return nil, wrong.errorf("%d × %d pixels of %s have more bytes than can be counted", e.sw, e.sh, t.kind.pixel)
	}
	var err error
	if t.subBlock, err = f.subBlock(ctx, i); err != nil {
		return nil, err
	}
	return t, nil
}

// ReadSubBlock fills dst, of the sub-block's Bytes, with its unchanged pixels: rows without gaps,
// little-endian samples, colours in the order blue, green, red. Pixels beyond the end of a short payload are
// 0.
func (f *File) ReadSubBlock(ctx context.Context, i int, dst []byte) error {
	t, err := f.tile(ctx, i)
	if err != nil {
		return err
	}
	if int64(len(dst)) != t.bytes {
		return t.errorf("%d bytes of memory for its %d", len(dst), t.bytes)
	}
	return t.load(ctx, dst)
}

// ReadPayload returns the stored bytes of a sub-block's pixels in dst[:0], growing it if necessary.
func (f *File) ReadPayload(ctx context.Context, i int, dst []byte) ([]byte, error) {
	t, err := f.tile(ctx, i)
	if err != nil {
		return nil, err
	}
	n, err := t.payloadBytes()
	if err != nil {
		return nil, err
	}
	if int64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	if err := f.read(ctx, dst, t.Payload); err != nil {
		return nil, t.errorf("%w", err)
	}
	return dst, nil
}

// Decode fills dst, of the sub-block's Bytes, with the pixels of a payload returned by [File.ReadPayload].
func (f *File) Decode(ctx context.Context, i int, dst, payload []byte) error {
	e := &f.entries[i]
	t := &tile{entry: e, kind: &f.kinds[e.kind], subBlock: subBlock{segment: segment{f: f, what: fmt.Sprintf("sub-block %d", i), at: e.pos}}}
	if t.bytes = tileBytes(int(e.sw), int(e.sh), t.kind.pixel.Bytes()); t.bytes == 0 || int64(len(dst)) != t.bytes {
		return t.errorf("%d bytes of memory for its %d", len(dst), t.bytes)
	}
	b, err := t.room(ctx, t.workBytes())
	if err != nil {
		return err
	}
	defer b.Release()
	return t.decode(ctx, dst, payload, b.B)
}
