package mask

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/work"
)

// smoother passes the planes of a volume, smoothed by a Gaussian that is reflected at the volume's edges.
type smoother struct {
	*blocks.Volume
	res     oct.Resources
	weights [3]*filter.Weights // along z, y and x
	layer   int                // planes read at a time
	ring    int                // planes kept that are smoothed along y and x
	workers int
}

// newSmoother plans to smooth a volume by a Gaussian of sigma µm beside held bytes of a mask.
func newSmoother(v *blocks.Volume, sigma float64, held int64, res oct.Resources) (*smoother, error) {
	s := &smoother{Volume: v, res: res, workers: max(1, res.Workers)}
	reach := 0
	for d, n := range v.Shape {
		px := sigma / v.Voxel[d]
		if d == 0 {
			reach = len(filter.GaussianKernel(px, 0)) / 2
		}
		if filter.WeightsBytes(n, n, px) > res.Mem/8 {
			return nil, res.TooLittle(8*filter.WeightsBytes(n, n, px), "%s: smoothing by %.3g µm, which is %.3g voxels", v.Where, sigma, px)
		}
		s.weights[d] = filter.GaussianWeights(n, px, 0, filter.Reflect)
	}
	area := int64(v.Shape[1]) * int64(v.Shape[2])
	need := func(layer, workers int) int64 {
		ring := min(v.Shape[0], layer+2*reach+1)
		return held + v.LayerBytes(layer, workers) + 4*area*int64(ring+2*workers) + 4*int64(workers)*int64(s.weights[2].RowScratch()) + filter.OtsuSketchBytes
	}
	s.layer = v.Chunk[0]
	for need(s.layer, s.workers) > res.Mem && s.layer > 8 {
		s.layer--
	}
	for need(s.layer, s.workers) > res.Mem && s.workers > 1 {
		s.workers--
	}
	for need(s.layer, s.workers) > res.Mem && s.layer > 1 {
		s.layer--
	}
	if n := need(s.layer, s.workers); n > res.Mem {
		return nil, res.TooLittle(n, "%s: a mask of %d × %d × %d voxels (a coarser level needs less)", v.Where, v.Shape[0], v.Shape[1], v.Shape[2])
	}
	s.ring = min(v.Shape[0], s.layer+2*reach+1)
	return s, nil
}

// visit passes each plane once to f, from several goroutines.
func (s *smoother) visit(ctx context.Context, f func(worker, z int, plane []float32) error) error {
	ny, nx := s.Shape[1], s.Shape[2]
	area := ny * nx
	b, err := mem.Alloc(4 * (area*(s.ring+2*s.workers) + s.workers*s.weights[2].RowScratch()))
	if err != nil {
		return err
	}
	defer mem.Free(b)
	all := dtype.Slice[float32](b)
	ring := func(z int) []float32 { return all[z%s.ring*area:][:area:area] }
	own := func(worker, i int) []float32 { return all[(s.ring+2*worker+i)*area:][:area:area] }
	scratch := func(worker int) []float32 {
		n := s.weights[2].RowScratch()
		return all[(s.ring+2*s.workers)*area+worker*n:][:n:n]
	}
	next := 0 // the first plane that is not smoothed along z
	return s.Layers(ctx, s.res, s.layer, func(first int, planes [][]float32) error {
		err := work.Each(ctx, s.workers, len(planes), func(worker, i int) error {
			for k, v := range planes[i] {
				if v-v != 0 {
					planes[i][k] = 0
				}
			}
			s.weights[1].Apply(own(worker, 0), planes[i], 1, nx)
			s.weights[2].ApplyRows(ring(first+i), own(worker, 0), ny, scratch(worker))
			return nil
		})
		if err != nil {
			return err
		}
		from := next
		for next < s.Shape[0] {
			if _, end := s.weights[0].Inputs(next, next+1); end > first+len(planes) {
				break
			}
			next++
		}
		return work.Each(ctx, s.workers, next-from, func(worker, i int) error {
			dst := own(worker, 1)
			clear(dst)
			lo, taps := s.weights[0].Taps(from + i)
			for k, w := range taps {
				filter.AddCombine(dst, ring(lo+k), 0, []float32{w})
			}
			return f(worker, from+i, dst)
		})
	})
}
