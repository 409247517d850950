package sliceconfig

import (
	"context"
	"fmt"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/registration"
)

// Faults that [FindFaults] and [CompareGrids] name, as the column fault of a slice configuration has them.
const (
	FaultEmpty     = "empty"     // no voxel differs from the others
	FaultNoTissue  = "no_tissue" // embedding medium alone: as a rule the specimen has ended
	FaultNoise     = "noise"     // noise alone: nothing is seen that any depth or place has more of
	FaultSaturated = "saturated" // much of the slice has the highest value there is
	FaultDuplicate = registration.FaultDuplicate
	FaultGrid      = "grid" // the grid of tiles differs from that of the slices beside it
)

// A Fault is a defect of a slice, other than too little or too much similarity to its neighbours.
type Fault struct {
	Slice int
	Name  string
	Text  string // the figures that show it
	// Lasting is true of a grid that all slices from here on have: it was changed on purpose, and excludes none.
	Lasting bool
}

// Thresholds of faults. docs/stages/slices.md has the reasons.
const (
	// plateau is the part of a plane's voxels that have its highest value, from which on the plane is saturated.
	// Specular reflections and the percentiles that normalize clips are less than 0.02.
	plateau = 0.1
	// fewLevels is the number of levels of brightness below which a plane that is not at its type's limit is coarse
	// rather than saturated.
	fewLevels = 16
	// plain is the part of the contrast of the series' upper quarter, and of slices beside it that show the same, under
	// which a slice shows no structure: agarose has at most the tiles' illumination.
	plain = 1. / 3
	// distinct is the contrast from which on slices show tissue beside agarose. Under it tissue itself may be as plain
	// as agarose, and slices are told apart only by plainest, a contrast under which a slice shows no structure,
	// whatever others have.
	distinct, plainest = 0.75, 0.05
	// sameStructure is the correlation of blocks with a neighbour from which on a slice shows what it shows, however
	// faint.
	sameStructure = 0.5
	// flat is the relative range of the planes' means up to which brightness does not depend on depth. Light decays by
	// more, in any medium.
	flat = 0.05
	// sameDetail is the minimum correlation of details of a slice that was scanned twice. The correlation must also be
	// nearer to 1 than to that of most pairs of neighbours, and nearer to 1 than to that of the first slice with itself
	// a quarter of its depth deeper, since a cut is seldom thinner.
	sameDetail = 0.5
	// fewPairs is the number of pairs under which nothing is known about most neighbours; then details must correlate
	// by sameAlone.
	fewPairs, sameAlone = 3, 0.8
)

// FindFaults looks for slices that are empty, show no tissue, show only noise, are saturated, or repeat the slice
// before them at the same depth instead of one slicing interval deeper. It reads five planes of each slice, in the part
// that [Assess] compares. in must be in order. The faults are in the same order, at most one per slice.
func FindFaults(ctx context.Context, in []Slice, o AssessOptions, res oct.Resources) ([]Fault, error) {
	o.Depth = max(o.Depth, faultPlanes)
	a, err := newAssessor(in, o, res, detailBytes)
	if err != nil {
		return nil, err
	}
	defer a.pool.Close()
	looks := make([]look, len(in))
	if err := a.each(ctx, len(in), func(b *buffers, i int) (err error) {
		looks[i], err = a.look(ctx, b, i)
		return err
	}); err != nil {
		return nil, err
	}
	names := make([]Fault, len(in))
	structureless := plainSlices(looks)
	for i := range looks {
		names[i] = looks[i].fault(structureless[i])
		names[i].Slice = in[i].ID
	}
	endOfSpecimen(names)
	if err := a.duplicates(ctx, names); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(f Fault) bool { return f.Name == "" }), nil
}

// fault returns the fault that a slice's planes show without comparing them to other slices. structureless says whether
// they show no structure.
func (l *look) fault(structureless bool) (f Fault) {
	switch {
	case l.saturated >= plateau:
		f.Name, f.Text = FaultSaturated, fmt.Sprintf("%.0f %% of the voxels of a plane have its highest value, %.6g (limit: %.0f %%)", 100*l.saturated, l.top, 100*plateau)
	case l.constant:
		f.Name, f.Text = FaultEmpty, fmt.Sprintf("all voxels that were looked at are %.6g", l.mean)
	case structureless && l.decay <= flat:
		f.Name, f.Text = FaultNoise, fmt.Sprintf("contrast of %.2f, brightness the same at all depths within %.1f %%", l.contrast, 100*l.decay)
	case structureless:
		f.Name, f.Text = FaultNoTissue, fmt.Sprintf("contrast of %.2f", l.contrast)
	}
	return f
}

// plainSlices reports which slices show no structure beyond noise. Their contrast is far lower than that of most
// slices, and their faint structure does not match that of a neighbour with structure.
func plainSlices(looks []look) []bool {
	var all []float64
	for i := range looks {
		if !looks[i].constant {
			all = append(all, looks[i].contrast)
		}
	}
	out := make([]bool, len(looks))
	if len(all) == 0 {
		return out
	}
	slices.Sort(all)
	limit := plainest
	if upper := all[(3*len(all)-1)/4]; upper >= distinct {
		limit = min(distinct, plain*upper)
	}
	for i := range looks {
		out[i] = !looks[i].constant && looks[i].contrast < limit
	}
	low := slices.Clone(out)
	for i := range looks {
		for _, step := range []int{-1, 1} {
			k := i + step
			for k >= 0 && k < len(looks) && (low[k] || looks[k].constant) {
				k += step
			}
			if k >= 0 && k < len(looks) && looks[i].contrast >= max(plainest, plain*looks[k].contrast) && looks[i].resembles(&looks[k]) {
				out[i] = false
			}
		}
	}
	return out
}

// endOfSpecimen says of slices without tissue that run to an end of the series that there the specimen ends.
func endOfSpecimen(all []Fault) {
	without := func(f Fault) bool { return f.Name == FaultNoTissue || f.Name == FaultEmpty }
	first, last := 0, len(all)
	for first < len(all) && without(all[first]) {
		first++
	}
	for last > first && without(all[last-1]) {
		last--
	}
	for i := range all {
		switch {
		case first == len(all): // no slice has tissue
		case i < first:
			all[i].Text += "; the specimen begins behind it"
		case i >= last:
			all[i].Text += "; the specimen has ended"
		}
	}
}

// duplicates marks slices that repeat the slice before them at the same depth.
func (a *assessor) duplicates(ctx context.Context, names []Fault) error {
	var pairs []int // of the second slice of each
	for i := 1; i < len(names); i++ {
		if names[i-1].Name == "" && names[i].Name == "" {
			pairs = append(pairs, i)
		}
	}
	across, along := make([]float64, len(pairs)), make([]float64, len(pairs))
	if err := a.each(ctx, len(pairs), func(b *buffers, k int) (err error) {
		across[k], along[k], err = a.details(ctx, b, pairs[k]-1, pairs[k])
		return err
	}); err != nil {
		return err
	}
	for k, i := range pairs {
		usual := 2*sameAlone - 1
		if others := slices.Concat(across[:k], across[k+1:]); len(others) >= fewPairs {
			usual = filter.MedianOf(others)
		}
		if limit := max(sameDetail, (1+max(usual, along[k]))/2); across[k] >= limit {
			names[i] = Fault{Slice: names[i].Slice, Name: FaultDuplicate,
				Text: fmt.Sprintf("scanned twice: at the same depth its details correlate by %.2f with those of slice %d (limit: %.2f)", across[k], names[i-1].Slice, limit)}
		}
	}
	return nil
}

// details returns how well details of two slices correlate at the same depth, and those of the first with its own a few
// planes deeper.
func (a *assessor) details(ctx context.Context, b *buffers, i, k int) (across, along float64, err error) {
	size := a.common(i, k)
	n := min(a.views[i].Shape[0], a.views[k].Shape[0])
	read := func(slice, z int) ([]float32, [2]int, error) {
		plane, err := a.views[slice].read(ctx, b, 0, size, z)
		if err != nil {
			return nil, [2]int{}, err
		}
		v, of := detail(plane[0], size)
		return v, of, nil
	}
	first, of, err := read(i, n/4)
	if err != nil {
		return 0, 0, err
	}
	deeper, _, err := read(i, n/2)
	if err != nil {
		return 0, 0, err
	}
	second, _, err := read(k, n/4)
	if err != nil {
		return 0, 0, err
	}
	phase := filter.NewPhase()
	match := func(other []float32) float64 {
		m := phase.MatchWithin(first, other, of[0], of[1], max(1, min(of[0], of[1])/4)) // three quarters stay in common at least
		return finite(m.Correlation)
	}
	across = match(second)
	if n/2 > n/4 {
		along = match(deeper)
	}
	return across, along, nil
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
