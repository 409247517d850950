// Package commonspace puts the slices of a specimen onto one canvas, so that a voxel has the same place in each of
// them. [New] finds where each slice lies and how large the canvas is; [Plan.Run] moves the slices there.
package commonspace

import (
	"context"
	"math"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/registration"
)

// Options are the choices of the user.
type Options struct {
	// Excluded says how to treat the shifts from and to excluded slices; Window is the number of rows on either side
	// that [LocalMedian] considers.
	Excluded Mode
	Window   int

	// Refine replaces unreliable shifts by those that pictures of both slices show, if they differ by at most
	// MaxDiscrepancy pixels and the pictures correlate by at least MinCorrelation. 0 accepts any.
	Refine         bool
	MaxDiscrepancy float64
	MinCorrelation float64

	WholePixels   bool // round positions: voxels are copied
	ZeroFill      bool // 0 outside slices in place of the 1st percentile of their positive voxels
	IgnoreOrigins bool // ignore translations in the slices' metadata
}

// Slice is an input.
type Slice struct {
	ID    int
	Path  string // as the user named it
	Image *ngff.Image
}

// Input is everything that the positions depend on.
type Input struct {
	Slices   []Slice // ordered by number
	Excluded []int   // numbers of slices that are there and are not used
	Shifts   *registration.ShiftTable
}

// Refined is the shift that pictures of two slices show.
type Refined struct {
	Fixed, Moving int
	PX            [2]float64 // the shift (x, y) in pixels
	Correlation   float64
	Discrepancy   float64 // from the recorded shift, in pixels
	Used          bool
}

// Plan places the slices.
type Plan struct {
	Canvas     [2]int // its size (y, x) in pixels
	Unreliable int    // number of shifts that are marked as such
	Refined    []Refined
	Excluded   int

	opt    Options
	slices []placed
}

// placed is a slice with its place.
type placed struct {
	Slice
	volume *blocks.Volume
	origin [2]float64 // from the metadata, (x, y) in pixels
	at     [2]float64 // on the canvas, (x, y) in pixels
}

// maxVoxelDifference is the part by which the voxel sizes of slices may differ.
const maxVoxelDifference = 1e-3

// New finds the place of each slice. With Refine it reads slices.
func New(ctx context.Context, in Input, o Options, res oct.Resources) (*Plan, error) {
	p := &Plan{opt: o, Excluded: len(in.Excluded)}
	for _, s := range in.Slices {
		v, err := blocks.Open(s.Image)
		if err != nil {
			return nil, err
		}
		out := placed{Slice: s, volume: v}
		for d := range 3 {
			if a := v.Voxel[d]; len(p.slices) > 0 {
				if first := p.slices[0].volume; math.Abs(a-first.Voxel[d]) > maxVoxelDifference*first.Voxel[d] {
					return nil, oct.BadInput("%s: voxel size is %v µm along %c, that of %s is %v µm: slices of one canvas must have the same",
						s.Path, a, "zyx"[d], p.slices[0].Path, first.Voxel[d])
				}
			}
		}
		if at := s.Image.Levels[0]; len(at.Translation) == 3 && !o.IgnoreOrigins {
			out.origin = [2]float64{at.Translation[2] / at.Scale[2], at.Translation[1] / at.Scale[1]}
		}
		p.slices = append(p.slices, out)
	}
	if len(p.slices) == 0 {
		return nil, oct.BadInput("%s: no slice is used", in.Shifts.Name)
	}
	table := *in.Shifts
	table.Rows = append([]registration.ShiftRow(nil), in.Shifts.Rows...)
	table.Sort()
	for _, row := range table.Rows {
		if !row.Reliable {
			p.Unreliable++
		}
	}
	replace(&table, in.Excluded, o)
	if o.Refine {
		if err := p.refine(ctx, &table, res); err != nil {
			return nil, err
		}
	}
	p.place(&table, res)
	return p, p.layOut(table.Name, res)
}

// Bytes returns the size of the voxels that Run reads to find fill values, and of those that it writes.
func (p *Plan) Bytes() (n int64) {
	for _, s := range p.slices {
		n += p.onCanvas(s).Bytes()
		if !p.opt.ZeroFill {
			n += 2 * s.volume.Bytes()
		}
	}
	return n
}
