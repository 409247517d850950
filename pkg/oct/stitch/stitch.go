// Package stitch assembles the tiles of a mosaic grid into a slice. It is the pipeline's stitch stage; [Run] does
// all of it.
package stitch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options determines where the tiles go and how they are blended.
type Options struct {
	// Overlap is the nominal fraction o of a tile that its neighbour also covers: 0 ≤ o < 1.
	Overlap float64
	// Transform is M; the zero value stands for the identity. With Estimate it is the initial matrix.
	Transform affine.Matrix
	// Estimate estimates M from neighbouring tiles.
	Estimate bool
	Rules    affine.Rules // of Estimate; "": RulesConsensus
	// MaxRefinement is the maximum distance in px by which a tile may be moved from the position given by M to fit its
	// neighbours; 0: none; with a consensus, +Inf: as far as they show.
	MaxRefinement float64
	// Positions holds the tiles' positions as recorded by the microscope's stage; nil: the positions follow from the
	// grid and Overlap. Transform is applied to them. They exclude Estimate and MaxRefinement.
	Positions *registration.TilePositions
	// Tolerance is the maximum deviation, in µm, of two neighbours' displacement from the recorded one when tiles are
	// fitted to their content; 0: tiles stay at their recorded positions.
	Tolerance float64
	// Check enables two warnings. The first says that tiles in the middle do not fit at the positions given by Overlap
	// and Transform; it is left out if tiles are compared anyway or have recorded positions. The second says that
	// neither the compared tiles nor the slice show anything.
	Check bool
	// Channel is the channel from which positions are determined. All channels are stitched.
	Channel int
	// Interpolate puts tiles at fractional positions by linear interpolation, instead of rounding to whole voxels.
	Interpolate bool
	Blending    canvas.Blending // "": canvas.BlendDiffusion
	// Seams requests the differences at the seams.
	Seams bool
}

// Measures reports whether tiles are compared before they are assembled.
func (o *Options) Measures() bool {
	if o.Positions != nil {
		return o.Tolerance > 0
	}
	return o.Estimate || o.MaxRefinement > 0
}

// check returns an error for invalid options, naming the flag, and fills in defaults.
func (o *Options) check() error {
	switch o.Rules {
	case "":
		o.Rules = affine.RulesConsensus
	case affine.RulesConsensus, affine.RulesReference:
	default:
		return oct.BadInput("--estimate_rules %q is not one of %v", o.Rules, affine.AllRules)
	}
	if !(o.Overlap >= 0 && o.Overlap < 1) {
		return oct.BadInput("--overlap %g must be within 0…1, 1 excluded", o.Overlap)
	}
	if !(o.MaxRefinement >= 0 && (o.MaxRefinement <= 1e6 || o.Estimate && o.Rules == affine.RulesConsensus && math.IsInf(o.MaxRefinement, 1))) {
		return oct.BadInput("--max_refinement_px %g must be a number of pixels, at least 0", o.MaxRefinement)
	}
	if !(o.Tolerance >= 0 && o.Tolerance <= 1e6) {
		return oct.BadInput("--position_tolerance %g must be a number of micrometres, at least 0", o.Tolerance)
	}
	if o.Positions != nil && (o.Estimate || o.MaxRefinement > 0) {
		return oct.LayoutErrorf("--positions goes with --position_tolerance, not with --estimate or --max_refinement_px")
	}
	if o.Transform == (affine.Matrix{}) {
		o.Transform = affine.Identity
	}
	if err := o.Transform.Check(); err != nil {
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

// Result describes how the tiles of a mosaic were stitched.
type Result struct {
	Overlap   float64          `json:"overlap"`
	Transform affine.Transform `json:"transform"`
	Blending  canvas.Blending  `json:"blending"`
	Recorded  bool             `json:"recorded,omitempty"` // M was applied to recorded positions; overlap is meaningless
	Tolerance float64          `json:"position_tolerance_um,omitempty"`
	Channel   int              `json:"channel,omitempty"` // from which positions and seams were determined
	Voxel     [2]float64       `json:"voxel_um,omitzero"` // size (y, x) of a pixel
	Tile      [2]int           `json:"tile_px"`           // (y, x)
	Grid      [2]int           `json:"tiles"`             // (y, x)
	Origin    [2]int           `json:"origin_px"`         // position of the slice's first voxel
	Size      [2]int           `json:"size_px"`           // of the slice
	Holes     int64            `json:"holes_px"`          // pixels of a plane that no tile covers
	Tiles     []TilePlan       `json:"positions"`
	Pairs     []TilePair       `json:"pairs"`           // compared neighbours; empty without estimate or refinement
	Seams     []canvas.Seam    `json:"seams,omitempty"` // as placed
	alike     bool             // the tiles that were checked have something in common
}

// TilePlan is the position of a tile, (y, x) in px.
type TilePlan struct {
	Tile     [2]int     `json:"tile"`        // (i, j)
	Position [2]float64 `json:"position_px"` // of its first voxel
	Residual [2]float64 `json:"residual_px"` // relative to the position given by M
	// Correlation is the mean over the tile's pairs that voted, or 0 if there is none.
	Correlation float64 `json:"correlation"`
	Used        bool    `json:"used"`  // in a pair that voted
	Empty       bool    `json:"empty"` // all of its voxels are zero
}

// TilePair is the result of phase correlation for two neighbouring tiles.
type TilePair struct {
	Tiles       [2][2]int  `json:"tiles"`           // (i, j) of the two
	Measured    [2]float64 `json:"displacement_px"` // of the second from the first
	Correlation float64    `json:"correlation"`     // normalised cross-correlation there
	// Residual is the length in px by which Measured differs from the displacement of the tiles as placed; nil if
	// nothing was measured.
	Residual *float64 `json:"residual_px,omitempty"`
	Used     bool     `json:"used"`
	Reason   string   `json:"reason,omitempty"` // why the pair was not used
}

// WriteStitching writes a stitching as JSON, with its [Agreement].
func WriteStitching(w io.Writer, s *Result) error {
	b, err := json.MarshalIndent(struct {
		*Result
		Agreement *Agreement `json:"agreement,omitempty"`
	}{s, s.Agreement()}, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Run stitches the tiles of a mosaic grid (z, y, x) into a slice. Tile (i, j) of h × w voxels goes to
//
//	M·(i·h·(1−o), j·w·(1−o)) + its refinement
//
// in (y, x), or to M times its recorded position, the same in all planes. A mosaic may also have a single plane
// (y, x), and leading axes of times and channels (t, c): positions are measured on one channel and applied to all,
// one after another. The output has the mosaic's depth, voxel size and data type; integers are rounded half to
// even and clamped. Its origin is at the smallest position; pixels that no tile covers are zero, with a warning. A
// voxel covered by one tile has that tile's value. A voxel covered by several has their mean with the weights of
// the blending, or exactly their value if they agree. NaN in one of them is ignored, and so is a tile that is all
// zero.
//
// Positions are rounded to whole voxels (half to even), which preserves the voxels' values at errors of up to half
// a voxel; with Interpolate, linear interpolation shifts tiles by the remainder.
//
// Tiles are read once, in order, and kept at most until the next row of tiles has been added. If memory is too
// small for that, parts of them are read again (package canvas). Estimate and refinement read the mosaic once more
// beforehand.
//
// With a device, tiles are assembled in its memory, in the same order: voxels, positions and seams have the same bits
// as on the CPU, except for the payload of NaN. The device also projects tiles; the CPU compares them. A device that is
// being taken into use makes what the CPU has not begun when it is there.
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

// stitchChunk is the default shape of the output's chunks. They are narrow, because a row of chunks must wait for
// the next row of tiles.
var stitchChunk = [3]int{128, 64, 64}

// flatStitchChunk is the default for mosaics of one plane.
var flatStitchChunk = [3]int{1, 512, 512}

// pyramidBudget returns the memory in bytes for chunks of the pyramid that wait for their neighbours: one row of chunks
// of level 1, a third more for the coarser levels, and twelve chunks to compute a chunk from stored ones.
func pyramidBudget(shape, unit []int, size, levels int, mem int64) int64 {
	chunk := int64(unit[0]) * int64(unit[1]) * int64(unit[2]) * int64(size)
	if levels == 0 {
		return chunk + 64<<10
	}
	row := int64(min(unit[1], shape[1])) * int64(shape[2]) * int64(shape[0]) * int64(size)
	return min(mem/4, row/3+12*chunk+64<<10)
}

// tileBytes is the least memory that is used for a tile, its pairs and its place, whatever its voxels are.
const tileBytes = 512

func stitch(ctx context.Context, m *oct.Mosaic, out store.Writer, layout oct.Layout, opt Options, res oct.Resources) (*ngff.Image, *Result, error) {
	g := gridOf(m)
	if need := int64(mem.Product(g.ny, g.nx, tileBytes)); need > res.Mem {
		return nil, nil, res.TooLittle(need, "%s: planning %d × %d tiles", m.Where, g.ny, g.nx)
	}
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
	if need := canvas.Bytes(size, unit); need > res.Mem {
		return nil, nil, res.TooLittle(need, "%s: planning a slice of %d × %d pixels", m.Where, size[0], size[1])
	}
	c := canvas.Canvas{Mosaic: m, Places: places, Size: size, Blending: opt.Blending, Coded: layout.CodecFlag() != "raw", Res: res}
	if opt.Seams {
		c.Seams = canvas.SeamSums{}
	}
	newFrame := func(frame int, coming *oct.Coming) *canvas.Assembly {
		c := c
		c.Res.Coming = coming
		if frame != m.Number() {
			c.Mosaic, c.Seams = m.Frame(frame), nil
		}
		return canvas.New(c, unit, res.Mem-spec.Budget)
	}
	first := newFrame(0, res.Coming)
	if err := first.Check(); err != nil {
		return nil, nil, err
	}
	s.Holes = first.Holes()
	if gaps := apart(places, pairs); gaps > 0 {
		res.Warnf("%s: %d of %d pairs of neighbouring tiles do not touch: the gaps are zero (%s, matrix %v)", m.Where, gaps, len(pairs), g.distance(opt.Overlap), s.Transform.Matrix)
	}
	w, err := oct.Create(ctx, out, layout, *spec, spec.Chunks, res)
	if err != nil {
		return nil, nil, err
	}
	defer w.Abort()
	if err := s.stitchFrames(ctx, w, m.Count(), first, newFrame); err != nil {
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
	if opt.Check {
		if err := s.warnOfNoise(ctx, m.Where, result, res); err != nil {
			return nil, nil, fmt.Errorf("the stitched slice: %w", err)
		}
	}
	return result, s, nil
}

// newStitching returns a result with the options and the mosaic's geometry filled in.
func newStitching(m *oct.Mosaic, g grid, opt Options) *Result {
	s := &Result{Overlap: opt.Overlap, Transform: affine.Transform{Matrix: opt.Transform, Overlap: opt.Overlap}, Blending: opt.Blending,
		Channel: opt.Channel, Voxel: m.Voxel(), Tile: g.tile, Grid: [2]int{g.ny, g.nx}, Pairs: []TilePair{}}
	if opt.Positions != nil {
		s.Recorded, s.Tolerance, s.Overlap, s.Transform.Overlap = true, opt.Tolerance, 0, -1
	}
	return s
}

// stitchSpec returns the specification of the output, the layout for its writer, and the shape (z, y, x) written
// at once.
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

// stitchUnits returns the shape of the output's chunks, the usual one unless the layout sets it, and the shape
// written at once: that of shards, if there are any.
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

// stitchFrames writes the slice, frame by frame, and records which tiles are empty in all frames.
func (s *Result) stitchFrames(ctx context.Context, w *ngff.Writer, n int, first *canvas.Assembly, next func(frame int, coming *oct.Coming) *canvas.Assembly) error {
	f := first
	for frame := range n {
		if frame > 0 {
			f = next(frame, f.Coming())
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
