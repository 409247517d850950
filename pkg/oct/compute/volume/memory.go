// Package volume keeps planes of volumes in host or device memory and works on them there.
//
// A stage opens a [Memory], loads boxes of its inputs into planes, applies operators to these, and writes them in
// the order of z. The calls are the same on host and device, and so are the voxels and numbers that they produce.
// Each operator has a file with its contract and both implementations.
package volume

import (
	"context"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/oct"
)

// A Memory holds planes of volumes. On the host, a call completes its work. On a device, it queues the work;
// written planes are encoded and stored while the device continues.
//
// Errors are sticky: after one, methods do nothing, and Err returns it. A Memory must be used by one goroutine at
// a time.
type Memory interface {
	// Begin allocates memory for planes and creates the image that they are written to.
	Begin(c *Canvas)
	// Batch returns the number of planes that Write expects at a time. Every call of Write passes a multiple of it,
	// except the last.
	Batch() int
	// Room returns how many planes can be taken. If planes are still being written, it first waits until the wanted
	// number, or all of them, are free.
	Room(wanted int) int
	// Take returns n planes of undefined content. n must not exceed Room.
	Take(n int) []Plane
	// Give returns planes to the memory.
	Give(planes []Plane)
	// Write writes the next planes of the volume and returns them to the memory. The zero [Plane] stands for a plane
	// of zeros.
	Write(planes []Plane)
	// Finish completes the image.
	Finish()

	loader
	overlapper
	framer
	turner
	medianFinder
	averager
	mixer

	// Err returns the first error.
	Err() error
	// Close waits for running work and releases the memory. It aborts an unfinished image.
	Close() error
}

// Open opens a memory for planes of sources, on the device of res if it has one, otherwise on the host. The caller
// must Close it.
func Open(ctx context.Context, sources []*Source, res *oct.Resources) (Memory, error) {
	if res.Device != nil {
		return openDevice(ctx, sources, res)
	}
	return OpenHost(ctx, sources, res), nil
}

// Plane is a float32 plane in host or device memory.
type Plane struct {
	host   []float32
	device gpu.Span // from its first pixel on
	pitch  int      // elements from one row to the next
}

// There reports whether p is a plane with memory; the zero value is not.
func (p Plane) There() bool { return p.pitch > 0 }

// Planes returns n consecutive planes of ny × nx pixels in v, on the host.
func Planes(v []float32, n, ny, nx int) []Plane {
	out := make([]Plane, n)
	for i := range out {
		out[i] = Plane{host: v[i*ny*nx:][:ny*nx], pitch: nx}
	}
	return out
}

// row returns columns x0 … x1−1 of row y.
func (p Plane) row(y, x0, x1 int) []float32 { return p.host[y*p.pitch+x0 : y*p.pitch+x1] }

// planesOn returns n consecutive planes of ny × nx pixels in device memory.
func planesOn(v gpu.Span, n, ny, nx int) []Plane {
	out := make([]Plane, n)
	size := 4 * int64(ny) * int64(nx)
	for i := range out {
		at := int64(i) * size
		out[i] = Plane{device: v.From(at, v.Bytes()-at), pitch: nx}
	}
	return out
}

// at returns the memory from pixel (y, x) of a plane on a device.
func (p Plane) at(y, x int) gpu.Span {
	skip := 4 * (int64(y)*int64(p.pitch) + int64(x))
	return p.device.From(skip, p.device.Bytes()-skip)
}

// evenly returns how many of the first planes are evenly spaced in device memory, and their distance in elements.
func evenly(planes []Plane) (n int, stride int64) {
	step := func(i int) int64 { return int64(planes[i].device.Address()) - int64(planes[i-1].device.Address()) }
	for n = 1; n < len(planes) && step(n) > 0 && step(n) == step(1) && planes[n].pitch == planes[0].pitch; n++ {
		stride = step(1) / 4
	}
	return n, stride
}

// eachRun calls f for runs of evenly spaced planes on a device, at pixel (y, x): n of them, beginning with
// planes[first].
func eachRun(planes []Plane, y, x int, f func(first, n int, at kernels.Planes) error) error {
	for first := 0; first < len(planes); {
		n, stride := evenly(planes[first:])
		p := planes[first]
		if err := f(first, n, kernels.Planes{At: p.at(y, x), Pitch: p.pitch, Stride: stride}); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// eachPair calls f like eachRun, for pairs of planes of a and b.
func eachPair(a, b []Plane, y, x int, f func(first, n int, a, b kernels.Planes) error) error {
	return eachRun(a, y, x, func(first, n int, at kernels.Planes) error {
		return eachRun(b[first:first+n], y, x, func(skip, n int, beside kernels.Planes) error {
			here := at
			here.At = a[first+skip].at(y, x)
			return f(first+skip, n, here, beside)
		})
	})
}

// sticky holds the first error of a memory.
type sticky struct{ err error }

func (s *sticky) Err() error { return s.err }

// try calls f unless an error has occurred, and keeps its error.
func (s *sticky) try(f func() error) {
	if s.err == nil {
		s.err = f()
	}
}
