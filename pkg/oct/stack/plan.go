package stack

import (
	"context"
	"errors"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
)

// stackPlan determines the position of every slice. It is pure arithmetic on metadata and on the correlations
// measured in between.
type stackPlan struct {
	opt      Options
	slices   []*stackSlice
	position map[int][2]float64
	canvas   [2]int // (y, x)
	depth    int    // of the volume; after settle
	shifts   string // name of the shifts file
	centred  bool   // positions are shifts, of which the smallest becomes the origin

	// base is the first slice, treated as one placed on an empty canvas, without the results of a comparison.
	base   *movingSlice
	moving []*movingSlice // all others

	corrections []tables.Correction
	shifted     []tables.Shift
}

// movingSlice is a slice relative to the one before it.
type movingSlice struct {
	slice, fixed *stackSlice
	transform    pairTransform
	action       string        // "none", "skip", "identity", "rotation" or "full"
	rigid        filter.Rigid  // what "rotation" and "full" apply to it, beside the slice before it as that was imaged
	laid         filter.Rigid  // what is applied in the volume
	warp         *bspline.Warp // displacements in the volume, on top of laid; nil: none
	resampled    bool          // laid or warp move it

	cuts   int  // of the blade between the slices
	made   bool // one of them is interpolated: it has no overlap that could be measured
	apart  bool // the transform is onto a slice that is left out
	placed bool // by the slicing interval, whatever its neighbours have
	gap    int  // empty planes between the slices

	movingZ        int
	overlap, blend int // voxels
	correlation    float64
	fallback       bool
	source         string
	search         *overlapSearch // nil: nothing to measure
	expected       int            // overlap by the slicing interval
	measured       tables.Match   // before the consistency step

	place  oct.Rectangle // part of the canvas that it covers
	origin [2]int        // (y, x) of the slice's first pixel there
	start  int           // z of the slice's plane movingZ on the canvas
	end    int           // the z cursor after the slice
	from   int           // the z cursor before it, where the overlap ends
	mix    int           // blended planes: the last ones of the overlap

	displaced displacement
	tiles     []stackTile // in which it is compared with the fixed one
	exact     float64     // measured overlap; 0: not measured, or only to whole planes
	gains     planeGains

	fixedEnd, movingEnd *planeEnd // brightness of the planes that overlap, or may overlap

	counted int // planes, from the first used one on, whose non-finite voxels were counted
}

// pairTransform holds the applicable parts of a pair's registration.
type pairTransform struct {
	entry      bool // a registration exists, admitted or not
	loaded     bool
	manual     bool
	rigid      filter.Rigid
	elastic    *bspline.Warp // displacements on top of it; nil: none
	confidence float64
	offsets    *registration.Offsets
	file       string  // of rigid
	agreement  float64 // correlation of the planes by the registration's own metrics; 0: not known

	moves   bool // tx, ty and z correlation are known
	tx, ty  float64
	from    string // file or folder of tx and ty
	zcorr   float64
	trusted float64 // confidence that weights the translation
}

// overlapSearch is a search over a range of overlaps: o planes at the end of the fixed slice against those of the
// moving slice from plane first on.
type overlapSearch struct {
	lo, hi  int
	first   int
	aligned bool // slices are compared at their positions
	// take receives the best overlap and its correlation
	take func(best int, correlation float64)
	best int // result if no correlation is a number
}

// voxels converts millimetres to whole voxels, rounded down; anything less than a millionth of a voxel below a
// whole number counts as that number.
func voxels(mm, voxelUM float64) int {
	return int(math.Floor(min(mm*1000/voxelUM+1e-6, 1e9)))
}

func newPlan(opt Options, all []*stackSlice) *stackPlan {
	p := &stackPlan{opt: opt, slices: all, position: map[int][2]float64{}, base: &movingSlice{slice: all[0], action: "none"}}
	for i, s := range all[1:] {
		p.moving = append(p.moving, &movingSlice{slice: s, fixed: all[i], cuts: 1})
	}
	return p
}

func planStack(ctx context.Context, in Input, opt Options, all []*stackSlice, res *oct.Resources) (*stackPlan, error) {
	p := newPlan(opt, all)
	p.leaveOut(in)
	if err := p.loadTransforms(ctx, in, res); err != nil {
		return nil, err
	}
	if err := p.place(in, res); err != nil {
		return nil, err
	}
	p.rotate()
	p.compose()
	p.displace(res)
	if err := p.checkMotions(); err != nil {
		return nil, err
	}
	p.overlaps(res)
	return p, nil
}

// find measures the positions and the brightness of the slices from their voxels, and settles the plan.
func (p *stackPlan) find(ctx context.Context, mem volume.Memory, res *oct.Resources) (err error) {
	o := &p.opt
	aligned := o.OverlapSearch == SearchAligned && slices.ContainsFunc(p.moving, func(m *movingSlice) bool { return m.search != nil && m.search.aligned })
	matched := o.Blend && (o.BlendMatch == MatchWhole || o.BlendMatch == MatchDepth)
	pictures := aligned || matched || o.RepairShifts == RepairWarn || o.RepairShifts == RepairFix
	s := newSurveyor(ctx, p, res)
	defer func() { err = errors.Join(err, s.close()) }()
	if pictures {
		if err := s.compare(ctx); err != nil {
			return err
		}
		p.repair(res)
	}
	if err := p.layOut(res); err != nil {
		return err
	}
	if err := p.measure(mem, res); err != nil {
		return err
	}
	if aligned || matched {
		if err := s.measureTiles(ctx); err != nil {
			return err
		}
	}
	if err := p.unsupported(ctx, res); err != nil {
		return err
	}
	p.settle(res)
	if matched {
		p.brighten()
	}
	return nil
}

func (p *stackPlan) matches() (out []tables.Match) {
	for _, m := range p.moving {
		out = append(out, m.measured)
	}
	return out
}

func (p *stackPlan) decisions() (out []tables.Decision) {
	for _, m := range p.moving {
		t := m.transform
		out = append(out, tables.Decision{SliceID: m.slice.id, FixedID: m.fixed.id, Loaded: t.loaded, Manual: t.manual, Confidence: t.confidence, Source: m.source, Overlap: m.overlap, Blend: m.blend, Correlation: m.correlation})
	}
	return out
}
