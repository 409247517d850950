// Package smooth filters an image by a median, a Gaussian and a gradient. It is the pipeline's smooth stage; [Run]
// does all of it.
package smooth

import (
	"context"
	"fmt"
	"iter"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/units"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options selects the filters of [Run], which are applied in this order: median, Gaussian, gradient.
type Options struct {
	// Median is the odd width in voxels of the median's window along each space axis; 0: no median.
	Median int
	// Sigma is the standard deviation of the Gaussian: one number, or one for each space axis in the order of the
	// image; nil: no Gaussian. It is in µm or, with InVoxels, in voxels.
	Sigma    []float64
	InVoxels bool
	// Gradient takes the magnitude of the gradient, by Sobel's operator or, with a Sigma, by derivatives of the
	// Gaussian.
	Gradient bool
	// Border selects the values beyond the image's edges.
	Border tile.BorderMode
	// DType is the type of the output; Invalid: the input's, or float32 for a gradient.
	DType dtype.Type
}

// Run filters an image of any size along its space axes, 2-D or 3-D, and writes it as an OME-Zarr image. Other
// axes (channels, time) are iterated over. An axis of one voxel is ignored: a plane is filtered as a plane.
//
// Run computes in float32 for float32 and integers of up to 16 bits, otherwise in float64; medians are exact.
// Results are rounded to integers half to even and clamped. The values beyond the edges are derived anew from each
// filter's result, as by successive calls of scipy.ndimage. The numbers do not depend on workers, memory or
// chunks.
//
// Workers process views of a [tile.Loader]: one chunk of the output, or several if the halo would be large in
// comparison, with the surroundings that the filters need.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, how Options, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	p, err := planSmooth(in, how, layout, res)
	if err != nil {
		return nil, err
	}
	return smoothers[p.dtype](ctx, p, out, layout)
}

// smoothers maps the input's element type to smooth with the type of the sums, which represents all elements.
var smoothers = map[dtype.Type]func(ctx context.Context, p *smoothPlan, out store.Writer, layout oct.Layout) (*ngff.Image, error){
	dtype.Uint8: smooth[uint8, float32], dtype.Int8: smooth[int8, float32], dtype.Uint16: smooth[uint16, float32], dtype.Int16: smooth[int16, float32],
	dtype.Uint32: smooth[uint32, float64], dtype.Int32: smooth[int32, float64], dtype.Uint64: smooth[uint64, float64], dtype.Int64: smooth[int64, float64],
	dtype.Float32: smooth[float32, float32], dtype.Float64: smooth[float64, float64],
}

func smooth[T dtype.Element, F float32 | float64](ctx context.Context, p *smoothPlan, out store.Writer, layout oct.Layout) (*ngff.Image, error) {
	if err := tileSmooth[T, F](p); err != nil {
		return nil, err
	}
	if len(layout.Chunks) == len(p.chunks) {
		layout.Chunks = p.chunks
	}
	src, err := zarrsource.New(p.array, zarrsource.Tile(p.tile...), zarrsource.Meter(p.res.Meter))
	if err != nil {
		return nil, err
	}
	radii := make([]int, len(p.shape))
	copy(radii[p.lead:], p.radius[3-len(radii)+p.lead:])
	loader, err := tile.New[T](src, tile.Radii(radii...), tile.Border(p.how.Border), tile.CacheBytes(max(1, p.cache)), tile.ViewsAvailable(p.workers))
	if err != nil {
		return nil, err
	}
	defer loader.Close()
	w, err := oct.Create(ctx, out, layout, p.spec(), p.chunks, p.res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	tiles := p.tiles()
	what := fmt.Sprintf("filtering tiles of %v voxels, a cache of %s", p.tile, units.FormatSize(p.cache))
	crew := p.res.Crew(oct.Team{What: what, Workers: p.workers, Pieces: p.useful, Each: p.each, All: p.all})
	err = crew.Share(ctx, tiles, func(ctx context.Context, _ int, tiles iter.Seq[int]) error {
		return newSmoother[T, F](p, loader, w).work(ctx, tiles)
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(p.res.Workers), zarr.Meter(p.res.Meter))
}

// spec returns the specification of the output.
func (p *smoothPlan) spec() ngff.ImageSpec {
	level := p.image.Levels[0]
	return ngff.ImageSpec{
		Format: p.array.Format(), Name: p.image.Name, Shape: p.shape, DType: p.out, Chunks: p.chunks, Budget: p.pyramidMem,
		Axes: oct.ImageAxes(p.image), Scale: level.Scale, Translation: level.Translation, Omero: p.image.Omero.WithoutWindows(),
	}
}

var errNoFilter = oct.LayoutErrorf("no filter: want a median, a sigma or a gradient")
