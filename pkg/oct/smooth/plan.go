package smooth

import (
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// smoothPlan holds everything known before a voxel is read. Arrays of three refer to the axes (z, y, x); an image
// without z has one plane.
type smoothPlan struct {
	image      *ngff.Image
	array      *zarr.Array
	where      string
	dtype, out dtype.Type
	how        Options
	res        oct.Resources

	shape, chunks []int // of the image, and of the output's chunks
	lead          int   // axes before those of space
	space         [3]int
	window        [3]int          // of the median
	kernels       [2][3][]float64 // to smooth with, and derivatives
	linear        bool            // there are kernels
	radius        [3]int          // of all filters together
	around        [3]int          // the part of radius that the kernels need

	smoothTiling
	pyramidMem int64
	useful     int   // workers that tiles keep busy
	all        int64 // Mem that would hold as many
}

// mostSigma is the largest sigma of a Gaussian in voxels: its halos are four times as wide.
const mostSigma = 4096

// mostMedian is the largest window of a median.
const mostMedian = 99

func planSmooth(in *ngff.Image, how Options, layout oct.Layout, res oct.Resources) (*smoothPlan, error) {
	a := in.Levels[0].Array
	p := &smoothPlan{image: in, array: a, where: a.Location(), dtype: a.DType(), how: how, res: res, shape: a.Shape()}
	if err := oct.Computable(p.dtype, p.where); err != nil {
		return nil, err
	}
	p.lead = slices.IndexFunc(in.Axes, func(x ngff.Axis) bool { return x.Type == ngff.TypeSpace })
	n := len(p.shape) - p.lead
	if p.lead < 0 || n < 2 || n > 3 || slices.ContainsFunc(in.Axes[p.lead:], func(x ngff.Axis) bool { return x.Type != ngff.TypeSpace }) {
		return nil, oct.BadInput("%s: axes %s: want two or three space axes, and others before them", p.where, axisNames(in))
	}
	p.space = p.inSpace(p.shape, 1)
	size := float64(p.dtype.Size())
	for _, length := range p.shape {
		if length < 1 {
			return nil, oct.BadInput("%s: image is empty: shape %v", p.where, p.shape)
		}
		if size *= float64(length); size > math.MaxInt64 {
			return nil, oct.BadInput("%s: image of shape %v has more bytes than can be counted", p.where, p.shape)
		}
	}
	if err := p.planFilters(); err != nil {
		return nil, err
	}
	if p.out = how.DType; p.out == dtype.Invalid {
		if p.out = p.dtype; how.Gradient {
			p.out = dtype.Float32
		}
	}
	p.chunks = p.outputChunks()
	if len(layout.Chunks) == len(p.chunks) {
		for d, n := range layout.Chunks {
			p.chunks[d] = min(n, p.shape[d])
		}
	}
	return p, nil
}

func axisNames(im *ngff.Image) (names []string) {
	for _, a := range im.Axes {
		names = append(names, a.Name)
	}
	return names
}

// planFilters makes the filters' windows and kernels. No filter acts along an axis of one voxel.
func (p *smoothPlan) planFilters() error {
	how := p.how
	if how.Median == 0 && how.Sigma == nil && !how.Gradient {
		return errNoFilter
	}
	if how.Median != 0 && (how.Median < 1 || how.Median > mostMedian || how.Median%2 == 0) {
		return oct.LayoutErrorf("--median %d: want an odd number of voxels from 1 to %d", how.Median, mostMedian)
	}
	p.linear = how.Sigma != nil || how.Gradient
	slopes, long := !how.Gradient, false
	for d, n := range p.space {
		p.window[d], p.kernels[0][d] = 1, []float64{1}
		if n == 1 {
			continue
		}
		long = true
		p.window[d] = max(1, how.Median)
		switch {
		case how.Sigma != nil:
			sigma, err := p.sigma(d)
			if err != nil {
				return err
			}
			p.kernels[0][d] = filter.GaussianKernel(sigma, 0)
			if how.Gradient && len(p.kernels[0][d]) > 1 {
				p.kernels[1][d] = filter.GaussianKernel(sigma, 1)
			} else if how.Gradient {
				p.res.Warnf("a Gaussian of %.3g voxels along %s is no more than a voxel: the gradient along it is left out", sigma, p.name(d))
			}
		case how.Gradient:
			p.kernels[0][d], p.kernels[1][d] = filter.SobelKernel(0), filter.SobelKernel(1)
		}
		slopes = slopes || p.kernels[1][d] != nil
		p.around[d] = len(p.kernels[0][d]) / 2
		p.radius[d] = p.around[d] + p.window[d]/2
	}
	switch {
	case slopes:
	case long:
		return oct.LayoutErrorf("%s: no axis has a gradient: a Gaussian that has one is wider than an eighth of a voxel", p.where)
	default:
		p.kernels[1][2] = []float64{0} // one voxel is level
	}
	return nil
}

// name returns the name of a space axis.
func (p *smoothPlan) name(d int) string { return p.image.Axes[len(p.shape)-3+d].Name }

// sigma returns the Gaussian's sigma along an axis, in voxels.
func (p *smoothPlan) sigma(d int) (float64, error) {
	flag, sigma, given := "--sigma", 0.0, p.how.Sigma
	if p.how.InVoxels {
		flag = "--sigma_px"
	}
	n := len(p.shape) - p.lead
	switch len(given) {
	case 1:
		sigma = given[0]
	case n:
		sigma = given[d-(3-n)]
	default:
		return 0, oct.LayoutErrorf("%s has %d numbers: want one, or %d for %v of %s", flag, len(given), n, axisNames(p.image)[p.lead:], p.where)
	}
	voxels := sigma
	if !p.how.InVoxels {
		voxels /= p.image.VoxelSize[len(p.shape)-3+d]
	}
	if !(voxels >= 0 && voxels <= mostSigma) {
		return 0, oct.LayoutErrorf("%s %v is %.4g voxels along %s of %s: want at most %d", flag, sigma, voxels, p.name(d), p.where, mostSigma)
	}
	return voxels, nil
}

// outputChunks returns the input's chunks, limited so that a few of them with halos fit into memory, and enlarged
// if they are as flat as the strips of some scanners.
func (p *smoothPlan) outputChunks() []int {
	chunks := slices.Clone(p.array.Chunks())
	most := 1024
	if p.space[0] > 1 {
		most = 256
	}
	for d, n := range chunks {
		switch {
		case d < p.lead:
			n = min(n, 4) // colours of a pixel
		case d < len(chunks)-2: // z
			n = min(n, most)
		default:
			n = max(64, min(n, most))
		}
		chunks[d] = min(n, p.shape[d])
	}
	return chunks
}
