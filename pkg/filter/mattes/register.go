package mattes

import (
	"errors"
	"fmt"
	"math"
)

// Options are the parameters of [Register].
type Options struct {
	Rotation   Vec // start, in radians
	Iterations int // maximum number of steps of each level; 0: 1000
	Samples    int // maximum number of samples of the fixed image; 0: 300 000
	// Each calls f for 0 to n−1, possibly at the same time. nil: one after the other.
	Each func(n int, f func(i int) error) error
}

// Result holds the transform that [Register] found, and how well it fits.
type Result struct {
	Euler
	Information   float64 // mutual information at the end
	Before        float64 // at the start, on the finest level
	Share         float64 // of the samples that lie in the moving image
	Iterations    int
	StepConverged bool // the last level ended because its steps had become small
	Restarted     bool // the last level began at the start again, because what coarser ones had found is worse there
}

// pyramid lists the levels: every n-th voxel of images that a Gaussian of sigma voxels has smoothed.
var pyramid = []struct {
	n     int
	sigma float64
}{{8, 4}, {4, 2}, {2, 1}, {1, 1}}

// leastShare is the least share of the samples that must lie in the moving image.
const leastShare = 0.1

// errApart is returned for images that do not overlap.
var errApart = errors.New("the volume and the template hardly overlap: give a nearer --initial_rotation or the right orientation")

// Bytes returns the memory that [Register] needs beside its volumes.
func Bytes(fixed, moving [3]int, o Options) int64 {
	n := func(s [3]int) float64 { return float64(s[0]) * float64(s[1]) * float64(s[2]) }
	samples := float64(o.withDefaults().Samples)
	return int64(min(4*(1.6*n(fixed)+1.6*n(moving))+samples*(24+1+16+8)+samples/block*22000, math.MaxInt64/2))
}

func (o Options) withDefaults() Options {
	if o.Iterations == 0 {
		o.Iterations = 1000
	}
	if o.Samples == 0 {
		o.Samples = 300_000
	}
	if o.Each == nil {
		o.Each = func(n int, f func(i int) error) error {
			for i := range n {
				if err := f(i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return o
}

// Register finds the transform that maps points of the fixed image to those of the moving one. It starts with the
// centres of the voxels above 0 on each other, turned by o.Rotation, and climbs along the gradient of the mutual
// information on four levels, from every eighth voxel to all. The result is not worse than the start. Rotations are
// about the fixed image's centre and scaled so that a step moves voxels by about its length. The result does not depend
// on how Each calls. Errors say why there is no result.
func Register(fixed, moving *Volume, o Options) (*Result, error) {
	o = o.withDefaults()
	start, err := Start(fixed, moving, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Euler: start}
	for i := range pyramid {
		m, voxel, err := onLevel(fixed, moving, i, o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if err := r.restart(m, start); err != nil {
				return nil, err
			}
		}
		if err := r.climb(m, voxel, o.Iterations); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Start returns the transform at which [Register] starts: the centres of the voxels above 0 on each other, turned by
// o.Rotation.
func Start(fixed, moving *Volume, o Options) (Euler, error) {
	a, okFixed := fixed.centroid()
	b, okMoving := moving.centroid()
	if !okFixed || !okMoving {
		return Euler{}, fmt.Errorf("the volume or the template has no voxel above 0")
	}
	e := Euler{Angles: o.Rotation, Centre: a}
	for d := range b {
		e.Translation[d] = b[d] - a[d]
	}
	return e, nil
}

// Information returns the mutual information of two images under a transform, as [Register] measures it on its finest
// level, and the share of the fixed image's samples that lie in the moving one.
func Information(fixed, moving *Volume, e *Euler, o Options) (value, share float64, err error) {
	m, _, err := onLevel(fixed, moving, len(pyramid)-1, o.withDefaults())
	if err != nil {
		return 0, 0, err
	}
	value, _, _, share, err = m.evaluate(e)
	return value, share, err
}

// onLevel returns the metric on a level, and the length of the fixed image's voxels there.
func onLevel(fixed, moving *Volume, level int, o Options) (*metric, float64, error) {
	f, err := fixed.shrink(pyramid[level].n, pyramid[level].sigma, o.Each)
	if err != nil {
		return nil, 0, err
	}
	g, err := moving.shrink(pyramid[level].n, pyramid[level].sigma, o.Each)
	if err != nil {
		return nil, 0, err
	}
	m, err := newMetric(f, g, o.Samples, o.Each)
	return m, max(f.Spacing[0], f.Spacing[1], f.Spacing[2]), err
}

// restart goes back to the start of the registration where a level shows that it is better than what coarser levels
// found: in volumes of a few voxels these show little. Levels climb, so the result is never worse than the start.
func (r *Result) restart(m *metric, start Euler) (err error) {
	now, _, _, _, err := m.evaluate(&r.Euler)
	if err != nil {
		return err
	}
	var share float64
	if r.Before, _, _, share, err = m.evaluate(&start); err != nil {
		return err
	}
	if r.Restarted = r.Before > now && share >= leastShare; r.Restarted {
		r.Euler = start
	}
	return nil
}

// scaled is a metric as a function of six lengths: the angles times a radius, and the translation.
type scaled struct {
	*metric
	centre Vec
	radius float64
}

func newScaled(m *metric, centre Vec) *scaled {
	s := &scaled{metric: m, centre: centre}
	for _, p := range m.points {
		for d := range p {
			s.radius += (p[d] - centre[d]) * (p[d] - centre[d])
		}
	}
	s.radius = math.Sqrt(s.radius / float64(len(m.points)))
	return s
}

// euler returns the transform of six lengths.
func (s *scaled) euler(x [6]float64) (e Euler) {
	e.Centre = s.centre
	for d := range 3 {
		e.Angles[d], e.Translation[d] = x[d]/s.radius, x[3+d]
	}
	return e
}

func (s *scaled) at(x [6]float64) (value float64, slope [6]float64, share float64, err error) {
	e := s.euler(x)
	value, angles, translation, share, err := s.evaluate(&e)
	for d := range 3 {
		slope[d], slope[3+d] = angles[d]/s.radius, translation[d]
	}
	if err == nil && share < leastShare {
		err = errApart
	}
	return value, slope, share, err
}

// climb moves the transform to a maximum of the metric: by regular steps, the first of the length of a voxel and the
// last of an eighth, then by quasi-Newton steps (BFGS).
func (r *Result) climb(m *metric, voxel float64, iterations int) error {
	s := newScaled(m, r.Centre)
	var x, before [6]float64
	for d := range 3 {
		x[d], x[3+d] = r.Angles[d]*s.radius, r.Translation[d]
	}
	value, slope, _, err := s.at(x)
	if err != nil {
		return err
	}
	best, bestAt := value, x
	used := 0
	for step := voxel; step >= voxel/8 && used < iterations; used++ {
		length := math.Sqrt(dot(slope, slope))
		if !(length > 1e-12) {
			break
		}
		for k := range x {
			x[k] += step * slope[k] / length
		}
		before = slope
		if value, slope, _, err = s.at(x); err != nil {
			return err
		}
		if value > best {
			best, bestAt = value, x
		}
		if dot(slope, before) < 0 {
			step /= 2
		}
	}
	x, n, converged, err := s.newton(bestAt, voxel, iterations-used)
	if err != nil {
		return err
	}
	r.Euler = s.euler(x)
	r.Iterations += used + n
	r.StepConverged = converged
	r.Information, _, r.Share, err = s.at(x)
	return err
}

func dot(a, b [6]float64) (sum float64) {
	for k := range a {
		sum += a[k] * b[k]
	}
	return sum
}

// newton climbs by the method of Broyden, Fletcher, Goldfarb and Shanno until a step is shorter than a thousandth of a
// voxel or nothing is gained along it.
func (s *scaled) newton(x [6]float64, voxel float64, iterations int) (_ [6]float64, n int, converged bool, err error) {
	value, slope, _, err := s.at(x)
	if err != nil {
		return x, 0, false, err
	}
	var h [6][6]float64 // of the inverse of the negative second derivatives
	reset := func() {
		h = [6][6]float64{}
		for k := range h {
			h[k][k] = 0.1 * voxel / math.Sqrt(dot(slope, slope))
		}
	}
	reset()
	fresh := true
	for ; n < iterations; n++ {
		var step [6]float64
		for i := range h {
			step[i] = dot(h[i], slope)
		}
		if !(dot(step, slope) > 0) {
			return x, n, true, nil
		}
		if length := math.Sqrt(dot(step, step)); length > voxel/2 { // no further than the images are alike
			for k := range step {
				step[k] *= voxel / 2 / length
			}
		}
		next, nextValue, nextSlope := x, value, slope
		t := 1.0
		for ; t > 1e-3; t /= 2 {
			for k := range x {
				next[k] = x[k] + t*step[k]
			}
			if nextValue, nextSlope, _, err = s.at(next); err != nil {
				return x, n, false, err
			}
			if nextValue > value {
				break
			}
		}
		if !(nextValue > value) {
			if fresh {
				return x, n, true, nil
			}
			fresh = true
			reset()
			continue
		}
		var d, y [6]float64
		for k := range d {
			d[k], y[k] = next[k]-x[k], slope[k]-nextSlope[k]
		}
		x, value, slope = next, nextValue, nextSlope
		if math.Sqrt(dot(d, d)) < 1e-3*voxel {
			return x, n, true, nil
		}
		fresh = false
		if c := dot(d, y); c > 1e-12*math.Sqrt(dot(d, d)*dot(y, y)) {
			update(&h, d, y, c)
		}
	}
	return x, n, false, nil
}

// update is the BFGS update of an inverse for a step d that changes the slope by y; c is their product.
func update(h *[6][6]float64, d, y [6]float64, c float64) {
	var hy [6]float64
	for i := range h {
		hy[i] = dot(h[i], y)
	}
	yhy := dot(y, hy)
	for i := range h {
		for j := range h {
			h[i][j] += (1+yhy/c)*d[i]*d[j]/c - (d[i]*hy[j]+hy[i]*d[j])/c
		}
	}
}
