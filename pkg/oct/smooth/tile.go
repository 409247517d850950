package smooth

import (
	"context"
	"iter"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/tile"
)

// smoother filters tiles in one goroutine.
type smoother[T dtype.Element, F float32 | float64] struct {
	*smoothPlan
	loader  *tile.Loader[T]
	writer  *ngff.Writer
	view    *tile.View[T]
	median  *filter.MedianFilter[T] // nil: none
	stencil *filter.Stencil[F]      // nil: none
	medians []T                     // of a tile and of what the stencil needs around it
	input   []F                     // input of the stencil, if its type is not T
	result  []F
	stored  []byte // the tile
}

func newSmoother[T dtype.Element, F float32 | float64](p *smoothPlan, loader *tile.Loader[T], w *ngff.Writer) *smoother[T, F] {
	s := &smoother[T, F]{smoothPlan: p, loader: loader, writer: w}
	if p.medians() {
		s.median = filter.NewMedianFilter[T](p.window)
	}
	if p.linear {
		s.stencil = filter.NewStencil[F](p.kernels[0], p.kernels[1])
	}
	return s
}

// medians reports whether the plan has a median filter.
func (p *smoothPlan) medians() bool { return p.window != [3]int{1, 1, 1} }

// work filters tiles, given by their numbers in the order of the walk.
func (s *smoother[T, F]) work(ctx context.Context, tiles iter.Seq[int]) error {
	defer func() {
		if s.view != nil {
			_ = s.view.Release() // once, by its only owner
		}
	}()
	for n := range tiles {
		index := s.index(n)
		if err := s.load(ctx, index); err != nil {
			return err
		}
		start := time.Now()
		s.filter()
		s.res.Meter.Since(meter.Compute, start)
		first, bytes := make([]int, len(index)), s.dtype.Size()
		for d, i := range index {
			first[d] = i * s.tile[d]
			bytes *= s.view.TileReal[d]
		}
		if err := s.writer.WriteTile(ctx, first, s.view.TileReal, s.stored); err != nil {
			return err
		}
		s.res.Done(int64(bytes))
	}
	return nil
}

// index returns the grid index of the n-th tile in the order of the walk.
func (t *smoothTiling) index(n int) []int {
	index := make([]int, len(t.grid))
	for _, d := range t.order {
		index[d] = n % t.grid[d]
		n /= t.grid[d]
	}
	return index
}

func (s *smoother[T, F]) load(ctx context.Context, index []int) (err error) {
	if s.view == nil {
		s.view, err = s.loader.View(ctx, 0, index)
	} else if err = s.loader.Reload(ctx, s.view, index); err != nil {
		s.view = nil // Reload released it
	}
	return oct.Readable(err)
}

// filter computes the view's tile, one plane or volume after another.
func (s *smoother[T, F]) filter() {
	real, held := s.view.TileReal, s.view.ViewShape
	shape, room, origin := s.inSpace(real, 1), s.inSpace(held, 1), [3]int{}
	volumes := 1
	for d, n := range real {
		if d < s.lead {
			volumes *= n
		} else {
			origin[d+3-len(real)] = s.view.Index[d] * s.tile[d]
		}
	}
	bytes := s.out.Size() * elements(shape)
	if n := volumes * bytes; cap(s.stored) < n {
		s.stored = dtype.Bytes(make([]uint64, (n+7)/8)) // aligned for all types
	}
	s.stored = s.stored[:volumes*bytes]
	at := make([]int, s.lead)
	for k := range volumes {
		from := 0
		for d, i := range at { // the view may hold more of them than the image
			from = from*held[d] + i
		}
		s.volume(s.stored[k*bytes:][:bytes], s.view.Data()[from*elements(room):][:elements(room)], room, shape, origin)
		for d := s.lead - 1; d >= 0; d-- {
			if at[d]++; at[d] < real[d] {
				break
			}
			at[d] = 0
		}
	}
}

// inSpace returns the elements of v for the space axes, with other for axes that the image lacks.
func (p *smoothPlan) inSpace(v []int, other int) [3]int {
	out := [3]int{other, other, other}
	copy(out[3-len(v)+p.lead:], v[p.lead:])
	return out
}

// volume filters a volume with the radius around it, which begins at index 0 of an array of shape room. origin is
// its position in the image.
func (s *smoother[T, F]) volume(out []byte, v []T, room, shape, origin [3]int) {
	inner, wide := shape, shape
	for d := range shape {
		inner[d] += 2 * s.around[d]
		wide[d] += 2 * s.radius[d]
	}
	v = compact(v, room, wide)
	s.countNonFinite(v, wide, shape)
	if s.median != nil {
		s.medians = slices.Grow(s.medians[:0], elements(inner))[:elements(inner)]
		s.median.Apply(s.medians, v, inner)
		if v = s.medians; s.linear {
			for d := range origin {
				origin[d] -= s.around[d]
			}
			extend(v, inner, origin, s.space, s.how.Border)
		}
	}
	if !s.linear {
		convertTo(out, s.out, v)
		return
	}
	input, ok := any(v).([]F)
	if !ok {
		s.input = slices.Grow(s.input[:0], elements(inner))[:elements(inner)]
		input = s.input
		filter.ToFloat(input, v)
	}
	if s.out == dtype.Of[F]() {
		s.stencil.Apply(dtype.Slice[F](out), input, shape)
		return
	}
	s.result = slices.Grow(s.result[:0], elements(shape))[:elements(shape)]
	s.stencil.Apply(s.result, input, shape)
	if s.out == s.dtype {
		filter.FromFloat(dtype.Slice[T](out), s.result)
		return
	}
	convertTo(out, s.out, s.result)
}

// convertTo converts elements to the output's type.
func convertTo[E dtype.Element](out []byte, to dtype.Type, v []E) {
	if to == dtype.Of[E]() {
		copy(out, dtype.Bytes(v))
		return
	}
	if err := dtype.Convert(out, to, dtype.Bytes(v), dtype.Of[E]()); err != nil {
		panic(err) // the plan knows both types
	}
}

func elements(shape [3]int) int { return shape[0] * shape[1] * shape[2] }

// countNonFinite counts the non-finite voxels of a tile, without those around it.
func (s *smoother[T, F]) countNonFinite(v []T, wide, shape [3]int) {
	if !s.dtype.IsFloat() {
		return
	}
	r := s.radius
	for z := range shape[0] {
		for y := range shape[1] {
			s.res.Meter.AddNonFinite(filter.CountNonFinite(v[((z+r[0])*wide[1]+y+r[1])*wide[2]+r[2]:][:shape[2]]))
		}
	}
}

// compact moves the part of a volume at the beginning of its axes together.
func compact[T dtype.Element](v []T, room, part [3]int) []T {
	if room == part {
		return v
	}
	n := 0
	for z := range part[0] {
		for y := range part[1] {
			copy(v[n:][:part[2]], v[(z*room[1]+y)*room[2]:])
			n += part[2]
		}
	}
	return v[:n]
}

// extend recomputes the values beyond an image's edges from those within it, in a part of the image with the given
// origin. Along each axis the part must reach no further beyond an edge than into the image, or contain the whole
// image.
func extend[T dtype.Element](v []T, shape, origin, image [3]int, mode tile.BorderMode) {
	stride := 1
	for d := 2; d >= 0; d-- {
		for i := range shape[d] {
			at := origin[d] + i
			if at >= 0 && at < image[d] {
				continue
			}
			from := mode.Source(at, image[d])
			for o := range len(v) / (shape[d] * stride) {
				dst := v[(o*shape[d]+i)*stride:][:stride]
				if from < 0 {
					clear(dst)
				} else {
					copy(dst, v[(o*shape[d]+from-origin[d])*stride:])
				}
			}
		}
		stride *= shape[d]
	}
}
