// Package stitch is the stage that puts the tiles of a mosaic grid together to a slice.
package stitch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options say where the tiles go and how they are blended.
type Options struct {
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
	// Positions are where the stage recorded the tiles; nil: they lie at the places of the grid, by Overlap. Transform
	// acts on them. With them there is neither Estimate nor MaxRefinement.
	Positions *registration.TilePositions
	// Tolerance is by how much, in µm, the displacement of two neighbours may differ from the recorded one, to fit
	// what they show; 0: tiles stay where they were recorded.
	Tolerance float64
	// Channel is what positions are found by, where a mosaic has channels. All are stitched.
	Channel int
	// Interpolate puts tiles at positions between voxels, by linear
	// interpolation, instead of rounding them to whole ones.
	Interpolate bool
	Blending    canvas.Blending // "": canvas.BlendDiffusion
	// Seams asks for the differences at the seams.
	Seams bool
}

// Measures reports that tiles are compared before they are put together.
func (o *Options) Measures() bool {
	if o.Positions != nil {
		return o.Tolerance > 0
	}
	return o.Estimate || o.MaxRefinement > 0
}

// check reports options that make no sense. The messages name the flags.
func (o *Options) check() error {
	if !(o.Overlap >= 0 && o.Overlap < 1) {
		return oct.BadInput("--overlap %g must be within 0…1, 1 excluded", o.Overlap)
	}
	if !(o.MaxRefinement >= 0 && o.MaxRefinement <= 1e6) {
		return oct.BadInput("--max_refinement_px %g must be a number of pixels, at least 0", o.MaxRefinement)
	}
	if !(o.Tolerance >= 0 && o.Tolerance <= 1e6) {
		return oct.BadInput("--position_tolerance %g must be a number of micrometres, at least 0", o.Tolerance)
	}
	if o.Positions != nil && (o.Estimate || o.MaxRefinement > 0) {
		return oct.LayoutErrorf("--positions goes with --position_tolerance, not with --estimate or --max_refinement_px")
	}
	if o.Transform == (Matrix{}) {
		o.Transform = Identity
	}
	if err := o.Transform.check(); err != nil {
		return oct.BadInput("--transform: %w", err)
	}
	switch o.Blending {
	case "":
		o.Blending = canvas.BlendDiffusion
	case canvas.BlendNone, canvas.BlendAverage, canvas.BlendFeather, canvas.BlendDiffusion:
	default:
		return oct.BadInput("--blending %q is not one of %v", o.Blending, canvas.Blendings)
	}
	return nil
}

// Result says where the tiles of a mosaic were put.
type Result struct {
	Overlap   float64         `json:"overlap"`
	Transform Transform       `json:"transform"`
	Blending  canvas.Blending `json:"blending"`
	Recorded  bool            `json:"recorded,omitempty"` // M acts on recorded positions, and overlap says nothing
	Tolerance float64         `json:"position_tolerance_um,omitempty"`
	Channel   int             `json:"channel,omitempty"` // that positions and seams are of
	Voxel     [2]float64      `json:"voxel_um,omitzero"` // size (y, x) of a pixel
	Tile      [2]int          `json:"tile_px"`           // (y, x)
	Grid      [2]int          `json:"tiles"`             // (y, x)
	Origin    [2]int          `json:"origin_px"`         // position of the slice's first voxel
	Size      [2]int          `json:"size_px"`           // of the slice
	Holes     int64           `json:"holes_px"`          // pixels of a plane that no tile covers
	Tiles     []TilePlan      `json:"positions"`
	Pairs     []TilePair      `json:"pairs"`           // neighbours that were compared; none without estimate or refinement
	Seams     []canvas.Seam   `json:"seams,omitempty"` // as placed
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
func WriteStitching(w io.Writer, s *Result) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Run puts the tiles of a mosaic grid (z, y, x) together to a slice: tile
// (i, j) of h × w voxels goes to
//
//	M·(i·h·(1−o), j·w·(1−o)) + its refinement
//
// in (y, x), or to M times its recorded position, the same in all planes. A mosaic may also have one plane (y, x), and times and
// channels (t, c) in front: what is measured is measured on one channel, and all go to the same places, one after the other. The output has the mosaic's depth, voxel
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
func Run(ctx context.Context, in *ngff.Image, out store.Writer, layout oct.Layout, opt Options, res oct.Resources) (*ngff.Image, *Result, error) {
	if err := opt.check(); err != nil {
		return nil, nil, err
	}
	m, err := oct.OpenFrames(in, opt.Channel)
	if err != nil {
		return nil, nil, err
	}
	if opt.Positions != nil {
		if err := m.Record(opt.Positions, res); err != nil {
			return nil, nil, err
		}
	}
	return stitch(ctx, m, out, layout, opt, res)
}

// stitchChunk is the shape of the output's chunks, unless the slice is smaller.
// They are narrow, because a row of chunks is what waits for the next row of tiles.
var stitchChunk = [3]int{128, 64, 64}

// flatStitchChunk is stitchChunk of mosaics of one plane.
var flatStitchChunk = [3]int{1, 512, 512}

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

func stitch(ctx context.Context, m *oct.Mosaic, out store.Writer, layout oct.Layout, opt Options, res oct.Resources) (*ngff.Image, *Result, error) {
	g := gridOf(m)
	s := newStitching(m, g, opt)
	pairs, err := g.neighbouring(opt.Transform)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Where, err)
	}
	positions, err := position(ctx, m, g, opt, s, res)
	if err != nil {
		return nil, nil, err
	}
	places, origin, size, err := g.canvas(m.Where, positions, opt.Interpolate, m.Shape[0]*m.DType.Size())
	if err != nil {
		return nil, nil, err
	}
	s.Origin, s.Size = origin, size
	spec, layout, unit, err := stitchSpec(m, s, layout, res)
	if err != nil {
		return nil, nil, err
	}
	c := canvas.Canvas{Mosaic: m, Places: places, Size: size, Blending: opt.Blending, Coded: layout.CodecFlag() != "raw", Res: res}
	if opt.Seams {
		c.Seams = canvas.SeamSums{}
	}
	newFrame := func(frame int) *canvas.Assembly {
		c := c
		if frame != m.Number() {
			c.Mosaic, c.Seams = m.Frame(frame), nil
		}
		return canvas.New(c, unit, res.Mem-spec.Budget)
	}
	first := newFrame(0)
	if err := first.Check(); err != nil {
		return nil, nil, err
	}
	s.Holes = first.Holes()
	if gaps := apart(places, pairs); gaps > 0 {
		res.Warnf("%s: %d of %d pairs of neighbouring tiles do not touch: the gaps are zero (%s, matrix %v)", m.Where, gaps, len(pairs), g.distance(opt.Overlap), s.Transform.Matrix)
	}
	if err := stitchFrames(ctx, m.Count(), first, newFrame, out, layout, *spec, s, res); err != nil {
		return nil, nil, err
	}
	s.Tiles = slices.DeleteFunc(s.Tiles, func(t TilePlan) bool { return !g.has(t.Tile[0]*g.nx + t.Tile[1]) })
	if c.Seams != nil {
		s.Seams = c.Seams.Seams(g.nx)
	}
	result, err := ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	if err != nil {
		return nil, nil, fmt.Errorf("the stitched slice: %w", err)
	}
	return result, s, nil
}

// newStitching begins the account of a stitching.
func newStitching(m *oct.Mosaic, g grid, opt Options) *Result {
	s := &Result{Overlap: opt.Overlap, Transform: Transform{Matrix: opt.Transform, Overlap: opt.Overlap}, Blending: opt.Blending,
		Channel: opt.Channel, Voxel: m.Voxel(), Tile: g.tile, Grid: [2]int{g.ny, g.nx}, Pairs: []TilePair{}}
	if opt.Positions != nil {
		s.Recorded, s.Tolerance, s.Overlap, s.Transform.Overlap = true, opt.Tolerance, 0, -1
	}
	return s
}

// stitchSpec describes the output, the layout that its writer gets, and, (z, y, x), what is written at once.
func stitchSpec(m *oct.Mosaic, s *Result, layout oct.Layout, res oct.Resources) (*ngff.ImageSpec, oct.Layout, [3]int, error) {
	plan, layout, err := m.Frames.Layout(layout)
	if err != nil {
		return nil, layout, [3]int{}, err
	}
	shape := []int{m.Shape[0], s.Size[0], s.Size[1]}
	usual := stitchChunk
	if m.Flat {
		usual = flatStitchChunk
	}
	piece, unit, err := stitchUnits(plan, shape, usual)
	if err != nil {
		return nil, layout, [3]int{}, err
	}
	origin := slices.Concat(make([]int, len(m.Lengths)), (&oct.Frames{Flat: m.Flat}).Index(0, s.Origin[0], s.Origin[1]))
	level := m.Image.Levels[0]
	return &ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: m.Whole(shape[0], shape[1], shape[2]), DType: m.DType, Omero: m.Image.Omero,
		Axes: m.Axes(), Scale: level.Scale, Translation: oct.MovedBy(level.Transform, origin), Chunks: m.BoxShape(piece[0], piece[1], piece[2]),
		Budget: pyramidBudget(shape, unit, m.DType.Size(), layout.Levels, res.Mem),
	}, layout, [3]int(unit), nil
}

// stitchUnits are the shapes of the output's chunks, the usual ones where the layout says nothing, and of what is written at
// once: shards where there are any.
func stitchUnits(layout oct.Layout, shape []int, usual [3]int) (piece, unit []int, err error) {
	piece = layout.Chunks
	if piece == nil {
		for d, n := range shape {
			piece = append(piece, min(usual[d], n))
		}
	}
	unit = piece
	if layout.Shard != nil {
		unit = layout.Shard
	}
	if len(unit) != 3 || len(piece) != 3 || min(unit[0], unit[1], unit[2]) < 1 {
		return nil, nil, layout.Check(make([]int, 3))
	}
	return piece, unit, nil
}

// stitchFrames writes the slice, frame by frame, and notes which tiles hold nothing in any of them.
func stitchFrames(ctx context.Context, n int, first *canvas.Assembly, next func(frame int) *canvas.Assembly, out store.Writer, layout oct.Layout, spec ngff.ImageSpec, s *Result, res oct.Resources) error {
	w, err := oct.Create(ctx, out, layout, spec, spec.Chunks, res)
	if err != nil {
		return err
	}
	defer w.Abort()
	for frame := range n {
		f := first
		if frame > 0 {
			f = next(frame)
		}
		if err := f.Write(ctx, w); err != nil {
			return err
		}
		for t := range s.Tiles {
			s.Tiles[t].Empty = f.IsEmpty(t) && (frame == 0 || s.Tiles[t].Empty)
		}
	}
	return w.Close(ctx)
}
