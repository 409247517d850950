package czi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"strata/pkg/work"
	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/shuffle"
)

// Spec describes a file that [NewWriter] begins.
type Spec struct {
	Metadata                // for the XML document; sizes come from the tiles
	Compression Compression // None or Zstd1, with hi-lo packing of samples of 16 bits
	Level       int         // of Zstandard; 0: 1
}

// Tile describes a sub-block to be written.
type Tile struct {
	Scene, C, Z, T int
	M              int // mosaic index; below 0: none
	X, Y           int // in the common pixel plane
	Width, Height  int // pixels stored
	Factor         int // pixels of the plane that one stored pixel stands for; 0: 1, a tile of level 0
	Pixels         PixelType
	Stage          *Stage // nil: unknown
	Data           []byte // rows without gaps, little-endian, colours in the order blue, green, red
}

// Grow sets the length of Data to n bytes, reusing its memory if possible.
func (t *Tile) Grow(n int) { t.Data = slices.Grow(t.Data[:0], n)[:n] }

// Writer writes a CZI file tile by tile. It holds only the directory in memory. Only one goroutine at a time
// may use it.
type Writer struct {
	out      io.WriterAt
	spec     Spec
	at       int64
	entries  []byte // as the directory has them
	count    int
	image    imageSize
	encoders sync.Pool
}

// NewWriter begins a file.
func NewWriter(out io.WriterAt, s Spec) (*Writer, error) {
	if s.Compression != None && s.Compression != Zstd1 {
		return nil, fmt.Errorf("CZI: %s cannot be written (must be none or zstd1)", s.Compression)
	}
	if s.Level == 0 {
		s.Level = 1
	}
	return &Writer{out: out, spec: s, at: headerBytes, image: imageSize{channels: map[int]PixelType{}}}, nil
}

// encoder holds what one goroutine needs for encoding.
type encoder struct {
	zstd    enzstd.Encoder
	planes  []byte
	segment []byte
	tile    Tile
}

// Add writes n tiles in order, encoding as many at a time as there are workers. fill sets the fields of tile
// i; the Data that it gets is memory to reuse (see [Tile.Grow]).
func (w *Writer) Add(ctx context.Context, workers, n int, fill func(i int, t *Tile) error) error {
	var turn work.Turn
	return work.Each(ctx, workers, n, func(_, i int) error {
		e, _ := w.encoders.Get().(*encoder)
		if e == nil {
			e = new(encoder)
		}
		defer w.encoders.Put(e)
		e.tile = Tile{Data: e.tile.Data[:0]}
		err := fill(i, &e.tile)
		if err == nil {
			err = w.encode(e)
		}
		if err == nil {
			err = turn.Wait(ctx, i)
		}
		if err == nil {
			err = w.put(e)
		}
		turn.Done(err)
		return err
	})
}

// check reports what cannot be written.
func (t *Tile) check() error {
	t.Factor = max(t.Factor, 1)
	need := tileBytes(t.Width, t.Height, t.Pixels.Bytes())
	if need == 0 || int64(len(t.Data)) != need {
		return fmt.Errorf("CZI: %d bytes for a tile of %d × %d pixels of %s", len(t.Data), t.Width, t.Height, t.Pixels)
	}
	for _, v := range []int{t.Scene, t.C, t.Z, t.T, t.M, t.X, t.Y, t.X + t.Width*t.Factor, t.Y + t.Height*t.Factor} {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("CZI: a tile at %d, %d of %d × %d pixels (coordinates have 32 bits)", t.X, t.Y, t.Width*t.Factor, t.Height*t.Factor)
		}
	}
	return nil
}

// encode makes the tile's segment, but for its position.
func (w *Writer) encode(e *encoder) error {
	t := &e.tile
	if err := t.check(); err != nil {
		return err
	}
	le := binary.LittleEndian
	meta := t.Stage.xml()
	entry := t.entry(w.spec.Compression)
	b := slices.Grow(e.segment[:0], segmentHeader+subBlockFixed)[:segmentHeader+subBlockFixed]
	clear(b)
	copy(b, idSubBlock)
	le.PutUint32(b[segmentHeader:], uint32(len(meta)))
	copy(b[segmentHeader+16:], entry)
	b = append(b, meta...)
	from := len(b)
	switch {
	case w.spec.Compression == None:
		b = append(b, t.Data...)
	case t.Pixels.Elem().Size() == 2:
		e.planes = slices.Grow(e.planes[:0], len(t.Data))[:len(t.Data)]
		shuffle.Shuffle(e.planes, t.Data, 2)
		b = e.zstd.Encode(append(b, 3, 1, 1), e.planes, w.spec.Level, false)
	default:
		b = e.zstd.Encode(append(b, 1), t.Data, w.spec.Level, false)
	}
	le.PutUint64(b[segmentHeader+8:], uint64(len(b)-from))
	e.segment = finish(b)
	return nil
}

// finish sets the sizes of a segment and fills it up to a multiple of 32 bytes.
func finish(b []byte) []byte {
	used := len(b) - segmentHeader
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)-segmentHeader))
	binary.LittleEndian.PutUint64(b[24:], uint64(used))
	return b
}

// entry returns the tile's entry of the directory, but for its position.
func (t *Tile) entry(c Compression) []byte {
	le := binary.LittleEndian
	b := make([]byte, entryFixed, entryFixed+7*dimensionBytes)
	copy(b, "DV")
	le.PutUint32(b[2:], uint32(t.Pixels))
	le.PutUint32(b[18:], uint32(c))
	if t.Factor > 1 {
		b[22] = 2
	}
	n := uint32(0)
	add := func(name byte, start, size, stored int) {
		b = append(b, name, 0, 0, 0)
		b = le.AppendUint32(b, uint32(start))
		b = le.AppendUint32(b, uint32(size))
		b = le.AppendUint32(b, math.Float32bits(float32(start)))
		b = le.AppendUint32(b, uint32(stored))
		n++
	}
	add('X', t.X, t.Width*t.Factor, t.Width)
	add('Y', t.Y, t.Height*t.Factor, t.Height)
	add('C', t.C, 1, 1)
	add('Z', t.Z, 1, 1)
	add('T', t.T, 1, 1)
	add('S', t.Scene, 1, 1)
	if t.M >= 0 && t.Factor == 1 {
		add('M', t.M, 1, 1)
	}
	le.PutUint32(b[28:], n)
	return b
}

// put appends the encoded segment to the file.
func (w *Writer) put(e *encoder) error {
	b := e.segment
	own := b[segmentHeader+16:]
	binary.LittleEndian.PutUint64(own[6:], uint64(w.at))
	n := entryFixed + int(binary.LittleEndian.Uint32(own[28:]))*dimensionBytes
	w.entries = append(w.entries, own[:n]...)
	w.count++
	w.image.add(&e.tile)
	return w.write(b)
}

// write writes a segment at the end.
func (w *Writer) write(b []byte) error {
	_, err := w.out.WriteAt(b, w.at)
	w.at += int64(len(b))
	return err
}

// Close writes metadata, directory and header. Without it the file is not a valid CZI.
func (w *Writer) Close() error {
	le := binary.LittleEndian
	text := w.spec.xml(&w.image)
	meta := make([]byte, segmentHeader+256, segmentHeader+256+len(text)+32)
	copy(meta, idMetadata)
	le.PutUint32(meta[segmentHeader:], uint32(len(text)))
	metaAt := w.at
	if err := w.write(finish(append(meta, text...))); err != nil {
		return err
	}
	dir := make([]byte, directoryHeader, directoryHeader+len(w.entries)+32)
	copy(dir, idDirectory)
	le.PutUint32(dir[segmentHeader:], uint32(w.count))
	dirAt := w.at
	if err := w.write(finish(append(dir, w.entries...))); err != nil {
		return err
	}
	head := make([]byte, headerBytes)
	copy(head, idFile)
	le.PutUint64(head[16:], headerBytes-segmentHeader)
	le.PutUint64(head[24:], headerBytes-segmentHeader)
	le.PutUint32(head[32:], 1)
	sum := sha256.Sum256(append([]byte(text), w.entries...)) // the same content has the same id
	copy(head[48:], sum[:16])
	copy(head[64:], sum[:16])
	le.PutUint64(head[84:], uint64(dirAt))
	le.PutUint64(head[92:], uint64(metaAt))
	_, err := w.out.WriteAt(head, 0)
	return err
}
