package stitch

import (
	"cmp"
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
)

// common finds the displacements common to all neighbours, one for each axis of the grid: a maximum of the sum of
// all correlation surfaces, in which the noise of single ones averages out. Among several similar maxima it takes
// the one at which the pairs correlate best. The overlap may be up to twice the expected one. found is false for
// an axis without usable pairs.
func common(ctx context.Context, all []*aligner, m Matrix) (out [2][2]int, found [2]bool, err error) {
	var surfaces [2]sumOfSurfaces
	g := &all[0].grid
	for axis := range out {
		e := g.expected(m, all[0].overlap, axis)
		out[axis] = [2]int{int(math.RoundToEven(e[0])), int(math.RoundToEven(e[1]))}
		surfaces[axis].prepare(g, out[axis])
	}
	for _, a := range all {
		if err := a.addSurfaces(ctx, &surfaces); err != nil {
			return out, found, err
		}
	}
	var candidates [2][][2]int
	several := false
	for axis := range surfaces {
		if s := &surfaces[axis]; s.pairs > 0 {
			found[axis] = true
			candidates[axis] = s.candidates(out[axis])
			several = several || len(candidates[axis]) > 1
		}
	}
	var scores [2][commonPeaks]float64
	if several { // the planes themselves say which of them it is
		for _, a := range all {
			if err := a.addScores(ctx, candidates, &scores); err != nil {
				return out, found, err
			}
		}
	}
	for axis, c := range candidates {
		for k := range c {
			if k == 0 || scores[axis][k] > scores[axis][0] {
				scores[axis][0], out[axis] = scores[axis][k], c[k]
			}
		}
	}
	return out, found, nil
}

// sumOfSurfaces is the sum of the correlation surfaces of all pairs along one axis of the grid.
type sumOfSurfaces struct {
	strips strips
	sum    []float32 // nil: tiles are too small
	pairs  int       // number of pairs in it
}

func (s *sumOfSurfaces) prepare(g *grid, expected [2]int) {
	var ok bool
	if s.strips, ok = g.search(expected); ok {
		ny, nx := filter.SurfaceSize(s.strips.ny, s.strips.nx)
		s.sum = make([]float32, ny*nx)
	}
}

// addSurfaces adds the surfaces of a mosaic's pairs of whole tiles, in order.
func (a *aligner) addSurfaces(ctx context.Context, to *[2]sumOfSurfaces) error {
	g := &a.grid
	return eachPair(ctx, a, func(p *filter.Phase, n neighbours) []float32 {
		t := &to[n.axis]
		if t.sum == nil || n.va.v == nil || n.vb.v == nil || g.extentOf(n.a) != g.tile || g.extentOf(n.b) != g.tile {
			return nil
		}
		s := t.strips
		v := make([]float32, len(t.sum))
		if !p.Surface(v, cutOut(n.va.v, g.tile[1], s.a, s.ny, s.nx), cutOut(n.vb.v, g.tile[1], s.b, s.ny, s.nx), s.ny, s.nx) {
			return nil
		}
		return v
	}, func(n neighbours, v []float32) {
		if v == nil {
			return
		}
		t := &to[n.axis]
		t.pairs++
		for i, x := range v {
			t.sum[i] += x
		}
	})
}

// addScores adds the correlations of a mosaic's pairs at each candidate.
func (a *aligner) addScores(ctx context.Context, candidates [2][][2]int, to *[2][commonPeaks]float64) error {
	return eachPair(ctx, a, func(p *filter.Phase, n neighbours) (scores [commonPeaks]float64) {
		if n.va.v == nil || n.vb.v == nil {
			return scores
		}
		for k, d := range candidates[n.axis] {
			s, ok := displaced(n.va.n, n.vb.n, d, 0, leastOverlap)
			if !ok {
				continue
			}
			if f, ok := p.SubPixel(cutOut(n.va.v, n.va.n[1], s.a, s.ny, s.nx), cutOut(n.vb.v, n.vb.n[1], s.b, s.ny, s.nx), s.ny, s.nx); ok {
				// Fisher's z, so that a large overlap that agrees somewhat loses against a
				// small one that agrees
				scores[k] = math.Atanh(min(f.Correlation, 0.9999)) * math.Sqrt(float64(s.ny*s.nx))
			}
		}
		return scores
	}, func(n neighbours, s [commonPeaks]float64) {
		for k, v := range s {
			to[n.axis][k] += v
		}
	})
}

const (
	// commonPeaks is the maximum number of maxima of a sum of surfaces that are examined.
	commonPeaks = 8
	// commonPart is the minimum height of an examined maximum relative to the highest: if tiles share tissue, the
	// second has a third or a half of it.
	commonPart = 0.4
	// leastCommon is the minimum overlap of the windows at a displacement, relative to that at 0.
	leastCommon = 0.05
	// climbReach is the maximum correction of a maximum's place in px.
	climbReach = 2
)

// candidates returns the displacements of the highest maxima, in descending order.
func (s *sumOfSurfaces) candidates(expected [2]int) (out [][2]int) {
	ny, nx := filter.SurfaceSize(s.strips.ny, s.strips.nx)
	sum := s.sum
	// the tiles' positions scatter, and so do the single peaks
	for range 3 {
		sum = blurRound(sum, ny, nx)
	}
	peaks := maxima(sum, ny, nx)
	for _, p := range peaks[:min(len(peaks), commonPeaks)] {
		if sum[p] < commonPart*sum[peaks[0]] {
			break
		}
		var d [2]int
		for k, c := range [2]struct{ at, period int }{{p / nx, ny}, {p % nx, nx}} {
			// of the shifts that are equal modulo the period the one nearest to what is expected
			want := expected[k] - s.strips.a[k] + s.strips.b[k]
			d[k] = c.at + int(math.Round(float64(want-c.at)/float64(c.period)))*c.period
		}
		d = s.climb(sum, d)
		out = append(out, [2]int{d[0] + s.strips.a[0] - s.strips.b[0], d[1] + s.strips.a[1] - s.strips.b[1]})
	}
	return out
}

// climb corrects the place of a maximum. As two strips are shifted against each other, their overlap shrinks,
// which lowers the surface at larger shifts and so moves its maxima to smaller ones. Division by the overlap of
// the strips' windows restores their places nearby; far away, with little overlap, the quotient is noise with
// maxima of its own.
func (s *sumOfSurfaces) climb(sum []float32, d [2]int) [2]int {
	n := [2]int{s.strips.ny, s.strips.nx}
	ny, nx := filter.SurfaceSize(n[0], n[1])
	var common [2][]float64
	for k := range n {
		common[k] = filter.WindowOverlap(n[k])
	}
	at := func(d [2]int) float64 {
		v := float64(sum[((d[0]%ny)+ny)%ny*nx+((d[1]%nx)+nx)%nx])
		for k, c := range common {
			if o := max(d[k], -d[k]); o < len(c) && c[o] > leastCommon*c[0] {
				v *= c[0] / c[o]
			} else {
				return math.Inf(-1)
			}
		}
		return v
	}
	for range climbReach {
		best := d
		for k := range 9 {
			if o := [2]int{d[0] + k/3 - 1, d[1] + k%3 - 1}; at(o) > at(best) {
				best = o
			}
		}
		if best == d {
			break
		}
		d = best
	}
	return d
}

// maxima returns the elements of a periodic surface that none of their eight neighbours exceeds, in descending
// order; of equal neighbours the first counts.
func maxima(v []float32, ny, nx int) (at []int) {
	for i, f := range v {
		y, x := i/nx, i%nx
		top := true
		for d := 0; d < 9 && top; d++ {
			o := (y+d/3-1+ny)%ny*nx + (x+d%3-1+nx)%nx
			top = v[o] < f || v[o] == f && o >= i
		}
		if top {
			at = append(at, i)
		}
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Or(cmp.Compare(v[b], v[a]), a-b) })
	return at
}

// blurRound smooths a periodic surface by (1, 2, 1)/4 along both axes.
func blurRound(v []float32, ny, nx int) []float32 {
	out := make([]float32, len(v))
	for y := range ny {
		up, mid, down := v[(y+ny-1)%ny*nx:][:nx], v[y*nx:][:nx], v[(y+1)%ny*nx:][:nx]
		for x := range nx {
			l, r := (x+nx-1)%nx, (x+1)%nx
			a := up[l] + 2*up[x] + up[r]
			b := mid[l] + 2*mid[x] + mid[r]
			c := down[l] + 2*down[x] + down[r]
			out[y*nx+x] = (a + 2*b + c) / 16
		}
	}
	return out
}
