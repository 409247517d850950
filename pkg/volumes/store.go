package volumes

import (
	"context"
	"errors"
	"fmt"
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

// chunk returns a chunk, or nil if key is of none.
func (s *Store) chunk(key string) *virtual.Part {
	rest, _ := strings.CutPrefix(key, "0/c/")
	axes := s.volume.axes()
	index, ok := virtual.Index(axes, rest)
	if !ok || rest == key {
		return nil
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
	off := s.offset + ((c*int64(v.Times)+t)*int64(v.Depth)+z)*bytes
	return &virtual.Part{In: s.file, Off: off, Stored: bytes, Bytes: bytes, Where: func() string { return s.Location(key) }}
}

// Get returns a document, or a chunk as stored.
func (s *Store) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := s.chunk(key)
	if o == nil {
		doc, err := s.document(key)
		if err != nil {
			return nil, err
		}
		return doc.Get(dst, limit, s.Location(key))
	}
	n := o.Bytes
	if limit >= 0 && n > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d expected", s.Location(key), store.ErrTooLarge, n, limit)
	}
	if int64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	_, err := o.ReadAt(ctx, dst, 0)
	return dst, err
}

// Open opens a document, or a chunk as stored.
func (s *Store) Open(_ context.Context, key string) (store.Object, error) {
	o := s.chunk(key)
	if o == nil {
		doc, err := s.document(key)
		return doc, err
	}
	if f, ok := s.file.(store.FileObject); ok {
		return &virtual.FilePart{Part: o, Local: f}, nil
	}
	return o, nil
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
