package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

func noisePlanes(h, w int) (a, b []float32) {
	r := rand.New(rand.NewPCG(1, uint64(h*w)))
	for range h * w {
		v := r.Float32() * 100
		a = append(a, v-20)
		b = append(b, 3*v+30*r.Float32())
	}
	return a, b
}

// ssimByWindow computes each window on its own, by the definition.
func ssimByWindow(a, b []float32, h, w int) float64 {
	scaled := func(v []float32) []float64 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, f := range v {
			low, high = min(low, float64(f)), max(high, float64(f))
		}
		out := make([]float64, len(v))
		for i, f := range v {
			if high > low {
				out[i] = (float64(f) - low) / (high - low)
			}
		}
		return out
	}
	p, q := scaled(a), scaled(b)
	total, n := 0.0, 0
	for y := 0; y+7 <= h; y++ {
		for x := 0; x+7 <= w; x++ {
			var mp, mq, vp, vq, c float64
			for k := range 49 {
				mp += p[(y+k/7)*w+x+k%7] / 49
				mq += q[(y+k/7)*w+x+k%7] / 49
			}
			for k := range 49 {
				dp, dq := p[(y+k/7)*w+x+k%7]-mp, q[(y+k/7)*w+x+k%7]-mq
				vp, vq, c = vp+dp*dp/48, vq+dq*dq/48, c+dp*dq/48
			}
			total += (2*mp*mq + 1e-4) * (2*c + 9e-4) / ((mp*mp + mq*mq + 1e-4) * (vp + vq + 9e-4))
			n++
		}
	}
	return total / float64(n)
}

func TestSSIM(t *testing.T) {
	for _, size := range [][2]int{{7, 7}, {7, 20}, {19, 8}, {40, 33}} {
		a, b := noisePlanes(size[0], size[1])
		got, want := SSIM(a, b, size[0], size[1]), ssimByWindow(a, b, size[0], size[1])
		if math.Abs(got-want) > 1e-10 || got < 0.1 || got > 0.999 {
			t.Errorf("%v: %v, want %v", size, got, want)
		}
		if one := SSIM(a, a, size[0], size[1]); math.Abs(one-1) > 1e-12 {
			t.Errorf("%v: a plane and itself: %v", size, one)
		}
		if back := SSIM(b, a, size[0], size[1]); math.Abs(back-got) > 1e-12 {
			t.Errorf("%v: the other way round %v, not %v", size, back, got)
		}
	}
	// constant planes become 0, and NaN counts as 0
	a, _ := noisePlanes(9, 9)
	flat, empty := make([]float32, 81), make([]float32, 81)
	for i := range flat {
		flat[i], empty[i] = 7, float32(math.NaN())
	}
	if got := SSIM(flat, empty, 9, 9); got != 1 {
		t.Errorf("two constant planes: %v", got)
	}
	if got, want := SSIM(a, empty, 9, 9), ssimByWindow(a, flat, 9, 9); math.Abs(got-want) > 1e-10 {
		t.Errorf("beside a constant plane: %v, want %v", got, want)
	}
}

func TestEdgeCorrelation(t *testing.T) {
	const h, w = 12, 17
	a, b := noisePlanes(h, w)
	magnitude := func(v []float32) (out []float64) {
		at := func(y, x int) float64 { return float64(v[min(max(y, 0), h-1)*w+min(max(x, 0), w-1)]) }
		for y := range h {
			for x := range w {
				var gx, gy float64
				for k, f := range []float64{1, 2, 1} {
					gx += f * (at(y+k-1, x+1) - at(y+k-1, x-1))
					gy += f * (at(y+1, x+k-1) - at(y-1, x+k-1))
				}
				out = append(out, math.Hypot(gx, gy))
			}
		}
		return out
	}
	p, q := magnitude(a), magnitude(b)
	var mp, mq, pp, qq, pq float64
	for i := range p {
		mp, mq = mp+p[i]/(h*w), mq+q[i]/(h*w)
	}
	for i := range p {
		pp, qq, pq = pp+(p[i]-mp)*(p[i]-mp), qq+(q[i]-mq)*(q[i]-mq), pq+(p[i]-mp)*(q[i]-mq)
	}
	want := pq / math.Sqrt(pp*qq)
	if got := EdgeCorrelation(a, b, h, w); math.Abs(got-want) > 1e-12 || got < 0.5 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := EdgeCorrelation(a, make([]float32, h*w), h, w); got != 0 {
		t.Errorf("beside a plane without edges: %v", got)
	}
}
