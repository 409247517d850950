package ngff

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"strata/pkg/dtype"
	"strata/pkg/work"
)

// view is a box of elements in memory, beginning with the one of index origin; neighbours along x are
// adjacent.
type view[T any] struct {
	data   []T
	origin point
	stride point // in elements; stride[axisX] is 1
}

// at returns the position of an element, counted in elements.
func (v *view[T]) at(i point) int {
	o := 0
	for d := range rank {
		o += (i[d] - v.origin[d]) * v.stride[d]
	}
	return o
}

// contiguous returns the strides of a box in C order.
func contiguous(shape point) (stride point) {
	n := 1
	for d := rank - 1; d >= 0; d-- {
		stride[d] = n
		n *= shape[d]
	}
	return stride
}

// box is a range of indices, half open along each axis.
type box struct{ lo, hi point }

func (b box) shape() (s point) {
	for d := range s {
		s[d] = b.hi[d] - b.lo[d]
	}
	return s
}

// lattice holds the taps of all axes between two levels.
type lattice struct {
	axes  [rank]*taps
	scale float64 // 2^-(number of even halved axes)
	even  bool    // all halved axes are even
}

func newLattice(in point, halve [rank]bool) *lattice {
	l := &lattice{scale: 1, even: true}
	for d := range in {
		l.axes[d] = axisTaps(in[d], halve[d])
		switch t := l.axes[d]; {
		case t.halved && t.Even:
			l.scale /= 2
		case t.halved:
			l.even = false
		}
	}
	return l
}

// inputs returns the box of samples that the outputs of b are made from.
func (l *lattice) inputs(b box) (in box) {
	for d, t := range l.axes {
		in.lo[d], in.hi[d] = t.inputs(b.lo[d], b.hi[d])
	}
	return in
}

// shrinker computes boxes of the next level from boxes of a level, for one
// element type. Implementations keep no state: they are safe for concurrent use.
type shrinker func(l *lattice, dst memory, src memory, out box)

// memory is a view of bytes whose strides count elements.
type memory = view[byte]

// as gives the bytes of m their type.
func as[T any](m memory) view[T] {
	var t T
	n := len(m.data) / int(unsafe.Sizeof(t))
	return view[T]{unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(m.data))), n), m.origin, m.stride}
}

// shrinkerOf returns the shrinker of an element type; that of labels takes the nearest sample.
func shrinkerOf(t dtype.Type, labels bool) (shrinker, error) {
	if labels {
		switch t.Size() {
		case 1:
			return shrinkNearest[uint8], nil
		case 2:
			return shrinkNearest[uint16], nil
		case 4:
			return shrinkNearest[uint32], nil
		}
		return shrinkNearest[uint64], nil
	}
	switch t {
	case dtype.Uint8:
		return shrinkInt[uint8, int32, float32], nil
	case dtype.Int8:
		return shrinkInt[int8, int32, float32], nil
	case dtype.Uint16:
		return shrinkInt[uint16, int32, float32], nil
	case dtype.Int16:
		return shrinkInt[int16, int32, float32], nil
	case dtype.Uint32:
		return shrinkInt[uint32, int64, float64], nil
	case dtype.Int32:
		return shrinkInt[int32, int64, float64], nil
	case dtype.Uint64:
		return shrinkInt[uint64, noSum, float64], nil
	case dtype.Int64:
		return shrinkInt[int64, noSum, float64], nil
	case dtype.Float32:
		return shrinkFloat[float32], nil
	case dtype.Float64:
		return shrinkFloat[float64], nil
	case dtype.Float16:
		return shrinkHalf, nil
	}
	return nil, fmt.Errorf("no pyramid for elements of type %s (integers and real numbers only)", t)
}

// noSum means that sums of eight elements overflow every integer type.
type noSum int64

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

// rows are the up to four input rows (z, y) = (lo, lo), (lo, hi), (hi, lo),
// (hi, hi) of one output row, with the weights along y and z.
type rows[T any, F float] struct {
	r              [4][]T
	planes         int // 2 when z is halved, else 1
	y0, y1, z0, z1 F
}

// eachRow calls f for every output row of a box.
func eachRow[T any, F float](l *lattice, dst, src *view[T], out box, f func(dst []T, in *rows[T, F])) {
	x0, x1 := l.axes[axisX].inputs(out.lo[axisX], out.hi[axisX])
	tz, ty := l.axes[axisZ], l.axes[axisY]
	width, pitch := x1-x0, src.stride[axisY]
	owidth, opitch := out.hi[axisX]-out.lo[axisX], dst.stride[axisY]
	var in rows[T, F]
	var p point
	for p[0] = out.lo[0]; p[0] < out.hi[0]; p[0]++ {
		for p[1] = out.lo[1]; p[1] < out.hi[1]; p[1]++ {
			for z := out.lo[axisZ]; z < out.hi[axisZ]; z++ {
				zl, zh := z, z
				in.planes = 1
				if tz.halved {
					zl, zh, in.z0, in.z1, in.planes = int(tz.Lo[z]), int(tz.Hi[z]), F(tz.W0[z]), F(tz.W1[z]), 2
				}
				// where row 0 of the two input planes and of the output plane would begin
				near := src.at(point{p[0], p[1], zl, 0, x0})
				far := src.at(point{p[0], p[1], zh, 0, x0})
				to := dst.at(point{p[0], p[1], z, 0, out.lo[axisX]})
				for y := out.lo[axisY]; y < out.hi[axisY]; y++ {
					yl, yh := int(ty.Lo[y])*pitch, int(ty.Hi[y])*pitch
					in.y0, in.y1 = F(ty.W0[y]), F(ty.W1[y])
					in.r[0] = src.data[near+yl:][:width]
					in.r[1] = src.data[near+yh:][:width]
					if in.planes == 2 {
						in.r[2] = src.data[far+yl:][:width]
						in.r[3] = src.data[far+yh:][:width]
					}
					f(dst.data[to+y*opitch:][:owidth], &in)
				}
			}
		}
	}
}

// weights of type F along x.
func weights[F float](t *taps) (w0, w1 []F) {
	var f F
	if unsafe.Sizeof(f) == 4 {
		return any(t.f0).([]F), any(t.f1).([]F)
	}
	return any(t.W0).([]F), any(t.W1).([]F)
}

// shrinkFloat computes with the elements' own type.
func shrinkFloat[T float](l *lattice, dm, sm memory, out box) {
	dst, src := as[T](dm), as[T](sm)
	scale := T(l.scale)
	tx := l.axes[axisX]
	if l.even {
		eachRow(l, &dst, &src, out, func(d []T, in *rows[T, T]) { meanRow(d, in, scale) })
		return
	}
	w0, w1 := weights[T](tx)
	lo, hi := tx.Lo[out.lo[axisX]:], tx.Hi[out.lo[axisX]:]
	w0, w1 = w0[out.lo[axisX]:], w1[out.lo[axisX]:]
	eachRow(l, &dst, &src, out, func(d []T, in *rows[T, T]) {
		for i := range d {
			d[i] = blend(in, int(lo[i]-lo[0]), int(hi[i]-lo[0]), w0[i], w1[i]) * scale
		}
	})
}

// meanRow computes the mean of two samples along each halved axis.
func meanRow[T float](d []T, in *rows[T, T], scale T) {
	n := 2 * len(d)
	a, b := in.r[0][:n], in.r[1][:n]
	if in.planes == 1 {
		for i := range d {
			d[i] = ((a[2*i] + a[2*i+1]) + (b[2*i] + b[2*i+1])) * scale
		}
		return
	}
	c, e := in.r[2][:n], in.r[3][:n]
	for i := range d {
		d[i] = (((a[2*i] + a[2*i+1]) + (b[2*i] + b[2*i+1])) + ((c[2*i] + c[2*i+1]) + (e[2*i] + e[2*i+1]))) * scale
	}
}

// blend interpolates along x, then y, then z. Each product is rounded before
// it is added.
func blend[T dtype.Element, F float](in *rows[T, F], lo, hi int, w0, w1 F) F {
	a := F(F(in.r[0][lo])*w0) + F(F(in.r[0][hi])*w1)
	b := F(F(in.r[1][lo])*w0) + F(F(in.r[1][hi])*w1)
	p := F(a*in.y0) + F(b*in.y1)
	if in.planes == 1 {
		return p
	}
	c := F(F(in.r[2][lo])*w0) + F(F(in.r[2][hi])*w1)
	d := F(F(in.r[3][lo])*w0) + F(F(in.r[3][hi])*w1)
	q := F(c*in.y0) + F(d*in.y1)
	return F(p*in.z0) + F(q*in.z1)
}

// shrinkInt computes sums of an even lattice in S, where they are exact, and
// the rest in F.
func shrinkInt[T integer, S int32 | int64 | noSum, F float](l *lattice, dm, sm memory, out box) {
	dst, src := as[T](dm), as[T](sm)
	var s S
	if _, tooBig := any(s).(noSum); l.even && !tooBig {
		shift := 0
		for _, t := range l.axes {
			if t.halved {
				shift++
			}
		}
		eachRow(l, &dst, &src, out, func(d []T, in *rows[T, F]) {
			done := meanRowVector(d, &in.r, in.planes)
			meanRowInt[T, S](d, &in.r, done, in.planes, shift)
		})
		return
	}
	tx := l.axes[axisX]
	w0, w1 := weights[F](tx)
	lo, hi := tx.Lo[out.lo[axisX]:], tx.Hi[out.lo[axisX]:]
	w0, w1 = w0[out.lo[axisX]:], w1[out.lo[axisX]:]
	scale := F(l.scale)
	least, most := bounds[T]()
	eachRow(l, &dst, &src, out, func(d []T, in *rows[T, F]) {
		for i := range d {
			d[i] = toInt(float64(blend(in, int(lo[i]-lo[0]), int(hi[i]-lo[0]), w0[i], w1[i])*scale), least, most)
		}
	})
}

// meanRowInt computes the mean of 2^shift samples, beginning with output first, rounded half to even: it adds
// half less one, and one more if the quotient is odd.
func meanRowInt[T integer, S int32 | int64 | noSum](d []T, r *[4][]T, first, planes, shift int) {
	n := 2 * len(d)
	half := S(1)<<(shift-1) - 1
	a, b := r[0][:n], r[1][:n]
	if planes == 1 {
		for i := first; i < len(d); i++ {
			s := S(a[2*i]) + S(a[2*i+1]) + S(b[2*i]) + S(b[2*i+1])
			d[i] = T((s + half + s>>shift&1) >> shift)
		}
		return
	}
	c, e := r[2][:n], r[3][:n]
	for i := first; i < len(d); i++ {
		s := S(a[2*i]) + S(a[2*i+1]) + S(b[2*i]) + S(b[2*i+1]) + S(c[2*i]) + S(c[2*i+1]) + S(e[2*i]) + S(e[2*i+1])
		d[i] = T((s + half + s>>shift&1) >> shift)
	}
}

// bounds returns the least and the greatest value of an integer type.
func bounds[T integer]() (least, most T) {
	size := 8 * unsafe.Sizeof(least)
	if least--; least > 0 {
		return 0, least // unsigned: -1 is all ones
	}
	most = T(uint64(1)<<(size-1) - 1)
	return -most - 1, most
}

// toInt rounds half to even and clamps. Converting a float64 outside T's range
// is undefined, hence the comparisons first; float64(most) may be most+1 for
// 64-bit types, hence ≥.
func toInt[T integer](v float64, least, most T) T {
	v = math.RoundToEven(v)
	switch {
	case v >= float64(most):
		return most
	case v <= float64(least):
		return least
	}
	return T(v)
}

// shrinkNearest takes the sample that is nearest to each output: along axes of even length the first of two.
func shrinkNearest[T uint8 | uint16 | uint32 | uint64](l *lattice, dm, sm memory, out box) {
	dst, src := as[T](dm), as[T](sm)
	tx := l.axes[axisX]
	lo, hi := tx.Lo[out.lo[axisX]:], tx.Hi[out.lo[axisX]:]
	w0, w1 := tx.W0[out.lo[axisX]:], tx.W1[out.lo[axisX]:]
	eachRow(l, &dst, &src, out, func(d []T, in *rows[T, float64]) {
		k := 0
		if in.planes == 2 && in.z1 > in.z0 {
			k = 2
		}
		if in.y1 > in.y0 {
			k++
		}
		row := in.r[k]
		for i := range d {
			at := lo[i]
			if w1[i] > w0[i] {
				at = hi[i]
			}
			d[i] = row[at-lo[0]]
		}
	})
}

// shrinkHalf computes binary16 numbers in float32 and rounds once.
func shrinkHalf(l *lattice, dm, sm memory, out box) {
	dst, src := as[uint16](dm), as[uint16](sm)
	tx := l.axes[axisX]
	x0, x1 := tx.inputs(out.lo[axisX], out.hi[axisX])
	wide := make([]float32, 4*(x1-x0))
	lo, hi := tx.Lo[out.lo[axisX]:], tx.Hi[out.lo[axisX]:]
	w0, w1 := tx.f0[out.lo[axisX]:], tx.f1[out.lo[axisX]:]
	scale := float32(l.scale)
	eachRow(l, &dst, &src, out, func(d []uint16, in *rows[uint16, float32]) {
		r := rows[float32, float32]{planes: in.planes, y0: in.y0, y1: in.y1, z0: in.z0, z1: in.z1}
		for i := range 2 * in.planes {
			r.r[i] = wide[i*(x1-x0):][:x1-x0]
			for j, h := range in.r[i] {
				r.r[i][j] = dtype.Float16Value(h)
			}
		}
		for i := range d {
			d[i] = dtype.Float16Bits(blend(&r, int(lo[i]-lo[0]), int(hi[i]-lo[0]), w0[i], w1[i]) * scale)
		}
	})
}

// leastShrunk is the number of voxels made at a time from which idle processors help.
const leastShrunk = 1 << 17

// shrinkSplit computes a box of the next level, on idle processors as well. An error is that of ctx.
func (p *pyramid) shrinkSplit(ctx context.Context, l *lattice, dst, src memory, out box) error {
	n, along := out.shape(), 0
	for d := range rank - 1 { // not along rows
		if n[d] > n[along] {
			along = d
		}
	}
	parts := 1
	if n.volume() >= leastShrunk {
		parts = min(1+2*work.Idle(ctx), n[along])
	}
	return work.Split(ctx, parts, 0, func(i int) error {
		some := out
		some.lo[along], some.hi[along] = out.lo[along]+i*n[along]/parts, out.lo[along]+(i+1)*n[along]/parts
		p.shrink(l, dst, src, some)
		return nil
	})
}
