//go:build !nocuda

package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestMagnitudePercentile(t *testing.T) {
	each(t, magnitudePercentile[uint8], magnitudePercentile[int8], magnitudePercentile[uint16], magnitudePercentile[int16], magnitudePercentile[uint32],
		magnitudePercentile[int32], magnitudePercentile[uint64], magnitudePercentile[int64], magnitudePercentile[float32], magnitudePercentile[float64])
}

func magnitudePercentile[T dtype.Element](t *testing.T) {
	b := open(t)
	v := sample[T](2003)
	if kind := dtype.Of[T](); small(kind) {
		// some magnitudes that more have than a counter holds, and some that neighbours share
		v = sample[T](50003)
		for i := range v {
			switch {
			case i%3 == 0:
				v[i] = v[i/9000]
			case i > 20000 && i%8 < 3:
				v[i] = v[i-1]
			}
		}
	}
	for _, percent := range []float64{0, 99.9} {
		want, bad := percentileOf(v, percent)
		// what is looked at says where the percentile lies, and not at all
		for name, look := range map[string][]T{"all": v, "none": nil, "zeros": make([]T, 10)} {
			p, err := NewMagnitudePercentile(b.stream, dtype.Of[T](), percent, 1<<19)
			b.check(err)
			passes := 0
			add := func(v []T) {
				if len(v) > 0 {
					b.check(p.Add(b.stream, upload(b, v), int64(len(v))))
				}
				b.check(b.stream.Wait())
			}
			if p.Looks() {
				add(look)
			}
			for {
				more, err := p.Begin(b.stream)
				b.check(err)
				if !more {
					break
				}
				passes++
				add(v[:1500])
				add(v[1500:1505])
				add(v[1505:])
			}
			what := fmt.Sprintf("%v %%, seen %s", percent, name)
			if got := p.Value(); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			if p.NonFinite() != bad {
				t.Errorf("%s: %d are no numbers, want %d", what, p.NonFinite(), bad)
			}
			if p.passes != passes || passes > 4 || name == "all" && passes > 3 || !p.Looks() && passes > 1 {
				t.Errorf("%s: %d passes", what, passes)
			}
			p.Release()
		}
	}
}

// TestCountedTogether: the host counts a part of the values and the device the others, in the first pass, which may not
// have the percentile among its counters: the host has the same percentile as if it had counted all.
func TestCountedTogether(t *testing.T) {
	each(t, countedTogether[uint8], countedTogether[int8], countedTogether[uint16], countedTogether[int16], countedTogether[uint32],
		countedTogether[int32], countedTogether[uint64], countedTogether[int64], countedTogether[float32], countedTogether[float64])
}

func countedTogether[T dtype.Element](t *testing.T) {
	b := open(t)
	v := sample[T](2003)
	for _, percent := range []float64{0, 50, 99.9} {
		want, bad := percentileOf(v, percent)
		for name, look := range map[string][]T{"all": v, "none": nil, "zeros": make([]T, 10), "one large": {v[slices.IndexFunc(v, func(x T) bool { return x-x == 0 && x > 100 })]}} {
			host := filter.NewMagnitudePercentile(percent, 1<<20)
			host.Look(magnitudesOf(look))
			p, err := NewMagnitudePercentile(b.stream, dtype.Of[T](), percent, 1<<20)
			b.check(err)
			var got int64
			for host.Begin() {
				if host.Passes() == 1 {
					from, to := host.Window()
					b.check(p.Window(b.stream, from, to))
					b.check(p.Add(b.stream, upload(b, v[:700]), 700))
					b.check(p.Add(b.stream, upload(b, v[700:1301]), 601))
					b.check(b.stream.Wait())
					got, err = p.Counted(b.stream, host.AddCounted)
					b.check(err)
					got += host.Add(magnitudesOf(v[1301:]))
					continue
				}
				host.Add(magnitudesOf(v))
			}
			p.Release()
			if what := fmt.Sprintf("%v %%, seen %s", percent, name); host.Value() != want || got != bad || host.Passes() > 4 {
				t.Errorf("%s: %v, %d are no numbers, in %d passes; want %v, %d", what, host.Value(), got, host.Passes(), want, bad)
			}
		}
	}
}

// TestTallies: all counters of integers of up to 16 bits, of several blocks, in two calls.
func TestTallies(t *testing.T) {
	t.Run("uint8", tallied[uint8])
	t.Run("int8", tallied[int8])
	t.Run("uint16", tallied[uint16])
	t.Run("int16", tallied[int16])
}

func tallied[T dtype.Element](t *testing.T) {
	b := open(t)
	kind := dtype.Of[T]()
	v := sample[T](2<<15 + 5001)
	if kind.Size() == 2 {
		v = sample[T](1<<19 + 4001)
	}
	for i := range v { // what most have
		if i%5 == 0 {
			v[i] = v[0]
		}
	}
	p, err := NewMagnitudePercentile(b.stream, kind, 50, 1)
	b.check(err)
	defer p.Release()
	src, first := upload(b, v), len(v)-4000
	b.check(p.Add(b.stream, src, int64(first)))
	b.check(p.Add(b.stream, upload(b, v[first:]), int64(len(v)-first)))
	want := make([]uint64, 1<<16)
	for _, x := range v {
		want[int(math.Abs(float64(x)))]++
	}
	equal(t, "counters", download[uint64](b, p.table), want)
}

// percentileOf is the CPU's, of values in float32.
func percentileOf[T dtype.Element](v []T, percent float64) (value float32, nonFinite int64) {
	f := magnitudesOf(v)
	p := filter.NewMagnitudePercentile(percent, 1<<20)
	p.Look(f)
	for p.Begin() {
		nonFinite = p.Add(f)
	}
	return p.Value(), nonFinite
}

// magnitudesOf returns values in float32, as the CPU counts them.
func magnitudesOf[T dtype.Element](v []T) []float32 {
	f := make([]float32, len(v))
	filter.ToFloat32(f, v)
	for i := range f {
		if wide := float64(v[i]); wide-wide == 0 && math.IsInf(float64(f[i]), 0) {
			f[i] = 0
		}
	}
	return f
}

// Nothing but NaN, and nothing at all.
func TestMagnitudePercentileOfNothing(t *testing.T) {
	b := open(t)
	nan := []float32{float32(math.NaN()), float32(math.Inf(-1))}
	p, err := NewMagnitudePercentile(b.stream, dtype.Float32, 50, 1)
	b.check(err)
	defer p.Release()
	for more := true; more; {
		more, err = p.Begin(b.stream)
		b.check(err)
		if more {
			b.check(p.Add(b.stream, upload(b, nan), 2))
			b.check(b.stream.Wait())
		}
	}
	if p.Value() != 0 || p.NonFinite() != 2 {
		t.Errorf("%v, %d are no numbers", p.Value(), p.NonFinite())
	}
}
