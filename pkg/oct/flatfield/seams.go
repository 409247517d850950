package flatfield

import (
	"context"
	"math"
	"sync"
)

// overlap is the width of the strip at each edge of a tile that is compared with its neighbour, as a fraction of the
// tile.
const overlap = 0.2

// Seams describes how well neighbouring tiles agree: the last fifth of each tile with the first fifth of the next,
// along y and along x, as the mean over all pairs of whole tiles and then over the planes.
type Seams struct {
	L1      float64 // mean difference over mean value
	Pearson float64 // correlation, without strips of one value; NaN: there are only such
	Pairs   int     // of a plane; 0: there are no neighbours, and the other numbers are NaN
}

// pair is the seam between a tile and its neighbour to the right, or below if below is set.
type pair struct {
	tile  int
	below bool
}

// comparison compares the two tiles of each seam as soon as both have been read, in either order.
type comparison struct {
	*fitting
	pairs  map[pair]int // their numbers
	mu     sync.Mutex
	parked map[[2]int][]float32 // strips of the first tile of a pair, by first plane and pair
	values [][2][2]float64      // of each plane and pair: L1 and correlation, before and after
}

// compare measures the seams before and after, and takes pictures of the plane in the middle.
func (f *fitting) compare(ctx context.Context, r *Result) error {
	c := &comparison{fitting: f, pairs: map[pair]int{}, parked: map[[2]int][]float32{}}
	for t := range f.tiles() {
		if t%f.nx+1 < f.nx {
			c.pairs[pair{t, false}] = len(c.pairs)
		}
		if t/f.nx+1 < f.ny {
			c.pairs[pair{t, true}] = len(c.pairs)
		}
	}
	c.values = make([][2][2]float64, len(f.sampled)*len(c.pairs))
	r.Pictures = f.newPictures()
	strips := 2 * 4 * int64(max(f.height*f.thin(f.width), f.width*f.thin(f.height))) // of a plane before and after
	waiting := strips * int64(f.nx+2+2*f.res.Workers)
	reading, err := f.read(f.sampled, 0, f.height, f.res.Mem-f.bytes()-r.Pictures.bytes(), waiting, &f.res)
	if err != nil {
		return err
	}
	middle := len(f.sampled) / 2
	err = reading.visit(ctx, &f.res, func(_ context.Context, v *visit) error {
		for _, below := range []bool{false, true} {
			before := 1
			if below {
				before = f.nx
			}
			if k, ok := c.pairs[pair{v.tile, below}]; ok {
				c.meet(v, k, below, true)
			}
			if k, ok := c.pairs[pair{v.tile - before, below}]; ok && (below || v.tile%f.nx > 0) {
				c.meet(v, k, below, false)
			}
		}
		for _, i := range v.planes {
			if i == middle {
				r.Pictures.add(f, v.tile, f.sampled[i], v.voxels(i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Before, r.After = c.mean(0), c.mean(1)
	for _, field := range f.fields {
		if field != nil {
			r.Curvature += curvature(field, f.height, f.width) / float64(len(f.fields)-len(f.skipped))
		}
	}
	return nil
}

// thin returns the width of the overlap of tiles of n pixels.
func (m *mosaic) thin(n int) int { return max(1, int(overlap*float64(n))) }

// meet compares the planes of a visit with the tile at the other side of pair k if that tile has been read; otherwise
// it keeps the visit's strips until then.
func (c *comparison) meet(v *visit, k int, below, first bool) {
	var strips []float32
	for _, i := range v.planes {
		strips = c.strip(strips, v.voxels(i), c.sampled[i], below, first)
	}
	key := [2]int{v.planes[0], k}
	c.mu.Lock()
	other := c.parked[key]
	if other == nil {
		c.parked[key] = strips
	} else {
		delete(c.parked, key)
	}
	c.mu.Unlock()
	if other == nil {
		return
	}
	n := len(strips) / len(v.planes) / 2
	for j, i := range v.planes {
		for after := range 2 {
			at := (2*j + after) * n
			l1, r := agreement(strips[at:at+n], other[at:at+n])
			c.values[i*len(c.pairs)+k][after] = [2]float64{l1, r}
		}
	}
}

// strip appends the pixels of a tile that its neighbour has too, before and after the correction: at the tile's end for
// the first of a pair, at its beginning for the second.
func (c *comparison) strip(to, voxels []float32, z int, below, first bool) []float32 {
	y0, y1, x0, x1 := 0, c.height, 0, c.width
	switch {
	case below && first:
		y0 = y1 - c.thin(c.height)
	case below:
		y1 = c.thin(c.height)
	case first:
		x0 = x1 - c.thin(c.width)
	default:
		x1 = c.thin(c.width)
	}
	start := len(to)
	for y := y0; y < y1; y++ {
		to = append(to, voxels[y*c.width+x0:y*c.width+x1]...)
	}
	corrected := len(to)
	to = append(to, to[start:]...)
	for y := y0; y < y1; y++ {
		c.correct(to[corrected:corrected+x1-x0], z, y*c.width+x0)
		corrected += x1 - x0
	}
	return to
}

// correct divides voxels of plane z, which begin at a pixel of a tile.
func (f *fitting) correct(v []float32, z, from int) {
	field := f.field(z)
	field.Keep = false
	field.DivideRow(v, from)
}

// agreement returns the mean difference of two strips relative to their mean, and their correlation.
func agreement(a, b []float32) (l1, pearson float64) {
	n := float64(len(a))
	var difference, size, sumA, sumB float64
	for i, v := range a {
		p, q := float64(v), float64(b[i])
		difference += math.Abs(p - q)
		size += math.Abs(p) + math.Abs(q)
		sumA += p
		sumB += q
	}
	meanA, meanB := sumA/n, sumB/n
	var aa, bb, ab float64
	for i, v := range a {
		p, q := float64(v)-meanA, float64(b[i])-meanB
		aa += float64(p * p)
		bb += float64(q * q)
		ab += float64(p * q)
	}
	l1 = difference / n / (size/n/2 + 1e-9)
	if math.Sqrt(aa/n) < 1e-9 || math.Sqrt(bb/n) < 1e-9 {
		return l1, math.NaN()
	}
	return l1, ab / math.Sqrt(float64(aa*bb))
}

// mean averages the values before (0) or after (1) the correction.
func (c *comparison) mean(after int) Seams {
	s := Seams{L1: math.NaN(), Pearson: math.NaN(), Pairs: len(c.pairs)}
	if len(c.pairs) == 0 {
		return s
	}
	var l1, pearson, planes float64
	for i := range c.sampled {
		var sum, count float64
		for _, v := range c.values[i*len(c.pairs):][:len(c.pairs)] {
			l1 += v[after][0] / float64(len(c.pairs)*len(c.sampled))
			if r := v[after][1]; r == r {
				sum += r
				count++
			}
		}
		if count > 0 {
			pearson += sum / count
			planes++
		}
	}
	if s.L1 = l1; planes > 0 {
		s.Pearson = pearson / planes
	}
	return s
}

// curvature says how far the flat-field of a tile is from the shape that illumination through a lens has: the root mean
// square distance of its mean profile along x or y, whichever is larger, from a Gaussian plus a constant, in the
// overlaps with neighbours, relative to the profile's mean there.
func curvature(field []float32, height, width int) float64 {
	worst := 0.0
	for axis, n := range []int{height, width} {
		profile := make([]float64, n)
		for i, v := range field {
			k := i / width
			if axis == 1 {
				k = i % width
			}
			profile[k] += float64(v) * float64(n) / float64(height*width)
		}
		thin := max(1, int(overlap*float64(n)))
		var x, y []float64
		for k, v := range profile {
			if k < thin || k >= n-thin {
				x, y = append(x, (float64(k)+0.5)/float64(n)), append(y, v)
			}
		}
		worst = max(worst, gaussianMisfit(x, y))
	}
	return worst
}

// gaussianMisfit returns the root mean square distance of points from the best a·exp(−(x−c)²/2s²) + d, relative to the
// mean of y. It searches c and s on a grid that closes in on the best; a and d follow from them.
func gaussianMisfit(x, y []float64) float64 {
	mean := 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	const steps = 12 // each way
	c, logS, best := 0.5, 0.0, math.Inf(1)
	for reach := 1.0; reach > 1e-3; reach /= 4 {
		c0, s0 := c, logS
		for i := -steps; i <= steps; i++ {
			for j := -steps; j <= steps; j++ {
				at, s := c0+reach*float64(i)/steps, s0+1.6*reach*float64(j)/steps
				if r := misfit(x, y, mean, at, math.Exp(s)); r < best {
					c, logS, best = at, s, r
				}
			}
		}
	}
	return math.Sqrt(best/float64(len(y))) / math.Max(math.Abs(mean), 1e-9)
}

// misfit returns the sum of squares that the best Gaussian of a given centre and width leaves.
func misfit(x, y []float64, mean, c, s float64) float64 {
	var sum, gg, gy, yy float64
	for _, v := range x {
		sum += math.Exp(-(v - c) * (v - c) / (2 * s * s))
	}
	sum /= float64(len(x))
	for i, v := range x {
		g, d := math.Exp(-(v-c)*(v-c)/(2*s*s))-sum, y[i]-mean
		gg += float64(g * g)
		gy += float64(g * d)
		yy += float64(d * d)
	}
	if gg > 0 {
		yy -= float64(gy * gy / gg)
	}
	return max(0, yy)
}
