package blocks

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// A Holding is a volume and where its voxels will be when they are needed. It is planned before they are read, so that
// whoever has too little memory for a later pass learns it first.
type Holding struct {
	Volume *Volume       // reads from memory if there is room for it
	Left   oct.Resources // what there is besides
	from   *Volume
	memory []byte
}

// Reserve returns the volume with room for its voxels in memory as float32 if they fit into half of what res grants for
// that ([oct.Resources.Spare]). A stage that reads a small volume several times decodes it once that way. Otherwise it
// is like [Volume.Unheld]. The caller calls Load, and Release in the end.
func (v *Volume) Reserve(res oct.Resources) (*Holding, error) {
	bytes := v.heldBytes()
	if bytes > res.Spare()/2 {
		return v.Unheld(res), nil
	}
	raw, err := mem.Alloc(int(bytes))
	if err != nil {
		return nil, err
	}
	return &Holding{Volume: v.in(dtype.Slice[float32](raw)), Left: res.Less(bytes), from: v, memory: raw}, nil
}

// Unheld returns the volume as it is: each pass reads it.
func (v *Volume) Unheld(res oct.Resources) *Holding {
	return &Holding{Volume: v, Left: res.Would(v.heldBytes()), from: v}
}

// heldBytes returns the memory of the volume's voxels as float32.
func (v *Volume) heldBytes() int64 {
	return int64(mem.Product(4, v.Shape[0], v.Shape[1], v.Shape[2]))
}

// Held reports whether the voxels have a place in memory.
func (h *Holding) Held() bool { return h.memory != nil }

// Load reads the voxels if they have a place in memory.
func (h *Holding) Load(ctx context.Context) (err error) {
	if h.Held() {
		_, err = h.from.HoldIn(ctx, h.memory, h.Left, nil)
	}
	return err
}

// Release gives the memory back. It may be called again.
func (h *Holding) Release() {
	if h.Held() {
		mem.Free(h.memory)
		h.memory = nil
	}
}

// HoldIn returns the volume with its voxels in memory of 4 bytes for each, which the caller provides. As they are read,
// see gets all of them, from several goroutines, in parts that it does not keep or change; it may be nil.
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
