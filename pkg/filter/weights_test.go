package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

// numbers are the elements of a golden array as float64.
func numbers(a golden.Array) []float64 {
	var out []float64
	dtype.Each(a.Data, a.Type, func(v float64) { out = append(out, v) })
	return out
}

func floats(a golden.Array) []float32 {
	out := make([]float32, 0, len(a.Data)/a.Type.Size())
	for _, v := range numbers(a) {
		out = append(out, float32(v))
	}
	return out
}

func near[T float32 | float64](t *testing.T, what string, got []T, want []float64, rel, abs float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - v); !(d <= abs+rel*math.Abs(v)) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], v)
		}
	}
}

func TestGaussianGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "gaussian1d") {
		var args struct{ Mode string }
		if err := json.Unmarshal(p.Args, &args); err != nil {
			t.Fatal(err)
		}
		b := map[string]Boundary{"reflect": Reflect, "mirror": Mirror}[args.Mode]
		if b.String() != args.Mode {
			t.Fatalf("unknown mode %q", args.Mode)
		}
		in := p.Arrays["in"]
		rows, n := in.Shape[0], in.Shape[1]
		for key, want := range p.Arrays {
			if key == "in" {
				continue
			}
			var sigma float64
			var order int
			name, kernel := strings.CutPrefix(key, "kernel_")
			if _, err := fmt.Sscanf(strings.ReplaceAll(name, "_o", " "), "s%g %d", &sigma, &order); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(key, err)
			}
			if kernel {
				checkKernel(t, p.File+" "+key, GaussianKernel(sigma, order), numbers(want))
				continue
			}
			near(t, p.File+" "+key+" in float64", correlate(numbers(in), n, GaussianKernel(sigma, order), b), numbers(want), p.Tolerance.Rel, p.Tolerance.Abs)
			w := GaussianWeights(n, sigma, order, b)
			got := make([]float32, rows*n)
			w.ApplyRows(got, floats(in), rows, make([]float32, w.RowScratch()))
			near(t, p.File+" "+key, got, numbers(want), max(p.Tolerance.Rel, 1e-6), p.Tolerance.Abs)
		}
	}
}

// correlate is the definition of a filter along rows of n, in float64.
func correlate(v []float64, n int, kernel []float64, b Boundary) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		for j, k := range kernel {
			out[i] += k * v[i/n*n+b.Index(i%n+j-len(kernel)/2, n)]
		}
	}
	return out
}

// checkKernel compares a kernel with the response to a unit impulse, which is
// the kernel turned round.
func checkKernel(t *testing.T, what string, k, response []float64) {
	t.Helper()
	r, c := len(k)/2, len(response)/2
	for i, want := range response {
		got := 0.0
		if j := c - i; j >= -r && j <= r {
			got = k[r+j]
		}
		if math.Abs(got-want) > 1e-15+1e-13*math.Abs(want) {
			t.Fatalf("%s: response %d is %v, want %v", what, i-c, got, want)
		}
	}
}

func TestResizeGolden(t *testing.T) {
	for _, op := range []string{"zoom3d", "resize3d"} {
		for _, p := range golden.Primitives(t, op) {
			in := p.Arrays["in"]
			for key, want := range p.Arrays {
				if key == "in" {
					continue
				}
				var w [3]*Weights
				for d, m := range want.Shape {
					n := in.Shape[d]
					switch {
					case op == "zoom3d":
						w[d] = CornerAligned(n, m, 0, Reflect)
					case strings.Contains(p.File, "centres"):
						w[d] = CentreAligned(n, m, 0, Mirror)
					default:
						w[d] = CornerAligned(n, m, AntiAliasSigma(n, m), Reflect)
					}
				}
				got := make([]float32, want.Shape[0]*want.Shape[1]*want.Shape[2])
				Resize(got, floats(in), w[0], w[1], w[2])
				near(t, p.File+" "+key, got, numbers(want), max(p.Tolerance.Rel, 1e-6), max(p.Tolerance.Abs, 1e-6*slices.Max(numbers(in))))
			}
		}
	}
}

func random(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = (r.Float32() - 0.3) * 5000
	}
	return v
}

func TestBoundaryIndex(t *testing.T) {
	for _, c := range []struct {
		b    Boundary
		n    int
		from int
		want string
	}{
		{Reflect, 4, -9, "aabcddcbaabcddcbaabcddc"},
		{Mirror, 4, -9, "dcbabcdcbabcdcbabcdcbab"},
		{Nearest, 4, -3, "aaaabcdddd"},
		{Reflect, 1, -3, "aaaaaaa"},
		{Mirror, 1, -3, "aaaaaaa"},
		{Mirror, 2, -3, "bababab"},
	} {
		var got strings.Builder
		for i := range len(c.want) {
			got.WriteByte("abcd"[c.b.Index(c.from+i, c.n)])
		}
		if got.String() != c.want {
			t.Errorf("%v of %d from %d: %s, want %s", c.b, c.n, c.from, got.String(), c.want)
		}
	}
}

// The bytes that are asked for before weights are made are those that they take, and little more.
func TestWeightsBytes(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {1, 500}, {500, 1}, {500, 500}, {65, 6500}, {6500, 65}, {100, 99}, {99, 100}, {7, 3}} {
		in, out := c[0], c[1]
		sigma := AntiAliasSigma(in, out)
		for name, make := range map[string]func() *Weights{
			"centre": func() *Weights { return CentreAligned(in, out, sigma, Mirror) },
			"corner": func() *Weights { return CornerAligned(in, out, sigma, Reflect) },
			"blur":   func() *Weights { return GaussianWeights(in, 3, 0, Reflect) },
		} {
			w := make()
			bytes := WeightsBytes(in, out, sigma)
			if name == "blur" {
				bytes = WeightsBytes(in, in, 3)
			}
			took := int64(8*cap(w.first) + 8*cap(w.start) + 4*cap(w.taps))
			if took > bytes || bytes > 4*took+64*int64(in)+256 {
				t.Errorf("%s, %d to %d: %d bytes, asked for %d", name, in, out, took, bytes)
			}
		}
	}
	for _, c := range [][2]int{{1 << 40, 1 << 40}, {1 << 62, 1}, {1, 1 << 62}, {1 << 62, 1 << 61}} {
		if got := WeightsBytes(c[0], c[1], AntiAliasSigma(c[0], c[1])); got < 1<<40 {
			t.Errorf("%v: %d bytes", c, got)
		}
	}
}
