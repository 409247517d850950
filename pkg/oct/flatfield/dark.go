package flatfield

import (
	"context"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// survey finds the tiles that are not almost empty and, if asked to, the values at which tiles are clipped.
func (f *fitting) survey(ctx context.Context, clipped bool) error {
	group, passes := len(f.planes), 1
	if clipped {
		f.limits, passes = make([]float64, f.scopes()), 2
		group = int(min(int64(group), max(1, f.res.Mem/4/filter.QuantileBytes)))
	}
	if !f.how.PerZ {
		group = len(f.planes)
	}
	for first := 0; first < len(f.planes); first += group {
		if err := f.surveyPlanes(ctx, first, min(first+group, len(f.planes)), passes); err != nil {
			return err
		}
	}
	return nil
}

// surveyPlanes surveys planes first … end−1 in one or two passes. Two passes find the upper limit of the intensities:
// the first locates it, the second computes it exactly. One pass computes no limit.
func (f *fitting) surveyPlanes(ctx context.Context, first, end, passes int) error {
	r, err := f.read(f.planes[first:end], f.skip, f.height-f.skip, f.res.Mem/2, 0, &f.res)
	if err != nil {
		return err
	}
	limits := make([]*filter.Quantiles, end-first) // those of a scope are the same
	for i := range limits {
		if limits[i] = limits[f.scope(i)]; limits[i] == nil && passes > 1 {
			limits[i] = filter.NewQuantiles(f.how.PercentileMax)
		}
	}
	look := func(_ context.Context, v *visit) error {
		for _, i := range v.planes {
			voxels := v.voxels(i)
			usable := 2*nonZero(voxels) > len(voxels)
			f.usable[(first+i)*f.tiles()+v.tile] = usable
			if usable && passes > 1 {
				limits[i].Add(voxels)
			}
		}
		return nil
	}
	for pass := range passes {
		if err := r.visit(ctx, &f.res, look); err != nil {
			return err
		}
		if passes == 1 {
			break
		}
		for i, q := range limits {
			if pass == 1 {
				f.limits[f.scope(first+i)] = q.Value(0)
			} else if i == 0 || f.how.PerZ {
				q.Refine()
			}
		}
	}
	return nil
}

// estimateDark makes the dark-fields: a percentile of each pixel over the tiles that are not almost empty.
func (f *fitting) estimateDark(ctx context.Context) error {
	f.res.Warnf("%s: a dark-field from a percentile of the tiles contains signal, which is subtracted: compare the result to that without a dark-field", f.Where)
	f.darks = make([][]float32, f.scopes())
	for i := range f.darks {
		f.darks[i] = make([]float32, f.height*f.width)
	}
	memory := (f.res.Mem - f.bytes()) / 2
	row := 4 * int64(f.width) * int64(f.tiles()) // of a plane
	group := len(f.planes)
	if f.how.PerZ {
		group = int(max(1, min(int64(group), memory/row)))
	}
	rows := int(min(int64(f.height-f.skip), memory/(row*int64(group))))
	if rows < 1 {
		return f.res.TooLittle(f.bytes()+2*row*int64(group), "%s: a row of all tiles of the %d planes sampled", f.Where, group)
	}
	for first := 0; first < len(f.planes); first += group {
		for y := f.skip; y < f.height; y += rows {
			if err := f.darkRows(ctx, first, min(first+group, len(f.planes)), y, min(rows, f.height-y), memory); err != nil {
				return err
			}
		}
	}
	for _, dark := range f.darks {
		f.smooth(dark, f.how.DarkSmoothSigma)
	}
	if f.how.PerZ && f.how.DarkWindow != 0 {
		f.averageDark()
	}
	return nil
}

// darkRows computes rows y … y+rows−1 of the dark-fields of planes[first:end].
func (f *fitting) darkRows(ctx context.Context, first, end, y, rows int, memory int64) error {
	r, err := f.read(f.planes[first:end], y, rows, memory, 0, &f.res)
	if err != nil {
		return err
	}
	t, area := f.tiles(), rows*f.width
	all := make([]float32, (end-first)*t*area)
	if err := r.visit(ctx, &f.res, func(_ context.Context, v *visit) error {
		for _, i := range v.planes {
			copy(all[(i*t+v.tile)*area:], v.voxels(i))
		}
		return nil
	}); err != nil {
		return err
	}
	sets, each := 1, (end-first)*t
	if f.how.PerZ {
		sets, each = end-first, t
	}
	var none atomic.Bool
	err = work.Each(ctx, f.res.Workers, sets*rows, func(_, k int) error {
		set, row := k/rows, k%rows
		values := make([]float32, 0, each)
		for x := range f.width {
			values = values[:0]
			for i := set * each; i < (set+1)*each; i++ {
				if f.usable[first*t+i] {
					values = append(values, all[i*area+row*f.width+x])
				}
			}
			if len(values) == 0 {
				none.Store(true)
				break
			}
			f.darks[f.scope(first+set)][(y+row)*f.width+x] = float32(filter.Percentiles(values, f.how.DarkPercentile)[0])
		}
		return nil
	})
	if err == nil && none.Load() && !f.how.PerZ {
		err = oct.BadInput("%s: no tile in the %d planes sampled has more than half of its pixels other than 0", f.Where, len(f.planes))
	}
	return err
}

// averageDark replaces each plane's dark-field by the mean over the planes around it.
func (f *fitting) averageDark() {
	n := len(f.darks)
	out := make([][]float32, n)
	reach := f.how.DarkWindow
	if reach < 0 {
		reach = n
	}
	for i := range out {
		from, to := max(0, i-reach), min(n, i+reach+1)
		out[i] = make([]float32, len(f.darks[i]))
		for k := range out[i] {
			sum := 0.0
			for _, dark := range f.darks[from:to] {
				sum += float64(dark[k])
			}
			out[i][k] = float32(sum / float64(to-from))
		}
	}
	f.darks = out
}
