package surface

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
)

// BlankText describes an image for which [Blank] returns true. Below its surface, agarose looks like noise.
const BlankText = "neither a surface nor structure shows, as in noise (was the laser off?) or in agarose cut below its surface"

const (
	// sampledSide is the largest side in px of the boxes of A-lines that are looked at, and sampledBoxes their largest
	// number along each axis.
	sampledSide, sampledBoxes = 128, 4
	// squareSide is the side in px of the squares of A-lines that are compared in pairs. Another square lies between
	// the two, so that no pixel's point spread reaches both.
	squareSide = 4
)

// Blank reports that an image shows neither a surface nor structure, from boxes of A-lines that are spread over it: the
// depths at which they brighten are those of noise, and so is the ratio of brightness between their upper and lower
// halves. That ratio knows no shading, seams or blending of tiles, which all depths share, so that the surface may have
// been cut off, and intensities normalised. Blank reports false for an image with other axes than z, y and x, and where
// a quarter of [oct.Resources.Assured] does not suffice to look.
func Blank(ctx context.Context, in *ngff.Image, res oct.Resources) (bool, error) {
	v, err := blocks.Open(in)
	if err != nil {
		return false, nil
	}
	s := newSample(v.Shape)
	scratch := res.Assured()/4 - int64(s.voxels())*int64(4+v.DType.Size())
	if scratch < v.Array.ScratchBytes(false) || v.Shape[0] < 2 {
		return false, nil
	}
	v.Array = v.Array.With(zarr.Workers(res.Workers), zarr.Budget(scratch))
	voxels, raw := make([]float32, s.voxels()), make([]byte, s.voxels()*v.DType.Size())
	for k := range s.n[0] * s.n[1] {
		start := [3]int{0, s.start(0, k/s.n[1]), s.start(1, k%s.n[1])}
		if err := v.Read(ctx, voxels, raw, start, [3]int{v.Shape[0], s.side[0], s.side[1]}); err != nil {
			return false, err
		}
		s.add(voxels)
	}
	spread, alike, _ := s.depths.measure()
	res.Decided("%s: depths spread by %.2f and correlate by %.2f, ratios of brightness by %.2f", v.Where, spread, alike, s.ratios.NCC())
	return s.blank(), nil
}

// sample collects statistics of boxes of A-lines.
type sample struct {
	shape   [3]int // of the image
	n, side [2]int // number of boxes, and their size in px, along y and x
	search  filter.InterfaceSearch
	space   filter.Workspace
	depths  *Depths
	ratios  filter.Moments // of pairs of squares
}

func newSample(shape [3]int) *sample {
	s := &sample{shape: shape, search: filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2}}
	for d := range s.n {
		s.n[d] = min(max(shape[d+1]/sampledSide, 1), sampledBoxes)
		s.side[d] = min(shape[d+1]/s.n[d], sampledSide)
	}
	s.depths = NewDepths(shape[0], s.search.SigmaXY)
	return s
}

// voxels returns the number of voxels of a box.
func (s *sample) voxels() int { return s.shape[0] * s.side[0] * s.side[1] }

// start returns where box i along an axis begins.
func (s *sample) start(axis, i int) int {
	return (2*i+1)*s.shape[axis+1]/(2*s.n[axis]) - s.side[axis]/2
}

// add looks at a box.
func (s *sample) add(voxels []float32) {
	ny, nx := s.side[0], s.side[1]
	depth, gradient := make([]int32, ny*nx), make([]float32, ny*nx)
	box := filter.Slab[float32]{Data: voxels, Planes: s.shape[0], PlaneStride: ny * nx, RowStride: nx}
	filter.Interfaces(&s.search, &s.space, depth, gradient, box, s.search.Windows(0, ny, ny), s.search.Windows(0, nx, nx))
	s.depths.Add(oct.Rect(0, ny, 0, nx), depth, gradient)
	upper, lower := s.squares(voxels, 0, s.shape[0]/2), s.squares(voxels, s.shape[0]/2, s.shape[0])
	ratio := make([]float64, len(upper))
	for i := range ratio {
		ratio[i] = math.Log(float64(upper[i]) / float64(lower[i]))
	}
	h, w := ny/squareSide, nx/squareSide
	for i, a := range ratio {
		if i%w+2 < w {
			s.pair(a, ratio[i+2])
		}
		if i/w+2 < h {
			s.pair(a, ratio[i+2*w])
		}
	}
}

// squares returns the mean of squares of A-lines over the planes from…to−1.
func (s *sample) squares(voxels []float32, from, to int) []float32 {
	area := s.side[0] * s.side[1]
	sums, mean := make([]float64, area), make([]float32, area)
	filter.AddPlanes(sums, voxels[from*area:to*area])
	filter.Mean(mean, sums, to-from)
	return filter.Binned(nil, mean, s.side[0], s.side[1], [2]int{squareSide, squareSide})
}

// pair adds a pair of squares, unless one of them has no data.
func (s *sample) pair(a, b float64) {
	if p := float64(a * b); p-p == 0 {
		s.ratios.Add(filter.Moments{N: 1, A: a, B: b, AA: a * a, BB: b * b, AB: p})
	}
}

func (s *sample) blank() bool {
	return s.depths.Noise() && s.ratios.N >= leastPairs && s.ratios.NCC() < leastAlike
}
