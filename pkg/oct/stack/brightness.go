package stack

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// BlendMatch selects how the brightness of slices is matched before blending.
type BlendMatch string

// Values of BlendMatch.
const (
	MatchNone     BlendMatch = "none"     // not at all
	MatchPairwise BlendMatch = "pairwise" // each slice to those below it, like the reference
	MatchWhole    BlendMatch = "whole"    // one factor for each slice, from all overlaps together
	MatchDepth    BlendMatch = "depth"    // the same, and a factor for each depth below the slices' first plane
)

// BlendMatches lists all values of [BlendMatch].
var BlendMatches = []string{string(MatchNone), string(MatchPairwise), string(MatchWhole), string(MatchDepth)}

const (
	// brightnessVoxels is the number of voxels that a plane needs in the tiles of a pair to count.
	brightnessVoxels = 100
	// brightnessNoise is the relative difference in brightness of the same tissue between two slices: the error of one
	// plane.
	brightnessNoise = 0.05
	// sliceSpread is the expected difference between slices, bendSpread that of the slopes of log brightness on both
	// sides of a knot: it falls linearly where tissue attenuates evenly.
	sliceSpread = 0.3
	bendSpread  = 0.02
	mostKnots   = 128 // of the profile along depth
	mostGain    = 8   // limit of a plane's gain, upwards and downwards, because of noise
)

// brightness is the result of comparing overlaps: plane z of slice k shows tissue exp(slices[k] + depth[z]) times
// as bright as it is.
type brightness struct {
	slices []float64
	depth  []float64 // by plane of a slice; that of the first used plane is 0
}

// knot returns the knot before plane z and the fraction of the distance to the next one.
func knot(z, planes, knots int) (k int, part float64) {
	if knots < 2 {
		return 0, 0
	}
	at := float64(z) * float64(knots-1) / float64(max(planes-1, 1))
	k = min(int(at), knots-2)
	return k, at - float64(k)
}

// brightnesses solves for all slices and all depths together by least squares. A relative difference common to all
// pairs is attributed to attenuation along depth, which occurs wherever light comes from above, and not to slices
// that become darker and darker.
func (p *stackPlan) brightnesses() brightness {
	n, planes := len(p.slices), 0
	for _, s := range p.slices {
		planes = max(planes, s.shape[0])
	}
	knots := min(planes, mostKnots)
	size := n + knots
	normal, right := mat.NewSymDense(size, nil), mat.NewVecDense(size, nil)
	// add adds an equation: what the unknowns make by their factors.
	add := func(weight, says float64, factors map[int]float64) {
		for i, f := range factors {
			right.SetVec(i, right.AtVec(i)+weight*f*says)
			for j, g := range factors {
				if i <= j {
					normal.SetSym(i, j, normal.At(i, j)+weight*f*g)
				}
			}
		}
	}
	sample := 1 / (brightnessNoise * brightnessNoise)
	for i, m := range p.moving {
		for t := range max(m.overlap, 0) {
			a, okA := m.fixedEnd.at(m.fixed.shape[0] - m.overlap + t)
			b, okB := m.movingEnd.at(m.movingZ + t)
			if !okA || !okB {
				continue
			}
			factors := map[int]float64{i: 1, i + 1: -1}
			along := func(z int, sign float64) {
				k, part := knot(z, planes, knots)
				factors[n+k] += sign * (1 - part)
				if part > 0 {
					factors[n+k+1] += sign * part
				}
			}
			along(m.fixed.shape[0]-m.overlap+t, 1)
			along(m.movingZ+t, -1)
			add(sample, math.Log(a/b), factors)
		}
	}
	for k := range n {
		add(1/(sliceSpread*sliceSpread), 0, map[int]float64{k: 1})
	}
	for k := 1; k+1 < knots; k++ {
		add(1/(bendSpread*bendSpread), 0, map[int]float64{n + k - 1: 1, n + k: -2, n + k + 1: 1})
	}
	for k := range knots { // so that something holds what nothing else does
		add(1e-3, 0, map[int]float64{n + k: 1})
	}
	var chol mat.Cholesky
	var x mat.VecDense
	out := brightness{slices: make([]float64, n), depth: make([]float64, planes)}
	if !chol.Factorize(normal) || chol.SolveVecTo(&x, right) != nil {
		return out
	}
	for k := range n {
		out.slices[k] = x.AtVec(k)
	}
	at := func(z int) float64 {
		k, part := knot(z, planes, knots)
		v := x.AtVec(n + k)
		if part > 0 {
			v += part * (x.AtVec(n+k+1) - v)
		}
		return v
	}
	first := min(p.opt.MovingZFirstIndex, planes-1)
	for z := range out.depth {
		out.depth[z] = at(max(z, first)) - at(first)
	}
	return out
}

// at returns the mean brightness of a plane of the slice, or false if too few voxels count.
func (e *planeEnd) at(z int) (float64, bool) {
	if e == nil {
		return 0, false
	}
	k := z - e.first
	if k < 0 || k >= len(e.bright) || e.voxels[k] < brightnessVoxels || !(e.bright[k] > 0) {
		return 0, false
	}
	return e.bright[k] / e.voxels[k], true
}

// brighten sets the gains of the slices' planes, from the first used one on.
func (p *stackPlan) brighten() {
	if !p.opt.Blend || p.opt.BlendMatch != MatchWhole && p.opt.BlendMatch != MatchDepth || len(p.moving) == 0 {
		return
	}
	b := p.brightnesses()
	for i, m := range p.all() {
		m.gains = p.gainsOf(b, i, m.movingZ)
	}
}

// noteGains records in r the gains that are known before blending.
func (p *stackPlan) noteGains(r *Result) {
	for _, m := range p.all() {
		if g := m.gains.all; g != 0 && g != 1 {
			r.Gains[m.slice.id] = float64(g)
		}
	}
}

// matched records the gain that matches a slice to those below it.
func (r *Result) matched(m *movingSlice, gain float32) {
	m.gains = planeGains{all: gain}
	if gain != 1 {
		r.Gains[m.slice.id] = float64(gain)
	}
}

// gainsOf returns the gains of slice k's planes from one on, rounded to hide the last bits of an exponential.
func (p *stackPlan) gainsOf(b brightness, k, from int) planeGains {
	gain := func(v float64) float32 {
		g := min(max(math.Exp(-v), 1.0/mostGain), mostGain)
		return float32(math.Round(g*4096) / 4096)
	}
	g := planeGains{all: gain(b.slices[k])}
	if p.opt.BlendMatch == MatchWhole {
		return g
	}
	for z := from; z < p.slices[k].shape[0]; z++ {
		g.planes = append(g.planes, gain(b.slices[k]+b.depth[z]))
	}
	return g
}

// planeGains holds the gains of a slice's planes, counted from its first used one.
type planeGains struct {
	all    float32   // gain of all planes; 0 stands for 1
	planes []float32 // gain of each plane; nil: all
}

// at returns the gain of plane k.
func (g planeGains) at(k int) float32 {
	switch {
	case k < len(g.planes):
		return g.planes[k]
	case g.all == 0:
		return 1
	}
	return g.all
}

// of returns the gains of n planes from k on.
func (g planeGains) of(k, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = g.at(k + i)
	}
	return out
}

// same returns the gain of the first plane, and whether all planes have it.
func (g planeGains) same() (float32, bool) { return g.at(0), len(g.planes) == 0 }
