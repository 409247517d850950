package bench

import (
	"math"
	"math/bits"
	"time"
)

// Latency summarises the durations, in seconds, of single reads or writes. Quantiles have an error of at most
// 2 %.
type Latency struct {
	Count int64   `json:"count"`
	Least float64 `json:"least"`
	Mean  float64 `json:"mean"`
	Std   float64 `json:"std"`
	Most  float64 `json:"most"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99.9"`
	P9999 float64 `json:"p99.99"`
}

// subBits: each power of two of a nanosecond has 2^subBits classes.
const subBits = 5

// Histogram counts durations in classes 3 % wide. It serves one goroutine; [Histogram.Merge] adds up several.
// The zero value is empty.
type Histogram struct {
	count       [64 << subBits]int64
	n           int64
	sum, square float64 // ns
	least, most time.Duration
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) { h.AddN(d, 1) }

// AddN counts a duration n times.
func (h *Histogram) AddN(d time.Duration, n int64) {
	if n <= 0 {
		return
	}
	d = max(d, 0)
	h.count[class(d)] += n
	if h.n == 0 || d < h.least {
		h.least = d
	}
	h.most = max(h.most, d)
	h.n += n
	ns := float64(d)
	h.sum += ns * float64(n)
	h.square += ns * ns * float64(n)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	if o.n == 0 {
		return
	}
	for i, n := range o.count {
		h.count[i] += n
	}
	if h.n == 0 || o.least < h.least {
		h.least = o.least
	}
	h.most = max(h.most, o.most)
	h.n += o.n
	h.sum += o.sum
	h.square += o.square
}

// Count returns the number of durations.
func (h *Histogram) Count() int64 { return h.n }

// class returns the number of the class of a duration.
func class(d time.Duration) int {
	v := uint64(d)
	if v < 1<<subBits {
		return int(v)
	}
	e := bits.Len64(v) - subBits - 1
	return (e+1)<<subBits + int(v>>e) - 1<<subBits
}

// middle returns the duration in the middle of a class.
func middle(c int) float64 {
	if c < 1<<subBits {
		return float64(c)
	}
	e := c>>subBits - 1
	low := float64(uint64(c&(1<<subBits-1)+1<<subBits) << e)
	return low + float64(uint64(1)<<e-1)/2
}

// Quantile returns the duration that a fraction q (0…1) of the counted operations did not exceed; 0 without operations.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	want := max(int64(math.Ceil(q*float64(h.n))), 1)
	for c, n := range h.count {
		if want -= n; want <= 0 {
			return min(max(time.Duration(middle(c)), h.least), h.most)
		}
	}
	return h.most
}

// Latency returns the summary, or nil if nothing was counted.
func (h *Histogram) Latency() *Latency {
	if h.n == 0 {
		return nil
	}
	n := float64(h.n)
	mean := h.sum / n
	at := func(q float64) float64 { return h.Quantile(q).Seconds() }
	return &Latency{Count: h.n, Least: h.least.Seconds(), Mean: mean / 1e9, Std: math.Sqrt(max(h.square/n-mean*mean, 0)) / 1e9, Most: h.most.Seconds(),
		P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), P9999: at(0.9999)}
}
