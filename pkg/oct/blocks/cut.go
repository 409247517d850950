package blocks

import (
	"context"
	"fmt"
	"iter"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// A Plan describes how to divide a volume into blocks, and the memory that a worker needs.
type Plan struct {
	Size [3]int // of a block; 0: the whole axis
	Halo [3]int // voxels around a block that are read too, where the volume has them
	// PerVoxel is the memory in bytes that the computation needs for each voxel of a block with its halo, beside the
	// voxels themselves; Fixed is the memory in bytes that it needs for blocks of any size.
	PerVoxel, Fixed int64
	Work            string // names the work in messages: "correcting blocks"
	// Down lets a worker visit the blocks of a column along z from the first plane to the last, for sums in a fixed
	// order. Otherwise blocks are visited in any order.
	Down bool
	// Shrink allows blocks smaller than Size if a block does not fit into memory. It must be false if the result
	// depends on Size.
	Shrink bool

	pyramid int64 // memory that the pyramid of the output needs at least
}

// A Cut is a volume divided into a grid of blocks that fit into memory. Blocks at the far edges may be smaller.
type Cut struct {
	*Volume
	Plan
	res     oct.Resources
	grid    [3]int
	box     [3]int // shape of a block with its halo, at most
	most    int    // voxels of it
	extra   int64  // bytes of Fixed and PerVoxel
	pyramid int64
	bytes   int64 // of a worker, of the latest call of workers
	whole   int64 // likewise of blocks that were not made smaller
}

// Cut divides the volume. It returns an error if not even one block fits into memory.
func (v *Volume) Cut(p Plan, res oct.Resources) (*Cut, error) {
	c := &Cut{Volume: v, Plan: p, res: res, pyramid: max(res.Mem/4, p.pyramid)}
	for d, n := range v.Shape {
		if c.Size[d] == 0 || c.Size[d] > n {
			c.Size[d] = n
		}
	}
	for {
		c.measure()
		_, err := c.workers(4)
		c.whole = max(c.whole, c.bytes)
		if err == nil {
			return c, nil
		}
		longest := 0
		for d, n := range c.Size {
			if n > c.Size[longest] {
				longest = d
			}
		}
		if !p.Shrink || c.Size[longest] == 1 {
			return nil, err
		}
		c.Size[longest] = (c.Size[longest] + 1) / 2
	}
}

// measure sets the grid and the memory of blocks of the cut's size.
func (c *Cut) measure() {
	c.most = 1
	for d, n := range c.Shape {
		c.grid[d] = (n + c.Size[d] - 1) / c.Size[d]
		c.box[d] = min(n, c.Size[d]+2*c.Halo[d])
		c.most = mem.Product(c.most, c.box[d])
	}
	c.extra = int64(mem.Sum(mem.Product(c.most, int(c.PerVoxel)), int(c.Fixed)))
}

// workers returns how many workers fit into memory if blocks are written with outBytes per voxel.
func (c *Cut) workers(outBytes int) (int, error) {
	each := mem.Sum(int(c.extra), mem.Product(4, c.most), c.spare(outBytes), int(c.Array.ScratchBytes(false)))
	c.bytes = int64(max(1, each))
	n := (c.res.Mem - c.pyramid) / c.bytes
	if n < 1 {
		need := max(mem.Sum(each, int(c.pyramid)), mem.Sum(each, each/3, 4)) // the pyramid has a quarter of more memory, too
		return 0, c.res.TooLittle(int64(need), "%s: %s of %v voxels", c.Where, c.Work, c.Size)
	}
	units, _ := c.units()
	return min(int(n), c.res.Workers, max(1, units)), nil
}

// units returns how many pieces of work are shared out, and the blocks of each, which lie below each other.
func (c *Cut) units() (n, each int) {
	if c.Down {
		return c.grid[1] * c.grid[2], c.grid[0]
	}
	return c.Blocks(), 1
}

// spare returns the bytes besides the voxels that serve for reading a block, and then for writing it with outBytes per
// voxel.
func (c *Cut) spare(outBytes int) int {
	return max(c.Scratch(c.box), mem.Product(c.most, outBytes))
}

// Blocks returns the number of blocks.
func (c *Cut) Blocks() int { return c.grid[0] * c.grid[1] * c.grid[2] }

// A Block is a block of the volume with its halo. Voxels may be changed.
type Block struct {
	Index        int    // in C order of the grid of blocks
	Start, Shape [3]int // with the halo
	Inner        [3]int // where the block without halo begins, within it
	Size         [3]int // of the block without halo
	Voxels       []float32
	Worker       int
}

// At returns the number of the voxel at (z, y, x) of the block with its halo.
func (b *Block) At(z, y, x int) int { return (z*b.Shape[1]+y)*b.Shape[2] + x }

// Origin returns the first voxel of the block without halo, in the volume.
func (b *Block) Origin() [3]int {
	return [3]int{b.Start[0] + b.Inner[0], b.Start[1] + b.Inner[1], b.Start[2] + b.Inner[2]}
}

// block returns block i without voxels.
func (c *Cut) block(i int) *Block {
	b := &Block{Index: i}
	at := [3]int{i / (c.grid[1] * c.grid[2]), i / c.grid[2] % c.grid[1], i % c.grid[2]}
	for d := range at {
		from := at[d] * c.Size[d]
		end := min(from+c.Size[d], c.Shape[d])
		b.Start[d] = max(0, from-c.Halo[d])
		b.Inner[d], b.Size[d] = from-b.Start[d], end-from
		b.Shape[d] = min(end+c.Halo[d], c.Shape[d]) - b.Start[d]
	}
	return b
}

// Each reads each block and calls f with it, from several goroutines. Reports of progress count the blocks without
// halo.
func (c *Cut) Each(ctx context.Context, f func(ctx context.Context, b *Block) error) error {
	return c.each(ctx, 0, func(ctx context.Context, b *Block, _ []byte) error { return f(ctx, b) })
}

// each calls f for each block with spare memory of outBytes for each of its voxels, or of what reading needs.
func (c *Cut) each(ctx context.Context, outBytes int, f func(ctx context.Context, b *Block, spare []byte) error) error {
	workers, err := c.workers(outBytes)
	if err != nil {
		return err
	}
	pool := mem.NewPool(c.res.Mem)
	defer pool.Close()
	units, down := c.units()
	all := c.res.ForAll(max(c.bytes, c.whole)*int64(max(1, c.res.Busy(units))), c.res.Mem-c.pyramid)
	crew := c.res.Crew(oct.Team{What: fmt.Sprintf("%s of %v voxels", c.Work, c.Size), Workers: workers, Pieces: units, Each: c.bytes, All: all})
	return crew.Share(ctx, units, func(ctx context.Context, worker int, pieces iter.Seq[int]) error {
		voxels, held, err := floats(ctx, pool, c.most)
		if err != nil {
			return err
		}
		defer held.Release()
		var spare []byte
		if n := c.spare(outBytes); n > 0 {
			b, err := pool.Get(ctx, n)
			if err != nil {
				return err
			}
			defer b.Release()
			spare = b.B
		}
		for i := range pieces {
			for k := range down {
				b := c.block(k*units + i)
				b.Worker, b.Voxels = worker, voxels[:b.Shape[0]*b.Shape[1]*b.Shape[2]]
				if err := c.Read(ctx, b.Voxels, spare, b.Start, b.Shape); err != nil {
					return err
				}
				if err := f(ctx, b, spare); err != nil {
					return err
				}
				c.res.Done(int64(b.Size[0]) * int64(b.Size[1]) * int64(b.Size[2]) * int64(c.DType.Size()))
			}
		}
		return nil
	})
}

// ForMap returns an error if [Cut.Map] would have too little memory to write such an image, or cannot lay it out.
func (c *Cut) ForMap(layout oct.Layout, spec ngff.ImageSpec) error {
	c.pyramid = max(c.pyramid, LeastPyramid(spec, layout))
	if err := layout.Check(Piece(c.Size, c.Shape, layout)); err != nil {
		return err
	}
	_, err := c.workers(max(4, spec.DType.Size()))
	return err
}

// Map writes an image. f changes the voxels of each block in place; the block without its halo becomes the same part of
// the output, rounded half to even and clamped if the output has an integer type. spec is usually the result of
// [Volume.Spec]; its chunks must divide the blocks.
func (c *Cut) Map(ctx context.Context, out store.Writer, layout oct.Layout, spec ngff.ImageSpec, f func(ctx context.Context, b *Block) error) (*ngff.Image, error) {
	if err := c.ForMap(layout, spec); err != nil {
		return nil, err
	}
	spec.Budget = max(c.pyramid, 1)
	w, err := oct.Create(ctx, out, layout, spec, Piece(c.Size, c.Shape, layout), c.res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	err = c.each(ctx, max(4, spec.DType.Size()), func(ctx context.Context, b *Block, spare []byte) error {
		if err := f(ctx, b); err != nil {
			return err
		}
		origin := b.Origin()
		return w.WriteTile(ctx, origin[:], b.Size[:], b.inner(spare, spec.DType))
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(c.res.Workers), zarr.Meter(c.res.Meter))
}

// LeastPyramid returns the memory that the pyramid of an output needs at least: that of a few chunks, which may be more
// than its share.
func LeastPyramid(spec ngff.ImageSpec, layout oct.Layout) int64 {
	if layout.Chunks != nil {
		spec.Chunks = layout.Chunks
	}
	spec.Shard, spec.Levels = layout.Shard, layout.Levels
	n, err := spec.LeastBudget()
	if err != nil { // which creating the output says
		return 0
	}
	return n
}

// Piece returns the shape that is written at a time, in blocks of a size, for the check of the layout. An axis in a
// single block may have any chunks.
func Piece(size, shape [3]int, layout oct.Layout) []int {
	piece := size
	for d, n := range layout.Chunks {
		if len(layout.Chunks) == len(piece) && size[d] >= shape[d] && n > 0 {
			piece[d] = (piece[d] + n - 1) / n * n
		}
	}
	return piece[:]
}

// inner returns the voxels without halo as bytes of type t, in spare memory.
func (b *Block) inner(spare []byte, t dtype.Type) []byte {
	whole, n := b.Voxels, b.Size[0]*b.Size[1]*b.Size[2]
	if b.Size != b.Shape { // moves towards the front, over what is not needed any more
		i := 0
		for z := range b.Size[0] {
			for y := range b.Size[1] {
				row := b.At(z+b.Inner[0], y+b.Inner[1], b.Inner[2])
				copy(whole[i:i+b.Size[2]], whole[row:row+b.Size[2]])
				i += b.Size[2]
			}
		}
	}
	if t == dtype.Float32 {
		return dtype.Bytes(whole[:n])
	}
	filter.ToStored(t, spare[:n*t.Size()], whole[:n])
	return spare[:n*t.Size()]
}
