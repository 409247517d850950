//go:build !nocuda

package gpu

import (
	"bytes"
	"errors"
	"testing"
)

// TestTwoDevices: each has its own memory, and what is of one is refused by the other's
// streams; when one is lost, the other works on.
func TestTwoDevices(t *testing.T) {
	if !apart(t, "CUEMU_DEVICES=2", "CUEMU_MEM=1048576", "CUEMU_FAIL=cuMemsetD8Async:3:719s") {
		return
	}
	list, err := Devices()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	var d [2]*Device
	var s [2]*Stream
	var b [2]*Buffer
	for i := range d {
		if d[i], err = Open(list[i], Limits{Pinned: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if s[i], err = d[i].Stream(); err != nil {
			t.Fatal(err)
		}
		if b[i], err = d[i].Memory().Get(800 << 10); err != nil { // both do not fit on one
			t.Fatal(err)
		}
	}
	h, err := d[0].Host(8)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s {
		copy(h.B, "devices!")
		s[i].Zero(b[i].From(0, 8))
		s[i].Upload(b[i].From(0, 3), h.B[:3])
		s[i].Download(h.B[:8], b[i].Span)
		if err := s[i].Wait(); err != nil || !bytes.Equal(h.B[:8], []byte("dev\x00\x00\x00\x00\x00")) {
			t.Errorf("device %d: %q %v", i, h.B[:8], err)
		}
		s[i].Download(h.B[:8], b[1-i].Span)
		if err := s[i].Wait(); err == nil || d[i].Lost() != nil {
			t.Errorf("device %d read the memory of the other: %v, lost: %v", i, err, d[i].Lost())
		}
	}
	s[1].Zero(b[1].Span) // the third time
	if err := s[1].Wait(); !errors.Is(err, ErrLost) || d[1].Lost() == nil {
		t.Errorf("device 1: %v, lost: %v", err, d[1].Lost())
	}
	s[0].Zero(b[0].Span)
	if err := s[0].Wait(); err != nil || d[0].Lost() != nil {
		t.Errorf("device 0: %v, lost: %v", err, d[0].Lost())
	}
	h.Release()
	for i := range d {
		b[i].Release()
		if err := errors.Join(s[i].Close(), d[i].Close()); err != nil {
			t.Errorf("device %d: %v", i, err)
		}
	}
}
