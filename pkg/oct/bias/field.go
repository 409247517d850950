package bias

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/filter/n4"
	"strata/pkg/work"
)

// axis is the grid of every n-th voxel of an axis, each nearest to the middle of its block.
type axis struct{ first, step, n int }

func newAxis(length, step int) axis {
	if n := length / step; n > 0 {
		return axis{step / 2, step, n}
	}
	return axis{length / 2, step, 1}
}

func (a axis) at(i int) int { return a.first + i*a.step }

// samples holds the voxels to which fields are fitted: every Shrink-th one along y and x, in all planes that a field
// needs. [plan.logarithms] replaces them by the logarithms of their intensities, and by NaN outside the mask.
type samples struct {
	y, x     axis
	sections []axis // along z, each from the first plane of its section
	whole    axis
	planes   map[int][]float32 // by z
}

// newSamples returns the grids of a plan without voxels.
func newSamples(p *plan) samples {
	s := samples{y: newAxis(p.Shape[1], p.opt.Shrink), x: newAxis(p.Shape[2], p.opt.Shrink), planes: map[int][]float32{}}
	for i, section := range p.sections {
		s.sections = append(s.sections, newAxis(section[1]-section[0], p.opt.Shrink))
		for k := range s.sections[i].n {
			if p.opt.Mode != Global {
				s.planes[section[0]+s.sections[i].at(k)] = nil
			}
		}
	}
	s.whole = newAxis(p.Shape[0], p.opt.Shrink)
	for k := range s.whole.n {
		if p.opt.Mode != PerSection {
			s.planes[s.whole.at(k)] = nil
		}
	}
	return s
}

// bytes returns the memory of the samples.
func (s *samples) bytes() int64 {
	return capped(4 * float64(len(s.planes)) * float64(s.y.n) * float64(s.x.n))
}

// alloc makes room for the voxels.
func (s *samples) alloc() {
	for z := range s.planes {
		s.planes[z] = make([]float32, s.y.n*s.x.n)
	}
}

// take copies the samples of plane z if a field needs that plane.
func (s *samples) take(z int, plane []float32, nx int) {
	to := s.planes[z]
	for i := range to {
		to[i] = plane[s.y.at(i/s.x.n)*nx+s.x.at(i%s.x.n)]
	}
}

// logarithms replaces the samples by their logarithms, and by NaN outside the mask or where they are not positive.
func (p *plan) logarithms(ctx context.Context) error {
	list := slices.Sorted(keys(p.samples.planes))
	return work.Each(ctx, p.workers, len(list), func(_, i int) error {
		z, s := list[i], &p.samples
		plane, r := s.planes[z], p.mask.planes[z]
		p.tables.apply(z, plane)
		for k, v := range plane {
			at := uint32(s.y.at(k/s.x.n)*p.Shape[2] + s.x.at(k%s.x.n))
			if !r.has(at) || !(v > 0 && v <= math.MaxFloat32) {
				plane[k] = float32(math.NaN())
			}
		}
		filter.Ln(plane)
		return nil
	})
}

func keys(m map[int][]float32) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// fields holds the logarithms of the fitted fields, of the sections and of the volume; nil: not fitted.
type fields struct {
	sections []*bspline.Lattice
	whole    *bspline.Lattice
}

// options returns the parameters of a field over a depth of planes.
func (p *plan) options(depth int, samples [3]int, spline float64) n4.Options {
	if p.opt.SplineMM > 0 {
		spline = p.opt.SplineMM
	}
	o := n4.Options{Iterations: p.opt.Iterations}
	for d, n := range [3]int{depth, p.Shape[1], p.Shape[2]} {
		extent := float64(n) * p.Voxel[d] / 1000
		o.Control[d] = max(4, int(min(math.RoundToEven(extent/spline), float64(samples[d]+3))))
	}
	return o
}

// sectionOptions and wholeOptions return the size and the parameters of the fields.
func (p *plan) sectionOptions(i int) ([3]int, n4.Options) {
	n := [3]int{p.samples.sections[i].n, p.samples.y.n, p.samples.x.n}
	return n, p.options(p.sections[i][1]-p.sections[i][0], n, 2)
}

func (p *plan) wholeOptions() ([3]int, n4.Options) {
	n := [3]int{p.samples.whole.n, p.samples.y.n, p.samples.x.n}
	return n, p.options(p.Shape[0], n, 10)
}

// bytes returns the memory that fitting needs with a single worker for sections.
func (f *fields) bytes(p *plan) (most int64) {
	for i := range p.sections {
		if p.opt.Mode != Global {
			n, o := p.sectionOptions(i)
			most = max(most, n4.Bytes(n, o))
		}
	}
	if p.opt.Mode != PerSection {
		n, o := p.wholeOptions()
		most = max(most, n4.Bytes(n, o))
	}
	return most
}

// fit finds the fields.
func (p *plan) fit(ctx context.Context) error {
	if err := p.logarithms(ctx); err != nil {
		return err
	}
	p.fields.sections = make([]*bspline.Lattice, len(p.sections))
	if p.opt.Mode != Global {
		for i := range p.sections {
			if err := p.fitSection(ctx, i); err != nil {
				return err
			}
		}
	}
	if p.opt.Mode == PerSection {
		return nil
	}
	s := &p.samples
	var planes [][]float32
	for k := range s.whole.n {
		planes = append(planes, s.planes[s.whole.at(k)])
	}
	n, o := p.wholeOptions()
	lattice, err := p.fitTo(ctx, planes, n, o)
	p.fields.whole = lattice
	return err
}

// fitTo fits a field to planes with all workers.
func (p *plan) fitTo(ctx context.Context, planes [][]float32, n [3]int, o n4.Options) (*bspline.Lattice, error) {
	o.Each = func(n int, f func(i int) error) error {
		return work.Each(ctx, p.workers, n, func(_, i int) error { return f(i) })
	}
	return n4.Fit(planes, n[1], n[2], o)
}

// fitSection fits the field of a section and corrects its samples, also those that only the volume's field needs.
func (p *plan) fitSection(ctx context.Context, i int) error {
	s, first := &p.samples, p.sections[i][0]
	var planes [][]float32
	own := map[int]bool{}
	for k := range s.sections[i].n {
		z := first + s.sections[i].at(k)
		own[z] = true
		planes = append(planes, s.planes[z])
	}
	n, o := p.sectionOptions(i)
	before := meanOf(planes)
	lattice, err := p.fitTo(ctx, planes, n, o)
	if err != nil {
		return err
	}
	if drift := before - meanOf(planes); drift == drift { // sections stay as bright as the matching made them
		for k := range lattice.Values {
			lattice.Values[k] -= drift
		}
		for _, plane := range planes {
			for k := range plane {
				plane[k] += float32(drift)
			}
		}
	}
	p.fields.sections[i] = lattice
	var rest []int
	for z := first; z < p.sections[i][1]; z++ {
		if s.planes[z] != nil && !own[z] {
			rest = append(rest, z)
		}
	}
	return work.Each(ctx, p.workers, len(rest), func(_, k int) error {
		plane := s.planes[rest[k]]
		row := p.evaluator(lattice, rest[k]-first, s.sections[i], s.x)
		for y := range s.y.n {
			line := plane[y*s.x.n:][:s.x.n]
			for x, v := range row(s.y.at(y)) {
				line[x] -= float32(v)
			}
		}
		return nil
	})
}

// meanOf returns the mean of the numbers in planes, NaN of none.
func meanOf(planes [][]float32) float64 {
	sum, n := 0.0, 0
	for _, plane := range planes {
		for _, v := range plane {
			if v == v {
				sum += float64(v)
				n++
			}
		}
	}
	return sum / float64(n)
}

// between returns the samples around a voxel of the volume, and the weight of the second; beyond the grid both are its
// edge.
func (a axis) between(voxel int) (i, j int, t float64) {
	at := min(max(float64(voxel-a.first)/float64(a.step), 0), float64(a.n-1))
	i = int(at)
	return i, min(i+1, a.n-1), at - float64(i)
}

// place is the position of a voxel between samples: a fraction t of the distance from sample i to sample j.
type place struct {
	i, j int32
	t    float64
}

// mix replaces a by the linear interpolation between a and b at the fraction t.
func mix(a, b []float64, t float64) {
	for i, v := range a {
		a[i] = v + float64((b[i]-v)*t)
	}
}

// evaluator returns a function for rows of a log field in plane z of its section or volume: at voxel y, and the voxels
// of across. Between samples the field is linear: a lattice may be finer than these.
func (p *plan) evaluator(l *bspline.Lattice, z int, along, across axis) func(y int) []float64 {
	g := &p.samples
	var plane [2][]float64
	i, j, t := along.between(z)
	taps := l.Taps(0, along.n, 0, 1)
	for k, at := range [2]int{i, j} {
		plane[k] = make([]float64, l.Control[1]*l.Control[2])
		l.Plane(plane[k], taps[at])
	}
	mix(plane[0], plane[1], t)
	row, other := make([]float64, l.Control[2]), make([]float64, l.Control[2])
	down, right := l.Taps(1, g.y.n, 0, 1), l.Taps(2, g.x.n, 0, 1)
	coarse, out, places := make([]float64, g.x.n), make([]float64, across.n), make([]place, across.n)
	for k := range places {
		i, j, t := g.x.between(across.at(k))
		places[k] = place{int32(i), int32(j), t}
	}
	return func(y int) []float64 {
		i, j, t := g.y.between(y)
		bspline.Row(row, plane[0], down[i])
		bspline.Row(other, plane[0], down[j])
		mix(row, other, t)
		for k := range coarse {
			coarse[k] = bspline.At(row, &right[k])
		}
		for k := range out {
			p := &places[k]
			a := coarse[p.i]
			out[k] = a + float64((coarse[p.j]-a)*p.t)
		}
		return out
	}
}
