package consensus

import (
	"math"
	"slices"

	"strata/pkg/filter"
)

// Fit is where links put tiles.
type Fit struct {
	R        [][2]float64 // deviations from the expected places, px
	Bad      []bool       // by link: contradicts the others
	Doubtful []bool       // by tile: connected only by a link that nothing checks and that is not sure
	Sliding  []bool       // by tile: held along one direction only
	Noise    float64      // by how many times its stated standard deviation a link errs; at least 1
	Stage    float64      // standard deviation of the expected places, px along an axis
	free     [][2]float64 // deviations by the links alone, nearly
	group    []int        // of connected tiles
	size     []int        // of the group, by its representative
}

const (
	// anneal is the factor by which the first round of a robust fit forgives more than the last.
	anneal = 64
	// rounds is the number of rounds at the end of a robust fit.
	rounds = 6
	// exact is the misfit in px that always counts as agreement.
	exact = 0.25
	// leastStage is the least standard deviation of an expected place, px: none is assumed to be exact.
	leastStage = 0.25
)

// Robust finds the deviations that fit the links best although some are wrong. Expected places err by up to most px
// (standard deviation along an axis); how much they and the links really err is estimated. It begins with all links
// and gives less and less weight to those that do not fit (graduated non-convexity with Geman and McClure's estimator:
// Yang et al., IEEE Robotics and Automation Letters 5, 2020), then drops those that contradict the others, the worst
// first. Held links assert, as well as expected places do, that two tiles lie as expected against each other.
func Robust(tiles int, links, held []Link, most float64) *Fit {
	f := &Fit{R: make([][2]float64, tiles), Bad: make([]bool, len(links)), Doubtful: make([]bool, tiles), Sliding: make([]bool, tiles), Noise: 1, Stage: most}
	f.free = f.R
	if len(links) == 0 {
		f.join(links)
		return f
	}
	work := slices.Clone(links)
	weak := 1 / (most * most)
	for i := range work {
		work[i].w = work[i].P
	}
	solve(f.R, work, weak)
	for mu, left := float64(anneal), rounds; left > 0; mu = max(mu/2, 1) {
		far := misfits(f.R, work)
		scale := math.Hypot(3*median(far), exact)
		for i := range work {
			u := work[i].beyond(f.R, scale, 2)
			k := mu / (mu + u*u)
			work[i].w = work[i].P.Scaled(k * k)
		}
		solve(f.R, work, weak)
		if mu == 1 {
			left--
		}
	}
	f.drop(links, weak)
	f.distrust(links)
	f.free = slices.Clone(f.R)
	solve(f.free, f.good(links), 1e-4*weak)
	f.weigh(links, held, most)
	f.doubtful(links)
	f.sliding(links)
	return f
}

// outlier is the misfit of a link that contradicts others, in robust standard deviations and in px. Pairs of good tiles
// of phantoms differ from the consensus by 0.03 to 0.3 px, and by 1 px with bright speckle.
const outlier, outlierPx = 4, 1

// drop excludes the links that contradict the others, and solves with the rest.
func (f *Fit) drop(links []Link, prior float64) {
	limit := max(outlier*median(misfits(f.R, links)), outlierPx)
	for i := range links {
		f.Bad[i] = links[i].beyond(f.R, limit, outlier) > 1
	}
	far := make([]float64, len(links))
	for {
		good := f.good(links)
		solve(f.R, good, prior)
		limit := max(outlier*median(misfits(f.R, good)), outlierPx)
		worst := make([]float64, len(f.R)) // by tile
		for i, l := range links {
			if !f.Bad[i] {
				far[i] = l.beyond(f.R, limit, outlier)
				worst[l.A], worst[l.B] = max(worst[l.A], far[i]), max(worst[l.B], far[i])
			}
		}
		dropped := false
		for i, l := range links {
			if !f.Bad[i] && far[i] > 1 && far[i] == worst[l.A] && far[i] == worst[l.B] {
				f.Bad[i], dropped = true, true
			}
		}
		if !dropped {
			return
		}
	}
}

// beyond returns the distance between a link and the positions r, in units of what is allowed: 1 is a distance of px
// pixels plus sigmas times the link's standard deviation in that direction (added as squares).
func (l *Link) beyond(r [][2]float64, px, sigmas float64) float64 {
	return math.Sqrt(l.P.Inverse().Scaled(sigmas * sigmas).Add(Diagonal(px * px)).Inverse().square(l.off(r)))
}

// good returns the links that are not bad, weighted by their precision.
func (f *Fit) good(links []Link) []Link {
	good, _ := f.kept(links)
	for i := range good {
		good[i].w = good[i].P
	}
	return good
}

// weigh sets the weights of links relative to the expected positions. The error of links follows from how much they
// contradict each other; the error of the expected positions follows from how much links deviate from them, up to most
// px.
func (f *Fit) weigh(links, held []Link, most float64) {
	good := f.good(links)
	f.join(good)
	if len(good) == 0 {
		return
	}
	differ := variance(misfits(make([][2]float64, len(f.R)), good))
	free := 0.0 // positions that follow the links
	for t, g := range f.group {
		if g != t {
			free++
		}
	}
	n := float64(len(good))
	far := misfits(f.R, good)
	follow := n / max(n-free, n/10)
	for range rounds {
		noise := follow * variance(far)
		f.Noise = math.Sqrt(max(follow*variance(counted(f.R, good)), 1))
		f.Stage = math.Sqrt(min(max((differ-noise)/2, leastStage*leastStage), most*most))
		for i := range good {
			good[i].w = good[i].P.Scaled(1 / (f.Noise * f.Noise))
		}
		for i := range held {
			held[i].w = Diagonal(1 / (2 * f.Stage * f.Stage))
		}
		solve(f.R, slices.Concat(good, held), 1/(f.Stage*f.Stage))
		info := f.Stage * f.Stage * 2 * n / float64(len(f.R)) // of the links of a tile against that of its place, times noise
		follow = n / max(n-free*info/(info+noise), n/10)
		far = misfits(f.R, good)
	}
}

// join finds the groups that links connect.
func (f *Fit) join(links []Link) {
	f.group = groups(len(f.R), links)
	f.size = make([]int, len(f.R))
	for _, g := range f.group {
		f.size[g]++
	}
}

// Connected returns the number of tiles to which links connect a tile, itself included.
func (f *Fit) Connected(tile int) int { return f.size[f.group[tile]] }

// Largest returns a tile of the largest group.
func (f *Fit) Largest() int {
	best := 0
	for t := range f.group {
		if f.Connected(t) > f.Connected(best) {
			best = t
		}
	}
	return best
}

// Group returns a tile of the group that links connect a tile to, the same for all of them.
func (f *Fit) Group(tile int) int { return f.group[tile] }

// SameGroup reports whether links connect two tiles.
func (f *Fit) SameGroup(a, b int) bool { return f.group[a] == f.group[b] }

func (l *Link) misfit(r [][2]float64) float64 {
	d := l.off(r)
	return math.Hypot(d[0], d[1])
}

// off returns the difference (y, x) in px between the displacement of a link's tiles at the positions r and the link.
func (l *Link) off(r [][2]float64) [2]float64 {
	return [2]float64{r[l.B][0] - r[l.A][0] - l.D[0], r[l.B][1] - r[l.A][1] - l.D[1]}
}

func misfits(r [][2]float64, links []Link) []float64 {
	out := make([]float64, len(links))
	for i := range links {
		out[i] = links[i].misfit(r)
	}
	return out
}

// counted returns misfits in units of the standard deviations of their links.
func counted(r [][2]float64, links []Link) []float64 {
	out := make([]float64, len(links))
	for i := range links {
		out[i] = math.Sqrt(max(links[i].P.square(links[i].off(r)), 0))
	}
	return out
}

// variance returns the variance along an axis of vectors, robustly from their lengths: the median length of a plane
// normal distribution is 1.1774 σ.
func variance(lengths []float64) float64 {
	m := median(lengths) / 1.1774
	return m * m
}

// median returns the median, or 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return filter.MedianOf(v)
}
