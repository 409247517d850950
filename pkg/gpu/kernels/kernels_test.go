package kernels

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// bench is a device and a stream for one test; what is allocated is given back at
// its end, and the double tells of leaks.
type bench struct {
	t      *testing.T
	device *gpu.Device
	stream *gpu.Stream
}

func open(t *testing.T) *bench {
	t.Helper()
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 256 << 20, Pinned: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, d, s}
}

// alloc is device memory until the end of the test.
func (b *bench) alloc(bytes int) gpu.Span {
	b.t.Helper()
	m, err := b.device.Memory().Get(context.Background(), int64(bytes))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(m.Release)
	return m.Span
}

func upload[T dtype.Element](b *bench, v []T) gpu.Span {
	b.t.Helper()
	raw := dtype.Bytes(v)
	span := b.alloc(len(raw))
	h, err := b.device.Pinned().Get(context.Background(), len(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	copy(h.B, raw)
	b.stream.Upload(span, h.B)
	b.stream.After(h.Release)
	return span
}

func download[T dtype.Element](b *bench, span gpu.Span) []T {
	b.t.Helper()
	h, err := b.device.Pinned().Get(context.Background(), int(span.Bytes()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer h.Release()
	b.stream.Download(h.B, span)
	if err := b.stream.Wait(); err != nil {
		b.t.Fatal(err)
	}
	return slices.Clone(dtype.Slice[T](h.B))
}

func (b *bench) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// sample is numbers of a type: its limits, numbers that are halves of integers for
// conversions, NaN and infinities of floats.
func sample[T dtype.Element](n int) []T {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	v := make([]T, n)
	kind := dtype.Of[T]()
	bits := make([]byte, 8*n)
	for i := range bits {
		bits[i] = byte(rng.Uint32())
	}
	copy(dtype.Bytes(v), bits)
	if kind.IsFloat() {
		for i := range v {
			v[i] = T(rng.NormFloat64() * 300)
		}
		if n > 50 {
			v[17], v[31], v[41] = T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1))
		}
	}
	return v
}

// equal compares bit by bit; NaN equals NaN.
func equal[T dtype.Element](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d is %v, the CPU has %v", what, i, got[i], want[i])
		}
	}
}

func each(t *testing.T, f8 func(*testing.T), rest ...func(*testing.T)) {
	names := []string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"}
	for i, f := range append([]func(*testing.T){f8}, rest...) {
		t.Run(names[i], f)
	}
}

func TestMean(t *testing.T) {
	each(t, mean[uint8], mean[int8], mean[uint16], mean[int16], mean[uint32], mean[int32], mean[uint64], mean[int64], mean[float32], mean[float64])
}

func mean[T dtype.Element](t *testing.T) {
	b := open(t)
	const n, nz, first = 777, 13, 5 // planes come in two pieces
	v := sample[T](n * nz)
	acc, want := make([]float64, n), make([]float32, n)
	bad := filter.AddPlanes(acc, v)
	filter.Mean(want, acc, nz)

	sums, dst, count := b.alloc(8*n), b.alloc(4*n), b.alloc(8)
	b.stream.Zero(count)
	kind := dtype.Of[T]()
	b.check(AddPlanes(b.stream, sums, upload(b, v[:first*n]), count, kind, first, n, true))
	b.check(AddPlanes(b.stream, sums, upload(b, v[first*n:]), count, kind, nz-first, n, false))
	b.check(Mean(b.stream, dst, sums, nz, n))
	equal(t, "mean", download[float32](b, dst), want)
	if got := download[uint64](b, count)[0]; got != uint64(bad) {
		t.Errorf("%d voxels are not finite, want %d", got, bad)
	}
	b.stream.Zero(count)
	b.check(CountNonFinite(b.stream, count, upload(b, v), kind, n*nz))
	if got := download[uint64](b, count)[0]; got != uint64(bad) {
		t.Errorf("%d elements are not finite, want %d", got, bad)
	}
}

func TestResizer(t *testing.T) {
	b := open(t)
	for _, s := range []struct{ in, out [3]int }{
		{[3]int{9, 33, 40}, [3]int{3, 7, 8}}, {[3]int{20, 12, 11}, [3]int{4, 12, 11}}, {[3]int{5, 6, 7}, [3]int{5, 6, 7}}, {[3]int{4, 9, 8}, [3]int{8, 5, 16}},
	} {
		var w [3]*filter.Weights
		for d := range w {
			w[d] = filter.CornerAligned(s.in[d], s.out[d], filter.AntiAliasSigma(s.in[d], s.out[d]), filter.Reflect)
		}
		v := sample[uint16](s.in[0] * s.in[1] * s.in[2])
		f := make([]float32, len(v))
		filter.ToFloat32(f, v)
		want := make([]float32, s.out[0]*s.out[1]*s.out[2])
		filter.Resize(want, f, w[0], w[1], w[2])
		r, err := NewResizer(context.Background(), b.stream, w[0], w[1], w[2])
		b.check(err)
		for range 2 {
			got, err := r.Run(b.stream, upload(b, v), dtype.Uint16)
			b.check(err)
			equal(t, "resized", download[float32](b, got), want)
		}
		r.Release()
	}
}

func TestApply(t *testing.T) {
	each(t, apply[uint8], apply[int8], apply[uint16], apply[int16], apply[uint32], apply[int32], apply[uint64], apply[int64], apply[float32], apply[float64])
}

func apply[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, s := range []struct{ outer, in, out, inner int }{{3, 40, 9, 35}, {1, 7, 7, 300}, {2, 5, 12, 33}, {40, 60, 11, 1}} {
		w := filter.CornerAligned(s.in, s.out, filter.AntiAliasSigma(s.in, s.out), filter.Reflect)
		v := sample[T](s.outer * s.in * s.inner)
		f := make([]float32, len(v))
		filter.ToFloat32(f, v)
		want := make([]float32, s.outer*s.out*s.inner)
		if s.inner == 1 {
			w.ApplyRows(want, f, s.outer, make([]float32, w.RowScratch()))
		} else {
			w.Apply(want, f, s.outer, s.inner)
		}
		on, err := NewWeights(context.Background(), b.stream, w)
		b.check(err)
		dst := b.alloc(4 * len(want))
		b.check(on.Apply(b.stream, dst, upload(b, v), dtype.Of[T](), int64(s.outer), int64(s.inner)))
		equal(t, "apply", download[float32](b, dst), want)
		on.Release()
	}
}

func TestFromFloat32(t *testing.T) {
	each(t, fromFloat32[uint8], fromFloat32[int8], fromFloat32[uint16], fromFloat32[int16], fromFloat32[uint32], fromFloat32[int32],
		fromFloat32[uint64], fromFloat32[int64], fromFloat32[float32], fromFloat32[float64])
}

func fromFloat32[T dtype.Element](t *testing.T) {
	b := open(t)
	v := sample[float32](3000)
	for i, x := range []float32{0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, -128.5, -129, 254.5, 255.5, 256, 32767.5, -32768.5, 65535.5, 1 << 31, -1 << 31, 1 << 32, 1 << 63,
		-1 << 63, 1 << 24, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		v[100+i] = x
	}
	for i := 200; i < 1500; i++ {
		v[i] = float32(i%600-300) / 2
	}
	want := make([]T, len(v))
	filter.FromFloat32(want, v)
	dst := b.alloc(len(dtype.Bytes(want)))
	b.check(FromFloat32(b.stream, dst, upload(b, v), dtype.Of[T](), int64(len(v))))
	equal(t, "converted", download[T](b, dst), want)
}

func TestRoll(t *testing.T) {
	each(t, roll[uint8], roll[int8], roll[uint16], roll[int16], roll[uint32], roll[int32], roll[uint64], roll[int64], roll[float32], roll[float64])
}

func roll[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, planes := range []int{1, 2, 19} {
		const ny, nx, pitch = 5, 300, 310
		v := sample[T](planes * ny * nx)
		shift := sample[float32](ny * pitch)
		for i := range shift {
			if shift[i]-shift[i] != 0 {
				shift[i] = -1e9
			} else if i%3 == 0 {
				shift[i] /= 100
			}
		}
		src, by := upload(b, v), upload(b, shift)
		dst := b.alloc(len(dtype.Bytes(v)))
		b.check(Roll(b.stream, dst, src, dtype.Of[T](), planes, ny, nx, by, pitch))
		filter.Roll(&filter.RollWorkspace{}, v, planes, ny, nx, shift, pitch)
		equal(t, "rolled", download[T](b, dst), v)
	}
}

func TestInterface(t *testing.T) {
	each(t, search[uint8], search[int8], search[uint16], search[int16], search[uint32], search[int32], search[uint64], search[int64], search[float32], search[float64])
}

func search[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, c := range []struct {
		shape  [3]int
		search filter.InterfaceSearch
	}{
		{[3]int{25, 13, 40}, filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 2}},
		{[3]int{25, 6, 40}, filter.InterfaceSearch{SigmaXY: 4.5, SigmaZ: 1, Log: true, Planes: 11}},
		{[3]int{3, 2, 40}, filter.InterfaceSearch{SigmaXY: 8, SigmaZ: 2, Clip: 100}},
		{[3]int{9, 4, 40}, filter.InterfaceSearch{SigmaZ: 0.5}},
	} {
		nz, ny, nx := c.shape[0], c.shape[1], c.shape[2]
		v := sample[T](nz * ny * nx)
		depth, peak := make([]int32, ny*nx), make([]float32, ny*nx)
		filter.Interfaces(&c.search, &filter.Workspace{}, depth, peak, filter.Slab[T]{Data: v, Planes: nz, PlaneStride: ny * nx, RowStride: nx},
			c.search.Windows(0, ny, ny), c.search.Windows(0, nx, nx))

		n := int64(len(v))
		planes, half := b.alloc(4*len(v)), b.alloc(4*len(v))
		arg, top := b.alloc(4*ny*nx), b.alloc(4*ny*nx)
		derivative := c.search.Derivative()
		limit := nz
		if c.search.Planes > 0 {
			limit = c.search.Planes
		}
		b.check(Magnitudes(b.stream, planes, upload(b, v), dtype.Of[T](), n, &c.search))
		if w := c.search.Window(); w > 1 {
			b.check(WindowMean(b.stream, half, planes, int64(nz), ny, int64(nx), w))
			b.check(WindowMean(b.stream, planes, half, int64(nz*ny), nx, 1, w))
		}
		b.check(Steepest(b.stream, arg, top, planes, nz, int64(ny*nx), limit, upload(b, derivative), len(derivative)))
		equal(t, "peak", download[float32](b, top), peak)
		for i, z := range download[int32](b, arg) {
			if want := depth[i]; int32(math.Ceil(float64(z)+0.5*c.search.SigmaZ)) != want {
				t.Fatalf("A-line %d: plane %d, the CPU's depth is %d", i, z, want)
			}
		}
	}
}
