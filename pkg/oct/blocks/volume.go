// Package blocks runs a computation over a volume (z, y, x) block by block, with voxels as float32, for stages whose
// output voxels depend on voxels in a limited surrounding. [Open] checks an image, [Volume.Cut] divides it into blocks
// that several workers can hold within their memory, [Cut.Each] visits these, and [Cut.Map] writes what is computed
// from them.
package blocks

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/units"
	"strata/pkg/zarr"
)

// A Volume is an image with the axes z, y and x.
type Volume struct {
	Image *ngff.Image
	Array *zarr.Array
	Where string
	DType dtype.Type
	Shape [3]int
	Chunk [3]int     // clipped to Shape
	Voxel [3]float64 // size in µm

	source Source    // of the voxels; nil: Array
	held   []float32 // all voxels, where they are in memory
}

// Open returns the volume at level 0 of an image. Errors wrap [oct.ErrInput].
func Open(in *ngff.Image) (*Volume, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	v := &Volume{Image: in, Array: in.Levels[0].Array, Where: m.Where, DType: m.DType, Shape: m.Shape, Chunk: m.Chunk}
	for d, size := range in.VoxelSize {
		if err := units.CheckVoxel(size); err != nil { // an axis named x that is no axis of space
			return nil, oct.BadInput("%s: axis %q: %w", v.Where, in.Axes[d].Name, err)
		}
		v.Voxel[d] = size
	}
	return v, nil
}

// Level returns the volume at a level of the pyramid, 0 for the volume itself.
func (v *Volume) Level(k int) *Volume {
	l := &Volume{Image: v.Image, Array: v.Image.Levels[k].Array, DType: v.DType}
	l.Where = l.Array.Location()
	l.Shape = [3]int(l.Array.Shape())
	for d, n := range l.Shape {
		l.Chunk[d] = min(l.Array.Chunks()[d], n)
		l.Voxel[d] = v.Voxel[d] * float64(v.Shape[d]) / float64(n)
	}
	return l
}

// Bytes returns the size of the voxels as stored in the array without compression.
func (v *Volume) Bytes() int64 {
	return int64(v.Shape[0]) * int64(v.Shape[1]) * int64(v.Shape[2]) * int64(v.DType.Size())
}

// Read reads a box of voxels (z, y, x) into dst as float32. raw is memory for the time of the call, of as many bytes as
// [Volume.Scratch] returns; it may be nil for a stored volume of float32.
func (v *Volume) Read(ctx context.Context, dst []float32, raw []byte, start, shape [3]int) error {
	if v.held != nil {
		return v.readHeld(ctx, dst, start, shape)
	}
	if v.source != nil {
		return v.source.Read(ctx, dst, raw, start, shape)
	}
	n := shape[0] * shape[1] * shape[2]
	region := zarr.Region{Start: start[:], Shape: shape[:]}
	if v.DType == dtype.Float32 {
		return oct.Readable(v.Array.Read(ctx, region, dtype.Bytes(dst[:n])))
	}
	raw = raw[:n*v.DType.Size()]
	if err := v.Array.Read(ctx, region, raw); err != nil {
		return oct.Readable(err)
	}
	filter.FromStored(v.DType, dst[:n], raw)
	return nil
}

// InBlocks reports whether a box of few planes is decoded without the rest of its chunks.
func (v *Volume) InBlocks() bool {
	return v.held != nil || v.source == nil && v.Array.InBlocks()
}

// ReadBoxes reads several boxes of the same shape, each as [Volume.Read] does. A chunk that cannot be decoded in parts
// is decoded once for all boxes. raw must have room for all of them.
func (v *Volume) ReadBoxes(ctx context.Context, dst [][]float32, raw []byte, starts [][3]int, shape [3]int) error {
	n := shape[0] * shape[1] * shape[2]
	if v.Array.InBlocks() {
		for i, start := range starts {
			if err := v.Read(ctx, dst[i], raw, start, shape); err != nil {
				return err
			}
		}
		return nil
	}
	var regions []zarr.Region
	var bytes [][]byte
	for i, start := range starts {
		regions = append(regions, zarr.Region{Start: start[:], Shape: shape[:]})
		if v.DType == dtype.Float32 {
			bytes = append(bytes, dtype.Bytes(dst[i][:n]))
		} else {
			bytes = append(bytes, raw[i*n*v.DType.Size():][:n*v.DType.Size()])
		}
	}
	if err := v.Array.ReadRegions(ctx, regions, bytes); err != nil {
		return oct.Readable(err)
	}
	if v.DType != dtype.Float32 {
		for i := range starts {
			filter.FromStored(v.DType, dst[i][:n], bytes[i])
		}
	}
	return nil
}

// stored returns the bytes per voxel that Read and Map need in addition to its float32.
func stored(t dtype.Type) int {
	if t == dtype.Float32 {
		return 0
	}
	return t.Size()
}

// Chunks returns the chunk shape of an output: that of the layout where it is set, otherwise that of the volume.
func (v *Volume) Chunks(layout oct.Layout) [3]int {
	if len(layout.Chunks) != len(v.Chunk) {
		return v.Chunk
	}
	c := v.Chunk
	for d, n := range layout.Chunks {
		if n > 0 {
			c[d] = min(n, v.Shape[d])
		}
	}
	return c
}

// Columns returns the size of blocks that have whole A-lines and the chunks of the output along y and x.
func (v *Volume) Columns(layout oct.Layout) [3]int {
	c := v.Chunks(layout)
	return [3]int{v.Shape[0], c[1], c[2]}
}

// Spec returns the specification of an output with the volume's shape, chunks, axes and voxel size.
func (v *Volume) Spec(t dtype.Type) ngff.ImageSpec {
	level := v.Image.Levels[0]
	spec := ngff.ImageSpec{
		Format: v.Array.Format(), Name: v.Image.Name, Shape: v.Shape[:], DType: t, Chunks: v.Chunk[:],
		Axes: oct.ImageAxes(v.Image), Scale: level.Scale, Translation: level.Translation,
		Attributes: oct.ScanAttributes(v.Image),
	}
	spec.Omero = v.Image.Omero.WithoutWindows()
	return spec
}

// floats returns n numbers of a budgeted buffer.
func floats(ctx context.Context, pool *mem.Pool, n int) ([]float32, *mem.Buffer, error) {
	b, err := pool.Get(ctx, 4*n)
	if err != nil {
		return nil, nil, err
	}
	return dtype.Slice[float32](b.B)[:n], b, nil
}
