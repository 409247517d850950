package focal

import (
	"context"
	"fmt"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// mapSpec returns the specification of a float32 map (y, x) with the mosaic's voxel size and the tile as chunk.
func mapSpec(m *oct.Mosaic, name string, shape []int, budget int64) ngff.ImageSpec {
	return ngff.ImageSpec{
		Format: m.Format(), Name: name, Shape: slices.Clone(shape), DType: dtype.Float32,
		Axes: m.Axes()[1:], Scale: m.Image.Levels[0].Scale[1:], Chunks: m.Chunk[1:], Budget: budget,
	}
}

// createMap starts a map with that many levels, stored like the volume of the layout.
func createMap(ctx context.Context, to store.Writer, spec ngff.ImageSpec, levels int, layout oct.Layout, res oct.Resources) (*ngff.Writer, error) {
	own := oct.Layout{Format: layout.Format, Codec: layout.Codec, Levels: levels}
	res.Warn = nil // of the cap of the levels; the volume's says it
	return oct.Create(ctx, to, own, spec, spec.Chunks, res)
}

// saveTileMap writes a map of the tile, and its PNG.
func saveTileMap(ctx context.Context, m *oct.Mosaic, to MapTarget, name string, v []float32, layout oct.Layout, res oct.Resources) error {
	w, err := createMap(ctx, to.Image, mapSpec(m, name, m.Chunk[1:], 0), 0, layout, res)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := w.WriteTile(ctx, []int{0, 0}, m.Chunk[1:], dtype.Bytes(v)); err != nil {
		return err
	}
	if err := w.Close(ctx); err != nil {
		return err
	}
	return mapPicture(ctx, to, res)
}

// mapPicture writes the PNG of a map that has been written.
func mapPicture(ctx context.Context, to MapTarget, res oct.Resources) error {
	im, err := ngff.Open(ctx, to.Image, "", zarr.Workers(1), zarr.Meter(res.Meter))
	if err != nil {
		return err
	}
	a := im.Levels[0].Array
	ny, nx := a.Shape()[0], a.Shape()[1]
	q := filter.NewQuantiles(oct.PNGPercentiles[:]...)
	rows := oct.BandRows(a, res.Mem)
	v := make([]float32, rows*nx)
	for pass := range 2 {
		for y := 0; y < ny; y += rows {
			n := min(rows, ny-y)
			if err := a.Read(ctx, zarr.Region{Start: []int{y, 0}, Shape: []int{n, nx}}, dtype.Bytes(v[:n*nx])); err != nil {
				return err
			}
			q.Add(v[:n*nx])
		}
		if pass == 0 {
			q.Refine()
		}
	}
	return oct.WritePNG(ctx, to.PNG, a, rows, q.Value(0), q.Value(1), 0)
}

// maxCorrection is the largest shift accepted in a saved correction, in voxels: beyond it float32 has no
// fractions.
const maxCorrection = 1 << 23

// readCorrection reads a saved correction, and checks that it fits the tiles of the mosaic.
func readCorrection(ctx context.Context, m *oct.Mosaic, im *ngff.Image) ([]float32, error) {
	a := im.Levels[0].Array
	shape, tile := a.Shape(), m.Chunk[1:]
	if len(shape) != 2 {
		return nil, oct.BadInput("%s: a correction has 2 axes (y, x), this image has %d", a.Location(), len(shape))
	}
	if !slices.Equal(shape, tile) {
		return nil, oct.BadInput("%s: the correction has shape %v, the tiles of %s have %v: it belongs to another acquisition", a.Location(), shape, m.Where, tile)
	}
	if !a.DType().IsFloat() && !a.DType().IsInteger() {
		return nil, oct.BadInput("%s: data type %v: want float32", a.Location(), a.DType())
	}
	raw := make([]byte, shape[0]*shape[1]*a.DType().Size())
	if err := a.Read(ctx, a.Bounds(), raw); err != nil {
		return nil, err
	}
	v := make([]float32, shape[0]*shape[1])
	if err := dtype.Convert(dtype.Bytes(v), dtype.Float32, raw, a.DType()); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Location(), err)
	}
	for i, f := range v {
		if !(math.Abs(float64(f)) <= maxCorrection) {
			return nil, oct.BadInput("%s: pixel (%d, %d) of the correction is %v, want a shift in voxels", a.Location(), i/shape[1], i%shape[1], f)
		}
	}
	return v, nil
}
