// Package stack assembles slices into one volume. It is the pipeline's stack stage; [Run] does all of it.
package stack

import (
	"context"
	"errors"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options configures how [Run] places and blends slices. Where a field says so, the zero value of a limit turns it
// off. [DefaultStackOptions] returns the defaults of the flags, which have the fields' names in snake case.
type Options struct {
	NoXYShift           bool    // slices share a frame: ignore shifts
	SlicingIntervalMM   float64 // thickness that the blade removes
	SearchRangeMM       float64 // maximum distance of the search from the expected overlap
	UseExpectedOverlap  bool    // do not search
	MovingZFirstIndex   int     // number of first planes of a moving slice to skip
	ZOverlapMinCorr     float64 // correlation below which the expected overlap is used; 0: never
	OverlapSearch       OverlapSearch
	OverlapPlanes       *int    // overlap of all neighbours, without a search; nil: as found or expected
	ZSpacingUM          float64 // distance of planes in µm, whatever the slices state; 0: as they state
	MeasureInterpolated bool    // search for the overlaps of interpolated slices, too
	IgnoreOrigins       bool    // ignore translations in the slices' metadata
	RepairShifts        RepairShifts

	Blend                     bool
	BlendWeights              BlendWeights
	BlendMatch                BlendMatch
	BlendRefinementPx         float64 // limit of the shift in the plane; 0: off
	BlendZRefineVox           int     // how much less than the overlap may be blended; 0: off
	BlendZRefineMinConfidence float64

	RotationOnly          bool
	MaxRotationDeg        float64 // larger rotations are clamped; 0: off
	SmoothWindow          int     // slices over which rotations are averaged; 0: off
	ConfidenceLow         float64 // transforms below are skipped
	ConfidenceHigh        float64 // below, only their rotation is applied
	SkipErrorTransforms   bool
	SkipWarningTransforms bool
	LoadMinZCorr          float64 // with LoadMaxRotation: a gate instead of the two above; 0: off
	LoadMaxRotation       float64 // degrees

	ComposeTransforms            bool // with NoXYShift: a slice is also moved as the one before it is
	AccumulateTranslations       bool // implies RotationOnly, and no ComposeTransforms
	ConfidenceWeightTranslations bool
	MaxPairwiseTranslation       float64 // pixels; 0: off
	TranslationMinZCorr          float64 // 0: off
	TranslationSmoothSigma       float64 // slices; 0: off
	MaxCumulativeDriftPx         float64 // 0: off
	AllowLargeMotion             bool    // transforms may move a slice by more than its own size

	oct.Analysis // the pyramid
}

// DefaultStackOptions returns the defaults of the flags.
func DefaultStackOptions() Options {
	return Options{
		SlicingIntervalMM: 0.2, SearchRangeMM: 0.1, MovingZFirstIndex: 8, ZOverlapMinCorr: SearchAligned.MinCorr(),
		OverlapSearch: SearchAligned, RepairShifts: RepairWarn, BlendMatch: MatchWhole,
		BlendZRefineMinConfidence: 0.5, MaxRotationDeg: 1, ConfidenceLow: 0.3, ConfidenceHigh: 0.6,
		TranslationMinZCorr: 0.2, ComposeTransforms: true, Analysis: oct.DefaultAnalysis(),
	}
}

// OverlapSearch selects how the overlap of two slices is measured.
type OverlapSearch string

// Values of OverlapSearch.
const (
	// SearchAligned moves the slice to its position and compares local contrast in tiles of tissue.
	SearchAligned OverlapSearch = "aligned"
	// SearchCentre compares the centres of the planes without moving them, like the reference.
	SearchCentre OverlapSearch = "centre"
)

// OverlapSearches lists all values of [OverlapSearch].
var OverlapSearches = []string{string(SearchAligned), string(SearchCentre)}

// BlendWeights selects the weights of the slice where it is blended with the one before it.
type BlendWeights string

// Values of BlendWeights.
const (
	// WeightsFeather fade from the slice before to the slice: Hann's.
	WeightsFeather BlendWeights = "feather"
	// WeightsAverage give both slices a half.
	WeightsAverage BlendWeights = "average"
)

// MinCorr returns the default correlation below which a measured overlap is rejected: see docs/stages/stack-overlap.md.
func (s OverlapSearch) MinCorr() float64 {
	if s == SearchCentre {
		return 0.5
	}
	return 0.1
}

// Slice is one slice of a stack.
type Slice struct {
	ID    int
	Path  string // name in messages
	Image *ngff.Image
}

// Input holds the slices of a stack and the data about them.
type Input struct {
	Slices     []Slice                          // by increasing ID, at least one
	Shifts     *registration.Shifts             // nil only with NoXYShift
	Transforms *registration.Folder             // nil: none
	Manual     *registration.Folder             // transforms that take precedence over Transforms; nil: none
	Config     map[int]registration.SliceConfig // nil: all slices are trusted
	LeftOut    []int                            // IDs that Shifts may contain although they are not among Slices
	// Cuts holds, by the ID of a moving slice, how often the blade cut between it and the slice before it, where that
	// is not once: because slices between them are left out, or because it cut nothing. The slicing interval places
	// such a slice, unless its registration does.
	Cuts map[int]int
	// Apart holds the IDs of moving slices whose transforms in Transforms lay them on a slice that is left out.
	Apart []int
}

// Result describes an assembled stack.
type Result struct {
	Image     *ngff.Image
	Shape     [3]int             // of the assembled volume, before the pyramid
	Position  map[int][2]float64 // of slices on the canvas (x, y), pixels
	Matches   []tables.Match     // before the consistency step
	Shifts    []tables.Shift     // of moving slices; nil: not checked
	Decisions []tables.Decision
	// Corrections lists the overlaps that the consistency step changed.
	Corrections []tables.Correction
	Actions     map[int]string  // by moving slice: what was done with its transform
	Gains       map[int]float64 // by slice: factors other than 1
	Refinements map[int][2]int  // shifts in the plane (dy, dx) by BlendRefinementPx
}

// Run assembles slices into one volume and writes it as a float32 image with an analysis pyramid (stages
// specification, stack). Slices are placed by motor shifts and pairwise transforms; the overlap of neighbours
// along z is given, expected or measured by cross-correlation; overlaps are blended or overwritten.
//
// Run first examines the ends of neighbours for their position, overlap and brightness. It then reads the slices
// once, in order, and writes the volume plane by plane. In memory are the planes in which two slices are blended
// and those of a row of output chunks. With a device, the planes are in its memory and processed there, with the
// same decisions and output. A device that is being taken into use goes on where the CPU is when it is there.
func Run(ctx context.Context, in Input, opt Options, out store.Writer, layout oct.Layout, res oct.Resources) (*Result, error) {
	all, err := openSlices(in.Slices, opt.ZSpacingUM)
	if err != nil {
		return nil, err
	}
	if err := opt.Check(all[0].shape[:], all[0].voxel, all[0].path, layout, &res); err != nil { // before anything is read
		return nil, err
	}
	p, err := planStack(ctx, in, opt, all, &res)
	if err != nil {
		return nil, err
	}
	result, err := makeStack(ctx, p, out, layout, res)
	if err != nil {
		return nil, err
	}
	result.Image, err = ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	return result, err
}

// makeStack measures, settles and assembles.
func makeStack(ctx context.Context, p *stackPlan, out store.Writer, layout oct.Layout, res oct.Resources) (result *Result, err error) {
	if p.warped() {
		if res.Device != nil {
			res.Decided("displacements of slices are applied on the CPU")
		}
		res.Device, res.Coming = nil, nil
	}
	mem, err := newPlace(ctx, p, &res)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mem.Close()) }()
	if err := p.find(ctx, mem, &res); err != nil {
		return nil, err
	}
	if result, err = p.outcome(); err != nil {
		return nil, err
	}
	return result, p.assemble(mem, out, layout, res, result)
}

// outcome returns the result as far as it is known before assembly.
func (p *stackPlan) outcome() (*Result, error) {
	if err := p.checkCanvas(); err != nil {
		return nil, err
	}
	result := &Result{
		Shape: [3]int{p.depth, p.canvas[0], p.canvas[1]}, Position: p.position, Matches: p.matches(), Corrections: p.corrections, Shifts: p.shifted,
		Actions: map[int]string{}, Gains: map[int]float64{}, Refinements: map[int][2]int{},
	}
	for _, m := range p.moving {
		result.Actions[m.slice.id] = m.action
	}
	p.noteGains(result)
	result.Decisions = p.decisions()
	return result, nil
}

// stackSlice is an opened slice.
type stackSlice struct {
	id    int
	path  string
	image *ngff.Image
	shape [3]int // (z, y, x)
	chunk [3]int
	voxel [3]float64 // micrometres
	// origin is the position of the slice's first pixel, (y, x) in pixels, from the translation in its metadata.
	origin [2]float64

	source *volume.Source
}

// maxVoxelDifference is the maximum relative difference between the voxel sizes of slices.
const maxVoxelDifference = 1e-3

// openSlices checks the slices. spacing is the distance of planes in µm, if it is not 0.
func openSlices(in []Slice, spacing float64) ([]*stackSlice, error) {
	if len(in) == 0 {
		return nil, oct.BadInput("there are no slices to stack")
	}
	var out []*stackSlice
	for _, s := range in {
		a := s.Image.Levels[0].Array.With(zarr.Workers(1))
		o := &stackSlice{id: s.ID, path: s.Path, image: s.Image}
		shape, chunk := a.Shape(), a.Chunks()
		if len(shape) != 3 {
			return nil, oct.BadInput("%s: slice has %d axes, want 3 (z, y, x)", s.Path, len(shape))
		}
		for d, axis := range s.Image.Axes {
			if axis.Name != string("zyx"[d]) {
				return nil, oct.BadInput("%s: axis %d of the slice is %q, want z, y, x in this order", s.Path, d, axis.Name)
			}
		}
		voxels, size := 1.0, slices.Clone(s.Image.VoxelSize)
		if spacing > 0 {
			size[0] = spacing
		}
		for d, n := range shape {
			if n == 0 {
				return nil, oct.BadInput("%s: slice is empty: shape %v", s.Path, shape)
			}
			o.shape[d], o.chunk[d], o.voxel[d] = n, min(chunk[d], n), size[d]
			voxels *= float64(n)
			if v := o.voxel[d]; !(v > 0) || math.IsInf(v, 0) {
				return nil, oct.BadInput("%s: voxel size along %c is %v, want a positive number", s.Path, "zyx"[d], v)
			}
			if first := out; len(first) > 0 {
				if f := first[0]; math.Abs(o.voxel[d]-f.voxel[d]) > maxVoxelDifference*f.voxel[d] {
					return nil, oct.BadInput("%s: voxel size is %v µm along %c, that of %s is %v µm: slices of one stack must have the same", s.Path, o.voxel[d], "zyx"[d], f.path, f.voxel[d])
				}
			}
		}
		if at := s.Image.Levels[0]; len(at.Translation) == 3 {
			for d := range o.origin {
				o.origin[d] = at.Translation[d+1] / at.Scale[d+1]
				if v := o.origin[d]; !(math.Abs(v) < farthest) {
					return nil, oct.BadInput("%s: translation along %c is %v, %.3g voxels: want a position of the slice", s.Path, "yx"[d], at.Translation[d+1], v)
				}
			}
		}
		if voxels*8 > math.MaxInt64 {
			return nil, oct.BadInput("%s: slice of shape %v has more bytes than can be counted", s.Path, shape)
		}
		if t := a.DType(); !t.IsNumber() || t == dtype.Float16 {
			return nil, oct.BadInput("%s: data type %v: want integers of up to 64 bits, float32 or float64", s.Path, t)
		}
		o.source = volume.NewSource(a, s.Path)
		out = append(out, o)
	}
	return out, nil
}
