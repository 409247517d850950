package filter

import (
	"math"
	"sync"
)

// Gradients collects the interfaces of many A-lines with their largest gradients in memory that does not grow
// with their number: counts by depth and by gradient, in 1024 equal bins of a range that doubles when a
// gradient exceeds it. Results do not depend on the order of the A-lines.
type Gradients struct {
	mu     sync.Mutex
	depths int
	top    float64 // end of the range, a power of two; 0: no gradient yet
	counts []int64 // gradientBins × depths
	lines  int64
}

const gradientBins = 1024

// NewGradients prepares for depths 0…depths−1.
func NewGradients(depths int) *Gradients {
	return &Gradients{depths: depths, counts: make([]int64, gradientBins*depths)}
}

// Add adds A-lines. It is safe for concurrent use.
func (g *Gradients) Add(depth []int32, gradient []float32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines += int64(len(depth))
	for i, v := range gradient {
		f := float64(v)
		if !(f > 0) || math.IsInf(f, 0) {
			continue // it never brightens
		}
		for f >= g.top {
			g.widen(f)
		}
		g.counts[int(f/g.top*gradientBins)*g.depths+int(depth[i])]++
	}
}

// widen makes room for a gradient: the range is the first power of two above
// it, or doubles.
func (g *Gradients) widen(f float64) {
	if g.top == 0 {
		_, e := math.Frexp(f)
		g.top = math.Ldexp(1, e)
		return
	}
	g.top *= 2
	for b := range gradientBins {
		to := g.counts[b*g.depths : (b+1)*g.depths]
		for d := range to {
			to[d] = 0
			if 2*b < gradientBins {
				to[d] = g.counts[2*b*g.depths+d] + g.counts[(2*b+1)*g.depths+d]
			}
		}
	}
}

// Interface is the interface of the whole tissue: the median over the A-lines whose gradient stands out from
// the background.
type Interface struct {
	Depth     float64 // median; of an even number the mean of the middle two
	Lines     int64   // A-lines
	Used      int64   // A-lines that the median is computed from
	Threshold float64 // smallest gradient that stands out; 0: all A-lines that brighten
}

// Find splits the gradients by Otsu's method and takes the median of the upper class, or of all A-lines that
// brighten if there is nothing to split. ok is false if no A-line brightens.
func (g *Gradients) Find() (out Interface, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out.Lines = g.lines
	hist := make([]int64, gradientBins)
	for b := range hist {
		for _, n := range g.counts[b*g.depths : (b+1)*g.depths] {
			hist[b] += n
		}
	}
	split := Otsu(hist)
	out.Threshold = float64(split) / gradientBins * g.top
	depths := make([]int64, g.depths)
	for i, n := range g.counts[split*g.depths:] {
		depths[i%g.depths] += n
		out.Used += n
	}
	if out.Used == 0 {
		return out, false
	}
	lo, _ := find(depths, (out.Used-1)/2)
	hi, _ := find(depths, out.Used/2)
	out.Depth = (float64(lo) + float64(hi)) / 2
	return out, true
}
