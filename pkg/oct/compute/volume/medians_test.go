package volume

import (
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/tests/octtest"
)

// The medians are exact also when the sample misleads: every fourth voxel,
// which is what the sample sees, is brighter than all others.
func TestMediansOfMisleadingSamples(t *testing.T) {
	const n, depth = 512, 3
	rng := rand.New(rand.NewPCG(6, 6))
	for _, misleading := range []bool{false, true} {
		res := octtest.Small()
		mem := OpenHost(t.Context(), nil, &res)
		var fixed, moving []Plane
		var both [2][]float64
		r := oct.Rect(1, n, 0, n-1)
		i := 0
		for range depth {
			f, m := make([]float32, n*n), make([]float32, n*n)
			for k := range f {
				f[k], m[k] = rng.Float32()*100-10, float32(rng.IntN(50))
			}
			for y := r.Y0; y < r.Y1; y++ {
				for x := r.X0; x < r.X1; x++ {
					k := y*n + x
					if step := depth * (r.Y1 - r.Y0) * (r.X1 - r.X0) / sampled; misleading && i%step == 0 {
						f[k], m[k] = 1000+f[k], 1000+m[k]
					}
					i++
					if f[k] > 0 && m[k] > 0 {
						both[0], both[1] = append(both[0], float64(f[k])), append(both[1], float64(m[k]))
					}
				}
			}
			fixed, moving = append(fixed, Planes(f, 1, n, n)...), append(moving, Planes(m, 1, n, n)...)
		}
		for _, piece := range []int{depth, 1} {
			medians, passes := mem.Medians(r, depth), 0
			for ; medians.Next(); passes++ {
				for at := 0; at < depth; at += piece {
					medians.Add(at, fixed[at:at+piece], moving[at:at+piece])
				}
			}
			count, here, there := medians.Values()
			if err := mem.Err(); err != nil || count != int64(len(both[0])) || here != filter.MedianOf(both[0]) || there != filter.MedianOf(both[1]) {
				t.Errorf("misleading %v: %d voxels, medians %v and %v (%v), want %d, %v and %v", misleading, count, here, there, err, len(both[0]), filter.MedianOf(both[0]), filter.MedianOf(both[1]))
			}
			if (misleading && piece == depth) != (passes == 3) {
				t.Errorf("misleading %v: %d passes", misleading, passes)
			}
		}
	}
}
