package stack

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
)

const (
	tileUM     = 5   // approximate size of the pixels in which planes are compared
	tilePixels = 256 // of them, along each axis of a tile
	mostTiles  = 4   // maximum number of tiles in which a pair is compared
	localUM    = 40  // size of the local mean that is divided out of planes
	smoothUM   = 5   // standard deviation of the Gaussian that then smooths them

	// unexpectedPlanes is the difference in planes from which a measured overlap is reported as unexpected.
	unexpectedPlanes = 2
)

// stackTile is a part of the moving slice that is compared with the fixed one: pixels (y, x) of its transformed
// planes. It lies at offset in the fixed slice.
type stackTile struct {
	start, shape [2]int
	offset       [2]int
}

// chooseTiles selects, among the tiles that both slices cover, those in which the pictures agree most: tissue
// instead of its surroundings.
func (s *surveyor) chooseTiles(m *movingSlice, fixed, moving filter.Picture, pictureBin [2]int) {
	d := m.displaced.believed()
	var offset, lo, n, count [2]int
	bin := s.tileBin()
	for k := range 2 {
		offset[k] = int(math.Round(d[k]))
		lo[k] = max(0, -offset[k])
		n[k] = max(0, min(m.slice.shape[k+1], m.fixed.shape[k+1]-offset[k])-lo[k]) / bin[k]
		if n[k] == 0 {
			return
		}
		count[k] = max(1, n[k]/tilePixels)
		size := min(n[k], tilePixels)
		lo[k] += (n[k] - count[k]*size) / 2 * bin[k]
		n[k] = size * bin[k]
	}
	type scored struct {
		stackTile
		score float64
	}
	var all []scored
	for i := range count[0] * count[1] {
		t := stackTile{start: [2]int{lo[0] + i/count[1]*n[0], lo[1] + i%count[1]*n[1]}, shape: n}
		t.offset = [2]int{t.start[0] + offset[0], t.start[1] + offset[1]}
		all = append(all, scored{t, agreement(fixed, moving, t, pictureBin)})
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	m.tiles = nil
	for _, t := range all[:min(len(all), mostTiles)] {
		m.tiles = append(m.tiles, t.stackTile)
	}
}

// agreement returns the sum of the products of two pictures in a tile.
func agreement(fixed, moving filter.Picture, t stackTile, bin [2]int) (sum float64) {
	for y := t.start[0] / bin[0]; y < min(moving.NY, (t.start[0]+t.shape[0])/bin[0]); y++ {
		fy := y + (t.offset[0]-t.start[0])/bin[0]
		if fy < 0 || fy >= fixed.NY {
			continue
		}
		for x := t.start[1] / bin[1]; x < min(moving.NX, (t.start[1]+t.shape[1])/bin[1]); x++ {
			if fx := x + (t.offset[1]-t.start[1])/bin[1]; fx >= 0 && fx < fixed.NX {
				sum += float64(fixed.V[fy*fixed.NX+fx] * moving.V[y*moving.NX+x])
			}
		}
	}
	return sum
}

// tileBin returns how many pixels (y, x) of the slices form one pixel of a tile.
func (s *surveyor) tileBin() [2]int {
	v := s.plan.slices[0].voxel
	return [2]int{micrometres(tileUM, v[1]), micrometres(tileUM, v[2])}
}

// planeEnd describes the brightness of planes at an end of a slice, in its tiles.
type planeEnd struct {
	first  int       // index of the first plane in its slice
	bright []float64 // by plane: sum of the values above 0
	voxels []float64 // and their number
}

// measureTiles compares the planes of all pairs in their tiles: their overlap, if it is searched for, and their
// brightness.
func (s *surveyor) measureTiles(ctx context.Context) error {
	for _, m := range s.plan.moving {
		if err := s.measurePair(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *surveyor) measurePair(ctx context.Context, m *movingSlice) error {
	search := m.search
	if search != nil && !search.aligned {
		search = nil // that was measured at the centres
	}
	reach := m.overlap
	if search != nil {
		reach = search.hi
	}
	reach = min(reach, m.fixed.shape[0], m.slice.shape[0]-m.movingZ)
	m.fixedEnd, m.movingEnd = newPlaneEnd(m.fixed.shape[0]-reach, reach), newPlaneEnd(m.movingZ, reach)
	if reach < 1 || len(m.tiles) == 0 {
		if search != nil {
			s.res.Warnf("slices %d and %d: have no pixels in common: their overlap cannot be measured", m.fixed.id, m.slice.id)
			search.take(search.best, 0)
		}
		return nil
	}
	var overlaps volume.Overlaps
	if search != nil {
		overlaps = s.mem.Overlaps(&volume.Search{Pairs: []volume.Range{{Lo: search.lo, Hi: search.hi}}})
	}
	bin := s.tileBin()
	for _, t := range m.tiles {
		h, w := t.shape[0]/bin[0], t.shape[1]/bin[1]
		if need := 8 * int64(reach) * int64(h) * int64(w); need > s.res.Mem/2 {
			return s.res.TooLittle(2*need, "comparing %d planes of two slices", reach)
		}
		a, b := make([]float32, reach*h*w), make([]float32, reach*h*w)
		if err := s.tile(ctx, m.fixed, m.fixedEnd, t.offset, t.shape, nil, a); err != nil {
			return err
		}
		if err := s.tile(ctx, m.slice, m.movingEnd, t.start, t.shape, m.motion(), b); err != nil {
			return err
		}
		if search == nil {
			continue
		}
		whole := oct.Rect(0, h, 0, w)
		overlaps.Add(0, volume.Planes(a, reach, h, w), volume.Planes(b, reach, h, w), whole, whole)
		if err := s.mem.Err(); err != nil {
			return err
		}
	}
	if search != nil {
		m.settleAligned(overlaps.Sums()[0], s.res)
	}
	return nil
}

func newPlaneEnd(first, n int) *planeEnd {
	return &planeEnd{first: first, bright: make([]float64, max(n, 0)), voxels: make([]float64, max(n, 0))}
}

// tile reads the planes of an end in a tile, divides out their shading, smooths the speckle and stores the result
// in to. It adds their brightness to end.
func (s *surveyor) tile(ctx context.Context, of *stackSlice, end *planeEnd, start, shape [2]int, turn *bspline.Motion, to []float32) error {
	bin := s.tileBin()
	pixel := of.voxel[1] * float64(bin[0])
	local := micrometres(localUM, pixel) | 1
	taps := toFloat32(filter.GaussianKernel(smoothUM/pixel, 0))
	// what lies around the tile, as far as the filters see it, and as far as it is turned
	var margin, lo, n [2]int
	for k := range 2 {
		margin[k] = (local/2 + len(taps)/2) * bin[k]
		if turn != nil {
			margin[k] += bin[k] * (1 + int(turn.Reach(start, shape)/float64(bin[k])))
		}
		lo[k] = max(start[k]-margin[k], start[k]%bin[k])
		n[k] = (min(start[k]+shape[k]+margin[k], of.shape[k+1]) - lo[k]) / bin[k] * bin[k]
	}
	h, w := shape[0]/bin[0], shape[1]/bin[1]
	box := [3]int{len(end.bright), n[0], n[1]}
	y0, x0 := (start[0]-lo[0])/bin[0], (start[1]-lo[1])/bin[1]
	return s.planes(ctx, of, [3]int{end.first, lo[0], lo[1]}, box, func(z int, v []float32) error {
		if turn != nil {
			v = turn.Resample(v, n[0], n[1], lo)
		}
		v = filter.Binned(nil, v, n[0], n[1], bin)
		ny, nx := n[0]/bin[0], n[1]/bin[1]
		bright, voxels := end.bright[z], 0
		for y := range h {
			for _, f := range v[(y0+y)*nx+x0:][:w] {
				if f > 0 && f <= math.MaxFloat32 {
					bright += float64(f)
					voxels++
				}
			}
		}
		end.bright[z], end.voxels[z] = bright, end.voxels[z]+float64(voxels)
		filter.LocalContrast(v, v, ny, nx, local)
		smooth := make([]float32, len(v))
		filter.Separable(smooth, v, ny, nx, taps)
		for y := range h {
			copy(to[(z*h+y)*w:][:w], smooth[(y0+y)*nx+x0:])
		}
		return nil
	})
}

func toFloat32(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(f)
	}
	return out
}

// settleAligned takes the overlap with the highest correlation, to a fraction of a plane: the vertex of the
// parabola through the best overlap and its neighbours.
func (m *movingSlice) settleAligned(sums []filter.Moments, res *oct.Resources) {
	s := m.search
	c := make([]float64, len(sums))
	best := -1
	for k := range sums {
		if c[k] = sums[k].NCC(); c[k] == c[k] && (best < 0 || c[k] > c[best]) {
			best = k
		}
	}
	if best < 0 {
		res.Warnf("slices %d and %d: no overlap can be correlated: some of their voxels are not finite", m.fixed.id, m.slice.id)
		s.take(s.best, 0)
		return
	}
	rest := 0.0
	if best > 0 && best < len(c)-1 {
		if bend := 2*c[best] - c[best-1] - c[best+1]; bend > 0 {
			rest = (c[best+1] - c[best-1]) / (2 * bend)
		}
	}
	overlap, at := s.lo+best, best
	s.take(overlap, c[at])
	if m.fallback {
		return
	}
	m.exact = float64(overlap) + min(max(rest, -0.5), 0.5)
	if off := m.exact - float64(m.expected); math.Abs(off) > unexpectedPlanes {
		res.Warnf("slices %d and %d: overlap by %.1f planes, which correlate by %.2f; %d were expected (--slicing_interval_mm, --moving_z_first_index)",
			m.fixed.id, m.slice.id, m.exact, c[at], m.expected)
	}
}

// wholePlanes rounds exact overlaps to whole planes without accumulating rounding errors: every slice lies within
// half a plane of its exact position.
func (p *stackPlan) wholePlanes() {
	left := 0.0
	for _, m := range p.moving {
		if m.exact == 0 {
			continue
		}
		want := m.exact + left
		m.overlap = max(0, int(math.RoundToEven(want)))
		left = want - float64(m.overlap)
		m.blend = m.overlap
	}
}
