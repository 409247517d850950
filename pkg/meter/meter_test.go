package meter

import (
	"sync"
	"testing"
	"time"
)

func TestWorkersAddUp(t *testing.T) {
	var m Meter
	start := time.Now().Add(-time.Second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m.Since(Decode, start)
			m.AddRead(10)
			m.AddWritten(3)
			m.AddNonFinite(1)
		})
	}
	wg.Wait()
	if b := m.Busy(Decode); b < 8*time.Second || b > 80*time.Second {
		t.Errorf("busy %v", b)
	}
	if m.Busy(Read) != 0 || m.BytesRead() != 80 || m.BytesWritten() != 24 || m.NonFinite() != 8 {
		t.Errorf("read %v, %d bytes in, %d out, %d non-finite", m.Busy(Read), m.BytesRead(), m.BytesWritten(), m.NonFinite())
	}
}

func TestNilCountsNothing(t *testing.T) {
	var m *Meter
	m.Since(Read, time.Now())
	m.AddRead(1)
	m.AddWritten(1)
	m.AddNonFinite(1)
	if m.Busy(Read) != 0 || m.BytesRead() != 0 || m.BytesWritten() != 0 || m.NonFinite() != 0 {
		t.Error("a nil meter counted")
	}
}
