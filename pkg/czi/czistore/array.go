package czistore

import (
	"context"
	"fmt"
	goimage "image"
	"strings"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/virtual"
)

// array is one array of the hierarchy: a level of an image, a plane, or a sub-block. Roles of axes: 't' times, 'c'
// channels of an image, 'z' depths, 'y', 'x', 'i' the samples of a pixel.
type array struct {
	axes   []virtual.Axis
	elem   dtype.Type
	codecs []any

	image *image // nil: of a plane or a sub-block
	// of planes and levels
	plane  czi.Plane // of a plane
	scene  int
	factor int
	box    goimage.Rectangle
	// of a sub-block; 0: of none
	block int
}

// Dims returns the axes.
func (a *array) Dims() []virtual.Axis { return a.axes }

// subBlockArray shows the pixels of a sub-block as the file holds them, in one chunk.
func (s *Store) subBlockArray(i int) (*array, error) {
	sb := s.file.SubBlock(i)
	a := &array{block: i + 1}
	if sb.Bytes() == 0 {
		err := s.file.ReadSubBlock(context.Background(), i, nil) // says what is wrong
		return nil, &zarr.FormatError{Path: s.where, Err: virtual.Bare(err, s.where)}
	}
	a.pixels(sb.Pixels, sb.StoredHeight, sb.StoredWidth, sb.StoredHeight, sb.StoredWidth)
	a.addCodecs(sb.Compression.String())
	return a, nil
}

// pixels adds the axes of rows of pixels.
func (a *array) pixels(p czi.PixelType, height, width, chunkHeight, chunkWidth int) {
	a.elem = p.Elem()
	a.axes = append(a.axes, virtual.Along('y', "y", height, chunkHeight), virtual.Along('x', "x", width, chunkWidth))
	if n := p.Samples(); n > 1 {
		a.axes = append(a.axes, virtual.Along('i', "c", n, n))
	}
}

// planeArray shows a plane: rest is all/C.Z.T, or the number of a scene in place of all.
func (s *Store) planeArray(key, rest string) (*array, error) {
	which, at, _ := strings.Cut(rest, "/")
	scene, ok := virtual.Number(which)
	if which == "all" {
		scene, ok = czi.AllScenes, true
	}
	v, fine := numbers(at, 3)
	if !ok || !fine {
		return nil, s.absent(key)
	}
	a := &array{scene: scene, factor: 1, box: s.file.Bounds(scene), plane: s.file.Plane(v[0], v[1], v[2])}
	pixel, there := s.file.PixelType(v[0])
	var are []string
	for i, d := range []struct {
		dimension byte
		name      string
	}{{'C', "channel"}, {'Z', "depth"}, {'T', "time"}} {
		r := spanOf(s.file, d.dimension)
		there = there && v[i] >= r.start && v[i] < r.start+r.size
		if r.size == 1 {
			are = append(are, fmt.Sprintf("%s %d", d.name, r.start))
		} else {
			are = append(are, fmt.Sprintf("%ss %d to %d", d.name, r.start, r.start+r.size-1))
		}
	}
	switch {
	case a.box.Empty():
		return nil, s.absent(key)
	case !there:
		return nil, &zarr.FormatError{Path: s.where, Err: fmt.Errorf("has no plane %d,%d,%d (channel, depth, time): it has %s", v[0], v[1], v[2], strings.Join(are, ", "))}
	case pixel.Bytes() == 0:
		return nil, &zarr.FormatError{Path: s.where, Err: fmt.Errorf("channel %d: %s is not supported", v[0], pixel)}
	}
	if err := s.file.CheckBounds(scene); err != nil {
		return nil, virtual.FileError(err, s.where)
	}
	a.pixels(pixel, a.box.Dy(), a.box.Dx(), min(chunkSide, a.box.Dy()), min(chunkSide, a.box.Dx()))
	a.addCodecs("tiles")
	return a, nil
}

// region returns the region that a chunk shows. parts are the channels of the image in it.
func (a *array) region(index []int) (r czi.Region, parts []part) {
	var t, c, z int
	r = czi.Region{Plane: a.plane, Scene: a.scene, Zoom: 1 / float64(a.factor)}
	for d, i := range index {
		x := a.axes[d]
		at, size := i*x.Chunk*a.factor, x.Chunk*a.factor
		switch x.Role {
		case 't':
			t = i
		case 'c':
			c = i
		case 'z':
			z = i
		case 'y':
			r.Rect.Min.Y = a.box.Min.Y + at
			r.Rect.Max.Y = r.Rect.Min.Y + size
		case 'x':
			r.Rect.Min.X = a.box.Min.X + at
			r.Rect.Max.X = r.Rect.Min.X + size
		}
	}
	if a.image != nil {
		parts = a.image.parts[c*a.image.joined:][:a.image.joined]
		r.Plane = a.image.plane(t, parts[0].channel, z)
	}
	return r, parts
}

// empty reports whether no tile meets a chunk.
func (a *array) empty(f *czi.File, index []int) bool {
	if a.block > 0 {
		return false
	}
	r, _ := a.region(index)
	return len(f.Tiles(r.Scene, r.Plane, 1, r.Rect)) == 0 && !f.Broken(r.Scene, r.Plane)
}

// read fills dst with a chunk.
func (a *array) read(ctx context.Context, f *czi.File, index []int, dst []byte) error {
	if a.block > 0 {
		return f.ReadSubBlock(ctx, a.block-1, dst)
	}
	r, parts := a.region(index)
	pixel, _ := f.PixelType(r.Plane.C)
	if parts == nil {
		return f.ReadRegion(ctx, r, dst)
	}
	if pixel.Elem() == a.elem && pixel.Samples() == len(parts) {
		if err := f.ReadRegion(ctx, r, dst); err != nil {
			return err
		}
		swapColors(dst, a.elem.Size(), len(parts))
		return nil
	}
	// channels that differ in type, or in how many samples they have
	w, h := r.Size()
	all := make([]byte, w*h*pixel.Bytes())
	if err := f.ReadRegion(ctx, r, all); err != nil {
		return err
	}
	if len(parts) != pixel.Samples() {
		all = pick(all, pixel.Elem().Size(), pixel.Samples(), parts[0].sample)
	} else {
		swapColors(all, pixel.Elem().Size(), len(parts))
	}
	return dtype.Convert(dst, a.elem, all, pixel.Elem())
}

// pick takes one of n samples out of each pixel, in place.
func pick(b []byte, size, n, sample int) []byte {
	pixels := len(b) / (size * n)
	for i := range pixels {
		copy(b[i*size:(i+1)*size], b[(i*n+sample)*size:])
	}
	return b[:pixels*size]
}

// swapColors exchanges blue and red of pixels of three samples or more.
func swapColors(b []byte, size, n int) {
	switch {
	case n < 3:
	case size == 1:
		for i := 0; i+n <= len(b); i += n {
			b[i], b[i+2] = b[i+2], b[i]
		}
	default:
		var t [8]byte
		for i := 0; i+n*size <= len(b); i += n * size {
			blue, red := b[i:i+size], b[i+2*size:i+3*size]
			copy(t[:], blue)
			copy(blue, red)
			copy(red, t[:size])
		}
	}
}
