//go:build !nocuda

package gpu

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Functions on the host run in the order of the stream, between copies, and not before
// their turn.
func TestHost(t *testing.T) {
	d := open(t, Limits{Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Host(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	b, err := d.Memory().Get(3000)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	var order []int
	for i := range 3 {
		s.Host(func() {
			order = append(order, i)
			for k := range h.B {
				h.B[k] = byte(i + 1)
			}
		})
		s.Upload(b.From(int64(i)*1000, 1000), h.B)
	}
	ended := false
	s.OnClose(func() { ended = true })
	if err := s.Wait(); err != nil || fmt.Sprint(order) != "[0 1 2]" {
		t.Fatal(order, err)
	}
	for i := range 3 {
		s.Download(h.B, b.From(int64(i)*1000, 1000))
		if err := s.Wait(); err != nil || !bytes.Equal(h.B, bytes.Repeat([]byte{byte(i + 1)}, 1000)) {
			t.Errorf("part %d is %v…, %v", i, h.B[:3], err)
		}
	}
	// After an error none runs, and none is kept.
	s.Queue(func(uintptr) error { return fmt.Errorf("before") })
	s.Host(func() { t.Error("runs after an error") })
	if err := s.Wait(); err == nil || err.Error() != "before" {
		t.Error(err)
	}
	if ended {
		t.Error("ended before its end")
	}
	if err := s.Close(); err != nil || !ended {
		t.Error(err, ended)
	}
	if n := len(hosted.queued); n != 0 {
		t.Errorf("%d functions are kept", n)
	}
}

// A launch that fails is the stream's error.
func TestHostFails(t *testing.T) {
	if !apart(t, "CUEMU_FAIL=cuLaunchHostFunc:1:1") {
		return
	}
	d := open(t, Limits{Pinned: 1 << 20})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	s.Host(func() { t.Error("runs") })
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "cuLaunchHostFunc") {
		t.Error(err)
	}
	if n := len(hosted.queued); n != 0 {
		t.Errorf("%d functions are kept", n)
	}
}

// A buffer is found in what the driver gave, until that goes back.
func TestAllocation(t *testing.T) {
	d := open(t, Limits{Memory: 1 << 20, Pinned: 1 << 20})
	p := d.Memory()
	var freed []Span
	stop := p.BeforeFree(func(s Span) { freed = append(freed, s) })
	var buffers []*Buffer
	for _, n := range []int64{5000, 100, 70000, 300} {
		b, err := p.Get(n)
		if err != nil {
			t.Fatal(err)
		}
		buffers = append(buffers, b)
	}
	for _, b := range buffers {
		for _, s := range []Span{b.Span, b.From(0, 1), b.From(b.Bytes()-1, 1)} {
			if a, ok := p.Allocation(s); !ok || a != b.full {
				t.Errorf("%v of %v: %v, %v", s, b.full, a, ok)
			}
		}
		if _, ok := p.Allocation(Span{b.full.address, b.full.bytes + 1}); ok {
			t.Error("more than the allocation")
		}
	}
	if a, ok := p.Allocation(Span{}); ok {
		t.Error(a)
	}
	last := buffers[2].Span
	for _, b := range buffers {
		b.Release()
	}
	if a, ok := p.Allocation(last); !ok || len(freed) != 0 {
		t.Error("what is kept is an allocation: ", a, freed)
	}
	b, err := p.Get(1 << 20) // needs all
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Allocation(last); ok || len(freed) != 4 {
		t.Error("what went back is none: ", freed)
	}
	stop()
	b.Release()
	if p.mu.Lock(); len(p.looks) != 0 {
		t.Error("the look is kept")
	}
	p.mu.Unlock()
}
