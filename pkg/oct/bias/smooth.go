package bias

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/work"
)

// reach is the radius in planes of the Gaussian along z, whose sigma is one plane.
const reach = 4

// visitor gets the planes of a volume as they are and smoothed, from several goroutines: each plane once, planes of a
// kind in increasing z from layer to layer.
type visitor struct {
	raw    func(worker, z int, plane []float32)
	smooth func(worker, z int, plane []float32) error
}

// visit reads the volume and smooths it by a Gaussian of (1, sigma, sigma) voxels, section by section. Voxels that are
// no finite numbers count as 0 there.
func (p *plan) visit(ctx context.Context, v visitor) error {
	size := p.layer + 2*reach
	b, err := mem.Alloc(4 * p.area * (size + p.workers))
	if err != nil {
		return err
	}
	defer mem.Free(b)
	all := dtype.Slice[float32](b)
	at := func(i int) []float32 { return all[i*p.area:][:p.area:p.area] }
	ring := func(z int) []float32 { return at(z % size) }
	across, along := taps(p.opt.MaskSigma), taps(1)
	next := 0 // the first plane that is not smoothed along z
	return p.Layers(ctx, p.res, p.layer, func(first int, planes [][]float32) error {
		err := work.Each(ctx, p.workers, len(planes), func(worker, i int) error {
			v.raw(worker, first+i, planes[i])
			for k, f := range planes[i] {
				if f-f != 0 {
					planes[i][k] = 0
				}
			}
			filter.Separable(ring(first+i), planes[i], p.Shape[1], p.Shape[2], across)
			return nil
		})
		if err != nil {
			return err
		}
		end := next
		for end < p.Shape[0] && min(end+reach, p.section(end)[1]-1) < first+len(planes) {
			end++
		}
		from := next
		next = end
		return work.Each(ctx, p.workers, end-from, func(worker, i int) error {
			z := from + i
			s := p.section(z)
			dst := at(size + worker)
			for y := range p.Shape[1] { // a row at a time stays in the cache
				row := y * p.Shape[2]
				out := dst[row : row+p.Shape[2]]
				clear(out)
				for k, w := range along {
					src := ring(s[0] + filter.Reflect.Index(z-s[0]+k-reach, s[1]-s[0]))
					filter.AddCombine(out, src[row:row+p.Shape[2]], 0, []float32{w})
				}
			}
			return v.smooth(worker, z, dst)
		})
	})
}

func taps(sigma float64) (t []float32) {
	for _, w := range filter.GaussianKernel(sigma, 0) {
		t = append(t, float32(w))
	}
	return t
}

// sectionOf returns the number of the section of a plane.
func (p *plan) sectionOf(z int) int {
	i := min(z*len(p.sections)/p.Shape[0], len(p.sections)-1)
	for z < p.sections[i][0] {
		i--
	}
	for z >= p.sections[i][1] {
		i++
	}
	return i
}

func (p *plan) section(z int) [2]int { return p.sections[p.sectionOf(z)] }
