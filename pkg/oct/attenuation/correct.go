package attenuation

import (
	"context"
	"math"

	"strata/pkg/ngff"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
)

// gainBins is the number of equal bins, of the logarithm, in which gains are counted.
const gainBins = 1 << 16

// correct writes the volume, with each voxel divided by the fraction of the light that reaches it.
func (j *job) correct(ctx context.Context, out store.Writer) (*ngff.Image, error) {
	row := words(j.size)
	type worker struct {
		filler *filler
		set    []uint64
		gains  gains
	}
	workers := make([]worker, max(1, j.res.Workers))
	image, err := j.correcting.Map(ctx, out, j.layout, j.spec(), func(_ context.Context, b *blocks.Block) error {
		w := &workers[b.Worker]
		if w.filler == nil {
			w.filler, w.set = j.newFiller(), make([]uint64, j.size[0]*j.size[1]*row)
			w.gains = gains{counts: make([]int64, gainBins), light: make([]float64, j.size[1]*j.size[2]), most: -math.Log(j.MinBias)}
		}
		set := w.set[:b.Size[0]*b.Size[1]*row]
		if err := read(j.scratch, set, b.Index, bits, 0); err != nil {
			return err
		}
		depth, err := w.filler.fill(j, b.Index)
		if err != nil {
			return err
		}
		w.gains.apply(b.Voxels, depth, set, b.Size, row, &j.Options)
		return nil
	})
	if err != nil {
		return nil, err
	}
	total := gains{counts: make([]int64, gainBins), most: -math.Log(j.MinBias)}
	for i := range workers {
		for bin, n := range workers[i].gains.counts {
			total.counts[bin] += n
		}
		total.largest = max(total.largest, workers[i].gains.largest)
	}
	j.result.MaxGain = max(1, float64(total.largest))
	j.result.MedianGain = total.median()
	return image, nil
}

// gains divides the voxels of a column and collects statistics of the gains. Each worker has its own.
type gains struct {
	light   []float64 // of each A-line: the optical depth so far, from twice the middle of the first voxel to that of the current one
	counts  []int64   // of the voxels in the mask, by the logarithm of the gain
	most    float64   // largest logarithm
	largest float32   // gain
}

// apply divides the voxels of a column by exp(−strength·depth), where the depth is the trapezoidal sum of the voxels'
// from plane 0 on.
func (g *gains) apply(v, depth []float32, set []uint64, shape [3]int, row int, o *Options) {
	area := shape[1] * shape[2]
	clear(g.light)
	scale := 0.0
	if g.most > 0 {
		scale = (gainBins - 1) / g.most
	}
	for z := range shape[0] {
		for y := range shape[1] {
			line, at := set[(z*shape[1]+y)*row:], z*area+y*shape[2]
			light, voxels := g.light[y*shape[2]:][:shape[2]], v[at:][:shape[2]]
			for x, f := range voxels {
				if z > 0 {
					light[x] += (float64(depth[at+x]) + float64(depth[at+x-area])) / 2
				}
				inside := line[x>>6]>>(x&63)&1 != 0
				log := 0.0
				if light[x] > 0 {
					log = min(o.Strength*light[x], g.most)
					b := float32(max(math.Exp(-log), o.MinBias))
					voxels[x] = f / b
					g.largest = max(g.largest, 1/b)
				}
				if inside {
					g.counts[int(log*scale)]++
				}
			}
		}
	}
}

// median returns the median gain in the mask, or 1 if the mask is empty.
func (g *gains) median() float64 {
	total := int64(0)
	for _, n := range g.counts {
		total += n
	}
	rank := total / 2
	for bin, n := range g.counts {
		if rank < n {
			return math.Exp(g.most * float64(bin) / (gainBins - 1))
		}
		rank -= n
	}
	return 1
}
