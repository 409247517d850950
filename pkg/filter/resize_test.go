package filter

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
)

// blurred and sampled are the two steps of the specification, one after the
// other, in float64, on one line. They share no code with Weights.
func blurred(v []float64, sigma float64, mirror bool) []float64 {
	n := len(v)
	r := int(4*sigma + 0.5)
	var kernel []float64
	var sum float64
	for j := -r; j <= r; j++ {
		kernel = append(kernel, math.Exp(-float64(j*j)/(2*sigma*sigma)))
		sum += kernel[len(kernel)-1]
	}
	out := make([]float64, n)
	for i := range out {
		for j, k := range kernel {
			p := i + j - r
			for n > 1 && (p < 0 || p >= n) { // fold until it is inside
				switch {
				case p < 0 && mirror:
					p = -p
				case p < 0:
					p = -1 - p
				case mirror:
					p = 2*(n-1) - p
				default:
					p = 2*n - 1 - p
				}
			}
			if n == 1 {
				p = 0
			}
			out[i] += k / sum * v[p]
		}
	}
	return out
}

func sampled(v []float64, at float64) float64 {
	at = min(max(at, 0), float64(len(v)-1))
	i := int(at)
	if i == len(v)-1 {
		return v[i]
	}
	f := at - float64(i)
	return (1-f)*v[i] + f*v[i+1]
}

func TestWeightsAgainstTwoSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 600 {
		in, out := 1+r.IntN(60), 1+r.IntN(60)
		if r.IntN(4) == 0 {
			out = 1 + r.IntN(3) // sigma beyond the axis
		}
		v := make([]float64, in)
		row := make([]float32, in)
		for i := range v {
			row[i] = r.Float32() * 1000
			v[i] = float64(row[i])
		}
		f := float64(in) / float64(out)
		centred := r.IntN(2) == 0
		line := v
		if f > 1 {
			line = blurred(v, (f-1)/2, centred)
		}
		w := CornerAligned(in, out, AntiAliasSigma(in, out), Reflect)
		if centred {
			w = CentreAligned(in, out, AntiAliasSigma(in, out), Mirror)
		}
		got := make([]float32, out)
		w.ApplyRows(got, row, 1, make([]float32, w.RowScratch()))
		for i := range got {
			at := 0.0
			switch {
			case centred:
				at = (float64(i)+0.5)*f - 0.5
			case out > 1:
				at = float64(i) * float64(in-1) / float64(out-1)
			}
			if want := sampled(line, at); math.Abs(float64(got[i])-want) > 2e-3 {
				t.Fatalf("%d → %d, centred %v: sample %d is %v, want %v", in, out, centred, i, got[i], want)
			}
		}
	}
}

// What the streaming of an axis relies on: windows move forward and every input
// takes part.
func TestWindowsMoveForward(t *testing.T) {
	for in := 1; in < 40; in++ {
		for out := 1; out < 60; out++ {
			for _, w := range []*Weights{
				CornerAligned(in, out, AntiAliasSigma(in, out), Reflect),
				CentreAligned(in, out, AntiAliasSigma(in, out), Mirror),
				CentreAligned(in, out, 0, Nearest),
				GaussianWeights(in, float64(out)/10, 1, Reflect),
			} {
				seen := make([]bool, in)
				first, end := 0, 0
				for i := range w.Out() {
					lo, taps := w.Taps(i)
					a, b := w.Inputs(i, i+1)
					if a != lo || b != lo+len(taps) || a < first || b < end || b > in || a >= b {
						t.Fatalf("%d → %d: window %d is %d…%d after …%d…%d", in, out, i, a, b, first, end)
					}
					first, end = a, b
					for k := a; k < b; k++ {
						seen[k] = true
					}
				}
				covers := true
				for _, s := range seen {
					covers = covers && s
				}
				if covers != w.Covers() {
					t.Fatalf("%d → %d: covers is %v, want %v", in, out, w.Covers(), covers)
				}
			}
			// resample counts the non-finite voxels of planes by what is made of them
			if !CornerAligned(in, out, AntiAliasSigma(in, out), Reflect).Covers() {
				t.Fatalf("%d → %d: a voxel is left out", in, out)
			}
		}
	}
}

func TestIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for n := 1; n < 40; n++ {
		v := random(r, n)
		for _, w := range []*Weights{CornerAligned(n, n, AntiAliasSigma(n, n), Reflect), CentreAligned(n, n, AntiAliasSigma(n, n), Mirror)} {
			if !w.Identity() {
				t.Fatalf("%d samples as they are: not the identity", n)
			}
			got := make([]float32, n)
			w.Apply(got, v, 1, 1)
			sameBits(t, "identity", got, v)
		}
		if n > 1 && CornerAligned(n, n-1, 0, Reflect).Identity() {
			t.Fatalf("%d to %d samples is no identity", n, n-1)
		}
	}
}

// A volume is the same however its planes are handed over, with vectors and
// without, and from a resizer that did others before.
func TestResizerIsTheSameHoweverFed(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	used := NewResizer(CornerAligned(3, 9, 0, Reflect), CornerAligned(5, 2, 1, Reflect), CornerAligned(4, 4, 0, Reflect))
	for range 60 {
		var w [3]*Weights
		size, outSize := 1, 1
		for d := range w {
			in, out := 1+r.IntN(50), 1+r.IntN(50)
			if r.IntN(5) == 0 {
				out = in
			}
			w[d] = CornerAligned(in, out, AntiAliasSigma(in, out), Reflect)
			size, outSize = size*in, outSize*out
		}
		v := random(r, size)
		v[r.IntN(size)] = float32(math.NaN())
		v[r.IntN(size)] = float32(math.Inf(1))
		whole := NewResizer(w[0], w[1], w[2])
		filtered := whole.Add(v)
		if w[1].Covers() && w[2].Covers() && CountNonFinite(filtered) == 0 {
			t.Fatal("a NaN is lost")
		}
		if n := len(whole.Volume()); n != outSize {
			t.Fatalf("%d elements, want %d", n, outSize)
		}
		in, out := [3]int{w[0].In(), w[1].In(), w[2].In()}, [3]int{w[0].Out(), w[1].Out(), w[2].Out()}
		if got := ResizerBytes(in, out, in[0]); got < 4*int64(len(whole.sum)+len(whole.own.free[0])+len(whole.own.free[1])+len(whole.own.rows)) {
			t.Fatalf("the resizer takes more than the %d bytes it says", got)
		}
		plane := w[1].In() * w[2].In()
		feed := func() {
			used.Reset(w[0], w[1], w[2])
			for rest := v; len(rest) > 0; {
				n := min(1+r.IntN(7), len(rest)/plane) * plane
				used.Add(rest[:n])
				rest = rest[n:]
			}
			sameBits(t, "in pieces", used.Volume(), whole.Volume())
		}
		feed()
		scalar(feed)
		dst := make([]float32, outSize)
		Resize(dst, v, w[0], w[1], w[2])
		sameBits(t, "at once", dst, whole.Volume())
	}
}

// The order of the passes changes bits at most: each is the same filter.
func TestResizeAgainstPlainPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	z, y, x := CornerAligned(20, 7, AntiAliasSigma(20, 7), Reflect), CornerAligned(31, 12, AntiAliasSigma(31, 12), Reflect), CornerAligned(17, 33, 0, Reflect)
	v := random(r, 20*31*17)
	a := make([]float32, 7*31*17)
	z.Apply(a, v, 1, 31*17)
	b := make([]float32, 7*31*33)
	x.ApplyRows(b, a, 7*31, make([]float32, x.RowScratch()))
	want := make([]float32, 7*12*33)
	y.Apply(want, b, 7, 33)
	got := make([]float32, len(want))
	Resize(got, v, z, y, x)
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 2e-3 {
			t.Fatalf("voxel %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// NaN stays within the window of its filter.
func TestNaNStaysLocal(t *testing.T) {
	w := CornerAligned(200, 70, AntiAliasSigma(200, 70), Reflect)
	for p := range 200 {
		v := make([]float32, 200)
		v[p] = float32(math.NaN())
		got := make([]float32, 70)
		w.ApplyRows(got, v, 1, make([]float32, w.RowScratch()))
		f := 200.0 / 70
		reach := math.Floor(4*(f-1)/2+0.5) + 1
		for i, g := range got {
			if at := float64(i) * 199 / 69; (g != g) != (math.Abs(at-float64(p)) < reach) && math.Abs(math.Abs(at-float64(p))-reach) > 1e-9 {
				t.Fatalf("NaN at %d: sample %d at %.2f is %v", p, i, at, g)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, f := range map[string]func(){
		"no samples":      func() { CornerAligned(0, 3, 0, Reflect) },
		"rows do not fit": func() { Combine(make([]float32, 5), make([]float32, 9), 5, []float32{1, 2}) },
		"planes do not fit": func() {
			NewResizer(CornerAligned(2, 1, 0, Reflect), CornerAligned(2, 1, 0, Reflect), CornerAligned(2, 1, 0, Reflect)).Add(make([]float32, 5))
		},
		"planes missing": func() {
			NewResizer(CornerAligned(2, 1, 0, Reflect), CornerAligned(2, 1, 0, Reflect), CornerAligned(2, 1, 0, Reflect)).Volume()
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestExp(t *testing.T) {
	for x := 0.0; x > -760; x -= 0.0137 {
		got, want := exp(x), math.Exp(x)
		if math.Abs(got-want) > 4e-16*want+1e-323 {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	if exp(0) != 1 || exp(math.Inf(-1)) != 0 {
		t.Errorf("exp(0) is %v, exp(−∞) %v", exp(0), exp(math.Inf(-1)))
	}
}

// The bits are those of every machine: this sum was made on amd64.
func TestResizeHasTheSameBitsEverywhere(t *testing.T) {
	shape, to := [3]int{40, 61, 52}, [3]int{14, 12, 70}
	v := make([]float32, shape[0]*shape[1]*shape[2])
	for i := range v {
		v[i] = float32(i*7919%10007) / 3
	}
	var w, c [3]*Weights
	for d := range w {
		w[d] = CornerAligned(shape[d], to[d], AntiAliasSigma(shape[d], to[d]), Reflect)
		c[d] = CentreAligned(shape[d], to[d], AntiAliasSigma(shape[d], to[d]), Mirror)
	}
	h := fnv.New64a()
	out := make([]float32, to[0]*to[1]*to[2])
	for _, w := range [][3]*Weights{w, c} {
		Resize(out, v, w[0], w[1], w[2])
		h.Write(dtype.Bytes(out))
	}
	for _, sigma := range []float64{0.5, 1.6429, 2, 33} {
		h.Write(dtype.Bytes(GaussianKernel(sigma, 0)))
		h.Write(dtype.Bytes(GaussianKernel(sigma, 1)))
	}
	if got := h.Sum64(); got != 0x31ac82ce05c1dca5 {
		t.Errorf("the bits' sum is %#x", got)
	}
}
