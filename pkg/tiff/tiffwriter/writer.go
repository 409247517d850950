package tiffwriter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"strata/pkg/mem"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/work"
)

// Writer writes one image. Only one goroutine may use it.
type Writer struct {
	spec    Spec
	out     *tiff.Writer
	format  tilecodec.Format
	pages   [][]int // by plane and level
	thick   int     // planes of a band
	band    Band
	buf     []byte
	below   []*level // of each plane of a band and each level below level 0
	scratch []*tilecodec.Scratch
	tiles   [][]byte // of a worker: samples of a tile
	encoded [][]byte // of a worker
	closed  bool
}

// Band is a part of the image: the same rows of several planes along depth.
type Band struct {
	Level                        int // 0 unless the levels below it are filled by the caller
	Time, Channel, Depth, Depths int
	Row, Rows                    int
	Data                         []byte // Depths × Rows × width × samples, in C order and native byte order
}

// New begins a file. The caller must close the writer.
func New(w io.WriterAt, s Spec) (*Writer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	n := &Writer{spec: s, format: s.format(), thick: min(s.Planes, s.Image.Depths)}
	for s.Budget > 0 && n.thick > 1 && s.bytes(n.thick) > s.Budget {
		n.thick--
	}
	if need := s.bytes(n.thick); s.Budget > 0 && need > s.Budget {
		return nil, fmt.Errorf("a row of tiles of %d pixels takes %d bytes of memory: %w of %d bytes", s.Tile, need, mem.ErrBudget, s.Budget)
	}
	if s.Compression == tilecodec.JPEG {
		n.format.Tables = n.format.JPEGTables()
	}
	big := !s.Classic && tiff.NeedsBig(s.samples())
	n.out = tiff.NewWriter(w, big)
	n.addPages()
	var err error
	if n.buf, err = mem.Alloc(mem.Product(n.thick, s.Tile, s.Width, s.pixel())); err != nil {
		return nil, err
	}
	for range n.thick {
		for k := 1; k <= s.Levels; k++ {
			l, err := newLevel(&s, k)
			if err != nil {
				n.free()
				return nil, err
			}
			n.below = append(n.below, l)
		}
	}
	for range s.Workers {
		n.scratch = append(n.scratch, new(tilecodec.Scratch))
		n.tiles = append(n.tiles, make([]byte, s.Tile*s.Tile*s.pixel()))
		n.encoded = append(n.encoded, nil)
	}
	return n, nil
}

// addPages adds the directories of all planes and their levels.
func (w *Writer) addPages() {
	s := &w.spec
	text := s.Description
	if !s.Plain {
		images := []tiff.OMEImage{{Image: &s.Image, Width: s.Width, Height: s.Height, Samples: s.Samples, Type: s.Type}}
		for _, p := range s.Beside {
			images = append(images, tiff.OMEImage{Image: &tiff.Image{Name: p.Name, Times: 1, Channels: 1, Depths: 1}, Width: p.Width, Height: p.Height, Samples: p.Samples, Type: p.Type})
		}
		text = tiff.OMEXML(images...)
	}
	for range s.planes() {
		var levels []int
		for k := range s.count() {
			width, height := s.size(k)
			p := tiff.PageSpec{Layout: tiff.Layout{Width: width, Height: height, Depth: 1, Samples: s.Samples, Bits: 8 * s.Type.Size(), Type: s.Type,
				Tiled: true, TileWidth: s.Tile, TileHeight: s.Tile, TileDepth: 1, Compression: s.Compression, Predictor: s.Predictor,
				Photometric: s.photometric(), Subsampling: s.Subsampling}, Tables: w.format.Tables}
			parent := -1
			switch {
			case k > 0 && s.Chained:
				p.SubfileType = 1
			case k > 0:
				p.SubfileType, parent = 1, levels[0]
			default:
				p.Description, p.Software = text, s.Software
				p.XUM, p.YUM = s.Image.VoxelUM[2], s.Image.VoxelUM[1]
			}
			levels = append(levels, w.out.AddPage(p, parent))
		}
		w.pages = append(w.pages, levels)
		text = ""
	}
}

// Next moves to the next band and returns false after the last. Bands of a level follow those of the level
// above it.
func (w *Writer) Next() bool {
	b, im := &w.band, &w.spec.Image
	_, height := w.spec.size(b.Level)
	if b.Data == nil { // the first
		w.begin()
		return true
	}
	if b.Row += b.Rows; b.Row == height {
		b.Row = 0
		if b.Depth += b.Depths; b.Depth == im.Depths {
			b.Depth = 0
			if b.Channel++; b.Channel == im.Channels {
				b.Channel = 0
				if b.Time++; b.Time == im.Times {
					b.Time = 0
					if b.Level++; b.Level > len(w.spec.Below) {
						return false
					}
				}
			}
		}
	}
	w.begin()
	return true
}

// begin sets how much of the image the band is, and its memory.
func (w *Writer) begin() {
	b, s := &w.band, &w.spec
	width, height := s.size(b.Level)
	b.Depths, b.Rows = min(w.thick, s.Image.Depths-b.Depth), min(s.Tile, height-b.Row)
	b.Data = w.buf[:b.Depths*b.Rows*width*s.pixel()]
}

// Band returns the band to fill.
func (w *Writer) Band() *Band { return &w.band }

// Write encodes the band and makes its part of the lower levels.
func (w *Writer) Write(ctx context.Context) error {
	s, b := &w.spec, &w.band
	width, _ := s.size(b.Level)
	row := width * s.pixel()
	first := (b.Time*s.Image.Channels+b.Channel)*s.Image.Depths + b.Depth
	for z := range b.Depths {
		data := b.Data[z*b.Rows*row : (z+1)*b.Rows*row]
		if err := w.rows(ctx, first+z, z, b.Level, b.Row/s.Tile, b.Rows, data); err != nil {
			return err
		}
	}
	return nil
}

// rows stores a row of tiles of a level and hands their means on to the next.
func (w *Writer) rows(ctx context.Context, plane, z, level, tileRow, rows int, data []byte) error {
	if err := w.encode(ctx, plane, level, tileRow, rows, data); err != nil {
		return err
	}
	if level >= w.spec.Levels {
		return nil
	}
	l := w.below[z*w.spec.Levels+level]
	for at := 0; at+1 < rows; {
		n := l.take(data, w.spec.Width>>level, at, rows)
		at += n
		if l.full() {
			if err := w.rows(ctx, plane, z, level+1, l.row, l.have, l.data()); err != nil {
				return err
			}
			l.next()
		}
	}
	return nil
}

// encode stores the tiles of a row, in their order.
func (w *Writer) encode(ctx context.Context, plane, level, tileRow, rows int, data []byte) error {
	s := &w.spec
	width, _ := s.size(level)
	n := (width + s.Tile - 1) / s.Tile
	var order work.Turn
	return work.Each(ctx, min(s.Workers, n), n, func(worker, i int) error {
		tile := cut(w.tiles[worker], data, i*s.Tile, width, rows, s.Tile, s.pixel())
		enc, err := w.format.Encode(w.scratch[worker], w.encoded[worker], tile)
		if err == nil {
			w.encoded[worker] = enc
			if err = order.Wait(ctx, i); err == nil {
				err = w.out.Put(w.pages[plane][level], int64(tileRow*n+i), enc)
			}
		}
		order.Done(err)
		return err
	})
}

// Close writes the directories. Without it the file is not a valid TIFF.
func (w *Writer) Close() error {
	if w.closed {
		return errors.New("closed twice")
	}
	w.closed = true
	w.free()
	if !w.spec.Plain {
		for i := range w.spec.Beside {
			if err := w.addPicture(&w.spec.Beside[i]); err != nil {
				return err
			}
		}
	}
	return w.out.Close()
}

// Abort frees the memory.
func (w *Writer) Abort() {
	if !w.closed {
		w.closed = true
		w.free()
	}
}

func (w *Writer) free() {
	mem.Free(w.buf)
	for _, l := range w.below {
		mem.Free(l.buf)
	}
	w.buf, w.below = nil, nil
}
