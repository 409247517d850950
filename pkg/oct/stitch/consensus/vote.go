package consensus

import (
	"cmp"
	"math"
	"slices"
)

// Pair is two neighbouring tiles with the displacements at which they may overlap.
type Pair struct {
	A, B       int
	Axis       int         // 0: B is below A; 1: right of it
	Candidates []Candidate // best first
	Area       float64     // in which they were looked for, px²
	Unit       float64     // chance's standard deviation of what scores are made of
}

// Candidate is a displacement of a pair's second tile from the first.
type Candidate struct {
	D     [2]float64 // (y, x) in px
	Score float64    // by how many standard deviations of chance the tiles agree there
	Width Sym        // covariance of the displacements around it at which they agree nearly as well, px²
}

// Steps are the displacements (y, x) in px of neighbouring tiles along the axes of the grid.
type Steps [2][2]float64

// Chance holds the scores that occur by chance, for tiles that do not overlap.
type Chance struct{ Half, Most float64 } // by half of them; by nearly all

// ChanceOf returns the scores that occur by chance, from the candidates of strangers: pairs of tiles that do not
// overlap.
func ChanceOf(strangers []Pair, axis int) Chance {
	var s []float64
	for _, p := range votersOf(strangers, axis) {
		s = append(s, p.Candidates[0].Score)
	}
	if len(s) == 0 {
		return Chance{2.5, leastScoreAlone}
	}
	slices.Sort(s)
	return Chance{s[len(s)/2], max(leastScore, 1.2*s[len(s)*9/10])}
}

// leastScore is the least score of a candidate that says something alone, and leastScoreAlone where no strangers are
// there to compare with.
const leastScore, leastScoreAlone = 3, 4.5

const (
	// mostVoters is the maximum number of pairs along an axis that vote for the common displacement.
	mostVoters = 200
	// mostHypotheses is the maximum number of displacements along an axis that are voted for.
	mostHypotheses = 600
	// finalists is the maximum number of displacements along an axis of which pairs (y, x) are formed.
	finalists = 12
	// honest is the part of the pairs that are thought to have their true displacement among their candidates.
	honest = 0.8
)

// Verdict is the common displacement along an axis.
type Verdict struct {
	Votes   float64 // logarithm of the likelihood ratio against pairs that agree by chance
	Scatter float64 // standard deviation of the pairs from it, px along an axis
}

// Vote finds the common displacement along each axis: the one that makes the candidates of all pairs most likely, if
// true candidates scatter normally around it and all others uniformly. It prefers displacements that the expected ones
// become by one rotation and scale (axes of microscopes have equal scales within 2 % and are square within 2°), and
// those near the expected ones. least is the minimum scatter in px.
func Vote(pairs []Pair, chance [2]Chance, expected Steps, least float64) (Steps, [2]Verdict) {
	var best [2][]hypothesis
	for axis := range best {
		best[axis] = hypotheses(thinned(votersOf(pairs, axis), mostVoters), chance, expected[axis], least)
	}
	top := math.Inf(-1)
	steps, verdicts := expected, [2]Verdict{}
	for _, y := range orExpected(best[0], expected[0]) {
		for _, x := range orExpected(best[1], expected[1]) {
			known := [2]bool{y.votes > 0, x.votes > 0}
			s := y.votes + x.votes - strain(Steps{y.d, x.d}, expected, known)
			if s > top {
				top, steps = s, Steps{y.d, x.d}
				for axis, h := range []hypothesis{y, x} {
					verdicts[axis] = Verdict{h.votes, h.scatter}
				}
			}
		}
	}
	return steps, verdicts
}

// hypothesis is a common displacement.
type hypothesis struct {
	d       [2]float64
	scatter float64
	votes   float64
}

func orExpected(h []hypothesis, expected [2]float64) []hypothesis {
	return append(h, hypothesis{d: expected})
}

// votersOf returns the pairs of an axis that have candidates.
func votersOf(pairs []Pair, axis int) (out []Pair) {
	for _, p := range pairs {
		if p.Axis == axis && len(p.Candidates) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// thinned returns at most n elements, evenly spread.
func thinned[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	out := make([]T, n)
	for k := range out {
		out[k] = all[k*len(all)/n]
	}
	return out
}

// votes returns the probability of each candidate of a pair to be the true one: by the squares of their scores, and
// less in all where the best is no better than chance.
func (p *Pair) votes(chance Chance) []float64 {
	out := make([]float64, len(p.Candidates))
	best, sum := p.Candidates[0].Score, 0.0
	for k, c := range p.Candidates {
		out[k] = (c.Score / best) * (c.Score / best)
		sum += out[k]
	}
	weight := min(max((best-chance.Half)/(chance.Most-chance.Half+0.5), 0.05), 1) / sum
	for k := range out {
		out[k] *= weight
	}
	return out
}

// VoteOffset finds by how much the second tiles of all pairs lie farther from the first than they are thought to, where
// the pairs' candidates are relative to that: see [Vote].
func VoteOffset(pairs []Pair, chance [2]Chance, least float64) ([2]float64, Verdict) {
	voters := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return len(p.Candidates) == 0 })
	all := hypotheses(thinned(voters, mostVoters), chance, [2]float64{}, least)
	if len(all) == 0 {
		return [2]float64{}, Verdict{}
	}
	return all[0].d, Verdict{all[0].votes, all[0].scatter}
}

// hypotheses returns the common displacements with the most votes, none within the scatter of a better one.
func hypotheses(voters []Pair, chance [2]Chance, expected [2]float64, least float64) (out []hypothesis) {
	var centres [][2]float64
	votes := make([][]float64, len(voters))
	for i := range voters {
		votes[i] = voters[i].votes(chance[voters[i].Axis])
		for _, c := range voters[i].Candidates {
			centres = append(centres, c.D)
		}
	}
	var tried []hypothesis
	for _, d := range append(thinned(centres, mostHypotheses), expected) {
		best := hypothesis{d: d}
		for scatter := least; scatter < 20*least; scatter *= 2 {
			if h := (hypothesis{d, scatter, likelihood(voters, votes, d, scatter)}); h.votes > best.votes {
				best = h
			}
		}
		if best.votes > 0 {
			tried = append(tried, best)
		}
	}
	slices.SortStableFunc(tried, func(a, b hypothesis) int { return cmp.Compare(b.votes, a.votes) })
	for _, h := range tried {
		near := slices.ContainsFunc(out, func(o hypothesis) bool {
			return math.Hypot(o.d[0]-h.d[0], o.d[1]-h.d[1]) < 2*o.scatter
		})
		if !near && len(out) < finalists {
			out = append(out, h)
		}
	}
	for k := range out {
		out[k].climb(voters, votes)
	}
	slices.SortStableFunc(out, func(a, b hypothesis) int { return cmp.Compare(b.votes, a.votes) })
	return out
}

// climb moves a hypothesis to where more candidates put it: to their mean, weighted by the probabilities that they
// belong to it.
func (h *hypothesis) climb(voters []Pair, votes [][]float64) {
	for range 4 {
		var precision Sym
		var sum [2]float64
		for i := range voters {
			all := voters[i].agreement(votes[i], h.d, h.scatter)
			for j, c := range voters[i].Candidates {
				p := c.Width.Add(Diagonal(h.scatter * h.scatter)).Inverse()
				w := p.Scaled(votes[i][j] * c.density(h.d, h.scatter) * voters[i].Area / all)
				v := w.times(c.D)
				precision, sum = precision.Add(w), [2]float64{sum[0] + v[0], sum[1] + v[1]}
			}
		}
		if !(precision.Det() > 0) {
			return
		}
		next := *h
		next.d = precision.Inverse().times(sum)
		if next.votes = likelihood(voters, votes, next.d, h.scatter); !(next.votes > h.votes) {
			return
		}
		*h = next
	}
}

// density returns the probability density in 1/px² of a candidate if a common displacement is d.
func (c *Candidate) density(d [2]float64, scatter float64) float64 {
	v := c.Width.Add(Diagonal(scatter * scatter))
	far := v.Inverse().square([2]float64{c.D[0] - d[0], c.D[1] - d[1]})
	if far > 25 {
		return 0
	}
	return math.Exp(-far/2) / (2 * math.Pi * math.Sqrt(v.Det()))
}

// agreement returns how much likelier a pair's candidates are with a common displacement than without.
func (p *Pair) agreement(votes []float64, d [2]float64, scatter float64) float64 {
	agree, weight := 0.0, 0.0
	for j := range p.Candidates {
		weight += votes[j]
		agree += votes[j] * p.Candidates[j].density(d, scatter)
	}
	return 1 - honest*weight + honest*agree*p.Area
}

// likelihood returns the logarithm of how much likelier the candidates are with a common displacement than without.
func likelihood(voters []Pair, votes [][]float64, d [2]float64, scatter float64) float64 {
	sum := 0.0
	for i := range voters {
		sum += math.Log(voters[i].agreement(votes[i], d, scatter))
	}
	return sum
}

// strain returns how unlikely steps are of a microscope: minus the logarithm of a probability, up to a constant.
func strain(s, expected Steps, known [2]bool) float64 {
	// (scale, turn) of each axis against what is expected
	var of [2][2]float64
	for axis := range of {
		e, d := expected[axis], s[axis]
		n := e[0]*e[0] + e[1]*e[1]
		if !(n > 0) {
			return 0
		}
		of[axis] = [2]float64{(d[0]*e[0] + d[1]*e[1]) / n, (d[1]*e[0] - d[0]*e[1]) / n}
	}
	out := 0.0
	if known[0] && known[1] {
		scale, turn := (of[0][0]-of[1][0])/alike, (of[0][1]-of[1][1])/square
		out += min(20, (scale*scale+turn*turn)/2)
	}
	for axis := range of {
		if known[axis] {
			scale, turn := (of[axis][0]-1)/usual, of[axis][1]/usual
			out += min(3, (scale*scale+turn*turn)/2)
		}
	}
	return out
}

// Choose returns the index of the candidate to believe for each pair, or −1. Of the candidates that score nearly as
// well as the best, it takes the nearest to where(p), the expected displacement. A candidate that scores no better than
// chance counts only within near px of the expected displacement.
func Choose(pairs []Pair, chance [2]Chance, near float64, where func(p *Pair) [2]float64) []int {
	out := make([]int, len(pairs))
	for i := range pairs {
		p := &pairs[i]
		out[i] = -1
		nearest := math.Inf(1)
		at := where(p)
		for k, c := range p.Candidates {
			far := math.Hypot(c.D[0]-at[0], c.D[1]-at[1])
			sure := c.Score > chance[p.Axis].Most && c.Score > rival*p.Candidates[0].Score
			if far < nearest && (sure || far < near && c.Score > rival/2*p.Candidates[0].Score) {
				out[i], nearest = k, far
			}
		}
	}
	return out
}

// rival is the score, relative to the best, of a candidate that may be the true one: texture that repeats itself agrees
// nearly as well a period away.
const rival = 0.6
