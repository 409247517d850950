package filter

import "math"

// Shift moves the samples of an axis by any distance onto an axis of another length: output p shows the input at p −
// distance, linear between samples. Inside is [−½, n−½] of the input's n samples, with the edge sample repeated in the
// outer half.
type Shift struct {
	From, To int // outputs inside

	n, whole int
	taps     [2]float32 // of inputs p−whole−1 and p−whole
}

// wholeShift is the maximum deviation from a whole number of a distance that counts as whole. It covers the rounding of
// sums of distances in other units.
const wholeShift = 1e-6

// NewShift returns the shift of n samples by a distance onto an axis of length samples. A distance within 1e-6 of a
// whole number is that number, so that samples are copied.
func NewShift(n, length int, distance float64) Shift {
	if near := math.RoundToEven(distance); math.Abs(distance-near) < wholeShift {
		distance = near
	}
	whole := math.Floor(distance)
	part := distance - whole
	s := Shift{n: n, whole: int(whole), taps: [2]float32{float32(part), 1 - float32(part)}}
	s.From = min(max(0, int(math.Ceil(distance-0.5))), length)
	s.To = max(s.From, min(length, int(math.Floor(distance+float64(n)-0.5))+1))
	return s
}

// Needs returns the range start … end−1 of inputs that outputs from … to−1 depend on. The range of outputs must not be
// empty, and must lie inside.
func (s Shift) Needs(from, to int) (start, end int) {
	start, end = s.pair(from)
	if s.taps[0] == 0 {
		start = end
	}
	_, last := s.pair(to - 1)
	return start, last + 1
}

// pair returns the inputs that are mixed for output p.
func (s Shift) pair(p int) (a, b int) {
	return max(0, min(p-s.whole-1, s.n-1)), max(0, min(p-s.whole, s.n-1))
}

// Row makes the outputs from … to−1, all inside, of a row; src begins with input start.
func (s Shift) Row(dst, src []float32, start, from, to int) {
	if s.taps[0] == 0 {
		copy(dst[:to-from], src[from-s.whole-start:])
		return
	}
	a, b := max(from, s.whole+1), min(to, s.whole+s.n) // outputs between two samples
	for p := from; p < min(a, to); p++ {
		dst[p-from] = src[-start]
	}
	if a < b {
		Combine(dst[a-from:b-from], src[a-s.whole-1-start:], 1, s.taps[:])
	}
	for p := max(b, from); p < to; p++ {
		dst[p-from] = src[s.n-1-start]
	}
}

// Rows mixes output row p of rows of len(dst) samples, which begin stride samples apart; src begins with input row
// start.
func (s Shift) Rows(dst, src []float32, start, p, stride int) {
	a, b := s.pair(p)
	if a == b || s.taps[0] == 0 {
		copy(dst, src[(b-start)*stride:])
		return
	}
	Combine(dst, src[(a-start)*stride:], stride, s.taps[:])
}
