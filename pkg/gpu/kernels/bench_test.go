//go:build !nocuda

package kernels

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.MainBoth(m) }

// bench is a device and a stream for one test; what is allocated is given back at
// its end, and the double tells of leaks.
type bench struct {
	t      *testing.T
	device *gpu.Device
	stream *gpu.Stream
}

func open(t *testing.T) *bench {
	t.Helper()
	d := gputest.Device(t, gpu.Limits{Memory: 256 << 20, Pinned: 64 << 20})
	s := gputest.Stream(t, d)
	return &bench{t, d, s}
}

// alloc is device memory until the end of the test.
func (b *bench) alloc(bytes int) gpu.Span {
	b.t.Helper()
	m, err := b.device.Memory().Get(int64(bytes))
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
