// Package agarose tells the agarose around the tissue of a slice from the tissue: the A-lines whose mean lies below
// Otsu's threshold of all means. A-lines without data, whose mean is not above 0, are neither.
package agarose

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/work"
)

// A Mask tells which A-lines (y, x) are agarose, in C order.
type Mask struct {
	Lines     []bool
	Count     int
	Threshold float64 // of the means; NaN if there is none
}

// Coverage returns the share of A-lines that are agarose, of all A-lines.
func (m *Mask) Coverage() float64 { return float64(m.Count) / float64(len(m.Lines)) }

// Few reports whether the means have no two classes, so that there is no threshold.
func (m *Mask) Few() bool { return math.IsNaN(m.Threshold) }

// Bytes returns the memory that [Means], [Find] and [Mask.Runs] need for the A-lines of a volume: means, their
// Gaussian, the mask and, where agarose and tissue alternate, as much again for runs as for means.
func Bytes(v *blocks.Volume) int64 { return (4 + 4 + 1 + 4) * int64(v.Shape[1]) * int64(v.Shape[2]) }

// Means returns the mean over z of the finite voxels of each A-line, those above clip counted as clip. An A-line
// without finite voxels has the mean 0. The sums run in increasing z in float64, one division, one rounding. see is
// called with each block that is read, with the voxels as they are stored, from several goroutines; it may be nil.
// Without it, voxels in memory are summed where they lie.
func Means(ctx context.Context, v *blocks.Volume, clip float64, res oct.Resources, see func(b *blocks.Block)) ([]float32, error) {
	if all := v.Held(); all != nil && see == nil {
		return heldMeans(ctx, v, clip, res)
	}
	c, err := v.Cut(blocks.Plan{Size: v.Chunk, PerVoxel: 12, Down: true, Shrink: true, Work: "averaging A-lines"}, res)
	if err != nil {
		return nil, err
	}
	means := make([]float32, v.Shape[1]*v.Shape[2])
	type sums struct {
		sum []float64
		n   []int32
	}
	workers := make([]sums, max(1, res.Workers))
	err = c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		if see != nil {
			see(b)
		}
		s, area, o := &workers[b.Worker], b.Size[1]*b.Size[2], b.Origin()
		if s.sum == nil {
			s.sum, s.n = make([]float64, c.Size[1]*c.Size[2]), make([]int32, c.Size[1]*c.Size[2])
		}
		if o[0] == 0 {
			clear(s.sum)
			clear(s.n)
		}
		for z := range b.Size[0] {
			for i, f := range b.Voxels[z*area:][:area] {
				if f-f == 0 {
					s.sum[i] += min(float64(f), clip)
					s.n[i]++
				}
			}
		}
		if o[0]+b.Size[0] < v.Shape[0] {
			return nil
		}
		for y := range b.Size[1] {
			row := means[(o[1]+y)*v.Shape[2]+o[2]:]
			for x := range b.Size[2] {
				i := y*b.Size[2] + x
				row[x] = 0
				if s.n[i] > 0 {
					row[x] = float32(s.sum[i] / float64(s.n[i]))
				}
			}
		}
		return nil
	})
	return means, err
}

// heldLines is the number of A-lines whose sums fit into the nearest cache.
const heldLines = 2048

// heldMeans is Means of a volume in memory.
func heldMeans(ctx context.Context, v *blocks.Volume, clip float64, res oct.Resources) ([]float32, error) {
	all, depth := v.Held(), v.Shape[0]
	means := make([]float32, v.Shape[1]*v.Shape[2])
	err := work.Each(ctx, res.Workers, (len(means)+heldLines-1)/heldLines, func(_, i int) error {
		var sums [heldLines]float64
		at := i * heldLines
		n := min(heldLines, len(means)-at)
		if filter.AddClipped(sums[:n], all[at:], depth, len(means), float32(clip)) == 0 {
			filter.Mean(means[at:at+n], sums[:n], depth)
		} else {
			finiteMeans(means[at:at+n], all[at:], depth, len(means), clip)
		}
		res.Done(int64(n) * int64(depth) * int64(v.DType.Size()))
		return nil
	})
	return means, err
}

// finiteMeans computes the means of A-lines, some of whose voxels are not finite. Planes begin stride voxels apart.
func finiteMeans(means, voxels []float32, depth, stride int, clip float64) {
	for i := range means {
		sum, n := 0.0, 0
		for z := range depth {
			if f := voxels[z*stride+i]; f-f == 0 {
				sum += min(float64(f), clip)
				n++
			}
		}
		if n > 0 {
			means[i] = float32(sum / float64(n))
		}
	}
}

// Find returns the mask of A-lines with the given means, whose Otsu threshold is taken of a Gaussian of them of sigma
// pixels along y and x (mirrored at the edges, cut off at 4 sigma), where the mean is above 0.
func Find(means []float32, ny, nx int, sigma float64) *Mask {
	smooth := means
	if sigma > 0 {
		along, across := filter.GaussianWeights(ny, sigma, 0, filter.Reflect), filter.GaussianWeights(nx, sigma, 0, filter.Reflect)
		smooth = make([]float32, ny*nx)
		along.Apply(smooth, means, 1, nx)
		across.ApplyRows(smooth, smooth, ny, make([]float32, across.RowScratch()))
		for i, m := range means {
			if !(m > 0) {
				smooth[i] = 0 // it does not count
			}
		}
	}
	return find(means, smooth)
}

// rounding is the relative difference that smoothing leaves between equal means.
const rounding = 1e-6

// find splits A-lines by the threshold of what is above 0 in smooth.
func find(means, smooth []float32) *Mask {
	m := &Mask{Lines: make([]bool, len(means)), Threshold: math.NaN()}
	t, ok := filter.PositiveOtsu(smooth)
	if low, high, _ := filter.PositiveRange(smooth); !ok || float64(high)-float64(low) <= float64(rounding*float64(high)) {
		return m
	}
	m.Threshold = t
	for i, f := range means {
		if f > 0 && float64(smooth[i]) < t {
			m.Lines[i] = true
			m.Count++
		}
	}
	return m
}

// Runs returns the A-lines of the mask as runs in C order: the first of each, and that behind its last.
func (m *Mask) Runs() (runs [][2]int32) {
	for i := 0; i < len(m.Lines); i++ {
		if !m.Lines[i] {
			continue
		}
		from := i
		for i < len(m.Lines) && m.Lines[i] {
			i++
		}
		runs = append(runs, [2]int32{int32(from), int32(i)})
	}
	return runs
}

const (
	longRun  = 512     // A-lines of a run that is worth a call of its own
	someRuns = 1 << 14 // voxels of short runs that are put together for one
)

// Parts calls f with all voxels of runs of A-lines of a whole plane, those of short runs put together in buf, which it
// returns.
func Parts(buf, plane []float32, runs [][2]int32, f func(voxels []float32)) []float32 {
	buf = buf[:0]
	for _, r := range runs {
		run := plane[r[0]:r[1]]
		if len(run) >= longRun {
			f(run)
			continue
		}
		if buf = append(buf, run...); len(buf) >= someRuns {
			f(buf)
			buf = buf[:0]
		}
	}
	f(buf)
	return buf
}

// Select appends the finite voxels of a plane of a block that lie in the agarose to dst.
func (m *Mask) Select(dst []float32, v *blocks.Volume, b *blocks.Block, z int) []float32 {
	o := b.Origin()
	for y := range b.Size[1] {
		lines := m.Lines[(o[1]+y)*v.Shape[2]+o[2]:]
		for x, f := range b.Voxels[b.At(z, y, 0):][:b.Size[2]] {
			if lines[x] && f-f == 0 {
				dst = append(dst, f)
			}
		}
	}
	return dst
}
