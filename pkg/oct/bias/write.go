package bias

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter/n4"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// writers write the output, and the field if it is kept.
type writers struct {
	out, field *ngff.PlaneWriter
	batch      int // planes that must be written at a time
	layer      int // planes that are
}

func (p *plan) create(ctx context.Context, out store.Writer, layout oct.Layout) (*writers, error) {
	w := &writers{}
	one := func(st store.Writer, name string, res oct.Resources) (*ngff.PlaneWriter, error) {
		spec := p.spec(name)
		levels, err := p.opt.Apply(&spec, p.Voxel, "the volume", layout, &res)
		if err != nil {
			return nil, err
		}
		return ngff.CreatePlanes(ctx, st, "", spec, levels)
	}
	var err error
	if w.out, err = one(out, p.Image.Name, p.res); err != nil {
		return nil, err
	}
	w.batch = w.out.Batch()
	if p.opt.SavedField == nil {
		return w, nil
	}
	quiet := p.res
	quiet.Warn = nil // it has been said of the output
	if w.field, err = one(p.opt.SavedField, "bias field", quiet); err != nil {
		w.out.Abort()
	}
	return w, err
}

func (w *writers) abort() {
	w.out.Abort()
	if w.field != nil {
		w.field.Abort()
	}
}

// bytes returns the memory that writing needs with so many planes at a time.
func (w *writers) bytes(p *plan, layer int) int64 {
	n := p.LayerBytes(layer, p.workers) + w.out.Bytes() + int64(p.workers)*(int64(p.area)+64*int64(p.Shape[2]))
	if w.field != nil {
		n += w.field.Bytes() + 4*int64(p.area)*int64(layer)
	}
	return n
}

// spread sums up values.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(v float64) {
	s.n++
	s.sum += v
	s.squares += float64(v * v)
}

// variation returns the coefficient of variation, NaN of no values.
func (s *spread) variation() float64 {
	mean := s.sum / s.n
	return math.Sqrt(max(0, s.squares/s.n-float64(mean*mean))) / mean
}

// account holds statistics of a corrected plane.
type account struct {
	before, after spread
	least, most   float64 // field
	inside        int64
}

// write corrects the volume plane by plane.
func (p *plan) write(ctx context.Context, w *writers) (*Result, error) {
	accounts := make([]account, p.Shape[0])
	var saved []float32
	if w.field != nil {
		b, err := mem.Alloc(4 * p.area * w.layer)
		if err != nil {
			return nil, err
		}
		defer mem.Free(b)
		saved = dtype.Slice[float32](b)
	}
	masks := make([][]uint8, p.workers)
	err := p.Layers(ctx, p.res, w.layer, func(first int, planes [][]float32) error {
		kept := make([][]float32, len(planes))
		for i := range kept {
			if saved != nil {
				kept[i] = saved[i*p.area:][:p.area:p.area]
			}
		}
		err := work.Each(ctx, p.workers, len(planes), func(worker, i int) error {
			if masks[worker] == nil {
				masks[worker] = make([]uint8, p.area)
			}
			p.mask.planes[first+i].expand(masks[worker])
			accounts[first+i] = p.correct(first+i, planes[i], kept[i], masks[worker])
			return nil
		})
		if err != nil {
			return err
		}
		if w.field != nil {
			if err := w.field.Write(ctx, kept); err != nil {
				return err
			}
		}
		return w.out.Write(ctx, planes)
	})
	if err != nil {
		return nil, err
	}
	if w.field != nil {
		if err := w.field.Close(ctx); err != nil {
			return nil, err
		}
	}
	return p.result(accounts), w.out.Close(ctx)
}

// correct corrects plane z in place. If kept is not nil, it also writes the plane's field to kept.
func (p *plan) correct(z int, plane, kept []float32, mask []uint8) account {
	a := account{least: math.Inf(1)}
	whole := axis{0, 1, p.Shape[2]}
	var rows []func(y int) []float64
	g, i := &p.samples, p.sectionOf(z)
	if l := p.fields.sections[i]; l != nil {
		rows = append(rows, p.evaluator(l, z-p.sections[i][0], g.sections[i], whole))
	}
	if l := p.fields.whole; l != nil {
		rows = append(rows, p.evaluator(l, z, g.whole, whole))
	}
	strength := p.opt.Strength
	before := make([]float32, p.Shape[2])
	for y := range p.Shape[1] {
		line, in := plane[y*p.Shape[2]:][:p.Shape[2]], mask[y*p.Shape[2]:][:p.Shape[2]]
		copy(before, line)
		p.tables.apply(z, line)
		log := rows[0](y)
		if len(rows) > 1 {
			for x, v := range rows[1](y) {
				log[x] += v
			}
		}
		for x, v := range line {
			outside := in[x] == 0
			if outside && p.opt.ZeroOutside && kept == nil {
				line[x] = zeroed(v)
				continue
			}
			field := max(n4.Exp(log[x]), 1e-6)
			if kept != nil {
				kept[y*p.Shape[2]+x] = float32(field)
			}
			if outside && p.opt.ZeroOutside || v-v != 0 {
				line[x] = zeroed(v)
			} else {
				m := float64(v)
				line[x] = float32(float64(strength*(m/field)) + float64((1-strength)*m))
			}
			if outside {
				continue
			}
			a.inside++
			a.least, a.most = min(a.least, field), max(a.most, field)
			if b := before[x]; b-b == 0 {
				a.before.add(float64(b))
				a.after.add(float64(line[x]))
			}
		}
	}
	return a
}

// zeroed returns v if it is not finite, otherwise 0.
func zeroed(v float32) float32 {
	if v-v != 0 {
		return v
	}
	return 0
}

// result computes the result from the accounts of all planes.
func (p *plan) result(accounts []account) *Result {
	all, inside := account{least: math.Inf(1)}, int64(0)
	for _, a := range accounts {
		for _, s := range []struct{ to, from *spread }{{&all.before, &a.before}, {&all.after, &a.after}} {
			s.to.n, s.to.sum, s.to.squares = s.to.n+s.from.n, s.to.sum+s.from.sum, s.to.squares+s.from.squares
		}
		all.least, all.most = min(all.least, a.least), max(all.most, a.most)
		inside += a.inside
	}
	r := &Result{Coverage: float64(inside) / float64(p.Shape[0]) / float64(p.area), CVBefore: all.before.variation(), CVAfter: all.after.variation(),
		SmallestGain: 1 / all.most, MostGain: 1 / all.least}
	if l := p.fields.whole; l != nil {
		r.Control = l.Control
	}
	return r
}
