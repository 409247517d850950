// Package volume keeps planes of volumes in memory, that of the host or that of a device, and works on them there.
//
// A stage opens a [Memory], loads boxes of its inputs into planes, lets operators work on these, and writes them in
// the order of z. What it calls is the same for both machines; they make the same voxels, and find the same numbers. Each operator has a
// file, with its contract and both bodies.
package volume

import (
	"context"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/oct"
)

// Memory holds planes of volumes. On the host a call does its work. On a device it queues it; what is written is encoded and
// stored while the device goes on.
//
// Errors stick: after one, methods do nothing, and Err returns it. One goroutine uses a Memory.
type Memory interface {
	// Begin takes the memory for planes, and creates the image that they are written to.
	Begin(c *Canvas)
	// Batch returns how many planes Write takes: a multiple of them, up to the last ones.
	Batch() int
	// Room returns how many planes can be taken. Where planes are still being written, it waits until there are as many
	// as wanted, or as many as there will be.
	Room(wanted int) int
	// Take takes planes of undefined content, no more than there is room for.
	Take(n int) []Plane
	// Give gives planes back.
	Give(planes []Plane)
	// Write writes the next planes of the volume, and gives them back. The zero [Plane] is a plane of zeros.
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
	// Close waits for all that runs and gives the memory back. An image that is not finished is abandoned.
	Close() error
}

// Open opens memory for planes of sources: of the device that res has, or of the host. The last call is Close.
func Open(ctx context.Context, sources []*Source, res *oct.Resources) (Memory, error) {
	if res.Device != nil {
		return openDevice(ctx, sources, res)
	}
	return OpenHost(ctx, sources, res), nil
}

// Plane is a plane of float32 in the memory of a machine.
type Plane struct {
	host   []float32
	device gpu.Span // from its first pixel on
	pitch  int      // elements from one row to the next
}

// There reports whether p is a plane; the zero value is none.
func (p Plane) There() bool { return p.pitch > 0 }

// Planes returns n planes of ny × nx pixels that lie in v, one behind the other, on the host.
func Planes(v []float32, n, ny, nx int) []Plane {
	out := make([]Plane, n)
	for i := range out {
		out[i] = Plane{host: v[i*ny*nx:][:ny*nx], pitch: nx}
	}
	return out
}

// row is a part of a row.
func (p Plane) row(y, x0, x1 int) []float32 { return p.host[y*p.pitch+x0 : y*p.pitch+x1] }

// planesOn returns n planes of ny × nx pixels that lie in a device's memory, one behind the other.
func planesOn(v gpu.Span, n, ny, nx int) []Plane {
	out := make([]Plane, n)
	size := 4 * int64(ny) * int64(nx)
	for i := range out {
		at := int64(i) * size
		out[i] = Plane{device: v.From(at, v.Bytes()-at), pitch: nx}
	}
	return out
}

// at is pixel (y, x) of a plane on a device.
func (p Plane) at(y, x int) gpu.Span {
	skip := 4 * (int64(y)*int64(p.pitch) + int64(x))
	return p.device.From(skip, p.device.Bytes()-skip)
}

// evenly is how many of the planes, from the first on, lie evenly in a device's memory, and how far apart, in elements.
func evenly(planes []Plane) (n int, stride int64) {
	step := func(i int) int64 { return int64(planes[i].device.Address()) - int64(planes[i-1].device.Address()) }
	for n = 1; n < len(planes) && step(n) > 0 && step(n) == step(1) && planes[n].pitch == planes[0].pitch; n++ {
		stride = step(1) / 4
	}
	return n, stride
}

// eachRun calls f for planes on a device, at pixel (y, x), those together that lie evenly: n of them from the first-th on.
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

// eachPair is eachRun for as many planes beside as many others.
func eachPair(a, b []Plane, y, x int, f func(first, n int, a, b kernels.Planes) error) error {
	return eachRun(a, y, x, func(first, n int, at kernels.Planes) error {
		return eachRun(b[first:first+n], y, x, func(skip, n int, beside kernels.Planes) error {
			here := at
			here.At = a[first+skip].at(y, x)
			return f(first+skip, n, here, beside)
		})
	})
}

// sticky is the first error of a memory.
type sticky struct{ err error }

func (s *sticky) Err() error { return s.err }

// try does something unless something has failed.
func (s *sticky) try(f func() error) {
	if s.err == nil {
		s.err = f()
	}
}
