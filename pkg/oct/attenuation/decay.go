package attenuation

import (
	"context"
	"iter"
	"sync"

	"strata/pkg/filter"
)

// leastDecay replaces a slope that is zero or positive, as of tissue that does not darken with depth. It means that all
// light is left below the last plane. If single A-lines kept their rising slopes, every other one would be amplified.
const leastDecay = -1e-6

// decay finds how the mean of the A-lines that end in tissue falls at the end, for [TailSlice].
func (j *job) decay(ctx context.Context) error {
	if j.Tail != TailSlice || j.Method == Vermeer {
		return nil
	}
	row, planes := words(j.size), min(j.size[0], filter.DecayPlanes)
	sums := make([]filter.ExactSum, planes)
	var mu sync.Mutex
	bytes := 4*int64(j.voxels()) + 8*int64(j.size[0]*j.size[1]*row)
	err := j.each(ctx, j.columns(), bytes, "decay of columns", func(_ context.Context, pieces iter.Seq[int]) error {
		own, all, words := make([]filter.ExactSum, planes), make([]float32, j.voxels()), make([]uint64, j.size[0]*j.size[1]*row)
		for i := range pieces {
			shape := j.shape(i)
			v, set := all[:product(shape)], words[:shape[0]*shape[1]*row]
			if err := read(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			if err := read(j.scratch, set, i, bits, 0); err != nil {
				return err
			}
			last, area := set[(shape[0]-1)*shape[1]*row:], shape[1]*shape[2]
			for k := range area {
				y, x := k/shape[2], k%shape[2]
				if last[y*row+x>>6]>>(x&63)&1 == 0 {
					continue
				}
				for z := range planes {
					own[z].Add(max(v[(shape[0]-planes+z)*area+k]-float32(j.result.Floor), 0))
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for z := range sums {
			sums[z].Merge(&own[z])
		}
		return nil
	})
	if err != nil || sums[0].Count() == 0 {
		return err
	}
	means := make([]float64, planes)
	for z := range means {
		means[z] = sums[z].Mean()
	}
	if j.result.Decay = filter.Decay(means); j.result.Decay > leastDecay {
		j.res.Warnf("%s: the tissue does not darken towards its last plane: next to nothing is corrected", j.v.Where)
		j.result.Decay = leastDecay
	}
	return nil
}
