package kernels

import (
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Quantiles finds exact percentiles of values on a device: those of filter.Quantiles,
// to the last bit, in three passes over the values.
//
//	q, err := kernels.NewQuantiles(s, false, 0.1, 99.9)
//	for !q.Done() {
//		// call q.Add with all values
//		err = q.Refine(s)
//	}
//	low, high := q.Value(0), q.Value(1)
//
// NaN is left out; of magnitudes, infinity too, as filter.MagnitudePercentile does.
type Quantiles struct {
	percent    []float64
	magnitudes bool
	pass       int
	n          int64
	wanted     []statistic // two for each percentile
	prefixes   []uint32    // of the keys that this pass counts, each with a histogram
	buffer     *gpu.Buffer
}

// statistic is an order statistic that is looked for: the upper bits of its key, and
// its rank among the values that share them.
type statistic struct {
	prefix uint32
	rank   int64
}

// digits are the bits that each pass counts: from the uppermost on.
var digits = [3]struct{ shift, bits int }{{21, 11}, {10, 11}, {0, 10}}

// histogramBytes is the size of the counts of a digit.
const histogramBytes = 8 << 11

// NewQuantiles prepares for percentiles, each 0…100, of values or of their magnitudes.
// It takes 32 KiB on the device for each.
func NewQuantiles(s *gpu.Stream, magnitudes bool, percent ...float64) (*Quantiles, error) {
	buffer, err := s.Device().Memory().Get(int64(max(1, 2*len(percent))) * histogramBytes)
	if err != nil {
		return nil, err
	}
	s.Zero(buffer.Span)
	return &Quantiles{percent: percent, magnitudes: magnitudes, prefixes: []uint32{0}, buffer: buffer}, nil
}

// Release gives the memory back.
func (q *Quantiles) Release() { q.buffer.Release() }

// Done says that there was the last pass.
func (q *Quantiles) Done() bool { return q.pass == len(digits) }

// countBlocks is the largest number of blocks that count: each adds its counts to the
// histogram in the end.
const countBlocks = 1024

// Add queues the counting of n elements of type t, as float32, in the current pass.
func (q *Quantiles) Add(s *gpu.Stream, src gpu.Span, t dtype.Type, n int64) error {
	name, err := suffix(t)
	if err != nil {
		return err
	}
	k, err := get(s.Device(), "quantile", "digits_"+name)
	if err != nil {
		return err
	}
	magnitude := int32(0)
	if q.magnitudes {
		magnitude = 1
	}
	grid, block := blocks((n + 15) / 16)
	grid[0] = min(grid[0], countBlocks)
	d := digits[q.pass]
	for i, prefix := range q.prefixes {
		s.Launch(k, grid, block, src, q.histogram(i), n, magnitude, prefix, int32(d.shift), int32(d.bits))
	}
	return nil
}

// AddCommon queues the counting of the voxels of planes of ny × nx that are above 0 in a
// and in b: of their values in a.
func (q *Quantiles) AddCommon(s *gpu.Stream, a, b Planes, planes, ny, nx int) error {
	k, err := get(s.Device(), "quantile", "digits_common")
	if err != nil {
		return err
	}
	rows := max(1, min(ny, 64))
	grid := gpu.Dim{1, rows, max(1, min(planes, countBlocks/rows))}
	d := digits[q.pass]
	for i, prefix := range q.prefixes {
		s.Launch(k, grid, gpu.Dim{blockSize, 1, 1}, a.At, b.At, q.histogram(i), int32(planes), int32(ny), int32(nx),
			int64(a.Pitch), a.Stride, int64(b.Pitch), b.Stride, prefix, int32(d.shift), int32(d.bits))
	}
	return nil
}

func (q *Quantiles) histogram(i int) gpu.Span {
	return q.buffer.From(int64(i)*histogramBytes, histogramBytes)
}

// Refine waits for the stream and ends a pass.
func (q *Quantiles) Refine(s *gpu.Stream) error {
	used := q.buffer.From(0, int64(len(q.prefixes))*histogramBytes)
	host, err := s.Device().Host(int(used.Bytes()))
	if err != nil {
		return err
	}
	defer host.Release()
	s.Download(host.B, used)
	s.Zero(q.buffer.Span)
	if err := s.Wait(); err != nil {
		return err
	}
	counts := dtype.Slice[uint64](host.B)
	if q.pass == 0 {
		for _, c := range counts {
			q.n += int64(c)
		}
		for _, p := range q.percent {
			lo, hi, _ := filter.Ranks(q.n, p)
			q.wanted = append(q.wanted, statistic{0, lo}, statistic{0, hi})
		}
	}
	of := make(map[uint32][]uint64, len(q.prefixes))
	for i, p := range q.prefixes {
		of[p] = counts[i<<11:][:1<<11]
	}
	q.prefixes = q.prefixes[:0]
	next := map[uint32]bool{}
	for i := range q.wanted {
		w := &q.wanted[i]
		bin := uint32(0)
		if q.n > 0 {
			for _, c := range of[w.prefix] {
				if w.rank < int64(c) {
					break
				}
				w.rank -= int64(c)
				bin++
			}
		}
		w.prefix = w.prefix<<digits[q.pass].bits | bin
		if !next[w.prefix] {
			next[w.prefix] = true
			q.prefixes = append(q.prefixes, w.prefix)
		}
	}
	q.pass++
	return nil
}

// Count is the number of values, after the first pass.
func (q *Quantiles) Count() int64 { return q.n }

// Value is the i-th percentile that NewQuantiles was given, after the last pass; NaN
// when there were no numbers.
func (q *Quantiles) Value(i int) float64 {
	if q.n == 0 {
		return math.NaN()
	}
	_, _, t := filter.Ranks(q.n, q.percent[i])
	return filter.Interpolate(filter.KeyValue(q.wanted[2*i].prefix), filter.KeyValue(q.wanted[2*i+1].prefix), t)
}

// nth is the k-th smallest of n float32, counted from 0. It waits for the stream.
func nth(s *gpu.Stream, src gpu.Span, n, k int64) (float32, error) {
	q, err := NewQuantiles(s, false)
	if err != nil {
		return 0, err
	}
	defer q.Release()
	q.wanted = []statistic{{0, k}}
	for !q.Done() {
		if err := q.Add(s, src, dtype.Float32, n); err != nil {
			return 0, err
		}
		if err := q.Refine(s); err != nil {
			return 0, err
		}
	}
	return filter.KeyValue(q.wanted[0].prefix), nil
}
