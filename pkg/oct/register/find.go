package register

import (
	"context"
	"math"
	"slices"
	"time"

	"strata/pkg/filter"
	"strata/pkg/filter/pairwise"
	"strata/pkg/meter"
	"strata/pkg/work"
)

const (
	// probe is the size in pixels, at most, of the planes that are compared to find the depth.
	probe = 1 << 16
	// maxPasses limits how often plane and transform are improved in turn.
	maxPasses = 4
	// others is the number of planes of each window that are tried after the first one was refused.
	others = 3
	// planesAlong is the number of planes of the moving slice, from the registered one on, that are compared to tell
	// neighbouring planes of the fixed slice apart. With a single plane, speckle would decide.
	planesAlong = 8
	// nearby is the number of planes on either side of the best one with which the moving planes are compared.
	nearby = 2
)

// find reads the planes and registers them.
func (p *pairPlan) find(ctx context.Context) error {
	moving, err := p.read(ctx, p.m, p.movingZ, 1)
	if err != nil {
		return err
	}
	p.target = moving[0]
	p.centre = newCentre(p.target)
	probes, err := p.survey(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	defer func() { p.res.Meter.Since(meter.Compute, start) }()
	if _, err := p.plane(ctx, p.ruled); err != nil {
		return err
	}
	var both [2]*pairwise.Image // the moving plane, and the first that it is registered with
	if err := work.Each(ctx, p.res.Workers, 2, func(_, i int) error {
		both[i] = p.image([]*plane{p.target, p.planes[p.ruled]}[i])
		return nil
	}); err != nil {
		return err
	}
	target := both[0]
	p.first, p.best = both[1], p.ruled
	if err := p.register(ctx, target, p.ruled, false); err != nil {
		return err
	}
	if p.found.Refused != "" && p.o.ZSearch == ZAligned {
		if err := p.elsewhere(ctx, target); err != nil {
			return err
		}
	}
	if p.found.Refused != "" {
		if err := p.register(ctx, target, p.ruled, true); err != nil {
			return err
		}
	}
	if p.found.Refused != "" || p.o.ZSearch == ZCentre {
		return nil
	}
	if err := p.settle(ctx, target, probes); err != nil || p.best == p.ruled {
		return err
	}
	return p.correlateAligned(ctx)
}

// correlateAligned computes the correlation of the centres under the transform, for a plane that was not found by their
// correlation as they lie.
func (p *pairPlan) correlateAligned(ctx context.Context) error {
	o, err := p.plane(ctx, p.best)
	if err != nil {
		return err
	}
	moved := &plane{ny: o.ny, nx: o.nx, v: make([]float32, len(o.v))}
	p.found.Transform.Resample(moved.v, p.target.v, o.ny, o.nx, 0, o.ny, float32(math.NaN()))
	p.zCorrelation = newCentre(o).correlate(newCentre(moved))
	return nil
}

// image prepares a plane.
func (p *pairPlan) image(o *plane) *pairwise.Image { return pairwise.NewImage(o.v, o.ny, o.nx) }

// options returns the options of the registration, with distances in pixels of the (possibly shrunk) planes.
func (p *pairPlan) options(ctx context.Context, thorough bool) pairwise.Options {
	return pairwise.Options{
		Rotation: p.o.Rotation, MaxRotation: p.o.MaxRotationDeg * math.Pi / 180, MaxTranslation: p.o.MaxTranslationPx / float64(p.shrink),
		Phase: p.o.Start == StartBoth || p.o.Start == StartGradient, Mass: p.o.Start == StartBoth || p.o.Start == StartMass, Thorough: thorough,
		Each: func(n int, f func(i int)) error {
			return work.Each(ctx, p.res.Workers, n, func(_, i int) error {
				f(i)
				return nil
			})
		},
	}
}

// register registers the moving plane with plane z of the fixed slice, which becomes the best if it is not refused.
func (p *pairPlan) register(ctx context.Context, target *pairwise.Image, z int, thorough bool) error {
	o, err := p.plane(ctx, z)
	if err != nil {
		return err
	}
	image := p.first
	if p.first = nil; image == nil {
		image = p.image(o)
	}
	k := float64(p.shrink)
	found, err := pairwise.Register(image, target, (p.cx-(k-1)/2)/k, (p.cy-(k-1)/2)/k, p.options(ctx, thorough))
	if err != nil {
		return err
	}
	if found.Refused == "" || z == p.ruled {
		p.found, p.best = found, z
	}
	return nil
}

// elsewhere registers planes spread over the windows, and keeps the one whose correlation peak is highest.
func (p *pairPlan) elsewhere(ctx context.Context, target *pairwise.Image) error {
	refused, best, at := p.found, p.found, p.ruled
	tried := []int{p.ruled}
	for _, w := range p.window {
		for i := range others {
			z := w[0] + (2*i+1)*(w[1]-w[0])/(2*others)
			if slices.Contains(tried, z) {
				continue
			}
			tried = append(tried, z)
			p.found = refused
			if err := p.register(ctx, target, z, false); err != nil {
				return err
			}
			if p.found.Refused == "" && (best.Refused != "" || p.found.Peak > best.Peak) {
				best, at = p.found, z
			}
		}
	}
	p.found, p.best = best, at
	return nil
}

// settle finds the plane that agrees best under the transform, and the transform for that plane, until both stay.
func (p *pairPlan) settle(ctx context.Context, target *pairwise.Image, probes map[int]*plane) error {
	k := p.probeShrink()
	small := pairwise.NewPlane(p.target.smaller(k).v, p.target.ny/k, p.target.nx/k)
	zs := make([]int, 0, len(probes))
	for z := range probes {
		zs = append(zs, z)
	}
	slices.Sort(zs)
	images := make([]*pairwise.Image, len(zs))
	if err := work.Each(ctx, p.res.Workers, len(zs), func(_, i int) error {
		o := probes[zs[i]]
		images[i] = pairwise.NewPlane(o.v, o.ny, o.nx)
		return nil
	}); err != nil {
		return err
	}
	seen := []int{p.best}
	for range maxPasses {
		z, err := p.agree(ctx, zs, images, small, k)
		if err != nil {
			return err
		}
		if slices.Contains(seen, z) {
			break
		}
		seen = append(seen, z)
		if moved, err := p.move(ctx, target, z); err != nil || !moved {
			return err
		}
	}
	z, err := p.along(ctx, zs, images, k)
	if err == nil && z != p.best {
		_, err = p.move(ctx, target, z)
	}
	return err
}

// move makes plane z of the fixed slice the best and finds the transform for it; false: it is refused.
func (p *pairPlan) move(ctx context.Context, target *pairwise.Image, z int) (bool, error) {
	o, err := p.plane(ctx, z)
	if err != nil {
		return false, err
	}
	found, err := pairwise.Refine(p.image(o), target, p.found.Transform, p.options(ctx, false))
	if err != nil || found.Refused != "" {
		return false, err
	}
	p.found, p.best = found, z
	return true, nil
}

// along returns the plane near the best one from which on consecutive planes of both slices agree best under the
// transform. images holds the images of planes zs, at probe shrink k.
func (p *pairPlan) along(ctx context.Context, zs []int, images []*pairwise.Image, k int) (int, error) {
	of := map[int]*pairwise.Image{}
	for i, z := range zs {
		of[z] = images[i]
	}
	lo, hi := p.best, p.best
	for ; hi < p.best+nearby && of[hi+1] != nil; hi++ {
	}
	for ; lo > p.best-nearby && of[lo-1] != nil; lo-- {
	}
	n := 1
	for n < min(planesAlong, p.m.Shape[0]-p.movingZ) && of[hi+n] != nil {
		n++
	}
	if n == 1 {
		return p.best, nil
	}
	moving, err := p.small(ctx, n, k)
	if err != nil {
		return 0, err
	}
	scores := make([]float64, (hi-lo+1)*n)
	t := p.probed(k)
	if err := work.Each(ctx, p.res.Workers, len(scores), func(_, i int) error {
		scores[i] = pairwise.Agreement(of[lo+i/n+i%n], moving[i%n], t)
		return nil
	}); err != nil {
		return 0, err
	}
	best, most := p.best, math.Inf(-1)
	for z := lo; z <= hi; z++ {
		sum := 0.0
		for _, s := range scores[(z-lo)*n:][:n] {
			sum += s
		}
		if sum > most || !(sum < most) && p.drift(z) < p.drift(best) {
			best, most = z, sum
		}
	}
	return best, nil
}

// small returns probes of the moving slice's first n planes from the registered one on.
func (p *pairPlan) small(ctx context.Context, n, k int) ([]*pairwise.Image, error) {
	var out []*pairwise.Image
	group := int(max(1, p.res.Spare()/8/max(1, int64(p.target.ny)*int64(p.target.nx)*4)))
	for len(out) < n {
		list, err := p.read(ctx, p.m, p.movingZ+len(out), min(group, n-len(out)))
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			s := o.smaller(k)
			out = append(out, pairwise.NewPlane(s.v, s.ny, s.nx))
		}
	}
	return out, nil
}

// probed returns the transform in pixels of probes.
func (p *pairPlan) probed(k int) filter.Rigid {
	t, o := p.found.Transform, float64(k-1)/2
	return filter.Rigid{Angle: t.Angle, TX: t.TX / float64(k), TY: t.TY / float64(k), CX: (t.CX - o) / float64(k), CY: (t.CY - o) / float64(k)}
}

// agree returns the plane that agrees best with the moving one under the transform, the nearest to where it is expected
// if several do.
func (p *pairPlan) agree(ctx context.Context, zs []int, images []*pairwise.Image, small *pairwise.Image, k int) (int, error) {
	t := p.probed(k)
	scores := make([]float64, len(zs))
	if err := work.Each(ctx, p.res.Workers, len(zs), func(_, i int) error {
		scores[i] = pairwise.Agreement(images[i], small, t)
		return nil
	}); err != nil {
		return 0, err
	}
	best := slices.Index(zs, p.best)
	for i, s := range scores {
		if s > scores[best] || !(s < scores[best]) && p.drift(zs[i]) < p.drift(zs[best]) {
			best = i
		}
	}
	return zs[best], nil
}

// probeShrink returns how many pixels of a plane make a pixel of a probe, along y and x.
func (p *pairPlan) probeShrink() int {
	k := 1
	for (p.target.ny/k)*(p.target.nx/k) > probe {
		k++
	}
	return k
}

// survey reads the planes of the windows, and finds the plane whose centre correlates best with the moving one. It
// returns probes (shrunk planes) of all planes that it has read.
func (p *pairPlan) survey(ctx context.Context) (probes map[int]*plane, err error) {
	probes = map[int]*plane{}
	k := p.probeShrink()
	area := int64(p.target.ny) * int64(p.target.nx) * 4
	group := int(max(1, p.res.Spare()/8/max(1, area)))
	first := p.window[0]
	p.ruled = p.expected[0]
	best := math.Inf(-1)
	for _, w := range p.window {
		for z := w[0]; z < w[1]; z += group {
			n := min(group, w[1]-z)
			list, err := p.read(ctx, p.f, z, n)
			if err != nil {
				return nil, err
			}
			scores, small := make([]float64, n), make([]*plane, n)
			start := time.Now()
			if err := work.Each(ctx, p.res.Workers, n, func(_, i int) error {
				if z+i >= first[0] && z+i < first[1] {
					scores[i] = newCentre(list[i]).correlate(p.centre)
				}
				small[i] = list[i].smaller(k)
				return nil
			}); err != nil {
				return nil, err
			}
			p.res.Meter.Since(meter.Compute, start)
			for i, o := range list {
				if at := z + i; at >= first[0] && at < first[1] && first[1]-first[0] > 1 && scores[i] > best {
					best, p.ruled, p.zCorrelation = scores[i], at, scores[i]
				}
				probes[z+i] = small[i]
				if int64(len(p.planes)+1)*area <= p.res.Spare()/8 {
					p.planes[z+i] = o // need not be read again
				}
			}
		}
	}
	return probes, nil
}

// plane returns a plane of the fixed slice.
func (p *pairPlan) plane(ctx context.Context, z int) (*plane, error) {
	if o := p.planes[z]; o != nil {
		return o, nil
	}
	list, err := p.read(ctx, p.f, z, 1)
	if err != nil {
		return nil, err
	}
	p.planes[z] = list[0]
	return list[0], nil
}
