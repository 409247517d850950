package attenuation

import (
	"context"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
)

// job holds the state of a run. Its passes visit columns of A-lines, in the grid of the output's chunks.
type job struct {
	Options
	v       *blocks.Volume
	layout  oct.Layout
	res     oct.Resources
	size    [3]int // of a column
	grid    [2]int // columns along y and x
	scratch *scratch
	result  *Result

	smoothing, medianing, correcting *blocks.Cut // the passes over voxels; see plan

	least, most float32 // of the smoothed voxels above 0
	positive    int64   // their number
	outside     int64   // voxels outside the first mask
	medians     *filter.Quantiles
}

func (j *job) columns() int { return j.grid[0] * j.grid[1] }

// shape returns the shape of a column.
func (j *job) shape(column int) [3]int {
	y, x := column/j.grid[1]*j.size[1], column%j.grid[1]*j.size[2]
	return [3]int{j.size[0], min(j.size[1], j.v.Shape[1]-y), min(j.size[2], j.v.Shape[2]-x)}
}

// voxels returns the number of voxels of the largest column.
func (j *job) voxels() int { return j.size[0] * j.size[1] * j.size[2] }

// each calls run once per worker with the pieces 0…n−1 that it works on; each worker needs so many bytes.
func (j *job) each(ctx context.Context, n int, bytes int64, what string, run func(ctx context.Context, pieces iter.Seq[int]) error) error {
	workers, err := j.workers(bytes, what)
	if err != nil {
		return err
	}
	all := int64(j.res.Busy(n)) * bytes * 4 / 3
	return j.res.Crew(oct.Team{What: what, Workers: workers, Pieces: n, Each: bytes, All: all + 4}).Share(ctx, n, func(ctx context.Context, _ int, pieces iter.Seq[int]) error { return run(ctx, pieces) })
}

// workers returns how many workers fit into memory if each needs so many bytes.
func (j *job) workers(bytes int64, what string) (int, error) {
	n := min(int64(j.res.Workers), j.res.Mem*3/4/max(1, bytes))
	if n < 1 {
		return 0, j.res.TooLittle(bytes*4/3+1, "%s: %s of %v voxels", j.v.Where, what, j.size)
	}
	return int(n), nil
}

// columnBytes is the number of bytes of bookkeeping for each column between passes.
const columnBytes = 16

// plan divides the volume for each pass, and returns an error if there is too little memory for one of them.
func (j *job) plan() (err error) {
	if need := int64(mem.Product(j.grid[0], j.grid[1], columnBytes)); need > j.res.Mem {
		return j.res.TooLittle(need, "%s: keeping account of %d × %d columns", j.v.Where, j.grid[0], j.grid[1])
	}
	kernels, r := j.kernels()
	stencil := filter.NewStencil[float32](kernels, [3][]float64{})
	if j.smoothing, err = j.v.Cut(blocks.Plan{Size: j.size, Halo: [3]int{0, r[1], r[2]}, Fixed: 4*j.wide(r) + 8*int64(j.voxels()) + stencil.Bytes(j.size), Work: "smoothing columns"}, j.res); err != nil {
		return err
	}
	k := j.Radius
	mask, area := 8*int64(j.size[0]*j.size[1]*words(j.size)), int64(j.size[1]*j.size[2])
	fixed := 4*int64(j.size[1]+2*k)*int64(j.size[2]+2*k) + 4*int64(j.voxels()) + mask + 4*area
	if j.medianing, err = j.v.Cut(blocks.Plan{Size: j.size, Halo: [3]int{0, k, k}, Fixed: fixed + filter.NewPlaneMedian(k).Bytes(j.size[1], j.size[2]), Work: "medians of columns"}, j.res); err != nil {
		return err
	}
	fixed = j.fillerBytes() + mask + 8*area + 8*gainBins
	if j.correcting, err = j.v.Cut(blocks.Plan{Size: j.size, Fixed: fixed, Work: "correcting columns"}, j.res); err != nil {
		return err
	}
	if err = j.correcting.ForMap(j.layout, j.spec()); err != nil {
		return err
	}
	// the passes over what is kept: no other needs more than these
	if _, err = j.workers(max(j.fillerBytes(), 4*int64(j.voxels())+mask+4*area+j.scratch.offsets[heights+1]-j.scratch.offsets[heights]), "filling columns"); err != nil {
		return err
	}
	plane, extra := filter.BitPlaneBytes(j.v.Shape[1], j.v.Shape[2])
	_, err = j.workers(plane+extra, "planes of the mask")
	return err
}

// kernels returns the Gaussians along z, y and x by which the volume is smoothed, and their radii.
func (j *job) kernels() (kernels [3][]float64, r [3]int) {
	for d, sigma := range [3]float64{1, j.MaskSigma, j.MaskSigma} {
		kernels[d] = filter.GaussianKernel(sigma, 0)
		r[d] = len(kernels[d]) / 2
	}
	return kernels, r
}

// wide returns the number of voxels of a column with r more on each side.
func (j *job) wide(r [3]int) int64 {
	return int64(j.size[0]+2*r[0]) * int64(j.size[1]+2*r[1]) * int64(j.size[2]+2*r[2])
}

// smooth keeps the volume smoothed by a Gaussian of a voxel along z and of MaskSigma along y and x, mirrored at its
// ends, and finds the range of what is above 0.
func (j *job) smooth(ctx context.Context) error {
	kernels, r := j.kernels()
	wide, c := j.wide(r), j.smoothing
	type worker struct {
		stencil         *filter.Stencil[float32]
		src, dst, share []float32
	}
	workers := make([]worker, max(1, j.res.Workers))
	var mu sync.Mutex
	j.least, j.most = float32(math.Inf(1)), float32(math.Inf(-1))
	return c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		w := &workers[b.Worker]
		if w.stencil == nil {
			w.stencil = filter.NewStencil[float32](kernels, [3][]float64{})
			w.src, w.dst = make([]float32, wide), make([]float32, j.voxels())
		}
		n := b.Size[0] * b.Size[1] * b.Size[2]
		src, dst := w.src, w.dst[:n]
		holes := mirrored(src, b, r, false)
		w.stencil.Apply(dst, src, b.Size)
		if holes { // the mean of the others, weighted by the same Gaussian
			if w.share == nil {
				w.share = make([]float32, j.voxels())
			}
			mirrored(src, b, r, true)
			w.stencil.Apply(w.share[:n], src, b.Size)
			for i, s := range w.share[:n] {
				switch {
				case s == 0:
				case s < 0.999:
					dst[i] /= 1 - s
				default:
					dst[i] = 0
				}
			}
		}
		low, high, count := filter.PositiveRange(dst)
		mu.Lock()
		j.least, j.most, j.positive = min(j.least, low), max(j.most, high), j.positive+count
		mu.Unlock()
		return write(j.scratch, dst, b.Index, numbers, 0)
	})
}

// mirrored copies a block, with a margin of r samples that is mirrored at the volume's edges, to dst. Non-finite voxels
// become 0. If missing is set, it writes a mask instead: 1 for non-finite voxels, 0 for all others. It reports whether
// there are non-finite voxels.
func mirrored(dst []float32, b *blocks.Block, r [3]int, missing bool) (found bool) {
	o := b.Origin()
	columns := make([]int, b.Size[2]+2*r[2])
	whole := [3]int{} // of the volume, where the block ends with it; else far away
	for d := range whole {
		whole[d] = b.Start[d] + b.Shape[d]
	}
	index := func(d, i int) int { // of a sample within the block
		at := filter.Reflect.Index(o[d]+i-r[d], max(whole[d], 1)) - b.Start[d]
		return at
	}
	for i := range columns {
		columns[i] = index(2, i)
	}
	k := 0
	for z := range b.Size[0] + 2*r[0] {
		for y := range b.Size[1] + 2*r[1] {
			row := b.Voxels[b.At(index(0, z), index(1, y), 0):]
			for i, x := range columns {
				f := row[x]
				bad := f-f != 0
				found = found || bad
				switch {
				case bad && !missing:
					f = 0
				case bad:
					f = 1
				case missing:
					f = 0
				}
				dst[k+i] = f
			}
			k += len(columns)
		}
	}
	return found
}

// mask finds the tissue: where the smoothed volume is above Otsu's threshold of its voxels above 0, or all of it where
// these are fewer than 100. In each plane holes are filled and gaps are closed.
func (j *job) mask(ctx context.Context) error {
	h := filter.NewOtsuHistogram(float64(j.least), float64(j.most))
	bytes := 4 * int64(j.voxels())
	var mu sync.Mutex
	err := j.each(ctx, j.columns(), bytes, "counting columns", func(_ context.Context, pieces iter.Seq[int]) error {
		own, all := filter.NewOtsuHistogram(float64(j.least), float64(j.most)), make([]float32, j.voxels())
		for i := range pieces {
			v := all[:product(j.shape(i))]
			if err := read(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			own.Add(v)
		}
		mu.Lock()
		h.Merge(own)
		mu.Unlock()
		return nil
	})
	if err != nil {
		return err
	}
	everything := j.positive < 100
	t, ok := h.Threshold()
	switch {
	case everything:
		j.res.Warnf("%s: fewer than 100 voxels have a signal: all is taken for tissue", j.v.Where)
	case !ok:
		j.res.Warnf("%s: no threshold separates the tissue: nothing is corrected", j.v.Where)
		t = math.Inf(1)
	default:
		j.result.Threshold = t
	}
	if everything {
		t = math.Inf(-1)
	}
	row := words(j.size)
	err = j.each(ctx, j.columns(), bytes, "splitting columns", func(_ context.Context, pieces iter.Seq[int]) error {
		all, set := make([]float32, j.voxels()), make([]uint64, j.size[0]*j.size[1]*row)
		for i := range pieces {
			shape := j.shape(i)
			v := all[:product(shape)]
			if err := read(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			clear(set)
			for k, f := range v {
				if float64(f) > t {
					at := k/shape[2]*row + k%shape[2]>>6
					set[at] |= 1 << (k % shape[2] & 63)
				}
			}
			if err := write(j.scratch, set[:shape[0]*shape[1]*row], i, bits, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return j.tidy(ctx)
}

func product(shape [3]int) int { return shape[0] * shape[1] * shape[2] }

// tidy fills the holes of the mask in each plane, and closes its gaps.
func (j *job) tidy(ctx context.Context) error {
	height, width, row := j.v.Shape[1], j.v.Shape[2], words(j.size)
	plane, extra := filter.BitPlaneBytes(height, width)
	var inside atomic.Int64
	err := j.each(ctx, j.size[0], plane+extra, "planes of the mask", func(_ context.Context, pieces iter.Seq[int]) error {
		buf := make([]uint64, j.size[1]*row)
		for z := range pieces {
			p := filter.NewBitPlane(height, width)
			if err := j.plane(p, buf, z, false); err != nil {
				return err
			}
			p.FillHoles()
			p.Close()
			inside.Add(p.Count())
			if err := j.plane(p, buf, z, true); err != nil {
				return err
			}
		}
		return nil
	})
	j.outside = int64(j.size[0])*int64(height)*int64(width) - inside.Load()
	return err
}

// plane reads plane z of the mask from the columns, or writes it to them.
func (j *job) plane(p *filter.BitPlane, buf []uint64, z int, put bool) error {
	row := words(j.size)
	for i := range j.columns() {
		shape := j.shape(i)
		y0, x0 := i/j.grid[1]*j.size[1], i%j.grid[1]*j.size[2]
		part := buf[:shape[1]*row]
		if !put {
			if err := read(j.scratch, part, i, bits, z*shape[1]*row); err != nil {
				return err
			}
		}
		for y := range shape[1] {
			if put {
				p.ReadRow(part[y*row:], y0+y, x0, shape[2])
			} else {
				p.CopyRow(y0+y, x0, part[y*row:], shape[2])
			}
		}
		if put {
			if err := write(j.scratch, part, i, bits, z*shape[1]*row); err != nil {
				return err
			}
		}
	}
	return nil
}
