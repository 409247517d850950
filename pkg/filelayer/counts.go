package filelayer

import (
	"sync/atomic"
	"time"
)

// counter is one of the counters of [Stats].
type counter int

const (
	readStraight counter = iota
	writtenStraight
	readBounced
	writtenBounced
	host
	fallbacks
	direct
	realigned
	queued
	reads
	writes
	failed
	counters
)

// counts is a Stats that many goroutines add to.
type counts struct {
	n       [counters]atomic.Int64
	latency times
}

func (c *counts) load() Stats {
	return Stats{
		Reads: c.n[reads].Load(), Writes: c.n[writes].Load(), Failed: c.n[failed].Load(),
		ReadStraight: c.n[readStraight].Load(), WrittenStraight: c.n[writtenStraight].Load(),
		ReadBounced: c.n[readBounced].Load(), WrittenBounced: c.n[writtenBounced].Load(),
		Host: c.n[host].Load(), Fallbacks: c.n[fallbacks].Load(), Direct: c.n[direct].Load(), Realigned: c.n[realigned].Load(), Queued: c.n[queued].Load(), Latency: c.latency.load(),
	}
}

// count adds to a counter of the file and to that of its pool.
func (f *File) count(c counter, n int64) {
	f.counts.n[c].Add(n)
	f.pool.counts.n[c].Add(n)
}

// ended counts a read or write that a caller asked for.
func (f *File) ended(write bool, err error) {
	c := reads
	if write {
		c = writes
	}
	f.count(c, 1)
	if err != nil {
		f.count(failed, 1)
	}
}

// took counts how long a task took.
func (f *File) took(start time.Time) {
	f.counts.latency.since(start)
	f.pool.counts.latency.since(start)
}
