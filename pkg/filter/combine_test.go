package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// scalar runs f without vector instructions.
func scalar(f func()) {
	defer func(v bool) { useAVX2 = v }(useAVX2)
	useAVX2 = false
	f()
}

// sameBits compares bit by bit; any NaN is like another.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestCombineIsTheSumInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 150 {
		for _, count := range []int{1, 2, 3, 18} {
			stride := n + r.IntN(5)
			src, taps := random(r, count*stride+n), random(r, count)
			if n > 0 {
				src[r.IntN(len(src))] = float32(math.NaN())
				src[r.IntN(len(src))] = float32(math.Inf(-1))
				src[r.IntN(len(src))] = float32(math.Copysign(0, -1))
			}
			want := make([]float32, n)
			for x := range want {
				want[x] = taps[0] * src[x]
				for k := 1; k < count; k++ {
					want[x] += float32(taps[k] * src[k*stride+x])
				}
			}
			got, two := make([]float32, n), make([]float32, n)
			Combine(got, src, stride, taps)
			sameBits(t, "combined", got, want)
			scalar(func() { Combine(two, src, stride, taps) })
			sameBits(t, "scalar", two, want)
			cut := r.IntN(count)
			Combine(got, src, stride, taps[:cut+1])
			AddCombine(got, src[(cut+1)*stride:], stride, taps[cut+1:])
			sameBits(t, "in two", got, want)
			scalar(func() {
				Combine(two, src, stride, taps[:cut+1])
				AddCombine(two, src[(cut+1)*stride:], stride, taps[cut+1:])
			})
			sameBits(t, "scalar in two", two, want)
		}
	}
	got := []float32{1, 2}
	Combine(got, nil, 0, nil)
	sameBits(t, "no taps", got, []float32{0, 0})
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		rows, columns := r.IntN(40), r.IntN(40)
		srcStride, dstStride := columns+r.IntN(3), rows+r.IntN(3)
		src := random(r, rows*srcStride)
		const untouched = -7
		check := func() {
			dst := make([]float32, columns*dstStride)
			for i := range dst {
				dst[i] = untouched
			}
			Transpose(dst, src, rows, columns, dstStride, srcStride)
			for c := range columns {
				for i := range dstStride {
					want := float32(untouched)
					if i < rows {
						want = src[i*srcStride+c]
					}
					if dst[c*dstStride+i] != want {
						t.Fatalf("%d × %d: element (%d, %d) is %v, want %v", rows, columns, i, c, dst[c*dstStride+i], want)
					}
				}
			}
		}
		check()
		scalar(check)
	}
}

func BenchmarkResizeTile(b *testing.B) {
	const nz, ny, nx = 200, 256, 256
	src := random(rand.New(rand.NewPCG(5, 6)), nz*ny*nx)
	z := CornerAligned(nz, 70, AntiAliasSigma(nz, 70), Reflect)
	y := CornerAligned(ny, 51, AntiAliasSigma(ny, 51), Reflect)
	r := NewResizer(z, y, y)
	run := func(b *testing.B) {
		b.SetBytes(4 * nz * ny * nx)
		for b.Loop() {
			r.Reset(z, y, y)
			for k := range nz {
				r.Add(src[k*ny*nx:][:ny*nx])
			}
			r.Volume()
		}
	}
	b.Run("avx2", run)
	b.Run("scalar", func(b *testing.B) { scalar(func() { run(b) }) })
	b.Run("copy", func(b *testing.B) {
		dst := make([]float32, ny*nx)
		b.SetBytes(4 * nz * ny * nx)
		for b.Loop() {
			for k := range nz {
				copy(dst, src[k*ny*nx:])
			}
		}
	})
}
