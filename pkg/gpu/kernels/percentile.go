package kernels

import (
	"math"
	"math/bits"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// MagnitudePercentile finds a percentile of magnitudes on a device: the same as filter.MagnitudePercentile,
// to the last bit, and usually in one pass. Integers of up to 16 bits have a counter for each magnitude. For
// other types, a look at part of the values predicts where the percentile lies, and around there each key
// (the bits of a magnitude in float32) has a counter; if the prediction fails, a few more passes find it.
//
//	p, err := kernels.NewMagnitudePercentile(s, t, 99.9, 1<<20)
//	// if p.Looks(), call p.Add with a part of the values, from any stream, and wait for these
//	for {
//		more, err := p.Begin(s)
//		if !more || err != nil {
//			break
//		}
//		// call p.Add with all values, and wait
//	}
//	clip := p.Value()
type MagnitudePercentile struct {
	kind    dtype.Type
	percent float64
	top     int64 // above all keys
	buffer  *gpu.Buffer
	table   gpu.Span // counters
	rest    gpu.Span // of keys below, of keys above, of what is no number
	sums    gpu.Span // of 4096 counters each
	bins    int64

	low    int64 // key of the first bin
	shift  int   // a bin has 2^shift keys
	passes int
	n, bad int64
	wanted []orderStatistic
}

// orderStatistic is a magnitude to be found: its rank, and the range of keys in which it may lie.
type orderStatistic struct {
	rank     int64
	from, to int64
}

const (
	infiniteKey = 0x7f800000 // the first of float32 that is no number
	sumBins     = 4096       // counters of a sum
	restBytes   = 24         // of what is below, above, and no number
)

// NewMagnitudePercentile prepares for a percentile, 0…100, of elements of type t. bytes limits the memory for
// counters: a power of two from 512 KiB to 128 MiB. In 128 MiB, two octaves of float32 have a counter for
// each number.
func NewMagnitudePercentile(s *gpu.Stream, t dtype.Type, percent float64, bytes int64) (*MagnitudePercentile, error) {
	bytes = counterBytes(t, bytes)
	p := &MagnitudePercentile{kind: t, percent: percent, bins: bytes / 8, top: infiniteKey}
	if !p.Looks() {
		p.top = 1 << 16
	}
	sums := p.bins / sumBins * 8
	var err error
	if p.buffer, err = s.Device().Memory().Get(bytes + sums + restBytes); err != nil {
		return nil, err
	}
	p.table, p.sums, p.rest = p.buffer.From(0, bytes), p.buffer.From(bytes, sums), p.buffer.From(bytes+sums, restBytes)
	p.window(0, p.top)
	s.Zero(p.buffer.Span)
	if err := s.Wait(); err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

// counterBytes returns the power of two.
func counterBytes(t dtype.Type, bytes int64) int64 {
	const least = 8 << 16
	if small(t) {
		return least
	}
	return 1 << (bits.Len64(uint64(min(max(bytes, least), 128<<20))) - 1)
}

// small reports whether each magnitude of a type has a counter of its own.
func small(t dtype.Type) bool { return t.IsInteger() && t.Size() <= 2 }

// Looks reports whether a look at part of the values is useful.
func (p *MagnitudePercentile) Looks() bool { return !small(p.kind) }

// PercentileBytes returns the device memory of a [MagnitudePercentile] of type t with at most the given bytes
// of counters.
func PercentileBytes(t dtype.Type, bytes int64) int64 {
	bytes = counterBytes(t, bytes)
	return mem.Pooled(bytes + bytes/sumBins + restBytes)
}

// Release frees the memory.
func (p *MagnitudePercentile) Release() { p.buffer.Release() }

// window lets the counters stand for keys from…to−1.
func (p *MagnitudePercentile) window(from, to int64) {
	p.low, p.shift = from, 0
	for (to-from+1<<p.shift-1)>>p.shift > p.bins {
		p.shift++
	}
}

// Add queues the counting of n elements in the current pass. src is aligned to 16 bytes, as buffers are.
// Several streams may be used at a time.
func (p *MagnitudePercentile) Add(s *gpu.Stream, src gpu.Span, n int64) error {
	if !p.Looks() {
		return queueTyped(s, "percentile", "counts", p.kind, tallies(p.kind, n), src, p.table, n)
	}
	return queueTyped(s, "percentile", "keys", p.kind, counting((n+15)/16), src, p.table, p.rest, n, uint32(p.low), int32(p.shift), uint32(p.bins))
}

// tallies returns the grid that counts n integers of up to 16 bits. A block adds its counters to the table at its
// end: it is worth that from as many elements on.
func tallies(t dtype.Type, n int64) shape {
	if t.Size() == 1 {
		const each, most, threads = 1 << 15, 2048, 128
		return shape{gpu.Dim{int(min(max(n/each, 1), most)), 1, 1}, gpu.Dim{threads, 1, 1}}
	}
	const each, most = 1 << 18, 512
	blocks := int(min(max(n/each, 1), most))
	if t == dtype.Uint16 {
		blocks *= 2 // those that count the other half of the magnitudes
	}
	return shape{gpu.Dim{blocks, 1, 1}, gpu.Dim{blockSize, 1, 1}}
}

// Begin ends a pass, or the look, and starts another if one is needed. The caller has waited for everything
// that was added. It waits for s.
func (p *MagnitudePercentile) Begin(s *gpu.Stream) (bool, error) {
	if p.passes == 0 && !p.Looks() {
		p.passes++
		return true, nil
	}
	sums, err := p.counts(s)
	if err != nil {
		return false, err
	}
	if p.passes == 0 {
		return true, p.guess(s, sums)
	}
	if p.passes == 1 {
		p.n = int64(sums.below + sums.above)
		for _, c := range sums.parts {
			p.n += int64(c)
		}
		p.bad = int64(sums.bad)
		if p.n > 0 {
			lo, hi, _ := filter.Ranks(p.n, p.percent)
			p.wanted = []orderStatistic{{lo, 0, p.top}, {hi, 0, p.top}}
		}
	}
	for i := range p.wanted {
		if err := p.narrow(s, sums, &p.wanted[i]); err != nil {
			return false, err
		}
	}
	var left []orderStatistic
	for _, w := range p.wanted {
		if w.to-w.from > 1 {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		return false, nil
	}
	p.window(left[0].from, left[0].to)
	if last := left[len(left)-1]; last.to-left[0].from <= p.bins { // both in one pass
		p.window(left[0].from, last.to)
	}
	return true, p.next(s)
}

// guess starts the first pass around the percentile of the values looked at.
func (p *MagnitudePercentile) guess(s *gpu.Stream, sums *keySums) error {
	var n int64
	for _, c := range sums.parts {
		n += int64(c)
	}
	middle := orderStatistic{0, 0, p.top}
	if n > 0 {
		middle.rank, _, _ = filter.Ranks(n, p.percent)
		if err := p.narrow(s, sums, &middle); err != nil {
			return err
		}
	}
	from := min(max(0, (middle.from+middle.to-p.bins)/2), p.top-p.bins)
	p.window(from, from+p.bins)
	return p.next(s)
}

// next starts a pass.
func (p *MagnitudePercentile) next(s *gpu.Stream) error {
	p.passes++
	s.Zero(p.buffer.Span)
	return s.Wait()
}

// Window starts a pass for [MagnitudePercentile.Counted], in which the magnitudes of bits from…to−1 in float32 have a
// counter each. The counters' bytes must be 8 for each at least, unless the type is small.
func (p *MagnitudePercentile) Window(s *gpu.Stream, from, to uint32) error {
	if p.Looks() {
		p.window(int64(from), int64(to))
	}
	return p.next(s)
}

// countersAtATime is the number of counters that are brought to the host at a time.
const countersAtATime = 128 << 10

// Counted passes the magnitudes that the pass of [MagnitudePercentile.Window] has counted to take: their bits in
// float32, and how many have them. Those below and above the counters are passed as one with the nearest bits below and
// above. It returns the number of NaN and infinite values. The caller has waited for everything that was added. It
// waits for s.
func (p *MagnitudePercentile) Counted(s *gpu.Stream, take func(bits uint32, n int64)) (nonFinite int64, err error) {
	host, err := s.Device().Host(int(max(restBytes, min(p.bins, countersAtATime)*8)))
	if err != nil {
		return 0, err
	}
	defer host.Release()
	counts := func(of gpu.Span) ([]uint64, error) {
		s.Download(host.B[:of.Bytes()], of)
		return dtype.Slice[uint64](host.B[:of.Bytes()]), s.Wait()
	}
	if p.Looks() {
		rest, err := counts(p.rest)
		if err != nil {
			return 0, err
		}
		if rest[0] > 0 {
			take(uint32(p.low-1), int64(rest[0]))
		}
		if rest[1] > 0 {
			take(uint32(p.low+p.bins), int64(rest[1]))
		}
		nonFinite = int64(rest[2])
	}
	for at := int64(0); at < p.bins; at += countersAtATime {
		some, err := counts(p.table.From(8*at, 8*min(countersAtATime, p.bins-at)))
		if err != nil {
			return 0, err
		}
		for i, n := range some {
			if n > 0 {
				take(p.magnitude(p.low+at+int64(i)), int64(n))
			}
		}
	}
	return nonFinite, nil
}

// magnitude returns the bits in float32 of the magnitude with a key.
func (p *MagnitudePercentile) magnitude(key int64) uint32 {
	if p.Looks() {
		return uint32(key)
	}
	return math.Float32bits(float32(key))
}

// keySums holds the counts of a pass.
type keySums struct {
	parts             []uint64 // of sumBins counters each
	below, above, bad uint64
}

func (p *MagnitudePercentile) counts(s *gpu.Stream) (*keySums, error) {
	if err := queue(s, "percentile", "key_sums", shape{gpu.Dim{int(p.bins / sumBins), 1, 1}, gpu.Dim{blockSize, 1, 1}}, p.table, p.sums); err != nil {
		return nil, err
	}
	n := p.sums.Bytes()
	host, err := s.Device().Host(int(n) + restBytes)
	if err != nil {
		return nil, err
	}
	defer host.Release()
	s.Download(host.B[:n], p.sums)
	s.Download(host.B[n:], p.rest)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	v := append([]uint64(nil), dtype.Slice[uint64](host.B)...)
	n /= 8
	return &keySums{v[:n], v[n], v[n+1], v[n+2]}, nil
}

// narrow finds an order statistic in the counts.
func (p *MagnitudePercentile) narrow(s *gpu.Stream, sums *keySums, w *orderStatistic) error {
	rank := uint64(w.rank)
	if rank < sums.below {
		w.to = min(w.to, p.low)
		return nil
	}
	rank -= sums.below
	part := 0
	for part < len(sums.parts) && rank >= sums.parts[part] {
		rank -= sums.parts[part]
		part++
	}
	if part == len(sums.parts) {
		w.from = max(w.from, p.low+p.bins<<p.shift)
		return nil
	}
	host, err := s.Device().Host(8 * sumBins)
	if err != nil {
		return err
	}
	defer host.Release()
	s.Download(host.B, p.table.From(int64(part)*8*sumBins, 8*sumBins))
	if err := s.Wait(); err != nil {
		return err
	}
	bin := int64(part) * sumBins
	for _, c := range dtype.Slice[uint64](host.B) {
		if rank < c {
			break
		}
		rank -= c
		bin++
	}
	w.from = p.low + bin<<p.shift
	w.to = min(w.from+1<<p.shift, p.top)
	return nil
}

// NonFinite returns the number of NaN and infinite values, after the first pass.
func (p *MagnitudePercentile) NonFinite() int64 { return p.bad }

// Value returns the percentile, after the last pass; 0 when there were no numbers.
func (p *MagnitudePercentile) Value() float32 {
	if p.n == 0 {
		return 0
	}
	_, _, t := filter.Ranks(p.n, p.percent)
	at := func(i int) float32 { return math.Float32frombits(p.magnitude(p.wanted[i].from)) }
	return float32(filter.Interpolate(at(0), at(1), t))
}
