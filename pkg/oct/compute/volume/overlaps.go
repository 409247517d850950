package volume

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// overlapper correlates the overlapping ends of neighbours, with the same bits on every machine.
type overlapper interface {
	// Overlaps begins a correlation. It returns nil after an error.
	Overlaps(s *Search) Overlaps
}

// Search describes which overlaps of neighbours are correlated.
type Search struct {
	Pairs []Range
	// Rows First to Last−1 are compared in strips that end at chunk borders. If Strips is nil, the caller supplies
	// its own planes.
	First, Last, Chunk int
	Strips             func(rows int) []int // returns the pixels of each source's strip of the given number of rows; two neighbours are in memory at a time
	What               string               // for messages
}

// Range is a range of overlaps, from Lo to Hi planes.
type Range struct{ Lo, Hi int }

// Overlaps accumulates the moments of a correlation, by pair and overlap. Sums are computed per row and added in
// the order of rows, independently of the strips and of the machine.
type Overlaps interface {
	// Rows returns the maximum number of rows of a strip.
	Rows() int
	// Strip returns planes of ny × nx pixels in strip i, 0 or 1. The strip's former content is lost.
	Strip(i, planes, ny, nx int) []Plane
	// Add adds the rows of a part of each source. fixed holds the last Hi planes of the fixed source, moving the first
	// Hi of the moving one: at overlap o, the last o fixed planes coincide with the first o moving planes.
	Add(pair int, fixed, moving []Plane, a, b oct.Rectangle)
	// Sums returns the sums by pair, and by overlap from Lo on, and releases the strips.
	Sums() [][]filter.Moments
}

// fit returns the number of rows that fit into memory, after take has allocated the memory for them. It chooses as many
// whole rows of chunks as half of the memory holds, and less than one row of chunks only if a whole one exceeds all of
// it.
func (s *Search) fit(half, all int64, bytes func(rows int) int64, take func(rows int) error, tooLittle func(need int64) error) (rows int, err error) {
	clip := func(rows int) int { return min(rows, s.Last-s.First) }
	rows = (s.Last + s.Chunk - 1) / s.Chunk * s.Chunk
	for rows > s.Chunk && bytes(clip(rows)) > half {
		rows -= s.Chunk
	}
	for {
		if bytes(clip(rows)) <= all {
			if err = take(clip(rows)); err == nil || !errors.Is(err, gpu.ErrMemory) {
				return rows, err
			}
		}
		switch {
		case rows > 1:
			rows = (rows + 1) / 2
		case err != nil: // the driver has less
			return 0, err
		default:
			return 0, tooLittle(bytes(1))
		}
	}
}

type hostOverlaps struct {
	*host
	search *Search
	rows   int
	sums   [][]filter.Moments
}

// momentsBytes is the memory for the sums of a row at one overlap.
const momentsBytes = int64(unsafe.Sizeof(filter.Moments{}))

func (h *host) Overlaps(s *Search) Overlaps {
	o := &hostOverlaps{host: h, search: s}
	most := 0
	for _, p := range s.Pairs {
		o.sums = append(o.sums, make([]filter.Moments, p.Hi-p.Lo+1))
		most = max(most, p.Hi-p.Lo+1)
	}
	if s.Strips == nil {
		return o
	}
	h.try(func() (err error) {
		bytes := func(rows int) int64 {
			two, before := 0, 0
			for _, n := range s.Strips(rows) {
				two, before = max(two, n+before), n
			}
			return 4*int64(two) + int64(rows)*int64(most)*momentsBytes
		}
		o.rows, err = s.fit(h.res.Mem/2, h.res.Mem-h.reading(), bytes, func(int) error { return nil },
			func(need int64) error { return h.res.TooLittle(need+h.reading(), "%s", s.What) })
		return err
	})
	if h.err != nil {
		return nil
	}
	return o
}

func (o *hostOverlaps) Rows() int { return o.rows }

func (o *hostOverlaps) Strip(i, planes, ny, nx int) (out []Plane) {
	o.try(func() error {
		b, err := o.strips[i].get(4 * planes * ny * nx)
		if err == nil {
			out = Planes(dtype.Slice[float32](b), planes, ny, nx)
		}
		return err
	})
	return out
}

// Add distributes rows to workers and adds their sums in order.
func (o *hostOverlaps) Add(pair int, fixed, moving []Plane, a, b oct.Rectangle) {
	r, n := o.search.Pairs[pair], len(o.sums[pair])
	rows := make([]filter.Moments, max(0, a.Height())*n)
	// a task is some rows, so that what it needs beside them is made for several
	const together = 8
	o.try(func() error {
		return o.each((a.Height()+together-1)/together, len(o.own), func(_ *growing, i int) error {
			begin := time.Now()
			lo := i * together
			r.rows(rows[lo*n:], fixed, moving, a, b, lo, min(lo+together, a.Height()))
			o.res.Meter.Since(meter.Compute, begin)
			return nil
		})
	})
	for j, m := range rows {
		o.sums[pair][j%n].Add(m)
	}
}

// rows computes the sums of rows y0…y1−1 of both parts, by row and by overlap.
func (r Range) rows(out []filter.Moments, fixed, moving []Plane, pa, pb oct.Rectangle, y0, y1 int) {
	n := r.Hi - r.Lo + 1
	a, b := make([][]float32, r.Hi), make([][]float32, r.Hi) // from the end of the fixed source on; from the start of the moving one
	dots := make([]float64, n)
	for y := y0; y < y1; y++ {
		row := out[(y-y0)*n:][:n]
		for t := range r.Hi {
			a[t] = fixed[r.Hi-1-t].row(pa.Y0+y, pa.X0, pa.X1)
			b[t] = moving[t].row(pb.Y0+y, pb.X0, pb.X1)
		}
		var sum filter.Moments // of the planes so far
		for t := range r.Hi {
			av, aq := filter.Sums(a[t])
			bv, bq := filter.Sums(b[t])
			sum.N += int64(len(a[t]))
			sum.A, sum.AA, sum.B, sum.BB = sum.A+av, sum.AA+aq, sum.B+bv, sum.BB+bq
			if k := t + 1 - r.Lo; k >= 0 {
				ab := row[k].AB
				row[k] = sum
				row[k].AB = ab
			}
			// plane t from the end lies on moving plane o−1−t
			lo := max(r.Lo, t+1)
			filter.Dots(dots[lo-r.Lo:], a[t], b[lo-1-t:r.Hi-t])
			for o := lo; o <= r.Hi; o++ {
				row[o-r.Lo].AB += dots[o-r.Lo]
			}
		}
	}
}

func (o *hostOverlaps) Sums() [][]filter.Moments { return o.sums }

// deviceOverlaps accumulates the moments on a device: per overlap, 40 bytes come back.
//
// The measured planes are uploaded again when the slices are placed: their positions are known only then, and
// keeping them would take memory for the ends of all slices.
type deviceOverlaps struct {
	*device
	search  *Search
	rows    int
	own     *transfer.DeviceWorker
	strips  [2]gpu.Span
	scratch gpu.Span
	sums    gpu.Span // of all pairs, consecutively
	areas   []int    // by pair: number of pixels of a plane added so far
	back    []byte   // page-locked: the sums
}

func (d *device) Overlaps(s *Search) Overlaps {
	o := &deviceOverlaps{device: d, search: s, areas: make([]int, len(s.Pairs))}
	d.try(func() (err error) {
		if o.own, err = transfer.NewDeviceWorker(d.gpu); err != nil {
			return err
		}
		d.overlaps = o
		return o.begin()
	})
	if d.err != nil {
		return nil
	}
	return o
}

// sumsAt returns the offset of a pair's sums. For the number of pairs it returns the size of all.
func (o *deviceOverlaps) sumsAt(pair int) (at int64) {
	for _, r := range o.search.Pairs[:pair] {
		n, _ := kernels.OverlapBytes(r.Lo, r.Hi, 1)
		at += n
	}
	return at
}

// begin allocates the memory.
func (o *deviceOverlaps) begin() (err error) {
	s := o.search
	sums := o.sumsAt(len(s.Pairs))
	if o.back, err = o.own.Pinned(int(sums)); err != nil {
		return err
	}
	if o.sums, err = o.own.Memory(sums); err != nil {
		return err
	}
	o.worker.Stream.Zero(o.sums)
	each := func(rows int) (strip, scratch int64) {
		for _, n := range s.Strips(rows) {
			strip = max(strip, 4*int64(n))
		}
		for _, r := range s.Pairs {
			_, n := kernels.OverlapBytes(r.Lo, r.Hi, rows)
			scratch = max(scratch, n)
		}
		return mem.Pooled(strip), mem.Pooled(scratch)
	}
	bytes := func(rows int) int64 {
		strip, scratch := each(rows)
		return 2*strip + scratch
	}
	room := o.room() - mem.Pooled(sums)
	o.rows, err = s.fit(room/2, room, bytes, func(rows int) error {
		strip, scratch := each(rows)
		v, err := o.own.Memories(strip, strip, scratch)
		if err == nil {
			o.strips, o.scratch = [2]gpu.Span{v[0], v[1]}, v[2]
		}
		return err
	}, func(need int64) error { return o.noMemory(need+o.held, s.What) })
	return err
}

func (o *deviceOverlaps) Rows() int { return o.rows }

func (o *deviceOverlaps) Strip(i, planes, ny, nx int) []Plane {
	return planesOn(o.strips[i], planes, ny, nx)
}

func (o *deviceOverlaps) Add(pair int, fixed, moving []Plane, a, b oct.Rectangle) {
	r, at := o.search.Pairs[pair], o.sumsAt(pair)
	o.areas[pair] += a.Area()
	o.try(func() error {
		return eachPair(fixed, moving, 0, 0, func(_, n int, f, m kernels.Planes) error {
			if n < r.Hi {
				return fmt.Errorf("internal error: %d of %d planes lie together", n, r.Hi)
			}
			f.At, m.At = fixed[0].at(a.Y0, a.X0), moving[0].at(b.Y0, b.X0)
			return kernels.OverlapMoments(o.worker.Stream, o.sums.From(at, o.sumsAt(pair+1)-at), o.scratch, f, m, r.Lo, r.Hi, a.Height(), a.Width())
		})
	})
}

func (o *deviceOverlaps) Sums() (sums [][]filter.Moments) {
	o.try(func() error {
		o.worker.Stream.Download(o.back, o.sums)
		return o.wait()
	})
	if o.err != nil {
		return nil
	}
	for i, r := range o.search.Pairs {
		sums = append(sums, kernels.Moments(o.back[o.sumsAt(i):o.sumsAt(i+1)], r.Lo, o.areas[i]))
	}
	o.try(o.end)
	return sums
}

// end releases the memory.
func (o *deviceOverlaps) end() error {
	if o == nil || o.own == nil {
		return nil
	}
	own := o.own
	o.own = nil
	return own.End()
}
