package stack

import (
	"context"
	"math"
	"time"
	"unsafe"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// measure finds the overlaps that the plan asks for.
//
// The planes are read in strips of rows, each slice once, the strip of a slice
// kept for the pair with the next one. Sums are made per row and added in the
// order of rows, whatever the strips and whoever makes them. The strips are the
// caller's to free.
func (p *stackPlan) measure(ctx context.Context, strips *[2]growing, res oct.Resources) error {
	ms := newMeasuring(p)
	if ms == nil {
		return nil
	}
	c := newCrew(res.Workers)
	defer c.close()
	workers, err := ms.fit(res)
	if err != nil {
		return err
	}
	for y := ms.y0; y < ms.y1; {
		end := min(y/ms.rows*ms.rows+ms.rows, ms.y1) // strips end where chunks do
		if err := ms.strip(ctx, c, strips, y, end, workers, &res); err != nil {
			return err
		}
		y = end
	}
	ms.decide(&res)
	return nil
}

// decide takes the overlap of each pair that correlates best.
func (ms *measuring) decide(res *oct.Resources) {
	for _, pair := range ms.pairs {
		s := pair.m.search
		best, correlation := s.best, math.Inf(-1)
		for k, sum := range pair.sums {
			if c := sum.NCC(); c > correlation {
				best, correlation = s.lo+k, c
			}
		}
		if math.IsInf(correlation, -1) {
			res.Warnf("slices %d and %d: no overlap can be correlated, their voxels are not all finite", pair.m.fixed.id, pair.m.slice.id)
			correlation = 0
		}
		s.take(best, correlation)
	}
}

// measuring is a pass over the centres of planes.
type measuring struct {
	pairs  []*measuredPair
	needs  []*stripNeed // slices in order
	y0, y1 int          // rows that some pair needs
	chunk  int          // rows of a chunk
	rows   int          // of a strip
}

// measuredPair is a pair whose overlap is searched.
type measuredPair struct {
	m              *movingSlice
	fixed, moving  *stripNeed
	y0, y1, x0, x1 int              // its centre
	sums           []filter.Moments // by overlap, from search.lo on
}

// stripNeed is what is read of a slice: planes at its end and at its beginning.
type stripNeed struct {
	slice       *stackSlice
	first, last [2]int // planes, half open, as moving and as fixed slice
	x0, x1      int
	asMoving    *measuredPair
	asFixed     *measuredPair
	spans       [][2]int // planes that are read, in order and apart
	planes      int      // in all spans
}

func newMeasuring(p *stackPlan) *measuring {
	ms := &measuring{y0: math.MaxInt}
	by := map[*stackSlice]*stripNeed{}
	need := func(s *stackSlice) *stripNeed {
		n := by[s]
		if n == nil {
			n = &stripNeed{slice: s, x0: math.MaxInt}
			by[s] = n
			ms.needs = append(ms.needs, n)
		}
		return n
	}
	for _, m := range p.moving {
		s := m.search
		if s == nil || s.aligned {
			continue
		}
		// slices lie with their origins on each other; what both have counts
		h, w := min(m.fixed.shape[1], m.slice.shape[1]), min(m.fixed.shape[2], m.slice.shape[2])
		margin := min(h, w) / 4
		pair := &measuredPair{m: m, y0: margin, y1: h - margin, x0: margin, x1: w - margin, sums: make([]filter.Moments, s.hi-s.lo+1)}
		pair.fixed, pair.moving = need(m.fixed), need(m.slice)
		pair.fixed.asFixed, pair.moving.asMoving = pair, pair
		pair.fixed.last = [2]int{m.fixed.shape[0] - s.hi, m.fixed.shape[0]}
		pair.moving.first = [2]int{s.first, s.first + s.hi}
		for _, n := range []*stripNeed{pair.fixed, pair.moving} {
			n.x0, n.x1 = min(n.x0, pair.x0), max(n.x1, pair.x1)
			ms.chunk = max(ms.chunk, n.slice.chunk[1])
		}
		ms.y0, ms.y1 = min(ms.y0, pair.y0), max(ms.y1, pair.y1)
		ms.pairs = append(ms.pairs, pair)
	}
	if len(ms.pairs) == 0 {
		return nil
	}
	for _, n := range ms.needs {
		n.plan()
	}
	return ms
}

// plan joins the planes at both ends where they meet.
func (n *stripNeed) plan() {
	a, b := n.first, n.last
	switch {
	case n.asMoving == nil:
		n.spans = [][2]int{b}
	case n.asFixed == nil:
		n.spans = [][2]int{a}
	case a[1] >= b[0]:
		n.spans = [][2]int{{min(a[0], b[0]), max(a[1], b[1])}}
	default:
		n.spans = [][2]int{a, b}
	}
	for _, s := range n.spans {
		n.planes += s[1] - s[0]
	}
}

// plane is the number of plane z among those that are read.
func (n *stripNeed) plane(z int) int {
	at := 0
	for _, s := range n.spans {
		if z < s[1] {
			return at + z - s[0]
		}
		at += s[1] - s[0]
	}
	panic("oct: a plane that is not read")
}

// elements is the number of voxels of a strip.
func (n *stripNeed) elements(rows int) int { return n.planes * rows * (n.x1 - n.x0) }

// fit makes strips as low, and readers as few, as the memory asks for: strips
// have whole rows of chunks, as many as half of it holds, and less than one only
// where that is too much.
func (ms *measuring) fit(res oct.Resources) (workers int, err error) {
	reader, overlaps := int64(0), 0
	for _, n := range ms.needs {
		reader = max(reader, n.slice.readerBytes())
	}
	for _, pair := range ms.pairs {
		overlaps = max(overlaps, len(pair.sums))
	}
	strips := func(rows int) int64 {
		most := int64(0)
		for i, n := range ms.needs {
			v := int64(n.elements(rows)) * 4
			if i > 0 {
				v += int64(ms.needs[i-1].elements(rows)) * 4
			}
			most = max(most, v)
		}
		return most + int64(rows)*int64(overlaps)*momentsBytes
	}
	ms.rows = (ms.y1 + ms.chunk - 1) / ms.chunk * ms.chunk
	for ms.rows > ms.chunk && strips(min(ms.rows, ms.y1-ms.y0)) > res.Mem/2 {
		ms.rows -= ms.chunk
	}
	for {
		need := strips(min(ms.rows, ms.y1-ms.y0)) + reader
		if need <= res.Mem {
			return int(min(int64(res.Workers), 1+(res.Mem-need)/reader)), nil
		}
		if ms.rows == 1 {
			return 0, tooLittle(res, need, "measuring the overlap of slices of %v voxels in chunks of %v", ms.needs[0].slice.shape, ms.needs[0].slice.chunk)
		}
		ms.rows = (ms.rows + 1) / 2
	}
}

// momentsBytes is the memory of the sums of a row for one overlap.
const momentsBytes = int64(unsafe.Sizeof(filter.Moments{}))

// strip correlates rows y0…y1−1, for all pairs, in order.
func (ms *measuring) strip(ctx context.Context, c *crew, memory *[2]growing, y0, y1, workers int, res *oct.Resources) error {
	kept, read := stripData{memory: &memory[0]}, stripData{memory: &memory[1]}
	for _, n := range ms.needs {
		if err := read.load(ctx, c, n, y0, y1, workers, res); err != nil {
			return err
		}
		if pair := n.asMoving; pair != nil {
			if err := pair.correlate(ctx, c, &kept, &read, y0, y1, res); err != nil {
				return err
			}
		}
		kept, read = read, kept
	}
	return nil
}

// stripData is a strip of a slice in memory: planes × rows × columns.
type stripData struct {
	need   *stripNeed
	memory *growing
	v      []float32
	y0, ny int
	nx     int
}

// load reads rows y0…y1−1, as far as the slice has them.
func (d *stripData) load(ctx context.Context, c *crew, n *stripNeed, y0, y1, workers int, res *oct.Resources) error {
	y1 = min(y1, n.slice.shape[1])
	d.need, d.y0, d.ny, d.nx = n, y0, max(0, y1-y0), n.x1-n.x0
	if d.ny == 0 {
		return nil
	}
	b, err := d.memory.get(4 * n.elements(d.ny))
	if err != nil {
		return err
	}
	d.v = dtype.Slice[float32](b)
	plane := 0
	for _, s := range n.spans {
		shape := [3]int{s[1] - s[0], d.ny, d.nx}
		to := d.v[plane*d.ny*d.nx:]
		err := c.read(ctx, n.slice, [3]int{s[0], y0, n.x0}, shape, workers, res, false, func(z, y, x int) []float32 {
			return to[((z-s[0])*d.ny+y-y0)*d.nx+x-n.x0:]
		})
		if err != nil {
			return err
		}
		plane += shape[0]
	}
	return nil
}

// row is a part of a row of a plane.
func (d *stripData) row(plane, y, x0, x1 int) []float32 {
	at := (plane*d.ny+y-d.y0)*d.nx - d.need.x0
	return d.v[at+x0 : at+x1]
}

// correlate adds the sums of the pair's rows in a strip: workers take rows, and
// their sums are added in order.
func (pair *measuredPair) correlate(ctx context.Context, c *crew, fixed, moving *stripData, y0, y1 int, res *oct.Resources) error {
	y0, y1 = max(y0, pair.y0), min(y1, pair.y1)
	n := len(pair.sums)
	height := max(0, y1-y0)
	rows := make([]filter.Moments, height*n)
	// a task is some rows, so that what it needs beside them is made for several
	const together = 8
	err := c.each(ctx, (height+together-1)/together, c.workers, func(_ *workMemory, i int) error {
		begin := time.Now()
		lo := y0 + i*together
		pair.rows(rows[i*together*n:], fixed, moving, lo, min(lo+together, y1))
		res.Meter.Since(meter.Compute, begin)
		return nil
	})
	for j, m := range rows {
		pair.sums[j%n].Add(m)
	}
	return err
}

// rows makes the sums of rows y0…y1−1: by row, by overlap.
func (pair *measuredPair) rows(out []filter.Moments, fixed, moving *stripData, y0, y1 int) {
	s := pair.m.search
	n := len(pair.sums)
	a, b := make([][]float32, s.hi), make([][]float32, s.hi) // from the end of the fixed slice on; from the start of the moving one
	af, bf := pair.fixed.plane(pair.m.fixed.shape[0]-1), pair.moving.plane(s.first)
	dots := make([]float64, n)
	for y := y0; y < y1; y++ {
		row := out[(y-y0)*n:][:n]
		for t := range s.hi {
			a[t] = fixed.row(af-t, y, pair.x0, pair.x1)
			b[t] = moving.row(bf+t, y, pair.x0, pair.x1)
		}
		var sum filter.Moments // of the planes so far
		for t := range s.hi {
			av, aq := filter.Sums(a[t])
			bv, bq := filter.Sums(b[t])
			sum.N += int64(len(a[t]))
			sum.A, sum.AA, sum.B, sum.BB = sum.A+av, sum.AA+aq, sum.B+bv, sum.BB+bq
			if k := t + 1 - s.lo; k >= 0 {
				ab := row[k].AB
				row[k] = sum
				row[k].AB = ab
			}
			// plane t from the end lies on moving plane o−1−t
			lo := max(s.lo, t+1)
			filter.Dots(dots[lo-s.lo:], a[t], b[lo-1-t:s.hi-t])
			for o := lo; o <= s.hi; o++ {
				row[o-s.lo].AB += dots[o-s.lo]
			}
		}
	}
}
