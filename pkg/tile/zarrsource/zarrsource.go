// Package zarrsource lets a tile loader read Zarr arrays.
//
// The tiles are the array's chunks (inner chunks if it is sharded), since a decoder produces a whole chunk at
// once:
//
//	src, err := zarrsource.New(array)
//	l, err := tile.New[float32](src, tile.Radius(2))
//
// Uncompressed chunks can be read in parts. [PieceBytes] cuts them into tiles of a few planes or rows that
// stay in a processor's cache between reading and computing.
package zarrsource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/tile"
	"strata/pkg/zarr"
)

// Source makes a pyramid of Zarr arrays a source of tiles.
type Source struct {
	levels []level
	names  []string
	dtype  dtype.Type
}

type level struct {
	array       *zarr.Array
	shape, tile []int
	strides     []int // of a tile, in bytes
	down        float64
}

var _ tile.BoxSource = (*Source)(nil)

// Option configures a Source.
type Option func(*config)

type config struct {
	piece int
	tile  []int
	names []string
	meter *meter.Meter
}

// PieceBytes cuts uncompressed chunks in C order into tiles of at most n bytes: as many planes along the
// first axis as fit, or as many rows of a plane that is larger. Other chunks stay whole.
func PieceBytes(n int) Option { return func(c *config) { c.piece = n } }

// Tile sets the shape of the tiles of all levels. Any shape works, but a tile that consists of several chunks
// or of parts of them decodes all of these.
func Tile(shape ...int) Option { return func(c *config) { c.tile = shape } }

// Names sets the axis names, one per axis. The default is the array's dimension names, with "axis0"… for
// unnamed dimensions.
func Names(names ...string) Option { return func(c *config) { c.names = names } }

// Meter counts the cost of reading, like zarr.Meter.
func Meter(m *meter.Meter) Option { return func(c *config) { c.meter = m } }

// New returns a source with one level. A loader accepts integers of 1 to 8 bytes, float32 and float64, and
// refuses other element types.
func New(a *zarr.Array, opts ...Option) (*Source, error) {
	return NewPyramid([]*zarr.Array{a}, []float64{1}, opts...)
}

// NewPyramid returns a source with several levels, finest first, and the factors by which they are coarser
// than the first. All must have the same type and number of dimensions.
func NewPyramid(levels []*zarr.Array, downScale []float64, opts ...Option) (*Source, error) {
	var c config
	for _, o := range opts {
		o(&c)
	}
	if len(levels) == 0 {
		return nil, errors.New("no arrays to read tiles from")
	}
	if len(downScale) != len(levels) {
		return nil, fmt.Errorf("%d down-scale factors for %d arrays", len(downScale), len(levels))
	}
	first := levels[0]
	s := &Source{dtype: first.DType(), names: c.axisNames(first)}
	if len(s.names) != len(first.Shape()) {
		return nil, fmt.Errorf("%s: %d axis names for %d dimensions", first.Location(), len(s.names), len(first.Shape()))
	}
	for k, a := range levels {
		if a.DType() != s.dtype || len(a.Shape()) != len(s.names) {
			return nil, fmt.Errorf("%s: %d dimensions of %s (the finest level has %d of %s)",
				a.Location(), len(a.Shape()), a.DType(), len(s.names), s.dtype)
		}
		lv := level{array: a.With(zarr.Workers(1)), shape: a.Shape(), down: downScale[k]}
		if c.meter != nil {
			lv.array = lv.array.With(zarr.Meter(c.meter))
		}
		var err error
		if lv.tile, err = c.tileShape(a); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Location(), err)
		}
		lv.strides = make([]int, len(lv.tile))
		for d, n := len(lv.tile)-1, s.dtype.Size(); d >= 0; d-- {
			lv.strides[d] = n
			n *= lv.tile[d]
		}
		s.levels = append(s.levels, lv)
	}
	return s, nil
}

func (c *config) axisNames(a *zarr.Array) []string {
	if c.names != nil {
		return c.names
	}
	names := make([]string, len(a.Shape()))
	copy(names, a.DimensionNames())
	for d := range names {
		if names[d] == "" {
			names[d] = fmt.Sprintf("axis%d", d)
		}
	}
	return names
}

// tileShape returns the shape of a level's tiles: no longer than the array on any axis, so that small images
// do not take large buffers.
func (c *config) tileShape(a *zarr.Array) ([]int, error) {
	shape, t := a.Shape(), slices.Clone(a.Chunks())
	switch {
	case c.tile != nil:
		if len(c.tile) != len(shape) {
			return nil, fmt.Errorf("tiles of %v for %d dimensions", c.tile, len(shape))
		}
		return c.tile, nil
	case c.piece < 0:
		return nil, fmt.Errorf("pieces of %d bytes (must be above 0)", c.piece)
	}
	for d := range t {
		t[d] = min(t[d], max(shape[d], 1))
	}
	if c.piece > 0 && stored(a) {
		cut(t, a.Chunks(), shape, max(c.piece/a.DType().Size(), 1))
	}
	return t, nil
}

// stored reports whether chunks lie in their files as they lie in memory.
func stored(a *zarr.Array) bool { return len(a.Codecs()) == 0 && a.Order() == 'C' }

// cut shortens a tile, beginning with its first axis, until it has at most most elements.
func cut(t, chunk, shape []int, most int) {
	rest := 1
	for _, n := range t {
		rest *= n
	}
	for d := 0; d < len(t) && rest > most; d++ {
		rest /= t[d]
		t[d] = step(t[d], chunk[d], shape[d], max(most/rest, 1))
		rest *= t[d]
	}
}

// step returns the length, at most most, of the pieces of an axis of n elements. Of an axis of several chunks
// it divides the chunk where that costs less than half the length: else pieces would need two files.
func step(n, chunk, shape, most int) int {
	if most >= n {
		return n
	}
	pieces := (n + most - 1) / most
	even := (n + pieces - 1) / pieces
	if chunk >= shape {
		return even
	}
	for k := most; 2*k > most; k-- {
		if chunk%k == 0 {
			return k
		}
	}
	return even
}

// Levels returns the number of arrays.
func (s *Source) Levels() int { return len(s.levels) }

// Shape returns the shape of a level's array.
func (s *Source) Shape(level int) []int { return s.levels[level].shape }

// TileShape returns the shape of a level's tiles.
func (s *Source) TileShape(level int) []int { return s.levels[level].tile }

// DimensionNames returns the names of the axes.
func (s *Source) DimensionNames() []string { return s.names }

// DownScale returns the factor that NewPyramid was given.
func (s *Source) DownScale(level int) float64 { return s.levels[level].down }

// DType returns the element type of all arrays.
func (s *Source) DType() dtype.Type { return s.dtype }

// ScratchBytes returns the maximum memory that one LoadTile needs besides dst.
func (s *Source) ScratchBytes() int64 {
	var most int64
	for _, lv := range s.levels {
		most = max(most, lv.scratchBytes())
	}
	return most
}

func (lv level) scratchBytes() int64 {
	whole := true
	for d, n := range lv.array.Chunks() {
		whole = whole && lv.tile[d]%n == 0
	}
	return lv.array.ScratchBytes(whole)
}

// LoadTile reads a tile, as far as it lies in the array, in the caller's goroutine.
func (s *Source) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	lv := &s.levels[level]
	return lv.load(ctx, index, make([]int, len(lv.tile)), lv.tile, dst, lv.strides)
}

// Parts reports whether a level's chunks are stored uncompressed.
func (s *Source) Parts(level int) bool { return stored(s.levels[level].array) }

// LoadBox reads a box of a tile, as far as it lies in the array, in the caller's goroutine.
func (s *Source) LoadBox(ctx context.Context, level int, index, start, shape []int, dst []byte, strides []int) error {
	return s.levels[level].load(ctx, index, start, shape, dst, strides)
}

func (lv *level) load(ctx context.Context, index, start, shape []int, dst []byte, strides []int) error {
	r := zarr.Region{Start: make([]int, len(index)), Shape: make([]int, len(index))}
	for d, i := range index {
		r.Start[d] = i*lv.tile[d] + start[d]
		r.Shape[d] = min(shape[d], lv.shape[d]-r.Start[d])
		if r.Shape[d] <= 0 {
			return nil // all of it lies outside
		}
	}
	return lv.array.ReadStrided(ctx, r, dst, strides)
}
