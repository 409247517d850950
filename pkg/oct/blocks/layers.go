package blocks

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// LayerBytes returns the memory that [Volume.Layers] needs for n planes at a time.
func (v *Volume) LayerBytes(n, workers int) int64 {
	size := mem.Product(n, v.Shape[1], v.Shape[2], 4+stored(v.DType))
	return int64(mem.Sum(size, mem.Product(int(v.Array.ScratchBytes(false)), workers)))
}

// Layers reads whole planes in increasing z, n at a time or fewer at the end, and calls f with the z of the first. f
// may change them. Reports of progress count the planes.
func (v *Volume) Layers(ctx context.Context, res oct.Resources, n int, f func(z int, planes [][]float32) error) error {
	area := v.Shape[1] * v.Shape[2]
	b, err := mem.Alloc(mem.Product(n, area, 4+stored(v.DType)))
	if err != nil {
		return err
	}
	defer mem.Free(b)
	voxels, raw := dtype.Slice[float32](b[:4*n*area]), b[4*n*area:]
	whole := *v
	whole.Array = v.Array.With(zarr.Workers(res.Workers))
	for z := 0; z < v.Shape[0]; z += n {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := min(n, v.Shape[0]-z)
		if err := whole.Read(ctx, voxels[:m*area], raw, [3]int{z, 0, 0}, [3]int{m, v.Shape[1], v.Shape[2]}); err != nil {
			return err
		}
		planes := make([][]float32, m)
		for i := range planes {
			planes[i] = voxels[i*area:][:area:area]
		}
		if err := f(z, planes); err != nil {
			return err
		}
		res.Done(int64(m) * int64(area) * int64(v.DType.Size()))
	}
	return nil
}
