// Package meter adds up what a run did: busy time by phase, bytes moved, and counts of special values.
// Workers add to one shared [Meter] without locks; the run record reads it at the end.
//
// A nil *Meter is valid and counts nothing, so that library code need not check.
package meter

import (
	"sync/atomic"
	"time"
)

// Phase is one kind of work that a worker can be busy with.
type Phase int

// The phases of a chunk's life.
const (
	Read Phase = iota
	Decode
	Compute
	Encode
	Write
	phases
)

var phaseNames = [phases]string{"read", "decode", "compute", "encode", "write"}

// String returns the phase's name in the run record.
func (p Phase) String() string { return phaseNames[p] }

// Phases lists all phases in the order of a chunk's life.
func Phases() []Phase { return []Phase{Read, Decode, Compute, Encode, Write} }

// Meter sums busy time and bytes over all workers. It is safe for concurrent use.
type Meter struct {
	busy                    [phases]atomic.Int64
	bytesRead, bytesWritten atomic.Int64
	nonFinite, missing      atomic.Int64
	atOnce                  atomic.Int64
}

// Since adds the time since start to a phase:
//
//	t := time.Now()
//	decode(chunk)
//	m.Since(meter.Decode, t)
func (m *Meter) Since(p Phase, start time.Time) {
	if m != nil {
		m.busy[p].Add(int64(time.Since(start)))
	}
}

// Busy returns the time that workers spent in a phase, summed over workers.
func (m *Meter) Busy(p Phase) time.Duration {
	if m == nil {
		return 0
	}
	return time.Duration(m.busy[p].Load())
}

// AddRead counts bytes read from storage, as stored.
func (m *Meter) AddRead(n int64) {
	if m != nil {
		m.bytesRead.Add(n)
	}
}

// AddWritten counts bytes written to storage, as stored.
func (m *Meter) AddWritten(n int64) {
	if m != nil {
		m.bytesWritten.Add(n)
	}
}

// AddNonFinite counts NaN and infinite values of the input.
func (m *Meter) AddNonFinite(n int64) {
	if m != nil {
		m.nonFinite.Add(n)
	}
}

// AddMissing counts input chunks that are not stored.
func (m *Meter) AddMissing(n int64) {
	if m != nil {
		m.missing.Add(n)
	}
}

// Missing returns the number of input chunks found not stored so far.
func (m *Meter) Missing() int64 {
	if m == nil {
		return 0
	}
	return m.missing.Load()
}

// BytesRead returns the number of bytes read from storage so far.
func (m *Meter) BytesRead() int64 {
	if m == nil {
		return 0
	}
	return m.bytesRead.Load()
}

// BytesWritten returns the number of bytes written to storage so far.
func (m *Meter) BytesWritten() int64 {
	if m == nil {
		return 0
	}
	return m.bytesWritten.Load()
}

// NonFinite returns the number of NaN and infinite values found so far.
func (m *Meter) NonFinite() int64 {
	if m == nil {
		return 0
	}
	return m.nonFinite.Load()
}

// AtOnce says that n processors were busy at a time.
func (m *Meter) AtOnce(n int) {
	if m == nil {
		return
	}
	for was := m.atOnce.Load(); int64(n) > was && !m.atOnce.CompareAndSwap(was, int64(n)); was = m.atOnce.Load() {
	}
}

// MostAtOnce returns the largest number that AtOnce was called with.
func (m *Meter) MostAtOnce() int {
	if m == nil {
		return 0
	}
	return int(m.atOnce.Load())
}
