package commonspace

import (
	"context"
	"math"
	"slices"

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

// Run writes each slice on the canvas, into the store that out returns for it, and returns the images in the order of
// the slices.
func (p *Plan) Run(ctx context.Context, out func(s Slice) store.Writer, layout oct.Layout, res oct.Resources) ([]*ngff.Image, error) {
	together, each, err := p.share(layout, res)
	if err != nil {
		return nil, err
	}
	res.Decided("%d of %d slices at a time", together, len(p.slices))
	images := make([]*ngff.Image, len(p.slices))
	pool := mem.NewPool(res.Mem) // fresh memory for each slice would take longer than decoding it
	defer pool.Close()
	last := len(p.slices) % together // slices that would leave workers idle
	move := func(i int, each oct.Resources) error {
		s, fill, left, release, err := p.hold(ctx, pool, p.slices[i], layout, each)
		if err != nil {
			return err
		}
		defer release()
		images[i], err = p.write(ctx, s, fill, out(s.Slice), layout, left)
		return err
	}
	if err := work.Each(ctx, together, len(p.slices)-last, func(_, i int) error { return move(i, each) }); err != nil || last == 0 {
		return images, err
	}
	each = res.Part(last)
	err = work.Each(ctx, last, last, func(_, i int) error { return move(len(p.slices)-last+i, each) })
	return images, err
}

// hold keeps a slice in memory if it is held, and returns what is left then of res and the value around the slice.
// Otherwise the slice is read up to three times.
func (p *Plan) hold(ctx context.Context, pool *mem.Pool, s placed, layout oct.Layout, res oct.Resources) (held placed, fill float32, left oct.Resources, release func(), err error) {
	left, release = res, func() {}
	if p.opt.ZeroFill {
		return s, 0, left, release, nil
	}
	q := filter.NewQuantiles(fillPercentile)
	if !p.held(s, layout, res) {
		res = res.Would(mem.Pooled(int64(heldBytes(s))))
		left = res
		fill, err = p.fill(ctx, s, q, res)
		return s, fill, left, release, err
	}
	size := heldBytes(s)
	memory, err := pool.Get(ctx, size)
	if err != nil {
		return s, 0, left, release, err
	}
	left = left.Less(mem.Pooled(int64(size)))
	if s.volume, err = s.volume.HoldIn(ctx, memory.B, left, q.AddPositive); err == nil {
		q.Refine()
		fill, err = p.refill(ctx, s, q, left)
	}
	if err != nil {
		memory.Release()
	}
	return s, fill, left, memory.Release, err
}

// heldBytes returns the memory of a slice that is held.
func heldBytes(s placed) int {
	return mem.Product(4, s.volume.Shape[0], s.volume.Shape[1], s.volume.Shape[2])
}

// held reports whether a slice is kept in memory: it would be read more than once, and enough is left of res for the
// rest.
func (p *Plan) held(s placed, layout oct.Layout, res oct.Resources) bool {
	left := res.Less(mem.Pooled(int64(heldBytes(s))))
	return !p.opt.ZeroFill && res.Mem-left.Mem <= res.Spare()/2 && p.fits(s, layout, left) == nil
}

// share returns how many slices are moved at a time, and what each of them has of the resources: as many as can be
// held, or else as fit.
func (p *Plan) share(layout oct.Layout, res oct.Resources) (together int, each oct.Resources, err error) {
	most := min(res.Workers, len(p.slices))
	part := func(n int) oct.Resources {
		each := res.Part(n)
		if crewed := each.Crewed; crewed != nil { // with more memory there are more at a time
			each.Crewed = func(workers, useful int, mem int64) { crewed(workers, useful, mem/int64(n)*int64(most)+int64(most)) }
		}
		return each
	}
	for n := most; n > 0; n /= 2 {
		if each = part(n); !slices.ContainsFunc(p.slices, func(s placed) bool { return !p.held(s, layout, each) }) {
			return n, each, nil
		}
	}
	for together = most; ; together = (together + 1) / 2 {
		each = part(together)
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

// fill returns the value around a slice that is read twice for it.
func (p *Plan) fill(ctx context.Context, s placed, q *filter.Quantiles, res oct.Resources) (float32, error) {
	cut, err := p.survey(s, res)
	if err != nil {
		return 0, err
	}
	count := func(_ context.Context, b *blocks.Block) error {
		q.AddPositive(b.Voxels)
		return nil
	}
	if err := cut.Each(ctx, count); err != nil {
		return 0, err
	}
	q.Refine()
	if err := cut.Each(ctx, count); err != nil {
		return 0, err
	}
	return around(s, q, res), nil
}

// refill returns the value around a slice in memory, of which q has seen all values.
func (p *Plan) refill(ctx context.Context, s placed, q *filter.Quantiles, res oct.Resources) (float32, error) {
	const part = 1 << 18 // values
	all := s.volume.Held()
	if err := work.Each(ctx, res.Workers, (len(all)+part-1)/part, func(_, i int) error {
		q.AddPositive(all[i*part : min((i+1)*part, len(all))])
		return nil
	}); err != nil {
		return 0, err
	}
	return around(s, q, res), nil
}

// around returns the percentile that lies around a slice, or 0 if no voxel is positive.
func around(s placed, q *filter.Quantiles, res oct.Resources) float32 {
	v := q.Value(0)
	if math.IsNaN(v) {
		v = 0
	}
	res.Decided("slice %d: %v around it", s.ID, v)
	return float32(v)
}

// write moves a slice onto the canvas.
func (p *Plan) write(ctx context.Context, s placed, fill float32, out store.Writer, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	v := p.onCanvas(s)
	m := p.moved(s)
	m.fill, m.content = fill, &oct.Content{}
	v = v.From(m, v.Shape)
	var cut *blocks.Cut
	var err error
	if held := s.volume.Held(); held != nil { // boxes need not be read in large blocks
		m.content.Add(held)
		cut, err = v.Cut(blocks.Plan{Size: v.Chunks(layout), Work: moving}, res)
	} else {
		cut, err = v.Fit(blocks.Plan{Work: moving}, layout, res)
	}
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
	content *oct.Content // of what is read from a file; may be nil
}

// Scratch returns the size of the box of the slice for a box of the canvas, as stored and as float32, and of a row.
func (m moved) Scratch(shape [3]int) int {
	for d := 1; d < 3; d++ {
		shape[d] = min(shape[d]+1, m.v.Shape[d])
	}
	if m.v.Held() != nil {
		return 4 * shape[2]
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
	in := rows{first: ys, width: xe - xs, stride: m.v.Shape[2], plane: m.v.Shape[1] * m.v.Shape[2]}
	var mixed []float32
	if held := m.v.Held(); held != nil {
		in.v = held[start[0]*in.plane+ys*in.stride+xs:]
		mixed = dtype.Slice[float32](scratch[:4*in.width])
	} else {
		at, box := [3]int{start[0], ys, xs}, [3]int{shape[0], ye - ys, xe - xs}
		raw := round8(m.v.Scratch(box))
		in.stride, in.plane = box[2], box[1]*box[2]
		n := box[0] * in.plane
		floats := dtype.Slice[float32](scratch[raw : raw+4*(n+in.width)])
		in.v, mixed = floats[:n], floats[n:]
		if err := m.v.Read(ctx, in.v, scratch[:raw], at, box); err != nil {
			return err
		}
		if m.content != nil {
			m.content.Add(in.v)
		}
	}
	for i := range shape[0] * shape[1] {
		row, z, y := dst[i*shape[2]:][:shape[2]], i/shape[1], start[1]+i%shape[1]
		if y < y0 || y >= y1 {
			fill(row, m.fill)
			continue
		}
		m.y.Rows(mixed, in.v[z*in.plane:], in.first, y, in.stride)
		fill(row[:x0-start[2]], m.fill)
		m.x.Row(row[x0-start[2]:], mixed, xs, x0, x1)
		fill(row[x1-start[2]:], m.fill)
	}
	return nil
}

// rows are those of a box of a slice, in memory of its own or where the slice lies.
type rows struct {
	v             []float32
	first, width  int // row of the slice, and samples of each
	stride, plane int // samples between rows and between planes
}

func fill(row []float32, v float32) {
	for i := range row {
		row[i] = v
	}
}
