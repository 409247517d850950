package tiff

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/jpeg"
)

// compressionJPEG is the number of JPEG (TIFF Technical Note 2).
const compressionJPEG = 7

// mostEmbedded bounds a picture in a description, in bytes of its text.
const mostEmbedded = 64 << 20

// embedded returns the image of a JPEG picture that a description holds in base64, as one of a file in memory.
func (f *File) embedded(ctx context.Context, kind, name, text string) (*Image, error) {
	if len(text) > mostEmbedded {
		return nil, fmt.Errorf("%d bytes of text, at most %d are read", len(text), mostEmbedded)
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, err
	}
	h, err := jpeg.ReadHeader(data)
	if err != nil {
		return nil, err
	}
	l := Layout{Width: h.Width, Height: h.Height, Depth: 1, Samples: h.Components, Bits: 8, Type: dtype.Uint8, TileWidth: h.Width, TileHeight: h.Height, TileDepth: 1,
		Compression: compressionJPEG, Predictor: 1, Photometric: MinIsBlack, FillOrder: 1}
	switch {
	case h.Components == 3 && h.Adobe != 0:
		l.Photometric = YCbCr
	case h.Components == 3:
		l.Photometric = RGB
	case h.Components != 1:
		return nil, fmt.Errorf("JPEG with %d components", h.Components)
	}
	file := &memory{}
	w := NewWriter(file, false)
	if err := w.Put(w.AddPage(PageSpec{Layout: l}, -1), 0, data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	one, err := openPages(ctx, file, f.Name)
	if err != nil {
		return nil, err
	}
	im := stack(kind, one.Pages)
	im.Name = name
	return im, one.Pages[0].Err
}

// memory is a file in memory, which is written once and then read.
type memory struct{ b []byte }

// WriteAt writes a part, and grows the file as needed.
func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); end > int64(len(m.b)) {
		m.b = append(m.b, make([]byte, end-int64(len(m.b)))...)
	}
	return copy(m.b[off:], p), nil
}

// ReadAt reads a part.
func (m *memory) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the file's length.
func (m *memory) Size() int64 { return int64(len(m.b)) }

// Close does nothing: the memory is released with the file that contains the description.
func (m *memory) Close() error { return nil }
