// Package tilestore shows the tiles of a slice, found by package tilefiles, as an OME-Zarr mosaic grid, so that every
// stage reads them:
//
//	st, err := tilestore.Open(ctx, set, &set.Slices[0], tilestore.Options{})
//	im, err := ngff.OpenPresent(ctx, st, "")
//
// Nothing is converted in advance: a chunk is read from its files when it is asked for. The hierarchy has one image at
// its root with one level, "0". It has those of the axes time, channel, depth, height and width that it needs, in this
// order: depth if there are several planes or their distance is known. The numbers of {t}, {c} and {z} in names come
// before those in files: channel 1 of a file with three channels is the second of the fourth to sixth if {c} is the
// second.
//
// A chunk is a tile, or planes of one of at most 64 MiB. Places without a tile, and files that are missing, read as 0.
package tilestore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"strata/pkg/mem"
	"strata/pkg/tilefiles"
	"strata/pkg/tilegrid"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/virtual"
)

// Options says how a slice is shown.
type Options struct {
	Name  string // of the image
	Whole bool   // a chunk is a whole tile, however large
	// Overlap is the fraction of a tile that its neighbour covers, too, which is recorded in the image; nil: not known.
	Overlap *float64
}

// Store shows the tiles of a slice as a hierarchy.
type Store struct {
	virtual.Contents
	set    *tilefiles.Set
	slice  *tilefiles.Slice
	opt    Options
	header *tilefiles.Header // of the slice's first file
	voxel  [3]float64
	at     map[[2]int]int // tiles by place
	open   cache
	arrays virtual.Arrays[*array]
}

var _ store.Decoder = (*Store)(nil)

// mostMosaic is the maximum number of pixels along a side of a mosaic.
const mostMosaic = 1<<31 - 1

// Open makes a store of a slice of a set. The first file that can be read says what all others must be like. An error
// about a size of voxels that nothing states is a [tilefiles.OptionError].
func Open(ctx context.Context, set *tilefiles.Set, slice *tilefiles.Slice, opt Options) (*Store, error) {
	voxel, err := set.Voxel()
	if err != nil {
		return nil, err
	}
	s := &Store{set: set, slice: slice, opt: opt, voxel: voxel, at: map[[2]int]int{}}
	s.Contents = virtual.NewContents(s.content, s.Location)
	if s.header, err = set.ReadHeader(ctx, slice.First()); err != nil {
		return nil, err
	}
	for k, t := range slice.Tiles {
		s.at[t.Place] = k
	}
	for d, side := range [2]int{s.header.Height, s.header.Width} {
		if float64(side)*float64(slice.Grid[d]) > mostMosaic {
			return nil, fmt.Errorf("%s: a mosaic grid of %d × %d tiles of %d × %d pixels is too large", set.Root, slice.Grid[0], slice.Grid[1], s.header.Height, s.header.Width)
		}
	}
	s.open = cache{expect: s.header, axes: set.Options.Axes}
	s.arrays = virtual.Arrays[*array]{Where: set.Root, Make: func(_ context.Context, key string) (*array, error) {
		if key != "0" {
			return nil, virtual.Absent(store.Join(set.Root, key))
		}
		return s.level(), nil
	}}
	return s, nil
}

// Header returns the header of the slice's first file.
func (s *Store) Header() *tilefiles.Header { return s.header }

// Bytes returns the size of all files of the slice, decoded.
func (s *Store) Bytes() int64 {
	h, n := s.header, 0
	for _, t := range s.slice.Tiles {
		for _, f := range t.Files {
			if f != "" {
				n++
			}
		}
	}
	return int64(n) * int64(mem.Product(h.Times, h.Channels, h.Planes, h.Height, h.Width, h.Type.Size()))
}

// Warnings returns what was noticed when the files were found.
func (s *Store) Warnings() []string { return s.slice.Warnings }

// Close closes the files that are open.
func (s *Store) Close() error { return s.open.close() }

// largeTile is the size in bytes above which a tile is shown as several chunks along z.
const largeTile = 64 << 20

// array is the only level. Roles of axes: 't', 'c', 'z', 'y', 'x'.
type array struct{ axes []virtual.Axis }

// Dims returns the axes.
func (a *array) Dims() []virtual.Axis { return a.axes }

// level describes the mosaic grid.
func (s *Store) level() *array {
	h, a := s.header, &array{}
	if n := count(s.set.Times) * h.Times; n > 1 {
		a.axes = append(a.axes, virtual.Along('t', "t", n, 1))
	}
	if n := count(s.set.Channels) * h.Channels; n > 1 {
		a.axes = append(a.axes, virtual.Along('c', "c", n, h.Samples))
	}
	if n := count(s.set.Planes) * h.Planes; n > 1 || s.voxel[0] > 0 {
		plane := int64(mem.Product(h.Samples, h.Height, h.Width, h.Type.Size()))
		parts := 1
		if !s.opt.Whole {
			parts = int((int64(n)*plane + largeTile - 1) / largeTile)
		}
		parts = min(parts, n)
		a.axes = append(a.axes, virtual.Along('z', "z", n, (n+parts-1)/parts))
	}
	a.axes = append(a.axes, virtual.Along('y', "y", s.slice.Grid[0]*h.Height, h.Height), virtual.Along('x', "x", s.slice.Grid[1]*h.Width, h.Width))
	return a
}

// count returns the length of an axis of names.
func count(numbers []int64) int { return max(1, len(numbers)) }

// document returns the metadata document under a key.
func (s *Store) document(key string) ([]byte, error) {
	switch key {
	case "zarr.json":
		return s.image()
	case "0/zarr.json":
		little := map[string]any{"endian": "little"}
		if s.header.Type.Size() == 1 {
			little = nil
		}
		return virtual.ArrayDocument(s.level().axes, s.header.Type, []any{virtual.Object("bytes", little), virtual.Object(codec.OfStoreName, map[string]any{"encoding": "files"})})
	}
	return nil, s.arrays.Absent(key)
}

// image returns the zarr.json of the image.
func (s *Store) image() ([]byte, error) {
	im := virtual.Image{Name: s.opt.Name, Factors: [][2]float64{{1, 1}}, Channels: s.channels()}
	for _, x := range s.level().axes {
		switch x.Role {
		case 't':
			im.Axes = append(im.Axes, virtual.TimeAxis(0))
		case 'c':
			im.Axes = append(im.Axes, virtual.ChannelAxis())
		default:
			im.Axes = append(im.Axes, virtual.SpaceAxis(x.Name, s.voxel[strings.IndexByte("zyx", x.Role)]))
		}
	}
	if s.opt.Overlap != nil {
		im.More = tilegrid.Attributes(*s.opt.Overlap)
	}
	return im.Document()
}

// channels describes how channels are shown; nil for types whose range is no guide.
func (s *Store) channels() (out []virtual.Channel) {
	h := s.header
	n := count(s.set.Channels) * h.Channels
	low, high, ok := virtual.Range(h.Type, 8*h.Type.Size())
	if n > 64 || !ok {
		return nil
	}
	for i := range n {
		c := virtual.Channel{Color: virtual.Color(i, n)}
		if h.Samples >= 3 && n == h.Samples {
			c = virtual.Sample(i)
		} else if s.set.Channels != nil {
			c.Name = s.set.ChannelName(i / h.Channels)
		}
		// The header is that of one file, which does not know the channels of others.
		if k := i % h.Channels; count(s.set.Channels) == 1 && k < len(h.Names) && h.Names[k] != "" {
			c.Name = h.Names[k]
		} else if h.Channels > 1 && n > h.Channels {
			c.Name += fmt.Sprintf(" %d", k)
		}
		c.Low, c.High = low, high
		out = append(out, c)
	}
	return out
}

// List lists the image and its level.
func (s *Store) List(_ context.Context, prefix string) ([]store.Entry, error) {
	if prefix != "" {
		return nil, s.arrays.Absent(prefix)
	}
	return virtual.Entries(1, nil), nil
}

// Location names the first file of a chunk, or the folder of tiles.
func (s *Store) Location(key string) string {
	if _, rest, ok := strings.Cut(key, "/c/"); ok {
		if index, ok := virtual.Index(s.level().axes, rest); ok {
			if pieces := s.pieces(index); len(pieces) > 0 {
				return s.set.Path(pieces[0].file)
			}
		}
	}
	return filepath.Clean(s.set.Root)
}

// content returns a metadata document, or a placeholder for a chunk that exists: Decode reads the chunk.
func (s *Store) content(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, index, err := s.arrays.Chunk(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case index == nil:
		return s.document(key)
	case len(s.pieces(index)) == 0:
		return nil, s.arrays.Absent(key)
	}
	return []byte{0}, nil
}

// piece is the part of a chunk that comes from one file.
type piece struct {
	file            string
	t, c, z, planes int // in the file
	at              int // plane of the chunk
}

// pieces returns the parts of a chunk whose files are there.
func (s *Store) pieces(index []int) (out []piece) {
	h, axes := s.header, s.level().axes
	var t, c, z0, z1, i, j int
	z1 = 1
	for d, n := range index {
		x := axes[d]
		switch x.Role {
		case 't':
			t = n
		case 'c':
			c = n * x.Chunk
		case 'z':
			z0, z1 = n*x.Chunk, min((n+1)*x.Chunk, x.Size)
		case 'y':
			i = n
		case 'x':
			j = n
		}
	}
	k, ok := s.at[[2]int{i, j}]
	if !ok {
		return nil
	}
	files := s.slice.Tiles[k].Files
	group := (t/h.Times*count(s.set.Channels) + c/h.Channels) * count(s.set.Planes)
	for z := z0; z < z1; {
		n := min(z1-z, h.Planes-z%h.Planes)
		if f := files[group+z/h.Planes]; f != "" {
			out = append(out, piece{file: f, t: t % h.Times, c: c % h.Channels, z: z % h.Planes, planes: n, at: z - z0})
		}
		z += n
	}
	return out
}

// Decode reads a chunk from its files.
func (s *Store) Decode(ctx context.Context, key string, dst, _ []byte) error {
	a, index, err := s.arrays.Chunk(ctx, key)
	if err != nil {
		return err
	}
	depth := 1
	for _, x := range a.axes {
		if x.Role == 'z' {
			depth = x.Chunk
		}
	}
	h := s.header
	plane := mem.Product(h.Height, h.Width, h.Type.Size())
	pieces := s.pieces(index)
	planes := 0
	for _, p := range pieces {
		planes += p.planes
	}
	if planes < depth {
		clear(dst)
	}
	for _, p := range pieces {
		if err := s.read(ctx, p, dst[p.at*plane:], depth*plane, plane); err != nil {
			return err
		}
	}
	return nil
}

// read reads a piece: planes of as many channels as lie together, which are stride bytes apart in dst.
func (s *Store) read(ctx context.Context, p piece, dst []byte, stride, plane int) error {
	path := s.set.Path(p.file)
	f, err := s.open.acquire(ctx, path)
	if err != nil {
		return virtual.FileError(err, path)
	}
	defer s.open.release(f)
	n := p.planes * plane
	if s.header.Samples == 1 || n == stride {
		return virtual.FileError(f.read(ctx, p, dst[:s.header.Samples*n]), path)
	}
	b, err := mem.Alloc(s.header.Samples * n)
	if err != nil {
		return err
	}
	defer mem.Free(b)
	if err := f.read(ctx, p, b); err != nil {
		return virtual.FileError(err, path)
	}
	for k := range s.header.Samples {
		copy(dst[k*stride:][:n], b[k*n:])
	}
	return nil
}
