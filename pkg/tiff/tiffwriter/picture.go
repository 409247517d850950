package tiffwriter

import (
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
)

// pictureTile is the largest side of a picture's tiles.
const pictureTile = 512

// addPicture stores a picture as a page of its own: as the image is compressed, but never with losses, since a label is
// to be read.
func (w *Writer) addPicture(p *Picture) error {
	s := Spec{Width: p.Width, Height: p.Height, Samples: p.Samples, Type: p.Type, Tile: min(pictureTile, (max(p.Width, p.Height)+15)/16*16)}
	how := Compression{Code: w.spec.Compression, Number: w.spec.Level}
	if how.Code == tilecodec.JPEG {
		how = Compression{Code: tilecodec.Deflate}
	}
	how.Apply(&s, w.spec.Predictor != tilecodec.PredictorNone || w.spec.Compression == tilecodec.JPEG)
	format := s.format()
	if err := format.CheckEncode(); err != nil {
		return err
	}
	page := w.out.AddPage(tiff.PageSpec{Layout: tiff.Layout{Width: p.Width, Height: p.Height, Depth: 1, Samples: p.Samples, Bits: 8 * p.Type.Size(), Type: p.Type,
		Tiled: true, TileWidth: s.Tile, TileHeight: s.Tile, TileDepth: 1, Compression: s.Compression, Predictor: s.Predictor, Photometric: s.photometric()}}, -1)
	row := p.Width * s.pixel()
	tile, scratch := make([]byte, s.Tile*s.Tile*s.pixel()), new(tilecodec.Scratch)
	across := (p.Width + s.Tile - 1) / s.Tile
	for y := 0; y < p.Height; y += s.Tile {
		rows := min(s.Tile, p.Height-y)
		for i := range across {
			encoded, err := format.Encode(scratch, nil, cut(tile, p.Data[y*row:(y+rows)*row], i*s.Tile, p.Width, rows, s.Tile, s.pixel()))
			if err == nil {
				err = w.out.Put(page, int64(y/s.Tile*across+i), encoded)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
