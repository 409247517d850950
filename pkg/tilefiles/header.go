package tilefiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
	"strata/pkg/zarr/store"
)

// Header describes the content of a file.
type Header struct {
	Path   string
	Format string // "TIFF", "PNG" or "NumPy"
	Type   dtype.Type
	// Times, Channels and Planes are those in the file, at least 1. Samples of a pixel, as of RGB, are channels.
	Times, Channels, Planes int
	Height, Width           int
	Samples                 int      // channels that lie together in a pixel, at least 1
	Names                   []string // of channels; nil: not known

	Voxel     [3]float64  // size (z, y, x) in µm; 0: not known
	VoxelFrom string      // where Voxel was read: "OME-XML", "ImageJ", "MetaMorph", "TIFF resolution" …; "": nowhere
	Stage     *[2]float64 // position (y, x) of the first pixel in µm; nil: not recorded
	StageFrom string      // where Stage was read
}

// The names of formats.
const (
	TIFF  = "TIFF"
	PNG   = "PNG"
	NumPy = "NumPy"
)

// readHeader reads the header of a file of any format, and checks that the file is whole. axes are those of pages, as
// in [Options].
func readHeader(ctx context.Context, path, axes string) (*Header, error) {
	o, err := store.Folder(filepath.Dir(path)).Open(ctx, filepath.Base(path)) // a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return HeaderOf(ctx, o, path, axes)
}

// HeaderOf is [readHeader] of a file that is open.
func HeaderOf(ctx context.Context, o store.Object, path, axes string) (*Header, error) {
	head := make([]byte, min(headBytes, o.Size()))
	if _, err := o.ReadAt(ctx, head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case tiff.IsTIFF(head):
		f, err := tiff.Open(ctx, o, path)
		if err != nil {
			return nil, err
		}
		return HeaderOfTIFF(ctx, f, axes)
	case isPNG(head):
		return headerOfPNG(ctx, o, head, path, axes)
	case isNumPy(head):
		h, _, err := HeaderOfNumPy(ctx, o, path, axes)
		return h, err
	case len(head) == 0:
		return nil, fmt.Errorf("%s: is empty", path)
	}
	return nil, fmt.Errorf("%s: begins with %q: want a TIFF, PNG or .npy file", path, head[:min(4, len(head))])
}

// headBytes is the number of first bytes that are read: they tell formats apart and hold the header of a PNG file.
const headBytes = 33

// Unlike returns an error that names how another file differs from h in what the tiles of a mosaic share; nil: it does
// not.
func (h *Header) Unlike(other *Header) error {
	a, b := h.kind(), other.kind()
	if a == b {
		return nil
	}
	return fmt.Errorf("%s: has %s, but %s has %s: the tiles of a mosaic are alike", other.Path, b, filepath.Base(h.Path), a)
}

// kind describes size and type in words.
func (h *Header) kind() string {
	text := fmt.Sprintf("%d × %d pixels of %s", h.Height, h.Width, h.Type)
	for _, n := range []struct {
		n    int
		what string
	}{{h.Planes, "planes"}, {h.Channels, "channels"}, {h.Times, "times"}} {
		if n.n > 1 {
			text += fmt.Sprintf(" in %d %s", n.n, n.what)
		}
	}
	return text
}

// fileReader reads an object from its beginning.
type fileReader struct {
	ctx context.Context
	o   store.Object
	at  int64
}

func (r *fileReader) Read(p []byte) (int, error) {
	n, err := r.o.ReadAt(r.ctx, p, r.at)
	r.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
