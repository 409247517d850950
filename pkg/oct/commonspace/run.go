package commonspace

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// fillPercentile is that of the positive voxels of a slice which lies around it.
const fillPercentile = 1

// Run writes each slice on the canvas, into the store that out returns for it, and returns the images in the order of the slices.
func (p *Plan) Run(ctx context.Context, out func(s Slice) store.Writer, layout oct.Layout, res oct.Resources) ([]*ngff.Image, error) {
	together, each, err := p.share(layout, res)
	if err != nil {
		return nil, err
	}
	res.Decided("%d of %d slices at a time", together, len(p.slices))
	images := make([]*ngff.Image, len(p.slices))
	err = work.Each(ctx, together, len(p.slices), func(_, i int) error {
		s, left, release, err := p.hold(ctx, p.slices[i], layout, each)
		if err != nil {
			return err
		}
		defer release()
		fill, err := p.fill(ctx, s, left)
		if err != nil {
			return err
		}
		images[i], err = p.write(ctx, s, fill, out(s.Slice), layout, left)
		return err
	})
	return images, err
}

// hold keeps a slice in memory, and returns what is left then of res, if that suffices for the rest. It is read up to three times.
func (p *Plan) hold(ctx context.Context, s placed, layout oct.Layout, res oct.Resources) (placed, oct.Resources, func(), error) {
	left := res
	left.Mem -= int64(mem.Product(4, s.volume.Shape[0], s.volume.Shape[1], s.volume.Shape[2]))
	if p.opt.ZeroFill || left.Mem < res.Mem/2 || p.fits(s, layout, left) != nil {
		return s, res, func() {}, nil
	}
	var release func()
	var err error
	s.volume, left, release, err = s.volume.Hold(ctx, res)
	return s, left, release, err
}

// share returns how many slices are moved at a time, and what each of them has of the resources.
func (p *Plan) share(layout oct.Layout, res oct.Resources) (together int, each oct.Resources, err error) {
	for together = min(res.Workers, len(p.slices)); ; together = (together + 1) / 2 {
		each = res
		each.Mem, each.Workers = res.Mem/int64(together), max(1, res.Workers/together)
		if err = p.allFit(layout, each); err == nil || together == 1 {
			return together, each, err
		}
	}
}

// allFit returns an error if a slice needs more than res.
func (p *Plan) allFit(layout oct.Layout, res oct.Resources) error {
	for _, s := range p.slices {
		if err := p.fits(s, layout, res); err != nil {
			return err
		}
	}
	return nil
}

// fits returns an error if a slice needs more than res.
func (p *Plan) fits(s placed, layout oct.Layout, res oct.Resources) error {
	v := p.onCanvas(s)
	if _, err := v.Fit(blocks.Plan{Work: moving}, layout, res); err != nil {
		return err
	}
	_, err := p.survey(s, res)
	return err
}

const moving = "moving blocks onto the canvas"

// survey divides a slice for counting its values.
func (p *Plan) survey(s placed, res oct.Resources) (*blocks.Cut, error) {
	return s.volume.Fit(blocks.Plan{Work: "counting values of blocks", Fixed: filter.QuantileBytes}, oct.Layout{}, res)
}

// fill returns the value around a slice.
func (p *Plan) fill(ctx context.Context, s placed, res oct.Resources) (float32, error) {
	if p.opt.ZeroFill {
		return 0, nil
	}
	cut, err := p.survey(s, res)
	if err != nil {
		return 0, err
	}
	q := filter.NewQuantiles(fillPercentile)
	count := func(_ context.Context, b *blocks.Block) error {
		n := 0
		for _, f := range b.Voxels {
			if f > 0 {
				b.Voxels[n] = f
				n++
			}
		}
		q.Add(b.Voxels[:n])
		return nil
	}
	if err := cut.Each(ctx, count); err != nil {
		return 0, err
	}
	q.Refine()
	if err := cut.Each(ctx, count); err != nil {
		return 0, err
	}
	v := q.Value(0)
	if math.IsNaN(v) { // no voxel is positive
		v = 0
	}
	res.Decided("slice %d: %v around it", s.ID, v)
	return float32(v), nil
}

// write moves a slice onto the canvas.
func (p *Plan) write(ctx context.Context, s placed, fill float32, out store.Writer, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	v := p.onCanvas(s)
	m := p.moved(s)
	m.fill, m.content = fill, &oct.Content{}
	cut, err := v.From(m, v.Shape).Fit(blocks.Plan{Work: moving}, layout, res)
	if err != nil {
		return nil, err
	}
	spec := cut.Spec(v.DType)
	if at := spec.Translation; len(at) == 3 { // all slices begin at the same place of the canvas
		if spec.Translation = nil; at[0] != 0 {
			spec.Translation = []float64{at[0], 0, 0}
		}
	}
	image, err := cut.Map(ctx, out, layout, spec, func(context.Context, *blocks.Block) error { return nil })
	if what := m.content.Nothing(); err == nil && what != "" {
		res.Warnf("%s: slice %d shows nothing: %s", s.Path, s.ID, what)
	}
	return image, err
}

// onCanvas returns the slice as a volume of the size of the canvas.
func (p *Plan) onCanvas(s placed) *blocks.Volume {
	return s.volume.From(p.moved(s), [3]int{s.volume.Shape[0], p.Canvas[0], p.Canvas[1]})
}

func (p *Plan) moved(s placed) moved {
	return moved{v: s.volume, y: filter.NewShift(s.volume.Shape[1], p.Canvas[0], s.at[1]), x: filter.NewShift(s.volume.Shape[2], p.Canvas[1], s.at[0])}
}

// moved is a volume at its place on the canvas.
type moved struct {
	v       *blocks.Volume
	y, x    filter.Shift
	fill    float32      // around it
	content *oct.Content // of what is read; may be nil
}

// Scratch returns the size of the box of the slice for a box of the canvas, as stored and as float32, and of a row.
func (m moved) Scratch(shape [3]int) int {
	for d := 1; d < 3; d++ {
		shape[d] = min(shape[d]+1, m.v.Shape[d])
	}
	return mem.Sum(round8(m.v.Scratch(shape)), mem.Product(4, mem.Sum(mem.Product(shape[0], shape[1], shape[2]), shape[2])))
}

// round8 makes room for elements of any type to begin after n bytes.
func round8(n int) int {
	if n > math.MaxInt-7 {
		return n
	}
	return (n + 7) &^ 7
}

// Read reads a box of the canvas.
func (m moved) Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	y0, y1 := max(start[1], m.y.From), min(start[1]+shape[1], m.y.To)
	x0, x1 := max(start[2], m.x.From), min(start[2]+shape[2], m.x.To)
	dst = dst[:shape[0]*shape[1]*shape[2]]
	if y0 >= y1 || x0 >= x1 {
		fill(dst, m.fill)
		return nil
	}
	ys, ye := m.y.Needs(y0, y1)
	xs, xe := m.x.Needs(x0, x1)
	at, box := [3]int{start[0], ys, xs}, [3]int{shape[0], ye - ys, xe - xs}
	raw := round8(m.v.Scratch(box))
	width := box[2]
	plane := box[1] * width
	n := box[0] * plane
	floats := dtype.Slice[float32](scratch[raw : raw+4*(n+width)])
	in, mixed := floats[:n], floats[n:]
	if err := m.v.Read(ctx, in, scratch[:raw], at, box); err != nil {
		return err
	}
	if m.content != nil {
		m.content.Add(in)
	}
	for i := range shape[0] * shape[1] {
		row, z, y := dst[i*shape[2]:][:shape[2]], i/shape[1], start[1]+i%shape[1]
		if y < y0 || y >= y1 {
			fill(row, m.fill)
			continue
		}
		m.y.Rows(mixed, in[z*plane:][:plane], ys, y, width)
		fill(row[:x0-start[2]], m.fill)
		m.x.Row(row[x0-start[2]:], mixed, xs, x0, x1)
		fill(row[x1-start[2]:], m.fill)
	}
	return nil
}

func fill(row []float32, v float32) {
	for i := range row {
		row[i] = v
	}
}
