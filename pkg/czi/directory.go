package czi

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"math"
	"strings"

	"strata/pkg/mem"
)

const (
	segmentHeader   = 32
	directoryHeader = segmentHeader + 128 // before the entries
	entryFixed      = 32
	dimensionBytes  = 20
	mostDimensions  = 40
)

// Segment ids.
const (
	idFile        = "ZISRAWFILE"
	idDirectory   = "ZISRAWDIRECTORY"
	idSubBlock    = "ZISRAWSUBBLOCK"
	idMetadata    = "ZISRAWMETADATA"
	idAttachments = "ZISRAWATTDIR"
	idAttachment  = "ZISRAWATTACH"
	idDeleted     = "DELETED"
)

// dimensionNames has the dimensions in the order of extents and of the bits of kind.dims.
const dimensionNames = "XYCZTSMRIHVB"

// Numbers of dimensions.
const (
	dimX = iota
	dimY
	dimC
	dimZ
	dimT
	dimS
	dimM
	dimR
	dimI
	dimH
	dimV
	dimB
)

func dimensionOf(name byte) int { return strings.IndexByte(dimensionNames, name) }

// extent is the range of a dimension.
type extent struct {
	start, end int64
	there      bool
}

func (e *extent) add(start, size int32) {
	if end := int64(start) + int64(size); !e.there {
		*e = extent{int64(start), end, true}
	} else {
		e.start, e.end = min(e.start, int64(start)), max(e.end, end)
	}
}

// entry is a sub-block in 56 bytes: a slide has up to millions.
type entry struct {
	pos        int64 // of its segment
	x, y, w, h int32 // in the common pixel plane
	sw, sh     int32 // pixels stored
	c, z, t, s int32
	m          int32 // noM: it has none
	kind       uint32
}

// noM is the mosaic index of a sub-block without one. It sorts below all other indices.
const noM = math.MinInt32

// kind holds the properties that most sub-blocks share.
type kind struct {
	pixel       PixelType
	compression Compression
	part        int32
	pyramid     uint8
	dims        uint16 // which dimensions there are
	views       views
}

// views are the positions along the dimensions that few files have.
type views struct{ r, i, h, v, b int32 }

// valid reports whether the sizes can be those of a picture.
func (e *entry) valid() bool { return e.w > 0 && e.h > 0 && e.sw > 0 && e.sh > 0 }

// level0 reports whether the tile has a pixel for each of the plane.
func (e *entry) level0() bool { return e.w == e.sw && e.h == e.sh }

func (e *entry) rect() image.Rectangle {
	return image.Rect(int(e.x), int(e.y), int(e.x)+int(e.w), int(e.y)+int(e.h))
}

// readDirectory reads the directory segment.
func (f *File) readDirectory(ctx context.Context) error {
	at := f.header.directory
	if at == 0 {
		return fmt.Errorf("%s: header: names no directory of sub-blocks: the program that writes it has not finished, or was stopped", f.Name)
	}
	var head [directoryHeader]byte
	s, err := f.readSegment(ctx, head[:], at, "directory", idDirectory)
	if err != nil {
		return err
	}
	count := int32(binary.LittleEndian.Uint32(head[segmentHeader:]))
	room := min(s.used, f.src.Size()-at-segmentHeader) - (directoryHeader - segmentHeader)
	if count < 0 || int64(count) > max(room, 0)/entryFixed {
		return s.errorf("claims %d sub-blocks, has room for %d at most", count, max(room, 0)/entryFixed)
	}
	if count == 0 {
		return nil
	}
	b, err := mem.Alloc(int(min(room, int64(count)*(entryFixed+mostDimensions*dimensionBytes))))
	if err != nil {
		return fmt.Errorf("%s: directory: %w", f.Name, err)
	}
	defer mem.Free(b)
	if err := f.read(ctx, b, at+directoryHeader); err != nil {
		return s.errorf("%w", err)
	}
	p := entryParser{b: b}
	f.entries = make([]entry, 0, min(int64(count), room/(entryFixed+2*dimensionBytes)+1))
	for i := range int(count) {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		from := p.at
		e, err := p.next()
		if err != nil {
			return fmt.Errorf("%s: directory: entry %d at byte %d: %w", f.Name, i, at+directoryHeader+int64(from), err)
		}
		f.add(e, &p)
	}
	f.kinds = p.kinds
	return nil
}

// add takes an entry over.
func (f *File) add(e entry, p *entryParser) {
	f.entries = append(f.entries, e)
	if !e.valid() {
		f.noteBroken(&e, p.kinds[e.kind].views, int32(len(f.entries)-1))
		return
	}
	level0 := e.level0()
	for d := range p.found {
		if p.found[d] && (level0 || d != dimX && d != dimY && d != dimM) {
			f.extent[d].add(p.start[d], p.size[d])
		}
	}
	if p.box == nil || p.boxOf != e.s {
		if p.box, p.boxOf = f.scenes[e.s], e.s; p.box == nil {
			p.box = new(sceneBox)
			f.scenes[e.s] = p.box
		}
	}
	p.box.all = p.box.all.Union(e.rect())
	if level0 {
		p.box.level0 = p.box.level0.Union(e.rect())
		p.box.tiles++
		p.box.pixels += float64(e.w) * float64(e.h)
		if _, ok := f.types[e.c]; !ok {
			f.types[e.c] = p.kinds[e.kind].pixel
		}
	}
}

// entryParser parses entries that lie one behind the other.
type entryParser struct {
	b  []byte
	at int

	kinds  []kind
	number map[kind]uint32
	last   uint32

	// of the last entry
	found       [len(dimensionNames)]bool
	start, size [len(dimensionNames)]int32
	stored      [2]int32

	box   *sceneBox
	boxOf int32
}

// next parses an entry.
func (p *entryParser) next() (entry, error) {
	b := p.b[p.at:]
	if len(b) < entryFixed {
		return entry{}, fmt.Errorf("the directory ends after %d of its bytes", len(b))
	}
	if b[0] != 'D' || b[1] != 'V' {
		return entry{}, fmt.Errorf("schema %q is not supported (must be \"DV\")", b[:2])
	}
	le := binary.LittleEndian
	n := int32(le.Uint32(b[28:]))
	if n < 0 || n > mostDimensions {
		return entry{}, fmt.Errorf("claims %d dimensions (at most %d)", n, mostDimensions)
	}
	end := entryFixed + int(n)*dimensionBytes
	if len(b) < end {
		return entry{}, fmt.Errorf("the directory ends after %d of %d of its bytes", len(b), end)
	}
	p.at += end
	k := kind{pixel: PixelType(le.Uint32(b[2:])), compression: Compression(le.Uint32(b[18:])), part: int32(le.Uint32(b[14:])), pyramid: b[22]}
	e := entry{pos: int64(le.Uint64(b[6:])), m: noM}
	clear(p.found[:])
	clear(p.start[:])
	for d := b[entryFixed:end]; len(d) > 0; d = d[dimensionBytes:] {
		k := dimensionNumbers[d[0]]
		if k < 0 {
			continue
		}
		p.found[k] = true
		p.start[k], p.size[k] = int32(le.Uint32(d[4:])), int32(le.Uint32(d[8:]))
		if k <= dimY {
			p.stored[k] = int32(le.Uint32(d[16:]))
		}
	}
	for d, there := range p.found {
		if there {
			k.dims |= 1 << d
		}
	}
	s := &p.start
	if p.found[dimX] && p.found[dimY] {
		e.x, e.y, e.w, e.h, e.sw, e.sh = s[dimX], s[dimY], p.size[dimX], p.size[dimY], p.stored[dimX], p.stored[dimY]
	}
	e.c, e.z, e.t, e.s = s[dimC], s[dimZ], s[dimT], s[dimS]
	if p.found[dimM] {
		e.m = s[dimM]
	}
	k.views = views{s[dimR], s[dimI], s[dimH], s[dimV], s[dimB]}
	e.kind = p.kindOf(k)
	return e, nil
}

// dimensionNumbers finds dimensions by their first letter.
var dimensionNumbers = func() (n [256]int8) {
	for i := range n {
		n[i] = int8(dimensionOf(byte(i)))
	}
	return n
}()

// kindOf finds the number of a kind.
func (p *entryParser) kindOf(k kind) uint32 {
	if len(p.kinds) > 0 && p.kinds[p.last] == k {
		return p.last
	}
	n, ok := p.number[k]
	if !ok {
		if p.number == nil {
			p.number = map[kind]uint32{}
		}
		n = uint32(len(p.kinds))
		p.kinds = append(p.kinds, k)
		p.number[k] = n
	}
	p.last = n
	return n
}
