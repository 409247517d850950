package kernels

import (
	"strata/pkg/gpu"
)

// Selector finds an exact percentile of the positive voxels of planes, that of
// filter.Percentiles to the last bit, without bringing anything to the host: of all
// planes together, or of each. In each of the three passes all planes are added:
//
//	p, err := kernels.NewSelector(s, 50, 1, false)
//	p.Begin(s)
//	for range kernels.Passes {
//		err = p.Add(s, a, b, planes, ny, nx)
//		err = p.Next(s)
//	}
//
// Values then holds the percentiles, and Numbers how many voxels there were. One stream
// at a time may use it.
type Selector struct {
	percent float64
	n       int // of percentiles
	finite  bool
	pass    int
	buffer  *gpu.Buffer
	hist    gpu.Span
	picks   gpu.Span

	Values  gpu.Span // float64, n of them; 0 where there was no voxel
	Numbers gpu.Span // uint64, behind Values
}

// digits are the bits of a sort key that a pass counts, beginning with the highest.
var digits = [...]struct{ shift, bits int }{{21, 11}, {10, 11}, {0, 10}}

// histogramBytes is the size of the counts of a digit.
const histogramBytes = 8 << 11

// Passes is the number of passes over the planes.
const Passes = len(digits)

// pickBytes is the size of a Pick in select.cu.
const pickBytes = 40

// SelectorBytes returns the device memory of a [Selector] of n percentiles.
func SelectorBytes(n int) int64 { return int64(n) * (2*histogramBytes + pickBytes + 16) }

// NewSelector prepares a selection of percentile percent (0…100): one value for each of n planes, or one for all planes
// if n is 1. If finite is set, infinite voxels are ignored.
func NewSelector(d *gpu.Device, percent float64, n int, finite bool) (*Selector, error) {
	buffer, err := d.Memory().Get(SelectorBytes(n))
	if err != nil {
		return nil, err
	}
	hist, pick := int64(n)*2*histogramBytes, int64(n)*pickBytes
	return &Selector{
		percent: percent, n: n, finite: finite, buffer: buffer, hist: buffer.From(0, hist), picks: buffer.From(hist, pick),
		Values: buffer.From(hist+pick, 8*int64(n)), Numbers: buffer.From(hist+pick+8*int64(n), 8*int64(n)),
	}, nil
}

// Release frees the memory.
func (p *Selector) Release() { p.buffer.Release() }

// Begin queues the start of a selection.
func (p *Selector) Begin(s *gpu.Stream) {
	p.pass = 0
	s.Zero(p.buffer.Span)
}

// Add queues the counting of voxels of a that are above 0 in both a and b, for planes of ny × nx. With a
// percentile per plane, these are its first planes.
func (p *Selector) Add(s *gpu.Stream, a, b Planes, planes, ny, nx int) error {
	each, finite := bit(p.n > 1), bit(p.finite)
	// a block begins with zeros and ends with sums of 4096 counts: it is worth that from as many voxels on
	rows := max(1, min(ny, 64, ny*nx/(4*4096)))
	d := digits[p.pass]
	return queue(s, "select", "select_digits", shape{gpu.Dim{1, rows, upTo(planes)}, gpu.Dim{blockSize, 1, 1}},
		a.At, b.At, p.hist, p.picks, int32(planes), int32(ny), int32(nx),
		int64(a.Pitch), a.Stride, int64(b.Pitch), b.Stride, each, finite, int32(d.shift), int32(d.bits))
}

// Next queues the end of a pass.
func (p *Selector) Next(s *gpu.Stream) error {
	first, end := bit(p.pass == 0), bit(p.pass == len(digits)-1)
	bits := int32(digits[p.pass].bits)
	p.pass++
	return queue(s, "select", "select_pick", shape{gpu.Dim{p.n, 1, 1}, gpu.Dim{blockSize, 1, 1}}, p.hist, p.picks, p.Values, p.Numbers,
		int32(p.n), p.percent, bits, first, end)
}
