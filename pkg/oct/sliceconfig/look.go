package sliceconfig

import (
	"context"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

// faultPlanes is the number of planes of a slice in which faults are looked for.
const faultPlanes = 5

// look holds measurements of a few planes of a slice.
type look struct {
	constant  bool
	mean      float64
	decay     float64   // range of the planes' means, relative to the mean of all
	contrast  float64   // of planes, the second highest: the surface may cut through one
	saturated float64   // the largest part of a plane's voxels that have its highest value
	top       float64   // that value
	blocks    []float32 // means of the blocks of the second plane, which lies in the upper half
	size      [2]int    // blocks along y and x
}

// look looks at planes of a slice, spread evenly, none of which is at its ends: there may be water above, and only
// noise below.
func (a *assessor) look(ctx context.Context, b *buffers, i int) (look, error) {
	v := a.views[i]
	n := v.Shape[0]
	var planes []int
	for k := range faultPlanes {
		planes = append(planes, n*(2*k+1)/(2*faultPlanes))
	}
	planes = slices.Compact(planes)
	l := look{constant: true}
	least, most := math.Inf(1), math.Inf(-1)
	value := math.NaN()
	count := 0
	var contrasts []float64
	for batch := range slices.Chunk(planes, a.planes) {
		pixels, err := v.read(ctx, b, 0, v.size, batch...)
		if err != nil {
			return l, err
		}
		for _, p := range pixels {
			var m moments
			m.add(p)
			mean := m.first + m.sum/m.n
			least, most = min(least, mean), max(most, mean)
			l.mean += mean
			if m.std() >= leastStd || count > 0 && math.Abs(mean-value) >= leastStd {
				l.constant = false
			}
			value = mean
			blocks, size, contrast := blockContrast(p, v.size)
			if count < 2 { // in the upper half
				l.blocks, l.size = blocks, size
			}
			contrasts = append(contrasts, contrast)
			if part, top := topPlateau(p, v.DType); part > l.saturated {
				l.saturated, l.top = part, top
			}
			count++
		}
	}
	slices.Sort(contrasts)
	l.contrast = contrasts[max(0, len(contrasts)-2)]
	l.mean /= float64(count)
	if l.decay = (most - least) / math.Abs(l.mean); l.mean == 0 {
		l.decay = 0
	}
	return l, nil
}

// mostBlocks is the number of blocks along the longer side of a plane.
const mostBlocks = 48

// blockContrast averages a plane over square blocks, and returns their means and contrast: the difference of their 98th
// and 2nd percentiles, less what the spread within blocks leads to expect of noise, relative to the mean. It is 0 for
// noise without correlation.
func blockContrast(plane []float32, of [2]int) (blocks []float32, size [2]int, contrast float64) {
	side := max(min(4, of[0]/8, of[1]/8), (max(of[0], of[1])+mostBlocks-1)/mostBlocks, 1)
	size = [2]int{of[0] / side, of[1] / side}
	if size[0] == 0 || size[1] == 0 { // a strip
		side = max(min(of[0], of[1]), 1)
		size = [2]int{of[0] / side, of[1] / side}
	}
	blocks = filter.Binned(nil, plane, of[0], of[1], [2]int{side, side})
	within, total, n := 0.0, 0.0, float64(side*side)
	for y := range size[0] * side {
		row := plane[y*of[1]:]
		for x, m := range blocks[y/side*size[1]:][:size[1]] {
			for _, f := range row[x*side:][:side] {
				d := float64(f) - float64(m)
				within += float64(d * d)
			}
		}
	}
	sorted := slices.Clone(blocks)
	slices.Sort(sorted)
	for _, m := range sorted {
		total += math.Abs(float64(m))
	}
	mean := total / float64(len(sorted))
	if mean == 0 {
		return blocks, size, 0
	}
	at := func(part float64) float64 { return float64(sorted[int(math.Round(part*float64(len(sorted)-1)))]) }
	noise := 0.0
	if side > 1 {
		noise = math.Sqrt(within / float64(len(sorted)) / (n - 1) / n)
	}
	// ±2.05 standard deviations lie between these percentiles of a normal distribution
	return blocks, size, max(0, at(0.98)-at(0.02)-4.1*noise) / mean
}

// resembles reports whether two slices show the same in their blocks.
func (l *look) resembles(other *look) bool {
	var a, b []float32
	for y := range min(l.size[0], other.size[0]) {
		n := min(l.size[1], other.size[1])
		a = append(a, l.blocks[y*l.size[1]:][:n]...)
		b = append(b, other.blocks[y*other.size[1]:][:n]...)
	}
	return filter.NCC(a, b) >= sameStructure
}

// sampledPixels is the number of pixels of a plane that its percentiles are taken from.
const sampledPixels = 1 << 14

// topPlateau returns the part of a plane's pixels that have its highest value, single brighter ones aside, and that
// value. It is 0 where brightness has too few levels to tell, unless they reach the limit of the type.
func topPlateau(plane []float32, kind dtype.Type) (part, top float64) {
	step := max(1, len(plane)/sampledPixels)
	var some []float32
	for i := 0; i < len(plane); i += step {
		some = append(some, plane[i])
	}
	slices.Sort(some)
	n := len(some)
	high, low := float64(some[(n-1)*99/100]), float64(some[(n-1)/100])
	edge := float32(high - 0.001*math.Abs(high-low))
	from, _ := slices.BinarySearch(some, edge)
	part = float64(n-from) / float64(n)
	if float64(some[n-1]) == limitOf(kind) && high == limitOf(kind) {
		return part, high
	}
	levels := 1
	for i := 1; i < n; i++ {
		if some[i] != some[i-1] {
			levels++
		}
	}
	if levels < fewLevels {
		return 0, high
	}
	return part, high
}

// limitOf returns the highest value of an integer type as float32, or NaN for other types.
func limitOf(kind dtype.Type) float64 {
	switch kind {
	case dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64:
		return float64(float32(math.Pow(2, float64(8*kind.Size())) - 1))
	case dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64:
		return float64(float32(math.Pow(2, float64(8*kind.Size()-1)) - 1))
	}
	return math.NaN()
}

// Sizes of the pictures in which details of slices are compared.
const (
	detailSide    = 192                              // pixels along the longer side, at most
	leastAveraged = 4                                // pixels of a plane along the side of one, as long as there are enough: there is less speckle then
	detailRadius  = 4                                // pixels: what is wider than the window around a pixel is no detail
	detailBytes   = 16 * 4 * detailSide * detailSide // of a worker, with those of the Fourier transform
)

// detail averages a plane over blocks, and returns what differs from the mean of the window around each, which is
// neither shading nor the whole shape of the tissue.
func detail(plane []float32, of [2]int) ([]float32, [2]int) {
	longer := max(of[0], of[1])
	side := max(1, (longer+detailSide-1)/detailSide, min(leastAveraged, longer/32))
	side = max(1, min(side, of[0], of[1]))
	h, w := of[0]/side, of[1]/side
	v := filter.Binned(nil, plane, of[0], of[1], [2]int{side, side})
	sums := make([]float64, (h+1)*(w+1)) // of all pixels above and to the left
	for y := range h {
		line := 0.0
		for x := range w {
			line += float64(v[y*w+x])
			sums[(y+1)*(w+1)+x+1] = sums[y*(w+1)+x+1] + line
		}
	}
	out := make([]float32, h*w)
	for y := range h {
		y0, y1 := max(0, y-detailRadius), min(h, y+detailRadius+1)
		for x := range w {
			x0, x1 := max(0, x-detailRadius), min(w, x+detailRadius+1)
			sum := sums[y1*(w+1)+x1] - sums[y0*(w+1)+x1] - sums[y1*(w+1)+x0] + sums[y0*(w+1)+x0]
			out[y*w+x] = v[y*w+x] - float32(sum/float64((y1-y0)*(x1-x0)))
		}
	}
	return out, [2]int{h, w}
}
