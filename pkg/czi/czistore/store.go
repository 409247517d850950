// Package czistore shows a CZI file as an OME-Zarr hierarchy, so that every reader of OME-Zarr reads CZI:
//
//	object, err := store.Folder("slides").Open(ctx, "scan.czi")
//	st, err := czistore.Open(ctx, object, "slides/scan.czi")
//	im, err := ngff.Open(ctx, st, "")
//	err = im.Levels[0].Array.Read(ctx, region, pixels)
//
// Nothing is converted in advance. The hierarchy has these nodes:
//
//	""                 the image of the only scene: its metadata as OME-Zarr 0.5, its levels in "0", "1" …
//	                   of several scenes a group of images, "0", "1" … (the layout of bioformats2raw)
//	"slide"            all scenes as one image
//	"subblocks/7"      the pixels of the eighth sub-block as the file holds them
//	"tiles/0.1.0.0.3"  those of a tile by scene, channel, depth, time and mosaic index
//	"planes/all/0.2.1" a plane by channel, depth and time, composed of the tiles of all scenes,
//	                   or of one: "planes/3/0.2.1"
//
// Images have those of the axes time, channel, depth, height and width along which there is more than one
// entry; a colour image has the three channels red, green and blue. Chunks are squares of level 0, or of a
// level for which the file has all sub-blocks, assembled from tiles when they are read. Decoded tiles are
// kept, within a budget, for neighbouring chunks. Planes and sub-blocks have the axes (y, x), or (y, x, c) in
// the order blue, green, red.
package czistore

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/czi"
	"strata/pkg/mem"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/virtual"
)

// Store shows a CZI file as a hierarchy.
type Store struct {
	virtual.Contents
	file     *czi.File
	where    string
	requests int
	images   map[string]*image // by key
	names    []string          // of images of a group
	warnings []string

	arrays virtual.Arrays[*array]
}

var (
	_ store.Decoder = (*Store)(nil)
	_ store.Distant = (*Store)(nil)
)

// mostImages is the maximum number of scenes shown, since the metadata of each is kept in memory.
const mostImages = 4096

// SlideKey names the image of all scenes together.
const SlideKey = "slide"

// Option configures [Open].
type Option func(*Store)

// Requests declares that the file lies on a server, and sets how many reads to have in flight.
func Requests(n int) Option { return func(s *Store) { s.requests = n } }

// Open makes a store of an open CZI file and takes ownership of it. where is its location in messages.
func Open(ctx context.Context, file store.Object, where string, opts ...Option) (*Store, error) {
	s := &Store{where: where, images: map[string]*image{}}
	s.Contents = virtual.NewContents(s.content, s.Location)
	s.arrays = virtual.Arrays[*array]{Where: where, Make: func(_ context.Context, key string) (*array, error) { return s.makeArray(key) }}
	for _, opt := range opts {
		opt(s)
	}
	with := []czi.Option{czi.Cache(max(64<<20, mem.Caches()/8))}
	if s.requests > 0 { // many are on their way
		with = []czi.Option{czi.Cache(max(128<<20, mem.Caches()/4)), czi.Far()}
	}
	var err error
	if s.file, err = czi.Open(ctx, file, where, with...); err != nil {
		return nil, errors.Join(virtual.FileError(err, where), file.Close())
	}
	s.warnings = append(s.warnings, s.file.Warnings...)
	meta, err := s.file.Metadata(ctx)
	if err != nil {
		if virtual.FromSource(err) {
			return nil, errors.Join(err, file.Close())
		}
		s.warnings = append(s.warnings, err.Error()+"; what it says of channels and sizes is left out")
	}
	s.findImages(meta)
	return s, nil
}

// findImages makes the images of the scenes.
func (s *Store) findImages(meta *czi.Metadata) {
	views, scenes := s.file.Views(), s.file.Scenes()
	if n := len(scenes) * len(views); n > mostImages {
		s.warnings = append(s.warnings, fmt.Sprintf("%s: %d scenes and views: the first %d are shown", s.where, n, mostImages))
	}
	for _, v := range views[:min(len(views), mostImages)] {
		for _, scene := range scenes[:min(len(scenes), mostImages-len(s.names))] {
			if im := s.newImage(meta, scene.Index, v, len(views) > 1); im != nil {
				key := strconv.Itoa(len(s.names))
				s.images[key], s.names = im, append(s.names, key)
			}
		}
	}
	if s.file.Len() == 0 {
		s.warnings = append(s.warnings, s.where+": holds no sub-blocks, so there is no image in it")
	}
	if len(s.names) == 0 {
		return
	}
	first := s.images["0"]
	if text := first.assumed(); text != "" {
		s.warnings = append(s.warnings, s.where+": "+text)
	}
	if len(s.names) == 1 {
		s.images, s.names = map[string]*image{"": first}, nil
	}
	s.images[SlideKey] = s.newImage(meta, czi.AllScenes, views[0], false)
}

// Warnings returns notes about parts that could not be read, and about assumptions.
func (s *Store) Warnings() []string { return s.warnings }

// File returns the file's structure.
func (s *Store) File() *czi.File { return s.file }

// Names returns the keys of the images of a file with several scenes, or nil if there is one image, whose key
// is "".
func (s *Store) Names() []string { return slices.Clone(s.names) }

// Requests returns how many reads to have in flight; 0 for a local file.
func (s *Store) Requests() int { return s.requests }

// Close closes the file.
func (s *Store) Close() error { return s.file.Source().(store.Object).Close() }

// Location names a node, or a chunk by its array and index.
func (s *Store) Location(key string) string {
	if at, rest, ok := strings.Cut(key, "/c/"); ok && !strings.HasPrefix(at, "subblocks/") {
		return store.Join(s.where, at) + ": chunk " + rest
	}
	return store.Join(s.where, strings.TrimSuffix(key, "/zarr.json"))
}

func (s *Store) absent(key string) error { return s.arrays.Absent(key) }

// group returns the zarr.json of a file of several scenes.
func (s *Store) group() []byte {
	ome := `{}`
	if s.names != nil {
		ome = `{"ome":{"version":"0.5","bioformats2raw.layout":3}}`
	}
	return []byte(`{"zarr_format":3,"node_type":"group","attributes":` + ome + `}`)
}

// series returns the zarr.json of the group OME beside the images of several scenes.
func (s *Store) series() []byte {
	return fmt.Appendf(nil, `{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","series":["%s"]}}}`, strings.Join(s.names, `","`))
}

// document returns the metadata document under a key, or fs.ErrNotExist if no node has it.
func (s *Store) document(ctx context.Context, key string) ([]byte, error) {
	dir, name := path.Split(key)
	dir = strings.TrimSuffix(dir, "/")
	switch im := s.images[dir]; {
	case name != "zarr.json":
		return nil, s.absent(key)
	case im != nil:
		if err := s.file.CheckBounds(im.scene); err != nil {
			return nil, virtual.FileError(err, s.where)
		}
		return im.document()
	case dir == "":
		return s.group(), nil
	case dir == "OME" && s.names != nil:
		return s.series(), nil
	}
	a, err := s.arrays.Array(ctx, dir)
	if err != nil {
		return nil, err
	}
	return virtual.ArrayDocument(a.axes, a.elem, a.codecs)
}

func (s *Store) makeArray(key string) (*array, error) {
	kind, rest, _ := strings.Cut(key, "/")
	switch kind {
	case "subblocks":
		i, ok := virtual.Number(rest)
		if !ok || i >= s.file.Len() {
			return nil, s.absent(key)
		}
		return s.subBlockArray(i)
	case "tiles":
		at, ok := numbers(rest, 5)
		if !ok {
			return nil, s.absent(key)
		}
		i, ok := s.file.Tile(at[0], s.file.Plane(at[1], at[2], at[3]), at[4])
		if !ok {
			return nil, s.absent(key)
		}
		return s.subBlockArray(i)
	case "planes":
		return s.planeArray(key, rest)
	}
	dir, name := path.Split(key)
	im := s.images[strings.TrimSuffix(dir, "/")]
	level, ok := virtual.Number(name)
	if im == nil || !ok || level >= len(im.factors) {
		return nil, s.absent(key)
	}
	if err := s.file.CheckBounds(im.scene); err != nil {
		return nil, virtual.FileError(err, s.where)
	}
	return im.levelArray(level), nil
}

// numbers parses numbers with dots between them.
func numbers(text string, n int) (v []int, ok bool) {
	for part := range strings.SplitSeq(text, ".") {
		i, ok := virtual.Number(part)
		if !ok {
			return nil, false
		}
		v = append(v, i)
	}
	return v, len(v) == n
}

// List lists the images of the file and their levels; sub-blocks, tiles and planes are not listed.
func (s *Store) List(_ context.Context, prefix string) ([]store.Entry, error) {
	im := s.images[prefix]
	if im == nil && prefix != "" {
		return nil, s.absent(prefix)
	}
	if im == nil {
		return virtual.Entries(0, s.names), nil
	}
	return virtual.Entries(len(im.factors), nil), nil
}

// content returns a metadata document, or a placeholder for a chunk that exists: Decode reads the chunk.
func (s *Store) content(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, index, err := s.arrays.Chunk(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case index == nil:
		return s.document(ctx, key)
	case a.empty(s.file, index):
		return nil, s.absent(key)
	}
	if s.requests > 0 && a.block == 0 { // those who fetch are more than those who decode
		r, _ := a.region(index)
		err = s.file.Fetch(ctx, r)
	}
	return []byte{0}, err
}

// Decode fills dst with the samples of a chunk.
func (s *Store) Decode(ctx context.Context, key string, dst, _ []byte) error {
	a, index, err := s.arrays.Chunk(ctx, key)
	if err != nil {
		return err
	}
	return virtual.FileError(a.read(ctx, s.file, index, dst), s.where)
}
