package stitch

import (
	"context"
	"errors"
	"math"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// errNothingCommon reports that no pair of neighbours agreed anywhere.
var errNothingCommon = errors.New("no two neighbouring tiles have tissue in common where they may overlap")

// EstimateTransform estimates the matrix that places the tiles of one or several mosaics acquired alike. It
// minimises the squared error over the displacements of all pairs of neighbouring tiles, measured by phase
// correlation of their average projections. Pairs without common tissue, and outliers, are ignored; if no pair is
// left, the initial matrix is returned, with a warning. If the tiles have neighbours along one axis only, the
// other column of the matrix is that of a rotation and a scale.
//
// Of opt, only the overlap, the initial transform and the channel are used. All mosaics must have tiles of the
// same size.
func EstimateTransform(ctx context.Context, in []*ngff.Image, opt Options, res oct.Resources) (Transform, error) {
	if err := opt.check(); err != nil {
		return Transform{}, err
	}
	if len(in) == 0 {
		return Transform{}, oct.BadInput("no mosaic to estimate a matrix from")
	}
	var mosaics []*oct.Mosaic
	for _, image := range in {
		m, err := oct.OpenFrames(image, opt.Channel)
		if err != nil {
			return Transform{}, err
		}
		if g, first := gridOf(m), mosaics; len(first) > 0 && g.tile != gridOf(first[0]).tile {
			return Transform{}, oct.BadInput("%s: tiles of %v voxels (y, x), %s has %v: one matrix is for tiles of one size", m.Where, g.tile, first[0].Where, gridOf(first[0]).tile)
		}
		mosaics = append(mosaics, m)
	}
	all, err := newAligners(mosaics, opt.Overlap, res)
	if err != nil {
		return Transform{}, err
	}
	t, _, err := estimateTransform(ctx, all, opt, res)
	if errors.Is(err, errNothingCommon) {
		res.Warnf("%s: %v: the matrix stays as it began, %v; --transform FILE sets another", all[0].mosaic.Where, err, opt.Transform)
		t, err = Transform{Matrix: opt.Transform, Overlap: opt.Overlap}, nil
	}
	if v := mosaics[0].Voxel(); err == nil && min(v[0], v[1]) > 0 {
		t.Voxel = v
	}
	return t, err
}

// estimateReach is the maximum distance in px of a pair's displacement from the common one.
const estimateReach = 6

func estimateTransform(ctx context.Context, all []*aligner, opt Options, res oct.Resources) (Transform, []measure, error) {
	whole, found, err := common(ctx, all, opt.Transform)
	if err != nil {
		return Transform{}, nil, err
	}
	var expected [2][2]float64
	for axis := range 2 {
		expected[axis] = all[0].grid.expected(opt.Transform, opt.Overlap, axis)
		if found[axis] {
			expected[axis] = [2]float64{float64(whole[axis][0]), float64(whole[axis][1])}
		}
	}
	if err := findShading(ctx, all, byAxis(expected)); err != nil {
		return Transform{}, nil, err
	}
	for round := 1; ; round++ {
		every, tiles, err := compareTiles(ctx, all, expected)
		if err != nil {
			return Transform{}, nil, err
		}
		means := meansOf(every)
		// pairs are drawn to where they are looked for: look where they are
		if round < estimateRounds && means.away(expected) > 0.5 {
			for axis := range expected {
				if means[axis].pairs > 0 {
					expected[axis] = means[axis].d
				}
			}
			continue
		}
		t, err := matrixOf(all[0], every, means, tiles, opt.Overlap, res)
		return t, every, err
	}
}

// estimateRounds is the maximum number of comparisons of all pairs.
const estimateRounds = 3

// compareTiles measures all neighbours of several mosaics, whose tiles are numbered consecutively.
func compareTiles(ctx context.Context, all []*aligner, expected [2][2]float64) (every []measure, tiles int, err error) {
	for _, a := range all {
		ms, err := a.compareAll(ctx, byAxis(expected), estimateReach, 0)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range ms {
			m.a, m.b = m.a+tiles, m.b+tiles
			every = append(every, m)
		}
		tiles += len(a.kept)
	}
	return every, tiles, nil
}

// axisMeans holds the mean displacements along the axes of the grid.
type axisMeans [2]struct {
	d      [2]float64
	pairs  int // that it is of
	spread float64
}

func meansOf(every []measure) (m axisMeans) {
	for axis := range m {
		m[axis].d, m[axis].pairs, m[axis].spread = robustMean(every, axis)
	}
	return m
}

// away returns the largest distance of a mean, in y or x, from the expected one.
func (m *axisMeans) away(expected [2][2]float64) (far float64) {
	for axis, e := range expected {
		if m[axis].pairs > 0 {
			far = max(far, math.Abs(m[axis].d[0]-e[0]), math.Abs(m[axis].d[1]-e[1]))
		}
	}
	return far
}

// matrixOf returns the matrix that fits the displacements of all pairs best.
func matrixOf(first *aligner, every []measure, means axisMeans, tiles int, overlap float64, res oct.Resources) (Transform, error) {
	t := Transform{Overlap: overlap}
	var columns, begin [2][2]float64
	var known [2]bool
	var spread float64
	for axis, m := range means {
		begin[axis], known[axis] = m.d, m.pairs > 0
		t.Pairs += m.pairs
		spread += m.spread * m.spread * float64(m.pairs)
	}
	if t.Pairs > 0 {
		t.Spread = math.Sqrt(spread / float64(t.Pairs))
	}
	for axis, d := range commonSteps(every, begin, tiles, t.Spread) {
		step := float64(first.grid.tile[axis]) * (1 - overlap)
		columns[axis] = [2]float64{d[0] / step, d[1] / step}
	}
	where := first.mosaic.Where
	switch {
	case !known[0] && !known[1]:
		return t, errNothingCommon
	case !known[0]:
		columns[0] = [2]float64{columns[1][1], -columns[1][0]}
		res.Warnf("%s: tiles have neighbours along x only: the other column of the matrix follows from a rotation and a scale", where)
	case !known[1]:
		columns[1] = [2]float64{-columns[0][1], columns[0][0]}
		res.Warnf("%s: tiles have neighbours along y only: the other column of the matrix follows from a rotation and a scale", where)
	}
	t.Matrix = Matrix{{columns[0][0], columns[1][0]}, {columns[0][1], columns[1][1]}}
	t.Spread = oct.Digits(t.Spread)
	if err := t.Matrix.check(); err != nil {
		return t, oct.BadInput("%s: estimated %w", where, err)
	}
	return t, nil
}

// robustMean returns the mean displacement of an axis's pairs, weighted by their precision, the number of pairs,
// and their spread. Each pair's variance is its own plus that of the tiles' positions, which is estimated from the
// spread. Pairs more than four standard deviations away (Tukey's biweight) are ignored, and get a reason.
func robustMean(all []measure, axis int) (mean [2]float64, n int, spread float64) {
	var votes []*measure
	for i := range all {
		if m := &all[i]; m.axis == axis && m.reason == "" {
			votes = append(votes, m)
		}
	}
	if len(votes) == 0 {
		return mean, 0, 0
	}
	for k := range 2 {
		var v []float64
		for _, m := range votes {
			v = append(v, m.d[k])
		}
		mean[k] = filter.MedianOf(v)
	}
	for range 10 {
		var far []float64
		for _, m := range votes {
			far = append(far, math.Hypot(m.d[0]-mean[0], m.d[1]-mean[1]))
		}
		// the median distance of a plane normal distribution is 1.1774 σ
		scatter := filter.MedianOf(far) / 1.1774
		var weights sym
		var sum [2]float64
		n, spread = 0, 0
		var used float64
		for i, m := range votes {
			cutoff := 4 * math.Hypot(scatter, 0.1)
			u := far[i] / cutoff
			if u >= 1 && len(votes) > 2 {
				continue
			}
			w := m.precision.inverse().add(sym{scatter * scatter, 0, scatter * scatter}).inverse()
			if len(votes) > 2 {
				w = w.scaled((1 - u*u) * (1 - u*u))
			}
			v := w.times(m.d)
			weights = weights.add(w)
			sum[0], sum[1] = sum[0]+v[0], sum[1]+v[1]
			n++
			used += far[i] * far[i]
		}
		if n == 0 {
			break
		}
		mean = weights.inverse().times(sum)
		spread = math.Sqrt(used / float64(2*n))
	}
	for _, m := range votes {
		if d := math.Hypot(m.d[0]-mean[0], m.d[1]-mean[1]); len(votes) > 2 && d > 4*math.Hypot(1.5*spread, 0.1) {
			m.reason = "outlier"
		}
	}
	return mean, n, spread
}

// commonSteps returns the displacements of neighbours along each axis that fit all pairs best if every tile may
// also deviate from its place: each pair measures
//
//	d = step + r_b − r_a + error
//
// with r of a variance estimated from the spread of the pairs. Steps and deviations are solved for together: the
// plain mean of the pairs would treat the errors of tiles' positions as if each pair had its own.
func commonSteps(all []measure, begin [2][2]float64, tiles int, spread float64) [2][2]float64 {
	var edges []edge
	noise := 0.0
	for _, m := range all {
		if m.reason != "" {
			continue
		}
		b := begin[m.axis]
		edges = append(edges, edge{m.pair, [2]float64{m.d[0] - b[0], m.d[1] - b[1]}, m.precision, m.precision})
		v := m.precision.inverse()
		noise += (v.yy + v.xx) / 2
	}
	if len(edges) == 0 {
		return begin
	}
	// of a pair: twice that of a tile, and the measurement's
	variance := max((spread*spread-noise/float64(len(edges)))/2, 0.02*0.02)
	x := make([][2]float64, tiles+2)
	solve(x, edges, tiles, 1/variance)
	for axis := range begin {
		for k := range 2 {
			begin[axis][k] += x[tiles+axis][k]
		}
	}
	return begin
}
