// Package tiffstore shows a TIFF file as an OME-Zarr hierarchy, so that every reader of OME-Zarr reads TIFF:
//
//	object, err := store.Folder("slides").Open(ctx, "scan.svs")
//	st, err := tiffstore.Open(ctx, object, "slides/scan.svs")
//	im, err := ngff.Open(ctx, st, "")
//	err = im.Levels[0].Array.Read(ctx, region, pixels)
//
// Nothing is converted in advance. The hierarchy has these nodes:
//
//	""            the file's first image: its metadata as OME-Zarr 0.5, its levels in "0", "1" …
//	"label" …     other images by their names, or as "image_1" …
//	"pages/2"     the decoded samples of the third directory
//	"pages/2.0"   those of its first sub-IFD
//
// A chunk is a tile or a strip. Uncompressed chunks can be read in parts, straight from the file; consecutive
// strips form one chunk. Tiles of Zstandard and Deflate are chunks of the Zarr codecs of these names, so that
// a GPU can decode them. The store decodes all others ([store.Decoder]).
//
// An image has those of the axes time, channel, depth, height and width that the file has, in this order; the
// samples of a pixel are channels. A page has the axes (y, x); (y, x, sample) for interleaved samples;
// (sample, y, x) for samples in separate planes; and (z, y, x) for volumetric tiles. A palette image is shown
// in its colours, its pages as indices; other samples keep their values, MinIsWhite too.
package tiffstore

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/virtual"
)

// Store shows a TIFF file as a hierarchy.
type Store struct {
	file     *tiff.File
	where    string
	requests int
	images   map[string]*tiff.Image // by key
	names    []string               // of images but the first, in the order of the file
	warnings []string
	others   []store.Object // of an image that lies in several files

	arrays  virtual.Arrays[*array]
	scratch chan *scratch
}

// scratch holds what one goroutine needs for decoding.
type scratch struct {
	codec   tilecodec.Scratch
	indices []byte // of a tile of a palette image
	part    []byte // of a tile that is cut
}

var (
	_ store.Decoder = (*Store)(nil)
	_ store.Distant = (*Store)(nil)
)

// Option configures [Open].
type Option func(*options)

type options struct {
	requests int
	sibling  func(ctx context.Context, name string) (store.Object, error)
}

// Requests declares that the file lies on a server, and sets how many reads to have in flight.
func Requests(n int) Option { return func(o *options) { o.requests = n } }

// Siblings opens other files of the same folder, since an OME-TIFF image may consist of several.
func Siblings(open func(ctx context.Context, name string) (store.Object, error)) Option {
	return func(o *options) { o.sibling = open }
}

// Open makes a store of an open TIFF file and takes ownership of it. where is its location in messages.
func Open(ctx context.Context, file store.Object, where string, opts ...Option) (*Store, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Store{where: where, requests: o.requests, images: map[string]*tiff.Image{}, scratch: make(chan *scratch, 64)}
	s.arrays = virtual.Arrays[*array]{Where: where, Make: s.makeArray}
	var more []tiff.Option
	if o.sibling != nil {
		more = append(more, tiff.Siblings(func(ctx context.Context, name string) (tiff.Source, error) {
			other, err := o.sibling(ctx, name)
			if err == nil {
				s.others = append(s.others, other)
			}
			return other, err
		}))
	}
	var err error
	if s.file, err = tiff.Open(ctx, file, where, more...); err != nil {
		return nil, errors.Join(virtual.FileError(err, where), s.close(file))
	}
	for i, im := range s.file.Images {
		key := ""
		if i > 0 {
			key = imageKey(im.Name, i, s.images)
			s.names = append(s.names, key)
		}
		s.images[key] = im
	}
	if len(s.file.Images) > 0 {
		if text := assumed(s.file.Images[0]); text != "" {
			s.warnings = append(s.warnings, where+": "+text)
		}
	}
	s.warnings = append(s.warnings, s.file.Warnings...)
	return s, nil
}

// Warnings returns notes about parts that could not be read, and about assumptions.
func (s *Store) Warnings() []string { return s.warnings }

// imageKey returns the key of an image that is not the first: its name where that can be a key.
func imageKey(name string, number int, taken map[string]*tiff.Image) string {
	name = strings.ToLower(name)
	ok := name != "" && name != "pages" && name != "labels" && len(name) <= 64 && taken[name] == nil
	for i, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-'))
	}
	if ok {
		return name
	}
	return fmt.Sprintf("image_%d", number)
}

// File returns the file's structure.
func (s *Store) File() *tiff.File { return s.file }

// Image returns the image at a key, or nil if there is none.
func (s *Store) Image(key string) *tiff.Image { return s.images[key] }

// PageKeys returns the keys of the pages that form the levels of the image at a key, or nil if a level has
// more than one page. In their arrays the samples of a pixel lie together, as in the file.
func (s *Store) PageKeys(key string) []string {
	im := s.images[key]
	if im == nil || im.Times*im.Channels*im.Depths != 1 {
		return nil
	}
	var keys []string
	for _, l := range im.Levels {
		key := s.PageKey(l.Pages[0])
		if key == "" {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}

// PageKey returns the key of a page, "" if it lies in another file.
func (s *Store) PageKey(page *tiff.Page) string {
	for i, p := range s.file.Pages {
		if p == page {
			return fmt.Sprintf("pages/%d", i)
		}
		if k := slices.Index(p.Sub, page); k >= 0 {
			return fmt.Sprintf("pages/%d.%d", i, k)
		}
	}
	return ""
}

// Names returns the keys of the file's images behind the first.
func (s *Store) Names() []string { return slices.Clone(s.names) }

// Local reports whether the file lies on this machine, so that raw chunks can be read from it directly.
func (s *Store) Local() bool {
	_, ok := s.file.Source().(store.FileObject)
	return ok
}

// Requests returns how many reads to have in flight; 0 for a local file.
func (s *Store) Requests() int { return s.requests }

// Close closes the file and the other files of its image.
func (s *Store) Close() error { return s.close(s.file.Source().(store.Object)) }

func (s *Store) close(file store.Object) error {
	err := file.Close()
	for _, o := range s.others {
		err = errors.Join(err, o.Close())
	}
	return err
}

// Location names a chunk by its page and tile, and returns other keys below the file.
func (s *Store) Location(key string) string {
	at, rest, ok := strings.Cut(key, "/c/")
	if a, known := s.arrays.Known(at); ok && known { // else nobody has asked for the chunk
		if index, ok := virtual.Index(a.axes, rest); ok {
			if page, segment := a.locate(index); page != nil {
				return fmt.Sprintf("%s: %s: %s", page.File().Name, page.Name(), page.SegmentName(segment))
			}
		}
	}
	return store.Join(s.where, key)
}

// document returns the metadata document under a key, or fs.ErrNotExist if no node has it.
func (s *Store) document(ctx context.Context, key string) ([]byte, error) {
	dir, name := path.Split(key)
	dir = strings.TrimSuffix(dir, "/")
	if name != "zarr.json" {
		return nil, s.absent(key)
	}
	if im, ok := s.images[dir]; ok {
		return s.imageDocument(ctx, dir, im)
	}
	if dir == "" { // pages that are no image
		return []byte(`{"zarr_format":3,"node_type":"group","attributes":{}}`), nil
	}
	a, err := s.arrays.Array(ctx, dir)
	if err != nil {
		return nil, err
	}
	return a.document()
}

func (s *Store) absent(key string) error { return s.arrays.Absent(key) }

func (s *Store) makeArray(ctx context.Context, key string) (*array, error) {
	if name, ok := strings.CutPrefix(key, "pages/"); ok {
		p := s.page(name)
		if p == nil {
			return nil, s.absent(key)
		}
		return s.pageArray(ctx, p)
	}
	dir, name := path.Split(key)
	im := s.images[strings.TrimSuffix(dir, "/")]
	level, ok := virtual.Number(name)
	if im == nil || !ok || level >= len(im.Levels) {
		return nil, s.absent(key)
	}
	return s.levelArray(ctx, im, level)
}

// page finds a page by its name: 2, or 2.0 for a sub-IFD.
func (s *Store) page(name string) *tiff.Page {
	name, sub, below := strings.Cut(name, ".")
	i, ok := virtual.Number(name)
	if !ok || i >= len(s.file.Pages) {
		return nil
	}
	p := s.file.Pages[i]
	if !below {
		return p
	}
	if i, ok = virtual.Number(sub); !ok || i >= len(p.Sub) {
		return nil
	}
	return p.Sub[i]
}

// List lists the images of the file and their levels; pages are not listed.
func (s *Store) List(_ context.Context, prefix string) ([]store.Entry, error) {
	im := s.images[prefix]
	if im == nil && prefix != "" {
		return nil, s.absent(prefix)
	}
	levels, names := 0, []string(nil)
	if im != nil {
		levels = len(im.Levels)
	}
	if prefix == "" {
		names = s.names
	}
	return virtual.Entries(levels, names), nil
}

// Get returns a metadata document, or the stored bytes of a tile.
func (s *Store) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, index, err := s.arrays.Chunk(ctx, key)
	if err != nil {
		return nil, err
	}
	if index == nil {
		doc, err := s.document(ctx, key)
		if err != nil {
			return nil, err
		}
		return virtual.Document(doc).Get(dst, limit, s.Location(key))
	}
	o, err := s.open(ctx, key, a, index)
	if err != nil {
		return nil, err
	}
	if limit >= 0 && o.Bytes > limit {
		return nil, &zarr.FormatError{Path: s.Location(key), Err: fmt.Errorf("has %d bytes, for %d bytes of samples at most %d make sense", o.Bytes, a.bytes, limit)}
	}
	if int64(cap(dst)) < o.Bytes {
		dst = make([]byte, o.Bytes)
	}
	dst = dst[:o.Bytes]
	if _, err := o.ReadAt(ctx, dst, 0); err != nil {
		return nil, err
	}
	return dst, nil
}

// Open opens a chunk, or a metadata document.
func (s *Store) Open(ctx context.Context, key string) (store.Object, error) {
	a, index, err := s.arrays.Chunk(ctx, key)
	if err != nil {
		return nil, err
	}
	if index == nil {
		doc, err := s.document(ctx, key)
		if err != nil {
			return nil, err
		}
		return virtual.Document(doc), nil
	}
	o, err := s.open(ctx, key, a, index)
	if err != nil {
		return nil, err
	}
	if f, ok := o.In.(store.FileObject); ok && o.Stored == o.Bytes {
		page, _ := a.locate(index)
		return &filePart{virtual.FilePart{Part: o, Local: f}, page.File().Name}, nil
	}
	return o, nil
}

// open finds where a chunk lies.
func (s *Store) open(ctx context.Context, key string, a *array, index []int) (*virtual.Part, error) {
	p, segment := a.locate(index)
	if p == nil { // a plane that is not in the file
		return nil, s.absent(key)
	}
	if p.Layout != a.layout && *p.Layout != *a.layout {
		return nil, &zarr.FormatError{Path: s.Location(key), Err: errors.New("the page is stored otherwise than the first of its image")}
	}
	off, n, err := p.Segment(ctx, segment)
	switch {
	case err != nil:
		return nil, virtual.FileError(err, p.File().Name)
	case n == 0:
		return nil, s.absent(key)
	}
	o := &virtual.Part{In: p.File().Source().(store.Object), Off: off, Stored: n, Bytes: n, Where: func() string { return s.Location(key) }}
	if !a.raw {
		return o, nil
	}
	need := p.Packed(p.SegmentRows(segment))
	if a.joined {
		if need < a.bytes { // the first of several strips, of which joined has seen all
			n = a.bytes
		}
		need = a.bytes
	}
	if n < need {
		return nil, &zarr.FormatError{Path: s.Location(key), Err: fmt.Errorf("has %d bytes, its samples take %d", n, need)}
	}
	o.Bytes, o.Stored = a.bytes, min(n, a.bytes)
	return o, nil
}

// Decode fills dst with the samples of a tile.
func (s *Store) Decode(ctx context.Context, key string, dst, src []byte) error {
	a, index, err := s.arrays.Chunk(ctx, key)
	if err != nil {
		return err
	}
	p, segment := a.locate(index)
	f := *a.format
	if f.Compression == tilecodec.JPEG && p != a.first {
		if f.Tables, err = p.Tables(ctx); err != nil {
			return err
		}
	}
	var c *scratch
	select {
	case c = <-s.scratch:
	default:
		c = new(scratch)
	}
	defer func() {
		select {
		case s.scratch <- c:
		default:
		}
	}()
	if a.colors == nil {
		err := f.Decode(ctx, &c.codec, dst, src, p.SegmentRows(segment))
		if err != nil && p.Tiled && decodeCropped(ctx, c, &f, dst, src, p.SegmentColumns(segment), p.SegmentRows(segment)) == nil {
			return nil
		}
		return err
	}
	c.indices = slices.Grow(c.indices[:0], f.Bytes())[:f.Bytes()]
	if err := f.Decode(ctx, &c.codec, c.indices, src, p.SegmentRows(segment)); err != nil {
		return err
	}
	a.paint(dst, c.indices)
	return nil
}
