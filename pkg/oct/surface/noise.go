package surface

import (
	"math"
	"sync"

	"strata/pkg/oct"
)

// NoiseText describes the depths for which [Depths.Noise] returns true.
const NoiseText = "A-lines brighten at depths that have nothing in common with those of their neighbours, as in noise (was the laser off?)"

// Depths judges whether the depths at which A-lines brighten most are those of a surface: then neighbours have nearly
// the same depth, or all have. In noise they are independent, and lie anywhere. It may be used concurrently.
type Depths struct {
	planes, apart int

	mu         sync.Mutex
	w, wz, wzz float64 // of A-lines, weighted by their gradients
	p, pd      float64 // of pairs of A-lines: weights, and squared differences of depth
	pairs      int64
}

// NewDepths returns a judge of depths among so many planes, found with a mean filter over windows of a size in px.
func NewDepths(planes int, window float64) *Depths {
	return &Depths{planes: planes, apart: 2*int(math.Ceil(window)) + 2}
}

const (
	// leastAlike is the correlation of depths, beyond the reach of the mean filter, from which on they belong to a
	// surface. Tilted tissue, tissue on a seventh of the area, and the phantom reach 0.94; noise reaches 0.03.
	leastAlike = 0.1
	// leastSpread is the standard deviation of depths below which they agree with each other. It is a fraction of the
	// standard deviation of uniformly distributed depths. Flat tissue has 0.04, noise 0.96.
	leastSpread = 0.7
	// leastPairs is the minimum number of pairs of A-lines from which conclusions are drawn.
	leastPairs = 400
)

// Add adds the depths of a rectangle of A-lines in C order, with their gradients.
func (d *Depths) Add(r oct.Rectangle, depth []int32, gradient []float32) {
	var w, wz, wzz, p, pd float64
	var pairs int64
	height, width, step := r.Height(), r.Width(), max(1, d.apart/2)
	for y := 0; y < height; y += step {
		for x := 0; x < width; x += step {
			i := y*width + x
			g, z := float64(gradient[i]), float64(depth[i])
			w, wz, wzz = w+g, wz+g*z, wzz+g*z*z
			pair := func(k int) {
				v, off := g*float64(gradient[k]), float64(depth[k])-z
				p, pd = p+v, pd+v*off*off
				pairs++
			}
			if x+d.apart < width {
				pair(i + d.apart)
			}
			if y+d.apart < height {
				pair(i + d.apart*width)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w, d.wz, d.wzz, d.p, d.pd, d.pairs = d.w+w, d.wz+wz, d.wzz+wzz, d.p+p, d.pd+pd, d.pairs+pairs
}

// Noise reports whether the depths look like those of noise.
func (d *Depths) Noise() bool {
	spread, alike, ok := d.measure()
	return ok && spread > leastSpread && alike < leastAlike
}

// measure returns the standard deviation of depths, as a part of that of depths that may lie anywhere, and their
// correlation beyond the reach of the mean filter; ok is false if too few say so.
func (d *Depths) measure() (spread, alike float64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pairs < leastPairs || !(d.w > 0 && d.p > 0) {
		return 0, 0, false
	}
	mean := d.wz / d.w
	variance := max(d.wzz/d.w-mean*mean, 0)
	return math.Sqrt(12*variance) / float64(d.planes), 1 - d.pd/d.p/(2*variance), true
}
