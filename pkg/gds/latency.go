package gds

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// Latency is how long reads and writes took, in powers of two of a microsecond: the
// first class is of less than 1 µs, class i of less than 2^i µs.
type Latency [32]int64

// Count returns how many there were.
func (l Latency) Count() int64 {
	n := int64(0)
	for _, c := range l {
		n += c
	}
	return n
}

// Quantile returns a time that a share q of them, from 0 to 1, did not exceed: the upper end of
// a class, at most twice too long. It is 0 if there were none.
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

// String returns the median, and what 99 of 100 did not exceed.
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
