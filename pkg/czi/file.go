package czi

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// File represents an open CZI file. It is safe for concurrent use.
type File struct {
	Name     string // for messages
	Version  [2]int // major, minor
	Warnings []string

	src     Source
	header  header
	entries []entry
	kinds   []kind
	extent  [len(dimensionNames)]extent
	scenes  map[int32]*sceneBox
	types   map[int32]PixelType // of channels
	broken  map[brokenKey]int32 // entries whose sizes cannot be

	index     sync.Once
	groups    map[groupKey]*tree
	levels    map[int32]map[int32]bool // factors of scenes
	tileIndex sync.Once
	tiles     []int32 // tiles of level 0 in the order of their coordinates
	meta      metadataCache
	tools     chan *tools
	cache     *tileCache  // nil: none
	far       bool        // on a server
	masked    atomic.Bool // a tile has a mask
}

// header holds the content of the first segment.
type header struct {
	major, minor        int32
	primary, guid       [16]byte
	part                int32
	directory, metadata int64
	pending             int32
	attachments         int64
}

// headerBytes is the length of the first segment with its header.
const headerBytes = segmentHeader + 512

// ErrNoCZI is wrapped by errors about files that do not begin like CZI files.
var ErrNoCZI = errors.New("not a CZI file")

// IsCZI reports whether a file that begins with these bytes, ten or more, is a CZI file.
func IsCZI(head []byte) bool { return len(head) >= len(idFile) && string(head[:len(idFile)]) == idFile }

// Option configures [Open].
type Option func(*File)

// Cache keeps up to the given number of bytes of decoded tiles for neighbouring regions.
func Cache(limit int64) Option {
	return func(f *File) { f.cache = &tileCache{limit: limit, held: map[int]*cachedTile{}} }
}

// Far declares that the file lies on a server: uncompressed tiles are read as a whole and kept by [Cache],
// too.
func Far() Option { return func(f *File) { f.far = true } }

func newFile(src Source, name string) *File {
	return &File{Name: name, src: src, scenes: map[int32]*sceneBox{}, types: map[int32]PixelType{}, tools: make(chan *tools, 64)}
}

// Open reads the header and the directory of a CZI file. name is used in messages. The caller closes src
// after the last read.
func Open(ctx context.Context, src Source, name string, opts ...Option) (*File, error) {
	f := newFile(src, name)
	for _, opt := range opts {
		opt(f)
	}
	if err := f.readHeader(ctx); err != nil {
		return nil, err
	}
	if err := f.readDirectory(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// readHeader reads the first segment.
func (f *File) readHeader(ctx context.Context) error {
	b := make([]byte, min(headerBytes, f.src.Size()))
	if err := f.read(ctx, b, 0); err != nil {
		return fmt.Errorf("%s: header: %w", f.Name, err)
	}
	if !IsCZI(b) {
		return fmt.Errorf("%s: %w: begins with %q (must be %q)", f.Name, ErrNoCZI, b[:min(len(idFile), len(b))], idFile)
	}
	const need = 112
	if len(b) < need {
		return fmt.Errorf("%s: header: the file ends after %d of %d bytes", f.Name, len(b), need)
	}
	le := binary.LittleEndian
	h := &f.header
	h.major, h.minor = int32(le.Uint32(b[32:])), int32(le.Uint32(b[36:]))
	copy(h.primary[:], b[48:])
	copy(h.guid[:], b[64:])
	h.part = int32(le.Uint32(b[80:]))
	h.directory, h.metadata = int64(le.Uint64(b[84:])), int64(le.Uint64(b[92:]))
	h.pending, h.attachments = int32(le.Uint32(b[100:])), int64(le.Uint64(b[104:]))
	f.Version = [2]int{int(h.major), int(h.minor)}
	switch {
	case h.major != 1:
		return fmt.Errorf("%s: header: version %d.%d is not supported (must be 1)", f.Name, h.major, h.minor)
	case h.part != 0:
		return fmt.Errorf("%s: header: part %d of a file in several parts: open its first part, whose name has no number in brackets", f.Name, h.part)
	case h.pending != 0:
		f.warn("the program that writes it has not finished, or was stopped: what is there may be incomplete")
	}
	return nil
}

// warn records a fault that does not prevent reading.
func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, f.Name+": "+fmt.Sprintf(format, args...))
}

// Source returns the source that the file is read from.
func (f *File) Source() Source { return f.src }

// Len returns the number of sub-blocks.
func (f *File) Len() int { return len(f.entries) }

// AllScenes selects the tiles of all scenes, and those without scene.
const AllScenes = -1

// Scene is a group of tiles.
type Scene struct {
	Index  int
	Bounds image.Rectangle // of its tiles of level 0, in the common pixel plane
	All    image.Rectangle // of its tiles and pyramid
}

// sceneBox collects the rectangles of a scene. Empty rectangles have no part in it.
type sceneBox struct {
	level0, all image.Rectangle
	tiles       int     // of level 0
	pixels      float64 // of those
}

// Tiled returns the number of tiles, which are the sub-blocks of level 0.
func (f *File) Tiled() int { return f.boxOf(AllScenes).tiles }

// Scenes returns the scenes by index. A file without scenes has one, 0.
func (f *File) Scenes() []Scene {
	scenes := make([]Scene, 0, len(f.scenes))
	for s, b := range f.scenes {
		scenes = append(scenes, Scene{int(s), b.level0, b.all})
	}
	slices.SortFunc(scenes, func(a, b Scene) int { return a.Index - b.Index })
	return scenes
}

// Bounds returns the rectangle around the level-0 tiles of a scene, or of [AllScenes].
func (f *File) Bounds(scene int) image.Rectangle { return f.boxOf(scene).level0 }

// boxOf returns the bounds and sums of a scene, or those of all scenes together.
func (f *File) boxOf(scene int) (all sceneBox) {
	if scene != AllScenes {
		if b := f.scenes[int32(scene)]; b != nil {
			return *b
		}
		return all
	}
	for _, b := range f.scenes {
		all.level0, all.all = all.level0.Union(b.level0), all.all.Union(b.all)
		all.tiles += b.tiles
		all.pixels += b.pixels
	}
	return all
}

// A plane of more than mostEmpty pixels must have at least one pixel in sparsest covered by tiles.
const (
	mostEmpty = 1 << 36
	sparsest  = 1 << 14
)

// CheckBounds returns an error if tiles lie so far apart that their positions must be damaged.
func (f *File) CheckBounds(scene int) error {
	b := f.boxOf(scene)
	r := b.level0
	if all := float64(r.Dx()) * float64(r.Dy()); all > mostEmpty && all > sparsest*b.pixels {
		return fmt.Errorf("%s: directory at byte %d: tiles of %.0f pixels are spread over %d × %d", f.Name, f.header.directory, b.pixels, r.Dx(), r.Dy())
	}
	return nil
}

// Dimension returns the range [start, end) of the sub-blocks along one of the dimensions X Y C Z T S M R I H
// V B; for X, Y and M, of level 0 only. ok is false for a dimension that no sub-block has.
func (f *File) Dimension(name byte) (start, end int, ok bool) {
	d := dimensionOf(name)
	if d < 0 || !f.extent[d].there {
		return 0, 0, false
	}
	return int(f.extent[d].start), int(f.extent[d].end), true
}

// Compressions returns the compressions that sub-blocks have.
func (f *File) Compressions() []Compression {
	seen := map[Compression]bool{}
	for _, k := range f.kinds {
		seen[k.compression] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Views returns the positions along R, I, H, V and B that occur in sub-blocks, as planes whose other
// coordinates are 0.
func (f *File) Views() []Plane {
	seen := map[Plane]bool{}
	for _, k := range f.kinds {
		seen[Plane{R: int(k.views.r), I: int(k.views.i), H: int(k.views.h), V: int(k.views.v), B: int(k.views.b)}] = true
	}
	all := slices.Collect(maps.Keys(seen))
	slices.SortFunc(all, func(a, b Plane) int {
		return cmp.Or(cmp.Compare(a.R, b.R), cmp.Compare(a.I, b.I), cmp.Compare(a.H, b.H), cmp.Compare(a.V, b.V), cmp.Compare(a.B, b.B))
	})
	return all
}

// Channels returns the numbers of the channels that have tiles, ascending.
func (f *File) Channels() []int {
	channels := make([]int, 0, len(f.types))
	for c := range f.types {
		channels = append(channels, int(c))
	}
	slices.Sort(channels)
	return channels
}

// PixelType returns the pixel type of a channel, that of its first tile; ok is false if it has no tile.
func (f *File) PixelType(channel int) (PixelType, bool) {
	p, ok := f.types[int32(channel)]
	return p, ok
}

// Source reads the file that holds a CZI. Objects of package store are sources. ReadAt is safe for concurrent
// use.
type Source interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
}

// read fills p from offset off of the file.
func (f *File) read(ctx context.Context, p []byte, off int64) error {
	if size := f.src.Size(); off < 0 || off > size || int64(len(p)) > size-off {
		return fmt.Errorf("%w: bytes %d to %d of %d", errOutside, off, off+int64(len(p)), size)
	}
	n, err := f.src.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("got %d of %d bytes at %d: %w", n, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}

var errOutside = errors.New("lies outside the file")
