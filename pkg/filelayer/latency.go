package filelayer

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// Latency counts durations of reads and writes in powers of two of a microsecond: class 0 is below 1 µs,
// class i below 2^i µs.
type Latency [32]int64

// Count returns the number of durations.
func (l Latency) Count() int64 {
	n := int64(0)
	for _, c := range l {
		n += c
	}
	return n
}

// Quantile returns an upper bound for the duration that a fraction q of them (0 to 1) did not exceed: the
// upper end of a class, at most twice too long. It returns 0 if there are none.
func (l Latency) Quantile(q float64) time.Duration {
	n := l.Count()
	if n == 0 {
		return 0
	}
	rank := max(int64(q*float64(n)+0.5), 1)
	for i, c := range l {
		if rank -= c; rank <= 0 {
			return time.Microsecond << i
		}
	}
	return time.Microsecond << (len(l) - 1)
}

// String returns the median and the 99th percentile.
func (l Latency) String() string {
	return fmt.Sprintf("%d, half within %v, 99%% within %v", l.Count(), l.Quantile(0.5), l.Quantile(0.99))
}

// times counts latencies.
type times [32]atomic.Int64

func (t *times) since(start time.Time) {
	us := uint64(max(time.Since(start).Microseconds(), 0))
	t[min(bits.Len64(us), len(t)-1)].Add(1)
}

func (t *times) load() (l Latency) {
	for i := range t {
		l[i] = t[i].Load()
	}
	return l
}
