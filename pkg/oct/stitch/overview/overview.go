// Package overview makes small pictures of the tiles of a mosaic, in which neighbours are looked for wherever they may
// overlap, and finds what all tiles show alike.
package overview

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/work"
)

// Overview holds reduced pictures of the tiles of a mosaic, by which neighbours are looked for wherever they may
// overlap. What all tiles show alike at the same pixels (shading, dust, columns of the detector) is taken out, since
// it agrees best where tiles do not move.
type Overview struct {
	Size [2]int      // pixels (y, x)
	Step [2]int      // pixels of a tile for each
	Tile [][]float32 // by tile; nil: there is none, or it is empty or cut off
}

// reducedSide is the number of pixels to which the sides of tiles are reduced, about.
const reducedSide = 128

// degree is the degree of the polynomial that models the shading.
const degree = 4

// blurShare is the scale, as a part of an overview's side, above which brightness counts as shading.
const blurShare = 1. / 32

// mostPixels is the number of pixels of all overviews from which on they are smaller.
const mostPixels = 8 << 20

// New returns an empty overview for one mosaic with so many tiles; total is the number of tiles of all mosaics.
func New(tile [2]int, tiles, total int) *Overview {
	o := &Overview{Tile: make([][]float32, tiles)}
	for side := reducedSide; ; side -= side / 4 {
		for k, n := range tile {
			o.Step[k] = max(1, (n+side/2)/side)
			o.Size[k] = n / o.Step[k]
		}
		if side <= reducedSide/4 || float64(o.Size[0])*float64(o.Size[1])*float64(total) <= mostPixels {
			return o
		}
	}
}

// Reduce returns the means of a plane's blocks. Pixels that are not finite do not count.
func (o *Overview) Reduce(plane []float32, width int) []float32 {
	out := make([]float32, o.Size[0]*o.Size[1])
	for y := range o.Size[0] {
		for x := range o.Size[1] {
			sum, count := 0.0, 0.0
			for dy := range o.Step[0] {
				for _, f := range plane[(y*o.Step[0]+dy)*width+x*o.Step[1]:][:o.Step[1]] {
					if v := float64(f); v-v == 0 {
						sum, count = sum+v, count+1
					}
				}
			}
			if count > 0 {
				out[y*o.Size[1]+x] = float32(sum / count)
			}
		}
	}
	return out
}

// Prepare replaces the brightness of overviews by contrast, which does not depend on local brightness, and removes the
// pattern that all tiles share. The mosaics must have been acquired with the same settings.
func Prepare(ctx context.Context, all []*Overview, workers int) error {
	sum, low, count := 0.0, 0.0, 0.0
	for _, o := range all {
		for _, t := range o.Tile {
			for _, f := range t {
				if !(f > 0) {
					low++
				}
				sum, count = sum+float64(f), count+1
			}
		}
	}
	if count == 0 {
		return nil
	}
	// of what has its zero elsewhere, as decibels, the logarithm says nothing
	floor, logarithmic := sum/count, low < 0.05*count && sum > 0
	for _, o := range all {
		if err := work.Each(ctx, workers, len(o.Tile), func(_, t int) error {
			v := o.Tile[t]
			if v == nil {
				return nil
			}
			if logarithmic {
				for i, f := range v {
					v[i] = float32(math.Log(max(float64(f), 0)/floor + 1))
				}
			}
			flattened(v, o.Size)
			return nil
		}); err != nil {
			return err
		}
	}
	takePattern(all)
	return nil
}

// flattened smooths a picture by (1, 2, 1)/4 and subtracts its shading: a polynomial of fourth degree and the local
// mean.
func flattened(v []float32, n [2]int) {
	filter.RemovePolynomial(v, n[0], n[1], degree)
	copy(v, BoxMean(BoxMean(v, n, [2]int{1, 1}), n, [2]int{1, 1}))
	mean := v
	for range 2 {
		mean = BoxMean(mean, n, [2]int{max(1, int(blurShare*float64(n[0]))), max(1, int(blurShare*float64(n[1])))})
	}
	for i, f := range mean {
		v[i] -= f
	}
}

// BoxMean returns the means over boxes of 2r+1 pixels. Beyond its border, the picture continues as its point reflection
// at the border pixel, so that a gradient continues.
func BoxMean(v []float32, n, r [2]int) []float32 {
	a, b := make([]float32, len(v)), make([]float32, len(v))
	for y := range n[0] {
		lineMean(a[y*n[1]:], v[y*n[1]:], 1, n[1], r[1])
	}
	for x := range n[1] {
		lineMean(b[x:], a[x:], n[1], n[0], r[0])
	}
	return b
}

// lineMean computes the means along one of n pixels, stride apart.
func lineMean(dst, src []float32, stride, n, r int) {
	at := func(k int) float64 {
		switch {
		case k < 0:
			return 2*float64(src[0]) - float64(src[min(-k, n-1)*stride])
		case k >= n:
			return 2*float64(src[(n-1)*stride]) - float64(src[max(2*n-2-k, 0)*stride])
		}
		return float64(src[k*stride])
	}
	sum := 0.0
	for k := -r; k < r; k++ {
		sum += at(k)
	}
	for k := range n {
		sum += at(k + r)
		dst[k*stride] = float32(sum / float64(2*r+1))
		sum -= at(k - r)
	}
}

// takePattern subtracts the mean of all tiles, weighted so that tiles without texture say most, as far as two halves
// of the tiles have it in common (Spearman and Brown's formula).
func takePattern(all []*Overview) {
	var mean [2][]float64
	var weights [2]float64
	size := all[0].Size[0] * all[0].Size[1]
	for k := range mean {
		mean[k] = make([]float64, size)
	}
	var variances []float64
	for _, o := range all {
		for _, t := range o.Tile {
			if t != nil {
				variances = append(variances, meanSquare(t))
			}
		}
	}
	if len(variances) < 4 {
		return
	}
	least := 0.02 * filter.MedianOf(variances)
	k, half := 0, 0
	for _, o := range all {
		for _, t := range o.Tile {
			if t == nil {
				continue
			}
			w := 1 / (variances[k] + least + 1e-30)
			half = k % 2
			k++
			for i, f := range t {
				mean[half][i] += w * float64(f)
			}
			weights[half] += w
		}
	}
	var aa, bb, ab float64
	for i := range size {
		a, b := mean[0][i]/weights[0], mean[1][i]/weights[1]
		aa, bb, ab = aa+float64(a*a), bb+float64(b*b), ab+float64(a*b)
	}
	if !(aa > 0 && bb > 0) {
		return
	}
	common := max(0, ab/math.Sqrt(aa*bb))
	common = 2 * common / (1 + common)
	for _, o := range all {
		for _, t := range o.Tile {
			for i := range t {
				t[i] -= float32(common * (mean[0][i] + mean[1][i]) / (weights[0] + weights[1]))
			}
		}
	}
}

func meanSquare(v []float32) float64 {
	s := 0.0
	for _, f := range v {
		s += float64(f) * float64(f)
	}
	return s / float64(len(v))
}

const (
	// candidates is the maximum number of displacements of a pair that are considered.
	candidates = 6
	// leastShare and mostShare are the smallest and the largest overlap that is searched, as fractions of a tile. A
	// larger overlap is searched if it is expected.
	leastShare, mostShare = 0.03, 0.6
	// sideways is how far tiles of a row or column may lie beside it, as a part of a tile.
	sideways = 0.2
	// leastPixels is the minimum overlap in pixels of an overview.
	leastPixels = 60
)

// Region returns the displacements, in pixels of the overview, at which a neighbour is looked for.
func (o *Overview) Region(expected [2]float64) (r filter.Displacements) {
	var e [2]float64
	for k := range e {
		e[k] = expected[k] / float64(o.Step[k])
	}
	main := 0
	if math.Abs(e[1])/float64(o.Size[1]) > math.Abs(e[0])/float64(o.Size[0]) {
		main = 1
	}
	for k := range e {
		n := float64(o.Size[k])
		if k != main {
			centre := 0.0
			if math.Abs(e[k]) > sideways/2*n {
				centre = e[k]
			}
			r.First[k], r.Last[k] = int(math.Floor(centre-sideways*n)), int(math.Ceil(centre+sideways*n))
			continue
		}
		share := min(max(mostShare, 1-math.Abs(e[k])/n+0.15), 0.95)
		near, far := int(math.Floor((1-share)*n)), int(math.Ceil((1-leastShare)*n))-1
		if e[k] < 0 {
			near, far = -far, -near
		}
		r.First[k], r.Last[k] = near, far
	}
	for k := range e {
		r.First[k], r.Last[k] = max(r.First[k], 1-o.Size[k]), min(r.Last[k], o.Size[k]-1)
	}
	return r
}

// Look returns the displacements in px at which tile b may lie against tile a, best first, with by how many standard
// deviations of all displacements they stand out; unit is that standard deviation.
func (o *Overview) Look(c *filter.Correlator, a, b *filter.Spectrum, r filter.Displacements) (out []consensus.Candidate, unit float64) {
	v := c.Correlate(a, b, r, leastPixels)
	n := r.Size()
	var far []float64
	for i, f := range v {
		if f != 0 {
			z := o.evidence(float64(f), [2]int{r.First[0] + i/n[1], r.First[1] + i%n[1]})
			v[i] = float32(z)
			far = append(far, math.Abs(z))
		}
	}
	if len(far) == 0 {
		return nil, 0
	}
	unit = filter.MedianOf(far) / 0.6745
	for _, p := range r.Peaks(v, candidates, 3) {
		out = append(out, consensus.Candidate{D: [2]float64{float64(p.D[0] * o.Step[0]), float64(p.D[1] * o.Step[1])}, Score: p.Value / unit, Width: o.width(v, r, p)})
	}
	return out, unit
}

const (
	// around is how far, in pixels of the overview, a peak is followed, and alike the part of its height to which.
	around, alike = 10, 0.75
)

// width returns the covariance in px² of the displacements around a peak at which the tiles agree nearly as well.
func (o *Overview) width(v []float32, r filter.Displacements, p filter.Peak) (s consensus.Sym) {
	n := r.Size()
	at := [2]int{p.D[0] - r.First[0], p.D[1] - r.First[1]}
	count := 0.0
	for y := max(at[0]-around, 0); y <= min(at[0]+around, n[0]-1); y++ {
		for x := max(at[1]-around, 0); x <= min(at[1]+around, n[1]-1); x++ {
			if float64(v[y*n[1]+x]) < alike*p.Value {
				continue
			}
			dy, dx := float64((y-at[0])*o.Step[0]), float64((x-at[1])*o.Step[1])
			s = s.Add(consensus.Sym{YY: dy * dy, YX: dy * dx, XX: dx * dx})
			count++
		}
	}
	return s.Scaled(1 / count)
}

// evidence returns the significance of a correlation c at a displacement d. Correlations that occur by chance shrink
// with the square root of the common area.
func (o *Overview) evidence(c float64, d [2]int) float64 {
	common := float64(max(o.Size[0]-max(d[0], -d[0]), 0) * max(o.Size[1]-max(d[1], -d[1]), 0))
	return math.Atanh(min(max(c, -0.999), 0.999)) * math.Sqrt(common)
}

// EvidenceAt returns the largest evidence within a pixel of a displacement in px of tile b against tile a.
func (o *Overview) EvidenceAt(a, b int, d [2]float64) (best float64) {
	o.near(a, b, d, 1, func(s [2]int, c float64) { best = max(best, o.evidence(c, s)) })
	return best
}

// near calls visit with the correlations of two tiles at the displacements within a reach of one in px.
func (o *Overview) near(a, b int, d [2]float64, reach int, visit func(s [2]int, c float64)) {
	if o.Tile[a] == nil || o.Tile[b] == nil {
		return
	}
	side := 2*reach + 1
	for k := range side * side {
		s := [2]int{int(math.Round(d[0]/float64(o.Step[0]))) + k/side - reach, int(math.Round(d[1]/float64(o.Step[1]))) + k%side - reach}
		ny, nx := o.Size[0]-max(s[0], -s[0]), o.Size[1]-max(s[1], -s[1])
		if min(ny, nx) < 2 {
			continue
		}
		visit(s, filter.NCC(filter.Crop(o.Tile[a], o.Size[1], [2]int{max(s[0], 0), max(s[1], 0)}, ny, nx), filter.Crop(o.Tile[b], o.Size[1], [2]int{max(-s[0], 0), max(-s[1], 0)}, ny, nx)))
	}
}
