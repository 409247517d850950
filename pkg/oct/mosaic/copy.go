package mosaic

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// copying is the writing of a mosaic grid with the voxels of another.
type copying struct {
	in    *ngff.Image
	res   oct.Resources
	spec  ngff.ImageSpec
	piece []int // what a worker reads and writes at a time: planes of a tile
	bytes int64 // of a piece
	crew  *oct.Crew
}

// Copy writes a mosaic grid of tiles that another format holds, as package tilestore shows it: the same voxels, axes
// and attributes, in chunks that are those of in, channel by channel, unless the layout says otherwise. sharding is the
// number of tiles along y and x in a shard; up to 1: no shards. Places without a tile are not stored.
func Copy(ctx context.Context, in *ngff.Image, out store.Writer, sharding int, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	c := &copying{in: in, res: res}
	layout, err := c.plan(layout, sharding)
	if err != nil {
		return nil, err
	}
	w, err := oct.Create(ctx, out, layout, c.spec, c.whole(), res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if err := c.run(ctx, w); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
}

// depthAxis returns the number of the axis z, −1 if there is none.
func (c *copying) depthAxis() int {
	return slices.IndexFunc(c.in.Axes, func(a ngff.Axis) bool { return a.Name == "z" })
}

// whole returns the shape of a piece in the full depth of a tile, which chunks have to divide.
func (c *copying) whole() []int {
	whole := slices.Clone(c.piece)
	if d := c.depthAxis(); d >= 0 {
		whole[d] = c.spec.Shape[d]
	}
	return whole
}

// plan describes the image, and chooses the planes of a piece: a multiple of those of a chunk.
func (c *copying) plan(layout oct.Layout, sharding int) (oct.Layout, error) {
	a, level := c.in.Levels[0].Array, c.in.Levels[0]
	c.piece = a.Chunks()
	c.spec = ngff.ImageSpec{
		Format: 3, Name: c.in.Name, Shape: a.Shape(), DType: a.DType(), Chunks: a.Chunks(), OmitFill: true, Omero: c.in.Omero,
		Axes: oct.ImageAxes(c.in), Scale: level.Scale, Translation: level.Translation, Attributes: map[string]any{},
	}
	for name, v := range c.in.Group.Attributes() {
		c.spec.Attributes[name] = v
	}
	for d, x := range c.in.Axes {
		if x.Type != ngff.TypeSpace {
			c.spec.Chunks[d] = 1
		}
	}
	if layout.Shard == nil && sharding > 1 {
		layout.Shard = slices.Clone(c.spec.Chunks)
		if len(layout.Chunks) == len(layout.Shard) {
			copy(layout.Shard, layout.Chunks)
		}
		for d := len(c.piece) - 2; d < len(c.piece); d++ {
			layout.Shard[d] = sharding * c.piece[d]
		}
	}
	if d := c.depthAxis(); d >= 0 && len(layout.Chunks) == len(c.piece) {
		unit := min(max(1, layout.Chunks[d]), c.spec.Shape[d])
		c.piece[d] = (c.piece[d] + unit - 1) / unit * unit
	}
	c.bytes = int64(mem.Product(append(slices.Clone(c.piece), a.DType().Size())...))
	return layout, c.fit(layout)
}

// fit chooses as many workers as memory allows: each holds a piece, what its file is decoded to, and chunks that are
// encoded.
func (c *copying) fit(layout oct.Layout) error {
	if layout.Levels > 0 || layout.Shard != nil {
		c.spec.Budget = c.res.Mem / 4
	}
	each := 3*c.bytes + c.in.Levels[0].Array.ScratchBytes(false)
	budget := c.res.Mem - c.spec.Budget
	if each > budget {
		return c.res.TooLittle(each+c.spec.Budget, "writing tiles of %v voxels, %d bytes at a time,", c.whole(), c.bytes)
	}
	pieces := 1
	for d, n := range c.spec.Shape {
		pieces *= (n + c.piece[d] - 1) / c.piece[d]
	}
	workers := int(min(int64(c.res.Workers), budget/each))
	all := c.res.ForAll(each*int64(max(1, c.res.Busy(pieces))), budget)
	c.crew = c.res.Crew(oct.Team{What: fmt.Sprintf("%s, %v voxels", c.in.Name, c.piece), Workers: workers, Pieces: pieces, Each: each, All: all})
	return nil
}

// run copies all pieces.
func (c *copying) run(ctx context.Context, w *ngff.Writer) error {
	var starts [][]int
	for at := range ngff.TileOrder(c.spec.Shape, c.piece, c.spec.Axes) {
		starts = append(starts, at)
	}
	a := c.in.Levels[0].Array.With(zarr.Workers(1))
	pool := mem.NewPool(c.res.Mem)
	defer pool.Close()
	return c.crew.Share(ctx, len(starts), func(ctx context.Context, _ int, pieces iter.Seq[int]) error {
		b, err := pool.Get(ctx, int(c.bytes))
		if err != nil {
			return err
		}
		defer b.Release()
		for k := range pieces {
			r := zarr.Region{Start: starts[k], Shape: slices.Clone(c.piece)}
			n := a.DType().Size()
			for d := range r.Shape {
				r.Shape[d] = min(r.Shape[d], c.spec.Shape[d]-r.Start[d])
				n *= r.Shape[d]
			}
			if err := a.Read(ctx, r, b.B[:n]); err != nil {
				return oct.Readable(err)
			}
			c.count(b.B[:n])
			if err := w.WriteTile(ctx, r.Start, r.Shape, b.B[:n]); err != nil {
				return err
			}
			c.res.Done(int64(n))
		}
		return nil
	})
}

// count counts voxels that are NaN or infinite.
func (c *copying) count(b []byte) {
	if c.spec.DType.IsFloat() {
		defer c.res.Meter.Since(meter.Compute, time.Now())
		c.res.Meter.AddNonFinite(filter.NonFiniteStored(c.spec.DType, b))
	}
}
