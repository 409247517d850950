package blocks

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// Hold returns the volume with its voxels in memory as float32 if they fit into half of what res grants, and what it then grants
// still. A stage that reads a small volume several times decodes it once that way. Otherwise both are as they were. The memory
// belongs to the caller, who calls release in the end.
func (v *Volume) Hold(ctx context.Context, res oct.Resources) (held *Volume, left oct.Resources, release func(), err error) {
	bytes := int64(mem.Product(4, v.Shape[0], v.Shape[1], v.Shape[2]))
	if bytes > res.Mem/2 {
		return v, res, func() {}, nil
	}
	left = res
	left.Mem -= bytes
	raw, err := mem.Alloc(int(bytes))
	if err != nil {
		return nil, res, nil, err
	}
	if held, err = v.HoldIn(ctx, raw, left, nil); err != nil {
		mem.Free(raw)
		return nil, res, nil, err
	}
	return held, left, func() { mem.Free(raw) }, nil
}

// HoldIn returns the volume with its voxels in memory of 4 bytes for each, which the caller provides. As they are read, see gets all of
// them, from several goroutines, in parts that it does not keep or change; it may be nil.
func (v *Volume) HoldIn(ctx context.Context, memory []byte, res oct.Resources, see func(voxels []float32)) (*Volume, error) {
	all := dtype.Slice[float32](memory)
	quiet := res
	quiet.Progress, quiet.Debug = nil, nil
	if see == nil && v.direct(res) {
		whole := v.Array.With(zarr.Workers(res.Workers))
		if err := whole.Read(ctx, zarr.Region{Start: make([]int, 3), Shape: v.Shape[:]}, dtype.Bytes(all[:v.Shape[0]*v.Shape[1]*v.Shape[2]])); err != nil {
			return nil, oct.Readable(err)
		}
		return v.in(all), nil
	}
	c, err := v.Cut(Plan{Size: v.Chunk, Shrink: true, Work: "reading blocks"}, quiet)
	if err == nil {
		err = c.Each(ctx, func(_ context.Context, b *Block) error {
			if see != nil {
				see(b.Voxels)
			}
			o := b.Origin()
			for z := range b.Size[0] {
				for y := range b.Size[1] {
					copy(all[((o[0]+z)*v.Shape[1]+o[1]+y)*v.Shape[2]+o[2]:], b.Voxels[b.At(z, y, 0):][:b.Size[2]])
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return v.in(all), nil
}

// in returns the volume with its voxels in memory.
func (v *Volume) in(all []float32) *Volume {
	held := *v
	held.held = all
	return &held
}

// direct reports whether all voxels can be decoded to where they are held, without other memory than chunks take.
func (v *Volume) direct(res oct.Resources) bool {
	return v.DType == dtype.Float32 && v.source == nil && v.held == nil && int64(mem.Product(int(v.Array.ScratchBytes(false)), res.Workers)) <= res.Mem
}

// Held returns all voxels in C order if the volume holds them in memory, and nil if it does not.
func (v *Volume) Held() []float32 { return v.held }

// readHeld is Read of a volume in memory.
func (v *Volume) readHeld(ctx context.Context, dst []float32, start, shape [3]int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for z := range shape[0] {
		for y := range shape[1] {
			from := ((start[0]+z)*v.Shape[1]+start[1]+y)*v.Shape[2] + start[2]
			copy(dst[(z*shape[1]+y)*shape[2]:][:shape[2]], v.held[from:])
		}
	}
	return nil
}
