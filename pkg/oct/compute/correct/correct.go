// Package correct runs the stages that measure a volume on the host and then change each voxel on its own, on the host
// or on a device: [Held] lets a stage measure, [New] plans the change, and [Change.Run] writes the changed volume.
package correct

import (
	"context"
	"fmt"
	"iter"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// A Stage measures a volume and then changes it. Need is the number of bytes that it holds throughout.
type Stage struct {
	Need    int64
	Measure func(ctx context.Context, v *blocks.Volume, res oct.Resources) error
	Type    dtype.Type // of the output
	Work    string     // names the change in messages: "correcting blocks"
	Shared  int64      // bytes that Change shares with workers
	// Change returns a function that changes one part, which workers call, and a function that frees what these calls
	// share.
	Change func(res *oct.Resources) (do func(w compute.Changer, p compute.Part), free func(), err error)
}

// Run measures a volume and writes the changed volume. On the CPU, a volume that fits into half of the memory is
// decoded only once. A device does not measure, and therefore reads the volume again to change it.
func (s *Stage) Run(ctx context.Context, v *blocks.Volume, out store.Writer, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	if s.Need > res.Mem/2 {
		return nil, res.TooLittle(2*s.Need, "%s: the statistics of %v voxels", v.Where, v.Shape)
	}
	h, c, err := s.plan(v, layout, res.Less(s.Need))
	if err != nil {
		return nil, err
	}
	defer h.Release()
	if err := h.Load(ctx); err != nil {
		return nil, err
	}
	if err := s.Measure(ctx, h.Volume, h.Left); err != nil {
		return nil, err
	}
	if res.Device != nil {
		h.Release()
	}
	return c.Run(ctx, out, s.Change)
}

// plan plans the change before a voxel is read, and whether voxels are kept in memory: not where that leaves too little
// for the change.
func (s *Stage) plan(v *blocks.Volume, layout oct.Layout, res oct.Resources) (*blocks.Holding, *Change, error) {
	h, err := v.Reserve(res)
	if err != nil {
		return nil, nil, err
	}
	if h.Held() && res.Device == nil {
		if c, err := New(h.Volume, s.Type, s.Work, s.Shared, layout, h.Left); err == nil {
			return h, c, nil
		}
		h.Release()
		h = v.Unheld(res)
	}
	c, err := New(v, s.Type, s.Work, s.Shared, layout, res) // a device reads voxels itself, when those in memory are released
	if err != nil {
		h.Release()
		return nil, nil, err
	}
	return h, c, nil
}

// A Change is the planned change of all voxels of a volume.
type Change struct {
	volume  *blocks.Volume
	of      dtype.Type
	layout  oct.Layout
	res     oct.Resources
	plan    *compute.Plan
	box     [3]int
	pyramid int64
}

// New plans the change of a volume into one of element type of. Its workers share the given number of bytes. work names
// the change in messages. New returns an error if memory is too small.
func New(v *blocks.Volume, of dtype.Type, work string, shared int64, layout oct.Layout, res oct.Resources) (*Change, error) {
	c := &Change{volume: v, of: of, layout: layout, res: res, box: v.Chunks(layout), pyramid: max(res.Mem/4, blocks.LeastPyramid(v.Spec(of), layout))}
	m, err := oct.OpenMosaic(v.Image)
	if err != nil {
		return nil, err
	}
	if res.Device != nil { // many small chunks at a time
		n := mem.Product(4, c.box[0], c.box[1], c.box[2])
		c.box[0] = min(v.Shape[0], mem.Product(c.box[0], max(1, transfer.DevicePiece/n)))
	}
	m.Chunk = [3]int{v.Chunks(layout)[0], c.box[1], c.box[2]}
	source, err := compute.NewSource(m, &c.res, res.Meter)
	if err != nil {
		return nil, err
	}
	c.plan = &compute.Plan{What: fmt.Sprintf("%s of %v voxels", work, c.box), Source: source, Memory: compute.Memory{Host: res.Mem - c.pyramid, Shared: shared}, Pieces: 1}
	for d, n := range v.Shape {
		c.plan.Pieces *= (n + c.box[d] - 1) / c.box[d]
	}
	if err := layout.Check(blocks.Piece(c.box, v.Shape, layout)); err != nil { // what cannot be written
		return nil, err
	}
	return c, c.plan.Change(&compute.Changing{Volume: v, Type: of, Box: c.box})
}

// Run writes the changed image. share returns a function that changes one part, which Run reads before and writes
// afterwards, and a function that frees what these calls share.
func (c *Change) Run(ctx context.Context, out store.Writer, share func(res *oct.Resources) (do func(w compute.Changer, p compute.Part), free func(), err error)) (*ngff.Image, error) {
	spec := c.volume.Spec(c.of)
	spec.Budget = max(c.pyramid, 1)
	w, err := oct.Create(ctx, out, c.layout, spec, blocks.Piece(c.box, c.volume.Shape, c.layout), c.res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	c.plan.Output.To = w
	do, free, err := share(&c.res)
	if err != nil {
		return nil, err
	}
	defer free()
	next, stop := iter.Pull(ngff.TileOrder(c.volume.Shape[:], c.box[:], spec.Axes))
	defer stop()
	err = compute.Run(ctx, c.plan, next, func(w compute.Changer, start []int) {
		var shape [3]int
		for d := range shape {
			shape[d] = min(c.box[d], c.volume.Shape[d]-start[d])
		}
		p := w.Take([3]int(start), shape)
		do(w, p)
		w.Put(p)
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(c.res.Workers), zarr.Meter(c.res.Meter))
}

// Field returns a field for the workers, and a function that frees it.
func Field(res *oct.Resources, f filter.FlatField) (*compute.FlatField, func(), error) {
	gain, freeGain, err := compute.Shared(res, f.Gain)
	if err != nil || f.Dark == nil {
		return &compute.FlatField{FlatField: f, OfGain: gain}, freeGain, err
	}
	dark, freeDark, err := compute.Shared(res, f.Dark)
	if err != nil {
		freeGain()
		return nil, nil, err
	}
	return &compute.FlatField{FlatField: f, OfGain: gain, OfDark: dark}, func() { freeGain(); freeDark() }, nil
}
