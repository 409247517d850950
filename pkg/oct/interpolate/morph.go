package interpolate

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// Reasons why ZMorph makes no volume.
const (
	NoForeground   = "no_foreground_planes"
	LowOverlap     = "low_overlap_ncc"
	NotRegistered  = "registration_exception"
	NotPositive    = "affine_determinant_non_positive"
	Implausible    = "affine_implausible"
	maxElement     = 0.1  // largest difference of an element of a map's matrix from that of the identity
	maxTranslation = 0.25 // largest translation of a map, in parts of the plane
)

// Found holds the measurements of ZMorph on the two sides of a gap; NaN where there is none.
type Found struct {
	RefBefore, RefAfter int // the most similar planes, counted from the first plane of the output and of the volume after the gap; −1: none

	PlaneNCC      float64        // normalised cross-correlation of these planes
	IdentityNCC   float64        // of slabs around them
	RegisteredNCC float64        // of the slabs after registration
	Registered    bool           // the registered map is used, and not the identity
	Map           *filter.Affine // that is used: from points after the gap to points before it
	Imaginary     float64        // largest imaginary part of its powers
	Residual      [2]float64     // mean difference of the moved planes from those at the top and the bottom of the gap
}

// registrationBytes is the memory per pixel that the registration needs: slabs, the moved slab and two centres.
const registrationBytes = filter.AffineFitBytes + 6*4

// morph finds the map between the two sides, and decides.
func (p *Plan) morph(ctx context.Context, res oct.Resources) error {
	ny, nx, nz := p.Shape[1], p.Shape[2], p.Shape[0]
	half := p.SlabSize / 2
	deep := min(nz, max(1, p.SearchWindow)+half)
	area := mem.Product(ny, nx)
	voxel := [3]int{1, 1, 1}
	stored := max(p.before.Scratch(voxel), p.after.Scratch(voxel))
	if need := int64(mem.Product(area, mem.Sum(mem.Product(deep, 12+stored), registrationBytes))); need > res.Mem {
		return res.TooLittle(need, "comparing %d planes of %d × %d pixels before and after the gap", deep, ny, nx)
	}
	before, err := planesOf(ctx, p.before, p.before.Shape[0]-deep, p.before.Shape[0], ny, nx, res)
	if err != nil {
		return err
	}
	after, err := planesOf(ctx, p.after, 0, deep, ny, nx, res)
	if err != nil {
		return err
	}
	p.ends = [2][]float32{before[deep-1], after[0]}
	nan := math.NaN()
	f := &Found{RefBefore: -1, RefAfter: -1, PlaneNCC: nan, IdentityNCC: nan, RegisteredNCC: nan}
	p.Found = f
	window := min(nz, max(1, p.SearchWindow))
	rb, ra, err := p.reference(ctx, before[deep-window:], after[:window], f, res)
	if err != nil {
		return err
	}
	if rb < 0 {
		p.Skipped = NoForeground
		return nil
	}
	rb += deep - window
	f.RefBefore, f.RefAfter = rb+nz-deep, ra
	if !(f.PlaneNCC >= p.MinCorrelation) {
		p.Skipped = LowOverlap
		return nil
	}
	p.Skipped = p.register(slab(before, rb, half), slab(after, ra, half), f)
	if p.Skipped != "" {
		return nil
	}
	for z := range nz {
		_, lost := f.Map.Power(alpha(z, nz))
		f.Imaginary = max(f.Imaginary, lost)
	}
	p.residuals(f)
	return nil
}

// mostCompared is the maximum number of planes that are looked at at a time, with the memory that the registration
// needs later.
const mostCompared = 4

// reference finds the most similar pair of planes of enough foreground, and its correlation; −1 if there is none.
func (p *Plan) reference(ctx context.Context, before, after [][]float32, f *Found, res oct.Resources) (rb, ra int, err error) {
	ny, nx := p.Shape[1], p.Shape[2]
	planes := slices.Concat(before, after)
	centres := make([][]float32, len(planes))
	err = work.Each(ctx, min(res.Workers, mostCompared), len(planes), func(_, i int) error {
		if foreground(planes[i]) >= p.MinForeground {
			centres[i] = centre(planes[i], ny, nx)
		}
		return nil
	})
	b, a := centres[:len(before)], centres[len(before):]
	rb, ra = -1, -1
	for i, u := range b {
		for j, v := range a {
			if u == nil || v == nil {
				continue
			}
			if r := filter.NCC(u, v); rb < 0 || r > f.PlaneNCC {
				rb, ra, f.PlaneNCC = i, j, r
			}
		}
	}
	return rb, ra, err
}

// foreground returns the share of a plane's pixels above the 1st percentile of the positive ones.
func foreground(v []float32) float64 {
	limit := filter.Percentiles(positive(v), 1)[0]
	n := 0
	for _, f := range v {
		if float64(f) > limit {
			n++
		}
	}
	return float64(n) / float64(len(v))
}

// positive returns the pixels above 0.
func positive(v []float32) []float32 {
	out := make([]float32, 0, len(v))
	for _, f := range v {
		if f > 0 {
			out = append(out, f)
		}
	}
	return out
}

// centre returns the middle of a plane without a quarter of its shorter side all round, with the 5th percentile of its
// positive pixels as 0 and the 95th as 1, clipped.
func centre(v []float32, ny, nx int) []float32 {
	cut := min(ny, nx) / 4
	out := make([]float32, 0, max(ny-2*cut, 0)*max(nx-2*cut, 0))
	for y := cut; y < ny-cut; y++ {
		out = append(out, v[y*nx+cut:(y+1)*nx-cut]...)
	}
	limits := filter.Percentiles(positive(out), 5, 95)
	scale := limits[1] - limits[0]
	for i, f := range out {
		if out[i] = 0; scale > 0 && f == f {
			out[i] = float32(min(max((float64(f)-limits[0])/scale, 0), 1))
		}
	}
	return out
}

// slab returns the mean of the planes around plane z, scaled to 0…1. NaN counts as 0.
func slab(planes [][]float32, z, half int) []float32 {
	out := make([]float32, len(planes[0]))
	from, to := max(0, z-half), min(len(planes), z+half+1)
	for _, v := range planes[from:to] {
		for i, f := range v {
			if f == f {
				out[i] += f / float32(to-from)
			}
		}
	}
	lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, f := range out {
		lo, hi = min(lo, f), max(hi, f)
	}
	for i, f := range out {
		if out[i] = 0; hi > lo {
			out[i] = (f - lo) / (hi - lo)
		}
	}
	return out
}

// register finds the map between the slabs and decides whether to use it; it returns why not to interpolate.
func (p *Plan) register(before, after []float32, f *Found) string {
	ny, nx := p.Shape[1], p.Shape[2]
	to := centre(after, ny, nx)
	f.IdentityNCC = filter.NCC(centre(before, ny, nx), to)
	cb, ca := massCentre(before, ny, nx), massCentre(after, ny, nx)
	start := filter.Identity(ca)
	start.T = [2]float64{cb[0] - ca[0], cb[1] - ca[1]}
	a, ok := filter.FitAffine(after, before, ny, nx, start, p.Metric, p.MaxIterations)
	if !ok {
		return NotRegistered
	}
	moved := make([]float32, ny*nx)
	a.Resample(moved, before, ny, nx, 0, ny, 0, nx, 0)
	f.RegisteredNCC = filter.NCC(centre(moved, ny, nx), to)
	best, used := f.IdentityNCC, filter.Identity(ca)
	if f.RegisteredNCC > f.IdentityNCC && f.RegisteredNCC-f.IdentityNCC >= p.MinNCCImprovement {
		f.Registered, best, used = true, f.RegisteredNCC, a
	}
	f.Map = &used
	switch {
	case !(best >= p.MinCorrelation):
		return LowOverlap
	case !(used.Determinant() > 0):
		return NotPositive
	case !plausible(used, ny, nx):
		return Implausible
	}
	return ""
}

// plausible reports whether a map can be the change between neighbouring slices.
func plausible(a filter.Affine, ny, nx int) bool {
	for i, row := range a.M {
		for j, v := range row {
			if i == j {
				v--
			}
			if !(math.Abs(v) <= maxElement) {
				return false
			}
		}
	}
	return math.Hypot(a.T[0], a.T[1]) <= maxTranslation*float64(min(ny, nx))
}

// massCentre returns the centre of mass (x, y) of a plane, or its middle if it is empty.
func massCentre(v []float32, ny, nx int) [2]float64 {
	var sum, sx, sy float64
	for y := range ny {
		for x, f := range v[y*nx:][:nx] {
			w := float64(f)
			sum, sx, sy = sum+w, sx+float64(w*float64(x)), sy+float64(w*float64(y))
		}
	}
	if !(sum > 0) {
		return [2]float64{float64(nx-1) / 2, float64(ny-1) / 2}
	}
	return [2]float64{sx / sum, sy / sum}
}

// alpha returns the position of plane z of nz in the gap, as a fraction of the distance from the plane before to the
// plane after the gap.
func alpha(z, nz int) float64 {
	if nz == 1 {
		return 0.5
	}
	return float64(z) / float64(nz-1)
}

// residuals compares the moved planes at the ends of the output with those at the ends of the gap.
func (p *Plan) residuals(f *Found) {
	m := p.morphed()
	nz := p.Shape[0]
	moved := make([]float32, len(p.ends[0]))
	for i, z := range []int{0, nz - 1} {
		m.warp(moved, i, alpha(z, nz), 0, p.Shape[1], 0, p.Shape[2])
		sum, n := 0.0, 0
		for k, v := range p.ends[i] {
			if d := math.Abs(float64(v - moved[k])); d == d {
				sum, n = sum+d, n+1
			}
		}
		f.Residual[i] = sum / float64(max(n, 1))
	}
}
