package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/virtual"
)

// Store shows a volume as an OME-Zarr image.
type Store struct {
	file     store.Object
	where    string
	volume   *Volume
	offset   int64
	requests int
}

var (
	_ store.Decoder = (*Store)(nil)
	_ store.Distant = (*Store)(nil)
)

// New returns the store of a volume whose voxels lie in a file from an offset on. It takes the file over. requests is
// how many reads to have in flight if the file lies on a server, else 0.
func New(file store.Object, where string, offset int64, v *Volume, requests int) (*Store, error) {
	err := v.Check()
	if have := file.Size() - offset; err == nil && have < v.Bytes() {
		err = fmt.Errorf("%d bytes of voxels, its header says %d", max(have, 0), v.Bytes())
	}
	if err != nil {
		return nil, errors.Join(&zarr.FormatError{Path: where, Err: err}, file.Close())
	}
	return &Store{file: file, where: where, volume: v, offset: offset, requests: requests}, nil
}

// Volume returns what the store shows.
func (s *Store) Volume() *Volume { return s.volume }

// Warnings returns notes about what the file does not say, or says twice.
func (s *Store) Warnings() []string { return s.volume.Warnings }

// Requests returns how many reads to have in flight; 0 for a local file.
func (s *Store) Requests() int { return s.requests }

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

// Location returns the file's location, a slash and key.
func (s *Store) Location(key string) string { return store.Join(s.where, key) }

// List lists the group.
func (s *Store) List(_ context.Context, prefix string) ([]store.Entry, error) {
	if prefix != "" {
		return nil, virtual.Absent(s.Location(prefix))
	}
	return virtual.Entries(1, nil), nil
}

// document returns a metadata document.
func (s *Store) document(key string) (virtual.Document, error) {
	switch key {
	case "zarr.json":
		return s.volume.imageDocument()
	case "0/zarr.json":
		return s.volume.arrayDocument()
	}
	return nil, virtual.Absent(s.Location(key))
}

// place returns where a chunk lies in the file; ok is false if key is of no chunk.
func (s *Store) place(key string) (off, bytes int64, ok bool) {
	rest, ok := strings.CutPrefix(key, "0/c/")
	if !ok {
		return 0, 0, false
	}
	axes := s.volume.axes()
	index, ok := virtual.Index(axes, rest)
	if !ok {
		return 0, 0, false
	}
	at := map[byte]int{}
	for d, x := range axes {
		at[x.Role] = index[d]
	}
	v := s.volume
	t, c, z, bytes := int64(at['t']), int64(at['c']), int64(at['z']), v.planeBytes()
	if v.Together {
		bytes *= int64(v.Channels)
		c = 0
	}
	return s.offset + ((c*int64(v.Times)+t)*int64(v.Depth)+z)*bytes, bytes, true
}

// Get returns a document, or a chunk as stored.
func (s *Store) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	off, n, ok := s.place(key)
	if !ok {
		doc, err := s.document(key)
		if err != nil {
			return nil, err
		}
		return doc.Get(dst, limit, s.Location(key))
	}
	if limit >= 0 && n > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d expected", s.Location(key), store.ErrTooLarge, n, limit)
	}
	if int64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	_, err := (&plane{s, key, off, n}).ReadAt(ctx, dst, 0)
	return dst, err
}

// Open opens a document, or a chunk as stored.
func (s *Store) Open(_ context.Context, key string) (store.Object, error) {
	off, n, ok := s.place(key)
	if !ok {
		doc, err := s.document(key)
		return doc, err
	}
	o := &plane{s, key, off, n}
	if f, ok := s.file.(store.FileObject); ok {
		return &filePlane{o, f}, nil
	}
	return o, nil
}

// plane is a chunk of the file.
type plane struct {
	store    *Store
	key      string
	off, len int64
}

// Size returns the length of the chunk.
func (o *plane) Size() int64 { return o.len }

// Close does nothing: the file is the store's.
func (o *plane) Close() error { return nil }

// ReadAt reads a part of the chunk.
func (o *plane) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > o.len {
		return 0, io.EOF
	}
	short := int64(len(p)) > o.len-off
	if short {
		p = p[:o.len-off]
	}
	n, err := o.store.file.ReadAt(ctx, p, o.off+off)
	switch {
	case n < len(p) && (err == nil || errors.Is(err, io.EOF)):
		return n, fmt.Errorf("%s: %w", o.store.Location(o.key), store.ErrChanged)
	case n < len(p):
		return n, err
	case short:
		return n, io.EOF
	}
	return n, nil
}

// filePlane is a chunk of a local file as it lies there.
type filePlane struct {
	*plane
	local store.FileObject
}

// File returns the file's descriptor and where in it the chunk begins.
func (o *filePlane) File() (fd uintptr, off int64) {
	fd, off = o.local.File()
	return fd, off + o.off
}

// Decode fills dst with the values of a chunk: channels one after the other, scaled as the header says.
func (s *Store) Decode(ctx context.Context, key string, dst, src []byte) error {
	v := s.volume
	elem, channels := v.Type.Size(), 1
	if v.Together {
		channels = v.Channels
	}
	n := v.Height * v.Width
	t := v.shownType()
	if len(src) != n*channels*elem || len(dst) != n*channels*t.Size() {
		return fmt.Errorf("%s: %d bytes stored, %d decoded: %w", s.Location(key), len(src), len(dst), store.ErrChanged)
	}
	row := make([]byte, v.Width*elem)
	for c := range channels {
		for y := range v.Height {
			if err := ctx.Err(); err != nil {
				return err
			}
			for x := range v.Width {
				at := ((y*v.Width+x)*channels + c) * elem
				if channels == 1 {
					at = (y*v.Width + x) * elem
				}
				copy(row[x*elem:][:elem], src[at:])
			}
			if v.BigEndian && elem > 1 {
				dtype.SwapBytes(row, row, elem)
			}
			v.scale(dst[(c*n+y*v.Width)*t.Size():], row)
		}
	}
	return nil
}

// scale stores the values of little-endian elements.
func (v *Volume) scale(dst, row []byte) {
	if !v.scaled() {
		copy(dst, row)
		return
	}
	n, i := len(row)/v.Type.Size(), 0
	if v.shownType() == dtype.Float64 {
		out := dtype.Slice[float64](dst[:8*n])
		dtype.Each(row, v.Type, func(x float64) { out[i] = float64(v.Slope*x) + v.Inter; i++ })
		return
	}
	out := dtype.Slice[float32](dst[:4*n])
	dtype.Each(row, v.Type, func(x float64) { out[i] = float32(float64(v.Slope*x) + v.Inter); i++ })
}
