package bias

import (
	"math"
	"sort"

	"strata/pkg/filter"
)

// profile counts the tissue of a plane. Bins are halved, so that both sums over bins and sums between the centres of
// bins can be formed.
type profile struct {
	n    []int64   // voxels of each half bin
	sums []float64 // of their values
}

// bins are the limits of histograms: equal bins from low to high.
type bins struct {
	n         int
	low, high float64
}

func (p *plan) bins() bins {
	t := p.opt.Threshold
	return bins{p.opt.Bins, t + max(1e-6, 1e-6*t), float64(p.high)}
}

func (b bins) width() float64           { return (b.high - b.low) / float64(b.n) }
func (b bins) centre(i float64) float64 { return b.low + float64((i+0.5)*b.width()) }

// count returns the profile of a plane: of the finite values above threshold.
func (b bins) count(plane []float32, threshold float32) profile {
	h := profile{make([]int64, 2*b.n), make([]float64, 2*b.n)}
	scale := float64(2*b.n) / (b.high - b.low)
	for _, v := range plane {
		if v > threshold && v <= math.MaxFloat32 {
			i := min(max(int((float64(v)-b.low)*scale), 0), 2*b.n-1)
			h.n[i]++
			h.sums[i] += float64(v)
		}
	}
	return h
}

// leastMatched is the number of tissue voxels without which histograms stay as they are.
const leastMatched = 500

// cumulate returns the share of the voxels of some planes up to each bin, and the number of these voxels.
func cumulate(n int, planes []profile) (shares []float64, total int64) {
	counts := make([]int64, n)
	for _, p := range planes {
		for i := range counts {
			counts[i] += p.n[2*i] + p.n[2*i+1]
		}
	}
	shares = make([]float64, n)
	for i, c := range counts {
		total += c
		shares[i] = float64(total)
	}
	for i := range shares {
		shares[i] /= float64(max(total, 1))
	}
	return shares, total
}

// table maps values of one histogram to values of another. It interpolates linearly between the centres of bins.
type table []float64

// newTable returns the table from a histogram to the reference, both as cumulative shares.
func newTable(b bins, own, reference []float64) table {
	t := make(table, b.n)
	for i, share := range own {
		j := sort.Search(b.n, func(k int) bool { return reference[k] > share }) - 1
		switch {
		case j < 0:
			t[i] = b.centre(0)
		case j == b.n-1:
			t[i] = b.centre(float64(j))
		default:
			t[i] = b.centre(float64(j) + (share-reference[j])/(reference[j+1]-reference[j]))
		}
	}
	return t
}

// sum returns the sum of the mapped values of a plane.
func (t table) sum(b bins, p profile) (sum float64) {
	last := 2*b.n - 1
	sum = float64(t[0]*float64(p.n[0])) + float64(t[b.n-1]*float64(p.n[last]))
	for i := 1; i < b.n; i++ { // between the centres of bins i−1 and i
		n, s := float64(p.n[2*i-1]+p.n[2*i]), p.sums[2*i-1]+p.sums[2*i]
		slope := (t[i] - t[i-1]) / b.width()
		sum += float64(n*(t[i-1]-float64(slope*b.centre(float64(i-1))))) + float64(slope*s)
	}
	return sum
}

// tables holds the changes of intensity that are applied to each plane before fields are fitted.
type tables struct {
	bins
	threshold float32
	maps      []table   // by plane; nil: values stay
	gains     []float64 // by plane
}

// match makes the tables of all planes.
func (p *plan) match() {
	b := p.bins()
	t := tables{bins: b, threshold: float32(p.opt.Threshold), maps: make([]table, p.Shape[0]), gains: make([]float64, p.Shape[0])}
	if !(b.high > b.low) {
		p.opt.Match = false
	}
	if p.opt.Match {
		reference, _ := cumulate(b.n, p.histograms)
		units := p.sections
		if p.opt.MatchPlanes {
			units = nil
			for z := range p.Shape[0] {
				units = append(units, [2]int{z, z + 1})
			}
		}
		for _, u := range units {
			own, n := cumulate(b.n, p.histograms[u[0]:u[1]])
			if n < leastMatched {
				continue
			}
			m := newTable(b, own, reference)
			for z := u[0]; z < u[1]; z++ {
				t.maps[z] = m
			}
		}
	}
	t.level(p.histograms, p.opt.ProfileSigma)
	p.tables = t
}

// level sets the gains that smooth the mean of the tissue along z, over the planes that have enough of it.
func (t *tables) level(planes []profile, sigma float64) {
	const leastVoxels, leastPlanes = 100, 3
	for z := range t.gains {
		t.gains[z] = 1
	}
	var valid []int
	var means []float64
	for z, h := range planes {
		n, sum := int64(0), 0.0
		for i, c := range h.n {
			n += c
			sum += h.sums[i]
		}
		if n < leastVoxels {
			continue
		}
		if t.maps[z] != nil {
			sum = t.maps[z].sum(t.bins, h)
		}
		valid, means = append(valid, z), append(means, sum/float64(n))
	}
	if sigma <= 0 || len(valid) < leastPlanes {
		return
	}
	kernel := filter.GaussianKernel(sigma, 0)
	for i, z := range valid {
		target := 0.0
		for k, w := range kernel {
			target += float64(w * means[filter.Reflect.Index(i+k-len(kernel)/2, len(means))])
		}
		if means[i] > 0 {
			t.gains[z] = target / means[i]
		}
	}
}

// apply changes values of plane z in place.
func (t *tables) apply(z int, values []float32) {
	m, gain := t.maps[z], t.gains[z]
	if m == nil && gain == 1 {
		return
	}
	scale, last := 1/t.width(), len(m)-1
	for i, v := range values {
		if !(v > t.threshold && v <= math.MaxFloat32) {
			continue
		}
		to := float64(v)
		if m != nil {
			at := float64((to-t.low)*scale) - 0.5
			if k := int(at); at <= 0 {
				to = m[0]
			} else if k >= last {
				to = m[last]
			} else {
				to = m[k] + float64((m[k+1]-m[k])*(at-float64(k)))
			}
		}
		values[i] = float32(to * gain)
	}
}
