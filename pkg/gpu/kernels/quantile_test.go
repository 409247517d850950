//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

// passes goes through the passes of q.
func passes(b *bench, q *Quantiles, add func() error) {
	b.t.Helper()
	for !q.Done() {
		b.check(add())
		b.check(q.Refine(b.stream))
	}
}

func TestQuantiles(t *testing.T) {
	each(t, quantiles[uint8], quantiles[int8], quantiles[uint16], quantiles[int16], quantiles[uint32], quantiles[int32],
		quantiles[uint64], quantiles[int64], quantiles[float32], quantiles[float64])
}

func quantiles[T dtype.Element](t *testing.T) {
	b := open(t)
	percent := []float64{0, 0.1, 50, 73.21, 99.9, 100}
	for _, n := range []int{1, 2, 40, 3000} {
		v := sample[T](n)
		f := make([]float32, n)
		filter.ToFloat32(f, v)
		want := filter.NewQuantiles(percent...)
		want.Add(f)
		want.Refine()
		want.Add(f)
		src, kind := upload(b, v), dtype.Of[T]()

		q, err := NewQuantiles(b.stream, false, percent...)
		b.check(err)
		passes(b, q, func() error { // in two pieces
			half := int64(n / 2)
			if err := q.Add(b.stream, src, kind, half); err != nil {
				return err
			}
			at := half * int64(kind.Size())
			return q.Add(b.stream, src.From(at, src.Bytes()-at), kind, int64(n)-half)
		})
		for i := range percent {
			if got := q.Value(i); got != want.Value(i) {
				t.Errorf("%d values: percentile %v is %v, the CPU has %v", n, percent[i], got, want.Value(i))
			}
		}
		q.Release()

		q, err = NewQuantiles(b.stream, true, percent...)
		b.check(err)
		passes(b, q, func() error { return q.Add(b.stream, src, kind, int64(n)) })
		for i, p := range percent {
			m := filter.NewMagnitudePercentile(p, 1<<20)
			for m.Begin() {
				m.Add(f)
			}
			if got := float32(q.Value(i)); got != m.Value() {
				t.Errorf("%d values: percentile %v of the magnitudes is %v, the CPU has %v", n, p, got, m.Value())
			}
		}
		q.Release()
	}
}

func TestQuantilesOfCommon(t *testing.T) {
	b := open(t)
	const planes, ny, nx, pitch = 3, 5, 290, 300
	v, w := sample[float32](planes*ny*pitch), sample[float32](planes*ny*pitch + 1)[1:]
	var common []float32
	for i, f := range v {
		if i%pitch < nx && f > 0 && w[i] > 0 {
			common = append(common, f)
		}
	}
	q, err := NewQuantiles(b.stream, false, 50)
	b.check(err)
	defer q.Release()
	a, c := Planes{upload(b, v), pitch, ny * pitch}, Planes{upload(b, w), pitch, ny * pitch}
	passes(b, q, func() error { return q.AddCommon(b.stream, a, c, planes, ny, nx) })
	if got, want := q.Value(0), filter.Median(common); got != want || q.Count() != int64(len(common)) {
		t.Errorf("median %v of %d, the CPU has %v of %d", got, q.Count(), want, len(common))
	}
}

func TestQuantilesOfNothing(t *testing.T) {
	b := open(t)
	q, err := NewQuantiles(b.stream, false, 50)
	b.check(err)
	defer q.Release()
	src := upload(b, []float32{float32(math.NaN())})
	passes(b, q, func() error { return q.Add(b.stream, src, dtype.Float32, 1) })
	if v := q.Value(0); v == v {
		t.Errorf("median %v of no numbers", v)
	}
}
