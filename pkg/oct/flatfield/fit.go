package flatfield

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/basic"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/units"
	"strata/pkg/work"
)

const (
	working    = basic.Size * basic.Size // pixels of an image for BaSiC
	imageBytes = 4 * working
)

// fitting estimates the fields.
type fitting struct {
	*mosaic
	how     Options
	res     oct.Resources
	sampled []int // planes that the seams are compared in, and fields estimated from unless there is one for every plane
	planes  []int // that fields are estimated from
	fields  [][]float32
	darks   [][]float32
	limits  []float64 // of values: one, or one for each plane; nil: none
	usable  []bool    // tiles that are not almost empty: planes × tiles
	skipped []int
	index   []int     // field of each plane of the volume; −1: none
	even    []float32 // the field of planes without one
	epsilon float32   // added to the field where it divides
}

// newFitting plans the estimate.
func newFitting(m *mosaic, c Options, res oct.Resources) *fitting {
	f := &fitting{mosaic: m, how: c, res: res, sampled: m.choose(c.MaxSamples)}
	if f.planes = f.sampled; c.PerZ && c.Solver == BasicPy {
		f.planes = make([]int, m.Shape[0])
		for z := range f.planes {
			f.planes[z] = z
		}
	}
	if c.Solver == LinumBasic {
		f.epsilon = 1e-6
	}
	return f
}

// scopes returns the number of dark-fields, and of limits: one per plane if each plane has its own, otherwise 1.
func (f *fitting) scopes() int {
	if f.how.PerZ {
		return len(f.planes)
	}
	return 1
}

// scope returns the number of the dark-field and limit of planes[i].
func (f *fitting) scope(i int) int {
	if f.how.PerZ {
		return i
	}
	return 0
}

// bytes returns the size of the fields.
func (f *fitting) bytes() int64 {
	n := int64(f.scopes()) + 1
	if f.how.DarkField {
		n *= 2
	}
	return n * 4 * int64(f.height) * int64(f.width)
}

// at returns the flat-field and the dark-field of a plane of the volume. The dark-field may be nil.
func (f *fitting) at(z int) (field, dark []float32) {
	i := f.index[z]
	if i < 0 {
		return f.even, nil
	}
	if f.darks != nil {
		dark = f.darks[i]
	}
	return f.fields[i], dark
}

// field returns the flat-field, with its dark-field, that corrects a plane of the volume.
func (f *fitting) field(z int) filter.FlatField {
	gain, dark := f.at(z)
	return filter.FlatField{Gain: gain, Dark: dark, Height: f.height, Width: f.width, Epsilon: f.epsilon, Keep: f.how.Solver == LinumBasic}
}

// run estimates the fields.
func (f *fitting) run(ctx context.Context) error {
	group, err := f.group()
	if err != nil {
		return err
	}
	f.fields = make([][]float32, f.scopes())
	f.usable = make([]bool, len(f.planes)*f.tiles())
	f.index = make([]int, f.Shape[0])
	f.even = make([]float32, f.height*f.width)
	for i := range f.even {
		f.even[i] = 1
	}
	clipped := f.how.Solver == BasicPy && f.how.PercentileMax > 0 && f.how.PercentileMax < 100
	if clipped || f.how.DarkField {
		if err := f.survey(ctx, clipped); err != nil {
			return err
		}
	}
	if f.how.DarkField {
		if err := f.estimateDark(ctx); err != nil {
			return err
		}
	}
	for first := 0; first < len(f.planes); first += group {
		if err := f.estimate(ctx, first, min(first+group, len(f.planes))); err != nil {
			return err
		}
	}
	f.finish()
	return f.check()
}

// group returns how many planes are estimated from at a time: all, unless each has a field of its own.
func (f *fitting) group() (int, error) {
	together := f.tiles()
	if images := int64(mem.Product(imageBytes, together)); images > f.res.Mem {
		return 0, f.res.TooLittle(images, "%s: the flat-field of %s", f.Where, units.Count(together, "tile"))
	}
	if f.how.Solver == BasicPy && !f.how.PerZ {
		together *= len(f.planes)
	}
	left := f.res.Mem - f.bytes() - basic.Memory(together)
	n := left / (imageBytes * int64(f.tiles()))
	if n >= int64(len(f.planes)) {
		return len(f.planes), nil
	}
	if n < 1 || !f.how.PerZ {
		need := f.bytes() + basic.Memory(together) + imageBytes*int64(f.tiles())*int64(len(f.planes))
		if f.how.PerZ {
			need = f.bytes() + basic.Memory(together) + imageBytes*int64(f.tiles())
		}
		return 0, f.res.TooLittle(need, "%s: the flat-field of %s of %s (fewer samples need less)", f.Where, units.Count(len(f.planes), "plane"), units.Count(f.tiles(), "tile"))
	}
	return int(n), nil
}

// estimate makes the fields of planes[first:end].
func (f *fitting) estimate(ctx context.Context, first, end int) error {
	memory, err := mem.Alloc(imageBytes * (end - first) * f.tiles())
	if err != nil {
		return err
	}
	defer mem.Free(memory)
	images := dtype.Slice[float32](memory)
	if err := f.shrink(ctx, first, end, images); err != nil {
		return err
	}
	if f.how.Solver == BasicPy && !f.how.PerZ {
		field, err := f.solve(ctx, images, f.usable, true)
		if err == nil && field == nil {
			err = oct.BadInput("%s: no tile in the %s sampled has more than half of its pixels other than 0", f.Where, units.Count(len(f.planes), "plane"))
		}
		f.fields[0] = field
		return err
	}
	t := f.tiles()
	fields := make([][]float32, end-first)
	spare := f.res.Mem - f.bytes() - int64(len(images))*4
	outer := 1
	if n := min(f.res.Workers, len(fields)); int64(n)*basic.Memory(t) <= spare && n == f.res.Workers {
		outer = n // a plane for each worker
	}
	err = work.Each(ctx, outer, len(fields), func(_, i int) (err error) {
		fields[i], err = f.solve(ctx, images[i*t*working:(i+1)*t*working], f.usable[(first+i)*t:(first+i+1)*t], outer == 1)
		return err
	})
	if err != nil {
		return err
	}
	if f.how.PerZ {
		copy(f.fields[first:end], fields)
		return nil
	}
	mean := make([]float32, f.height*f.width)
	for i := range mean {
		sum := 0.0
		for _, field := range fields {
			sum += float64(field[i])
		}
		mean[i] = float32(sum / float64(len(fields)))
	}
	f.fields[0] = mean
	return nil
}

// shrink reads planes[first:end] and makes an image of each tile.
func (f *fitting) shrink(ctx context.Context, first, end int, images []float32) error {
	t := f.tiles()
	r, err := f.read(f.planes[first:end], f.skip, f.height-f.skip, f.res.Mem-f.bytes()-4*int64(len(images)), 0, &f.res)
	if err != nil {
		return err
	}
	shrinker := basic.Centred(r.rows, f.width)
	if f.how.Solver == BasicPy {
		shrinker = basic.Triangles(r.rows, f.width)
	}
	some := atomic.Bool{}
	err = r.visit(ctx, &f.res, func(_ context.Context, v *visit) error {
		for _, i := range v.planes {
			voxels := v.voxels(i)
			n := nonZero(voxels)
			f.usable[(first+i)*t+v.tile] = 2*n > len(voxels)
			if n > 0 {
				some.Store(true)
			}
			f.prepare(voxels, f.scope(first+i))
			small := images[(i*t+v.tile)*working:][:working]
			shrinker.Shrink(small, voxels, r.rows, f.width)
		}
		return nil
	})
	if err == nil && !some.Load() && !f.how.PerZ {
		err = oct.BadInput("%s: all tiles are 0 in the %s sampled", f.Where, units.Count(len(f.planes), "plane"))
	}
	return err
}

// prepare clips the voxels of a tile and subtracts the dark-field.
func (f *fitting) prepare(voxels []float32, scope int) {
	if f.limits != nil {
		limit := float32(f.limits[scope])
		for x, p := range voxels {
			voxels[x] = min(p, limit)
		}
	}
	if f.darks != nil {
		dark := f.darks[scope][f.skip*f.width:]
		for x, p := range voxels {
			voxels[x] = max(0, p-dark[x])
		}
	}
}

func nonZero(v []float32) (n int) {
	for _, p := range v {
		if p != 0 {
			n++
		}
	}
	return n
}

// solve returns the field, of a tile's size, that images share; nil if BasicPy has too few that are usable. It changes
// the images.
func (f *fitting) solve(ctx context.Context, images []float32, usable []bool, parallel bool) ([]float32, error) {
	s := basic.Sorted()
	if f.how.Solver == BasicPy {
		s = basic.Approximate()
		n := 0
		for i, ok := range usable {
			if ok {
				copy(images[n*working:(n+1)*working], images[i*working:])
				n++
			}
		}
		least := 1
		if f.how.PerZ {
			least = max(4, (len(usable)+3)/4)
		}
		if n < least {
			return nil, nil
		}
		images = images[:n*working]
		if f.how.MaxIterations > 0 {
			s.Steps = f.how.MaxIterations
		}
	} else if f.how.MaxIterations > 0 {
		s.Rounds = f.how.MaxIterations
	}
	if f.how.Smoothness > 0 {
		s.Smoothness = f.how.Smoothness
	}
	if parallel {
		s.Each = f.res.Each(ctx)
	}
	start := time.Now()
	common, err := s.FlatField(images)
	f.res.Meter.Since(meter.Compute, start)
	if err != nil {
		return nil, err
	}
	f.res.Decided("flat-field of %s: smoothness %.3g, %s", units.Count(len(images)/working, "tile"), common.Smoothness, units.Count(common.Rounds, "round"))
	field := make([]float32, f.height*f.width)
	inner := field[f.skip*f.width:]
	if f.how.Solver == BasicPy {
		basic.Enlarge(inner, common.Pixels, f.height-f.skip, f.width)
	} else {
		basic.EnlargeCentred(inner, common.Pixels, f.height-f.skip, f.width)
	}
	return field, nil
}

// finish smooths the fields, fills their first rows and assigns them to planes.
func (f *fitting) finish() {
	for i, field := range f.fields {
		if field == nil {
			f.skipped = append(f.skipped, f.planes[i])
			continue
		}
		f.smooth(field, f.how.SmoothSigma)
	}
	for z := range f.index {
		f.index[z] = 0
		if !f.how.PerZ {
			continue
		}
		i, found := slices.BinarySearch(f.planes, z)
		if !found && (i == len(f.planes) || i > 0 && z-f.planes[i-1] <= f.planes[i]-z) {
			i-- // the lower of two that are as near
		}
		if f.index[z] = i; f.fields[i] == nil {
			f.index[z] = -1
		}
	}
	if len(f.skipped) > 0 {
		f.res.Warnf("%s: %s from plane %d on have too few tiles with more than half of their pixels other than 0: they are copied", f.Where,
			units.Count(len(f.skipped), "plane"), f.skipped[0])
	}
}

// smooth filters a field of a tile by a Gaussian, and fills the rows that took no part in the estimate.
func (f *fitting) smooth(field []float32, sigma float64) {
	inner := field[f.skip*f.width:]
	if sigma > 0 {
		var taps []float32
		for _, w := range filter.GaussianKernel(sigma, 0) {
			taps = append(taps, float32(w))
		}
		filter.Separable(inner, slices.Clone(inner), f.height-f.skip, f.width, taps)
	}
	for y := range f.skip {
		copy(field[y*f.width:(y+1)*f.width], inner)
	}
}

// check refuses fields that would turn the mosaic over.
func (f *fitting) check() error {
	for i, field := range f.fields {
		for k, v := range field {
			if !(v > 0) {
				return oct.BadInput("%s: the flat-field of plane %d is %v at pixel (%d, %d): want values above 0; give a larger smoothness, or leave empty planes out", f.Where, f.planes[i], v, k/f.width, k%f.width)
			}
		}
	}
	return nil
}
