package tilestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tilefiles"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// reader reads pixels of an open file.
type reader interface {
	// read fills dst with a piece: channel, plane, y, x, in native byte order.
	read(ctx context.Context, p piece, dst []byte) error
	close() error
}

// openFile opens a file, which must be like the expected one.
func openFile(ctx context.Context, path string, expect *tilefiles.Header, axes string) (reader, error) {
	o, err := store.Folder(filepath.Dir(path)).Open(ctx, filepath.Base(path)) // a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(4, o.Size()))
	if _, err := o.ReadAt(ctx, head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), o.Close())
	}
	if tiff.IsTIFF(head) {
		return openTIFF(ctx, o, path, expect, axes)
	}
	h, err := tilefiles.HeaderOf(ctx, o, path, axes)
	if err == nil {
		err = expect.Unlike(h)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if h.Format == tilefiles.PNG {
		return &pngFile{o, path, h}, nil
	}
	_, data, err := tilefiles.HeaderOfNumPy(ctx, o, path, axes)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return &npyFile{o, path, h, data}, nil
}

// tiffFile reads the first image of a TIFF file.
type tiffFile struct {
	st     *tiffstore.Store
	array  *zarr.Array
	header *tilefiles.Header
	first  map[string]int // where the image in the file begins along t, c and z: at its only plane, or at 0
	turned bool           // planes are channels, or channels planes
}

func openTIFF(ctx context.Context, o store.Object, path string, expect *tilefiles.Header, axes string) (reader, error) {
	st, err := tiffstore.Open(ctx, o, path)
	if err != nil {
		return nil, err
	}
	f := &tiffFile{st: st, first: map[string]int{}}
	if f.header, err = tilefiles.HeaderOfTIFF(ctx, st.File(), axes); err == nil {
		err = expect.Unlike(f.header)
	}
	if err == nil {
		f.array, err = zarr.OpenArray(ctx, st, "0", zarr.Workers(1))
	}
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	im, there, at := st.Image(""), 0, 0
	for k, p := range im.Levels[0].Pages {
		if p != nil {
			there, at = there+1, k
		}
	}
	if there == 1 {
		f.first["t"], f.first["c"], f.first["z"] = at/im.Depths/im.Channels, at/im.Depths%im.Channels*f.header.Samples, at%im.Depths
	} else {
		f.turned = f.header.Channels != im.Channels*f.header.Samples
	}
	return f, nil
}

// read reads from the array that shows the image, whose axes are those of t, c, z, y and x that it has.
func (f *tiffFile) read(ctx context.Context, p piece, dst []byte) error {
	start := map[string]int{"t": p.t, "c": p.c, "z": p.z}
	shape := map[string]int{"t": 1, "c": f.header.Samples, "z": p.planes, "y": f.header.Height, "x": f.header.Width}
	if f.turned { // one sample per pixel, so that one of the two has length 1
		start["c"], start["z"] = p.z, p.c
		shape["c"], shape["z"] = p.planes, 1
	}
	var r zarr.Region
	for _, name := range f.array.DimensionNames() {
		r.Start, r.Shape = append(r.Start, start[name]+f.first[name]), append(r.Shape, shape[name])
	}
	return f.array.Read(ctx, r, dst)
}

func (f *tiffFile) close() error { return f.st.Close() }

// npyFile reads a .npy file.
type npyFile struct {
	store.Object
	path   string
	header *tilefiles.Header
	data   tilefiles.NumPyData
}

func (f *npyFile) close() error { return f.Close() }

func (f *npyFile) read(ctx context.Context, p piece, dst []byte) error {
	h := f.header
	plane := mem.Product(h.Height, h.Width, h.Type.Size())
	raw := dst
	if h.Samples > 1 {
		var err error
		if raw, err = mem.Alloc(len(dst)); err != nil {
			return err
		}
		defer mem.Free(raw)
	}
	at := f.data.Offset
	if h.Samples == 1 {
		at += int64(p.c*h.Planes+p.z) * int64(plane)
	}
	if n, err := f.ReadAt(ctx, raw, at); n < len(raw) {
		if err == nil || errors.Is(err, io.EOF) {
			err = store.ErrChanged
		}
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.data.BigEndian {
		swap(raw, h.Type)
	}
	if h.Samples > 1 {
		spread(dst, raw, h.Samples, h.Type.Size())
	}
	return nil
}

// swap reverses the bytes of elements.
func swap(b []byte, t dtype.Type) {
	unit := t.SwapSize()
	for i := 0; i+unit <= len(b); i += unit {
		for l, h := i, i+unit-1; l < h; l, h = l+1, h-1 {
			b[l], b[h] = b[h], b[l]
		}
	}
}

// spread takes the samples of pixels apart: dst has one plane of each behind the other.
func spread(dst, src []byte, samples, size int) {
	n := len(dst) / samples
	for s := range samples {
		plane := dst[s*n:][:n]
		for i, at := 0, s*size; i < n; i, at = i+size, at+samples*size {
			copy(plane[i:i+size], src[at:])
		}
	}
}
