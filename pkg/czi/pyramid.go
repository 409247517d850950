package czi

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"

	"strata/pkg/dtype"
)

// AddPyramid writes the sub-blocks of lower levels for all planes that have tiles: means of 2 × 2 pixels of
// the level above, in tiles of tile pixels, until a scene fits into one. It reads back written data, so the
// output must be an io.ReaderAt.
func (w *Writer) AddPyramid(ctx context.Context, workers, tile int) error {
	out, ok := w.out.(io.ReaderAt)
	if !ok {
		return errors.New("CZI: a pyramid needs an output that can be read")
	}
	for factor := 2; ; factor *= 2 {
		f, err := w.reader(out)
		if err != nil {
			return err
		}
		parts := f.pyramidParts(factor, tile)
		if len(parts) == 0 {
			return nil
		}
		err = w.Add(ctx, workers, len(parts), func(i int, t *Tile) error { return f.pyramidTile(ctx, &parts[i], factor, t) })
		if err != nil {
			return err
		}
	}
}

// written is an output as a source.
type written struct {
	io.ReaderAt
	size int64
}

func (w written) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return w.ReaderAt.ReadAt(p, off)
}
func (w written) Size() int64 { return w.size }

// reader opens what was written so far.
func (w *Writer) reader(out io.ReaderAt) (*File, error) {
	f := newFile(written{out, w.at}, "CZI output")
	p := entryParser{b: w.entries}
	for range w.count {
		e, err := p.next()
		if err != nil {
			return nil, fmt.Errorf("CZI output: %w", err)
		}
		f.add(e, &p)
	}
	f.kinds = p.kinds
	return f, nil
}

// pyramidPart is one sub-block of the pyramid.
type pyramidPart struct {
	plane Plane
	scene int
	rect  image.Rectangle // in the common pixel plane
}

// pyramidParts cuts the scenes that do not fit into a tile of the level above into tiles of the level of a factor.
func (f *File) pyramidParts(factor, tile int) []pyramidPart {
	type plane struct {
		Plane
		scene int
	}
	seen := map[plane]bool{}
	var parts []pyramidPart
	for i := range f.entries {
		sb := f.SubBlock(i)
		p := plane{sb.Plane(), sb.S}
		if seen[p] || !sb.Level0() {
			continue
		}
		seen[p] = true
		box := f.Bounds(sb.S)
		width, height := box.Dx()/factor, box.Dy()/factor
		if max(box.Dx(), box.Dy()) <= tile*factor/2 || width == 0 || height == 0 {
			continue
		}
		for y := 0; y < height; y += tile {
			for x := 0; x < width; x += tile {
				at := box.Min.Add(image.Pt(x*factor, y*factor))
				part := pyramidPart{p.Plane, p.scene, image.Rectangle{at, at.Add(image.Pt(min(tile, width-x)*factor, min(tile, height-y)*factor))}}
				if len(f.Tiles(p.scene, p.Plane, 1, part.rect)) > 0 {
					parts = append(parts, part)
				}
			}
		}
	}
	return parts
}

// pyramidTile makes a tile of the level above its own.
func (f *File) pyramidTile(ctx context.Context, part *pyramidPart, factor int, t *Tile) error {
	r := Region{Plane: part.plane, Scene: part.scene, Rect: part.rect, Zoom: 2 / float64(factor)}
	pixel, _ := f.PixelType(part.plane.C)
	width, height := r.Size()
	above := make([]byte, width*height*pixel.Bytes())
	if err := f.ReadRegion(ctx, r, above); err != nil {
		return err
	}
	t.Scene, t.C, t.Z, t.T, t.M = part.scene, part.plane.C, part.plane.Z, part.plane.T, -1
	t.X, t.Y, t.Factor, t.Pixels = part.rect.Min.X, part.rect.Min.Y, factor, pixel
	t.Width, t.Height = width/2, height/2
	row, up := t.Width*pixel.Bytes(), width*pixel.Bytes()
	halve := dtype.Halver(pixel.Elem())
	t.Grow(row * t.Height)
	for y := range t.Height {
		a := above[2*y*up:]
		halve(t.Data[y*row:(y+1)*row], a[:2*row], a[up:up+2*row], pixel.Samples())
	}
	return nil
}
