package oct

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// StitchOptions say where the tiles go and how they are blended.
type StitchOptions struct {
	// Overlap is the fraction o of a tile that its neighbour is meant to have
	// seen too: 0 ≤ o < 1.
	Overlap float64
	// Transform is M; the zero value is the identity. With Estimate it is what
	// the search begins with.
	Transform Matrix
	// Estimate finds M by phase correlation of neighbouring tiles.
	Estimate bool
	// MaxRefinement is how far, in px, a tile may be moved from where M puts it,
	// to fit its neighbours; 0: not at all.
	MaxRefinement float64
	// Interpolate puts tiles at positions between voxels, by linear
	// interpolation, instead of rounding them to whole ones.
	Interpolate bool
	Blending    Blending // "": BlendDiffusion
	// Seams asks for the differences at the seams.
	Seams bool
}

// check reports options that make no sense. The messages name the flags.
func (o *StitchOptions) check() error {
	if !(o.Overlap >= 0 && o.Overlap < 1) {
		return badInput("--overlap %g must be within 0…1, 1 excluded", o.Overlap)
	}
	if !(o.MaxRefinement >= 0 && o.MaxRefinement <= 1e6) {
		return badInput("--max_refinement_px %g must be a number of pixels, at least 0", o.MaxRefinement)
	}
	if o.Transform == (Matrix{}) {
		o.Transform = Identity
	}
	if err := o.Transform.check(); err != nil {
		return badInput("--transform: %w", err)
	}
	switch o.Blending {
	case "":
		o.Blending = BlendDiffusion
	case BlendNone, BlendAverage, BlendFeather, BlendDiffusion:
	default:
		return badInput("--blending %q is not one of %v", o.Blending, Blendings)
	}
	return nil
}

// Stitching says where the tiles of a mosaic were put.
type Stitching struct {
	Overlap   float64    `json:"overlap"`
	Transform Transform  `json:"transform"`
	Blending  Blending   `json:"blending"`
	Tile      [2]int     `json:"tile_px"`   // (y, x)
	Grid      [2]int     `json:"tiles"`     // (y, x)
	Origin    [2]int     `json:"origin_px"` // position of the slice's first voxel
	Size      [2]int     `json:"size_px"`   // of the slice
	Holes     int64      `json:"holes_px"`  // pixels of a plane that no tile covers
	Tiles     []TilePlan `json:"positions"`
	Pairs     []TilePair `json:"pairs"`           // neighbours that were compared; none without estimate or refinement
	Seams     []Seam     `json:"seams,omitempty"` // as placed
}

// TilePlan says where a tile was put, (y, x) in px.
type TilePlan struct {
	Tile     [2]int     `json:"tile"`        // (i, j)
	Position [2]float64 `json:"position_px"` // of its first voxel
	Residual [2]float64 `json:"residual_px"` // against where M puts it
	// Correlation is the mean over the pairs that the tile takes part in; 0 where
	// it takes part in none.
	Correlation float64 `json:"correlation"`
	Used        bool    `json:"used"`  // it took part in a pair that voted
	Empty       bool    `json:"empty"` // all of its voxels are zero
}

// TilePair is what phase correlation found for two neighbouring tiles.
type TilePair struct {
	Tiles       [2][2]int  `json:"tiles"`           // (i, j) of the two
	Measured    [2]float64 `json:"displacement_px"` // of the second against the first
	Correlation float64    `json:"correlation"`     // normalised cross-correlation there
	Used        bool       `json:"used"`
	Reason      string     `json:"reason,omitempty"` // why it was not
}

// WriteStitching writes a stitching as JSON.
func WriteStitching(w io.Writer, s *Stitching) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Stitch puts the tiles of a mosaic grid (z, y, x) together to a slice: tile
// (i, j) of h × w voxels goes to
//
//	M·(i·h·(1−o), j·w·(1−o)) + its refinement
//
// in (y, x), the same in all planes. The output has the mosaic's depth, voxel
// size and data type; integers are rounded half to even and clamped. Its
// origin is at the smallest position; where no tile lies it is zero, and
// there is a warning. A voxel that one tile has seen is that tile's; one that
// several have seen is their mean with the weights of the blending, or exactly
// their value where they agree. Where one of them is NaN the others stand, and a
// tile that is all zero takes no part.
//
// Positions are rounded to whole voxels (half to even), which keeps the voxels as
// they are and leaves errors of up to half a voxel; with Interpolate tiles are
// shifted by the rest by linear interpolation.
//
// Tiles are read once, in order, and kept no longer than until the next row of
// tiles has been added. See stitchPlan for what happens where memory does not
// hold that. Estimate and refinement read the mosaic once more before.
//
// With a device the tiles are put together there, in its memory and in the same order:
// voxels, positions and seams are those of the CPU, bit by bit, but that a NaN may be
// another NaN. Tiles are projected there, and compared by the CPU.
func Stitch(ctx context.Context, in *ngff.Image, out store.Writer, layout Layout, opt StitchOptions, res Resources) (*ngff.Image, *Stitching, error) {
	if err := opt.check(); err != nil {
		return nil, nil, err
	}
	m, err := openMosaic(in)
	if err != nil {
		return nil, nil, err
	}
	switch m.dtype {
	case dtype.Uint8:
		return stitch[uint8, float32](ctx, m, out, layout, opt, res)
	case dtype.Int8:
		return stitch[int8, float32](ctx, m, out, layout, opt, res)
	case dtype.Uint16:
		return stitch[uint16, float32](ctx, m, out, layout, opt, res)
	case dtype.Int16:
		return stitch[int16, float32](ctx, m, out, layout, opt, res)
	case dtype.Uint32:
		return stitch[uint32, float64](ctx, m, out, layout, opt, res)
	case dtype.Int32:
		return stitch[int32, float64](ctx, m, out, layout, opt, res)
	case dtype.Uint64:
		return stitch[uint64, float64](ctx, m, out, layout, opt, res)
	case dtype.Int64:
		return stitch[int64, float64](ctx, m, out, layout, opt, res)
	case dtype.Float32:
		return stitch[float32, float32](ctx, m, out, layout, opt, res)
	default:
		return stitch[float64, float64](ctx, m, out, layout, opt, res)
	}
}

// stitchChunk is the shape of the output's chunks, unless the slice is smaller.
// They are narrow, because a row of chunks is what waits for the next row of tiles.
var stitchChunk = [3]int{128, 64, 64}

// pyramidBudget is the memory for chunks of the pyramid that wait for their
// neighbours: a row of the first level below, a third more for the others, and
// twelve chunks to make one from what is stored.
func pyramidBudget(shape, unit []int, size, levels int, mem int64) int64 {
	chunk := int64(unit[0]) * int64(unit[1]) * int64(unit[2]) * int64(size)
	if levels == 0 {
		return chunk + 64<<10
	}
	row := int64(min(unit[1], shape[1])) * int64(shape[2]) * int64(shape[0]) * int64(size)
	return min(mem/4, row/3+12*chunk+64<<10)
}

func stitch[T dtype.Element, F float32 | float64](ctx context.Context, m *mosaic, out store.Writer, layout Layout, opt StitchOptions, res Resources) (*ngff.Image, *Stitching, error) {
	g := m.grid()
	s := &Stitching{Overlap: opt.Overlap, Transform: Transform{Matrix: opt.Transform, Overlap: opt.Overlap}, Blending: opt.Blending,
		Tile: g.tile, Grid: [2]int{g.ny, g.nx}, Pairs: []TilePair{}}
	positions, err := position(ctx, m, g, opt, s, res)
	if err != nil {
		return nil, nil, err
	}
	places, origin, size, err := g.canvas(m.where, positions, opt.Interpolate, m.shape[0]*m.dtype.Size())
	if err != nil {
		return nil, nil, err
	}
	s.Origin, s.Size = origin, size
	shape := []int{m.shape[0], size[0], size[1]}
	piece, unit, err := stitchUnits(layout, shape)
	if err != nil {
		return nil, nil, err
	}
	spec := ngff.ImageSpec{
		Format: m.format(), Name: m.image.Name, Shape: shape, DType: m.dtype,
		Axes: m.axes(), Scale: m.image.Levels[0].Scale, Translation: movedBy(m.image.Levels[0].Transform, [3]int{0, origin[0], origin[1]}), Chunks: piece, Budget: pyramidBudget(shape, unit, m.dtype.Size(), layout.Levels, res.Mem),
	}
	c := canvas{mosaic: m, grid: g, places: places, size: size, blending: opt.Blending, coded: layout.codec() != "raw", res: res}
	if opt.Seams {
		c.seams = newSeamSums()
	}
	var f stitcher
	if res.Device != nil {
		f = newDeviceFusion(c, [3]int(unit), res.Mem-spec.Budget)
	} else if f, err = newFusion[T, F](c, [3]int(unit), res.Mem-spec.Budget); err != nil {
		return nil, nil, err
	}
	s.Holes = f.holes()
	if gaps, pairs := apart(places, g); gaps > 0 {
		res.warn("%s: %d of %d pairs of neighbouring tiles do not touch: the gaps are zero (--overlap %g, matrix %v)", m.where, gaps, pairs, opt.Overlap, s.Transform.Matrix)
	}
	if err := stitchTo(ctx, f, out, layout, spec, res); err != nil {
		return nil, nil, err
	}
	for t := range s.Tiles {
		s.Tiles[t].Empty = f.isEmpty(t)
	}
	if c.seams != nil {
		s.Seams = c.seams.seams(g.nx)
	}
	result, err := ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	if err != nil {
		return nil, nil, fmt.Errorf("the stitched slice: %w", err)
	}
	return result, s, nil
}

// stitchUnits are the shapes of the output's chunks, and of what is written at
// once: shards where there are any.
func stitchUnits(layout Layout, shape []int) (piece, unit []int, err error) {
	piece = layout.Chunks
	if piece == nil {
		for d, n := range shape {
			piece = append(piece, min(stitchChunk[d], n))
		}
	}
	unit = piece
	if layout.Shard != nil {
		unit = layout.Shard
	}
	if len(unit) != 3 || len(piece) != 3 || min(unit[0], unit[1], unit[2]) < 1 {
		return nil, nil, layout.check(make([]int, 3))
	}
	return piece, unit, nil
}

// canvas is where the tiles of a mosaic go, and how they are put together there.
type canvas struct {
	mosaic   *mosaic
	grid     grid
	places   []place
	size     [2]int // (y, x)
	blending Blending
	seams    *seamSums // nil: they are not asked for
	coded    bool      // the output is compressed
	res      Resources
}

// stitcher puts the tiles together: on the CPU or on a device.
type stitcher interface {
	holes() int64
	write(ctx context.Context, w *ngff.Writer) error
	isEmpty(t int) bool // of a tile, after write
}

// stitchTo writes the slice.
func stitchTo(ctx context.Context, f stitcher, out store.Writer, layout Layout, spec ngff.ImageSpec, res Resources) error {
	w, err := create(ctx, out, layout, spec, spec.Chunks, res)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := f.write(ctx, w); err != nil {
		return err
	}
	return w.Close(ctx)
}
