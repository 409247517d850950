package filter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveMedian is the definition: the median of the numbers in a window.
func naiveMedian(src []float32, wide, y, x, window int) float32 {
	var v []float64
	for j := range window {
		for _, f := range src[(y+j)*wide+x:][:window] {
			if f == f {
				v = append(v, float64(f))
			}
		}
	}
	if len(v) == 0 {
		return float32(math.NaN())
	}
	slices.Sort(v)
	if len(v)%2 == 1 {
		return float32(v[len(v)/2])
	}
	return float32((v[len(v)/2-1] + v[len(v)/2]) / 2)
}

func checkPlaneMedian(t *testing.T, m *PlaneMedian, src []float32, height, width int) {
	t.Helper()
	dst := make([]float32, height*width)
	m.Apply(dst, src, height, width)
	for i, got := range dst {
		want := naiveMedian(src, width+2*m.radius, i/width, i%width, 2*m.radius+1)
		if got != want && (got == got || want == want) {
			t.Fatalf("radius %d, %d × %d pixels: (%d, %d) is %v, want %v", m.radius, height, width, i/width, i%width, got, want)
		}
	}
}

func TestPlaneMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	nan := float32(math.NaN())
	for _, radius := range []int{0, 1, 2, 5, 10, 33} {
		m := NewPlaneMedian(radius)
		for _, size := range [][2]int{{1, 1}, {7, 40}, {30, 23}, {3, 270}, {140, 9}} {
			n := (size[0] + 2*radius) * (size[1] + 2*radius)
			if radius == 33 && n > 10000 {
				continue
			}
			for name, value := range map[string]func() float32{
				"normal": func() float32 { return float32(rng.NormFloat64()) }, "few": func() float32 { return float32(rng.IntN(3)) },
				"bits": func() float32 { return math.Float32frombits(rng.Uint32()) }, "same": func() float32 { return 7 },
				"NaN": func() float32 { return nan },
				"mixed": func() float32 {
					if rng.IntN(3) > 0 {
						return nan
					}
					return float32(rng.IntN(9))
				},
			} {
				src := make([]float32, n)
				for i := range src {
					src[i] = value()
				}
				t.Run(fmt.Sprintf("%d/%v/%s", radius, size, name), func(t *testing.T) { checkPlaneMedian(t, m, src, size[0], size[1]) })
			}
		}
		if b := m.Bytes(10, 10); b <= 0 {
			t.Errorf("%d bytes", b)
		}
	}
}

func FuzzPlaneMedian(f *testing.F) {
	f.Add([]byte("abcabdaceafagahaiajakalamanaoapaqarasatauavawaxayaz"), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, width, radius uint8) {
		r, w := int(radius%6), int(width%20)+1
		wide := w + 2*r
		src := make([]float32, len(raw)/2)
		for i := range src {
			src[i] = math.Float32frombits(uint32(raw[2*i])<<24 | uint32(raw[2*i+1])<<16)
		}
		if h := len(src)/wide - 2*r; h > 0 {
			checkPlaneMedian(t, NewPlaneMedian(r), src, h, w)
		}
	})
}

func BenchmarkPlaneMedian(b *testing.B) {
	for _, radius := range []int{2, 5, 10, 20, 40} {
		b.Run(fmt.Sprint(radius), func(b *testing.B) {
			const side = 256
			rng := rand.New(rand.NewPCG(1, 2))
			src, dst := make([]float32, (side+2*radius)*(side+2*radius)), make([]float32, side*side)
			for i := range src {
				src[i] = rng.Float32()
			}
			m := NewPlaneMedian(radius)
			for b.Loop() {
				m.Apply(dst, src, side, side)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/side/side, "ns/pixel")
		})
	}
}
