package blocks

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/oct"
)

// A Source computes the voxels of a volume that is not stored, such as one volume moved onto the canvas of several. It
// is safe for concurrent use.
type Source interface {
	// Read writes a box of voxels (z, y, x) to dst. scratch has the bytes that Scratch returns for a box at least as
	// large.
	Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error
	Scratch(shape [3]int) int
}

// From returns a volume of the given shape with the voxels of a source. All else is that of v, with the chunks that v
// has before its edges clip them.
func (v *Volume) From(s Source, shape [3]int) *Volume {
	out := *v
	out.Shape, out.source, out.held = shape, s, nil
	for d, n := range v.Array.Chunks() {
		out.Chunk[d] = min(n, shape[d])
	}
	return &out
}

// Planes returns the planes from z0 to z1−1 of the volume.
func (v *Volume) Planes(z0, z1 int) *Volume {
	return v.From(planes{v, z0}, [3]int{z1 - z0, v.Shape[1], v.Shape[2]})
}

// planes holds consecutive planes of a volume, from plane z0 on.
type planes struct {
	of *Volume
	z0 int
}

func (p planes) Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	start[0] += p.z0
	return p.of.Read(ctx, dst, scratch, start, shape)
}

func (p planes) Scratch(shape [3]int) int { return p.of.Scratch(shape) }

// Scratch returns the size in bytes of the memory that [Volume.Read] needs to read a box.
func (v *Volume) Scratch(shape [3]int) int {
	switch {
	case v.held != nil:
		return 0
	case v.source != nil:
		return v.source.Scratch(shape)
	}
	return mem.Product(shape[0], shape[1], shape[2], stored(v.DType))
}

// Fit divides the volume into the largest blocks that all workers can hold: planes as deep as the chunks of an output
// stored by layout, or strips of chunk rows, or parts of a strip. Fewer workers hold blocks of one chunk if memory is
// short. It sets p.Size.
func (v *Volume) Fit(p Plan, layout oct.Layout, res oct.Resources) (*Cut, error) {
	chunk := v.Chunks(layout)
	p.Size = chunk
	t := v.DType
	if t.Size() < dtype.Float32.Size() { // stages may write float32
		t = dtype.Float32
	}
	p.pyramid = LeastPyramid(v.Spec(t), layout)
	least, err := v.Cut(p, res)
	if err != nil {
		return nil, err
	}
	grid := least.grid
	for {
		for d := 1; d < 3; d++ {
			p.Size[d] = grid[d] * chunk[d]
		}
		c, err := v.Cut(p, res)
		if err == nil {
			n, err := c.workers(max(4, v.DType.Size()))
			if err == nil && n >= min(res.Workers, least.Blocks()) {
				return c, nil
			}
		}
		switch {
		case grid[1] > 1:
			grid[1] = (grid[1] + 1) / 2
		case grid[2] > 1:
			grid[2] = (grid[2] + 1) / 2
		default:
			return least, nil
		}
	}
}
