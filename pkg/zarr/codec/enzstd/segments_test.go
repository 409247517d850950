package enzstd

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"unsafe"

	"strata/tests/race"
)

// encode encodes the segments in the given order, each in no more memory than its bound, with the encoder that pick
// returns.
func (f *Frame) encode(t testing.TB, order []int, pick func(i int) *Encoder) []byte {
	out := f.AppendHeader(nil)
	parts := make([][]byte, f.Segments())
	for _, i := range order {
		room := f.Bound(i+1) - f.Bound(i)
		if i == 0 {
			room = f.Bound(1) - len(out)
		}
		dst := make([]byte, 0, room)
		parts[i] = f.AppendSegment(pick(i), dst, i)
		if unsafe.SliceData(parts[i]) != unsafe.SliceData(dst) {
			t.Errorf("segment %d of %d has %d bytes, at most %d are planned", i, len(parts), len(parts[i]), room)
		}
	}
	for i, p := range parts {
		out = append(out, p...)
		f.Sum(i)
	}
	return f.AppendEnd(out)
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// TestSegments: whatever the order and the encoders, a frame of segments has the same bytes, and they decode.
func TestSegments(t *testing.T) {
	race.Leave(t)
	r := newReader(t)
	var one, two Encoder // they must forget
	const length = blockMax
	for _, n := range []int{2*length + 1, 3*length - 1, 3 * length, 3*length + 1, 4*length + 7, 6*length + 50_000} {
		for name, src := range contents(n) {
			for _, level := range []int{-5, 1, 3, 4, 5, 9} {
				f := Frame{Src: src, Level: level, Checksum: level == 3, Length: length}
				order := inOrder(f.Segments())
				want := f.encode(t, order, func(int) *Encoder { return new(Encoder) })
				if err := r.check(want, src, f.Checksum); err != nil {
					t.Fatalf("%s, %d bytes, level %d: %v", name, n, level, err)
				}
				slices.Reverse(order)
				if got := f.encode(t, order, func(i int) *Encoder { return []*Encoder{&one, &two}[i&1] }); !bytes.Equal(got, want) {
					t.Fatalf("%s, %d bytes, level %d: the bytes depend on who encodes", name, n, level)
				}
				if got := f.encode(t, inOrder(len(order)), func(int) *Encoder { return &one }); !bytes.Equal(got, want) {
					t.Fatalf("%s, %d bytes, level %d: the bytes depend on the order", name, n, level)
				}
				if len(want) > f.Bound(len(order))+4 {
					t.Errorf("%s, %d bytes, level %d: %d bytes", name, n, level, len(want))
				}
			}
		}
	}
}

// TestSegmentsStartOver: where positions come to the end of what tables hold, the same bytes are made.
func TestSegmentsStartOver(t *testing.T) {
	race.Leave(t)
	const length = 2 * blockMax
	for _, level := range []int{1, 3, 5} {
		for name, src := range contents(5 * length) {
			f := Frame{Src: src, Level: level, Length: length}
			order := inOrder(f.Segments())
			want := f.encode(t, order, func(int) *Encoder { return new(Encoder) })
			for _, base := range []int{length, 2 * length, math.MaxInt32 - 3*length, math.MaxInt32} {
				var e Encoder
				e.Encode(nil, src, level, false)
				e.base = max(base, e.base)
				if got := f.encode(t, order, func(int) *Encoder { return &e }); !bytes.Equal(got, want) {
					t.Errorf("level %d, %s, from %d: other bytes", level, name, base)
				}
			}
		}
	}
}

// TestMemory: an encoder holds no more than is said.
func TestMemory(t *testing.T) {
	src := contents(700_000)["mixed"]
	for _, level := range []int{1, 2, 3, 4, 5, 7, 9} {
		var e Encoder
		f := Frame{Src: src, Level: level, Length: blockMax}
		f.encode(t, inOrder(f.Segments()), func(int) *Encoder { return &e })
		got := int(unsafe.Sizeof(e)) + 4*(cap(e.table)+cap(e.short)+cap(e.words)+cap(e.sparse)) + cap(e.tags) + cap(e.heads) +
			int(unsafe.Sizeof(sequence{}))*cap(e.seqs) + cap(e.buffer) + cap(e.out)
		if most := Memory(level, len(src)); got > most || got < most/2 {
			t.Errorf("level %d: %d bytes, said are %d", level, got, most)
		}
	}
}

// FuzzSegments: what comes in comes out, of any segments.
func FuzzSegments(f *testing.F) {
	for _, n := range []int{1, 40, 3000, 40_000} {
		for _, src := range contents(n) {
			f.Add(src, 3, uint32(2*blockMax+1))
		}
	}
	r := newReader(f)
	f.Fuzz(func(t *testing.T, src []byte, level int, size uint32) {
		if len(src) == 0 {
			return
		}
		n := int(size % (1 << 20))
		src = bytes.Repeat(src, n/len(src)+1)[:n]
		frame := Frame{Src: src, Level: max(-131072, min(level, 22)), Length: blockMax}
		var e Encoder
		if err := r.check(frame.encode(t, inOrder(frame.Segments()), func(int) *Encoder { return &e }), src, false); err != nil {
			t.Fatalf("%d bytes, level %d: %v", n, level, err)
		}
	})
}
