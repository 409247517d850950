package filter

import (
	"fmt"
	"math"
)

// Weights describes how every sample of an output axis is computed from consecutive samples of an input axis:
//
//	out[i] = Σ taps[k]·in[first+k],  with first, taps of i
//
// A blur, sampling between two samples, and a boundary condition are one set of taps, so that only requested
// samples are computed and only existing ones are read. The taps are computed in float64 and rounded once to
// float32. Weights do not change after they are made and may be shared by goroutines.
//
// [Weights.Apply] and [Weights.ApplyRows] run a pass over an axis of a volume; [Resizer] runs three. They add
// the taps of an output in increasing k, in float32, with products rounded before they are added: the same
// bits on every machine.
type Weights struct {
	in, out int
	first   []int
	start   []int // out+1 positions in taps
	taps    []float32
	covers  bool
}

// GaussianWeights smooths an axis of n samples, or takes its derivative, with
// [GaussianKernel]: one output for each input.
func GaussianWeights(n int, sigma float64, order int, b Boundary) *Weights {
	return newWeights(n, n, GaussianKernel(sigma, order), b, func(i int) (int, float64) { return i, 0 })
}

// CornerAligned samples an axis linearly at out positions from the first sample
// to the last, x_in = i·(in−1)/(out−1), after a Gaussian blur of standard
// deviation sigma input samples (0: none) with boundary b. A single output
// takes sample 0. This is scipy.ndimage's gaussian_filter and zoom(order=1) in
// one (stages specification, resample).
func CornerAligned(in, out int, sigma float64, b Boundary) *Weights {
	return newWeights(in, out, GaussianKernel(sigma, 0), b, func(i int) (int, float64) {
		if out == 1 {
			return 0, 0
		}
		num, den := i*(in-1), out-1
		return num / den, float64(num%den) / float64(den)
	})
}

// CentreAligned samples an axis linearly between voxel centres,
// x_in = (i+½)·in/out − ½, after a Gaussian blur of standard deviation sigma
// input samples (0: none) with boundary b. Positions beyond the outermost
// centres take these (stages specification, analysis pyramid).
func CentreAligned(in, out int, sigma float64, b Boundary) *Weights {
	return CentreSpaced(in, out, in, out, sigma, b)
}

// CentreSpaced works like [CentreAligned] with samples long/short input samples apart, x_in =
// (i+½)·long/short − ½, for an axis that is part of a longer one.
func CentreSpaced(in, out, long, short int, sigma float64, b Boundary) *Weights {
	return newWeights(in, out, GaussianKernel(sigma, 0), b, func(i int) (int, float64) {
		num, den := (2*i+1)*long-short, 2*short
		switch {
		case num <= 0:
			return 0, 0
		case num >= (in-1)*den:
			return in - 1, 0
		}
		return num / den, float64(num%den) / float64(den)
	})
}

// newWeights samples at(i) = sample + fraction, 0 ≤ fraction < 1, of what the
// kernel makes of the axis. A neighbour of weight zero takes no part: it may be
// NaN.
func newWeights(in, out int, kernel []float64, b Boundary, at func(i int) (int, float64)) *Weights {
	if in < 1 || out < 1 {
		panic(fmt.Sprintf("filter: weights from %d samples to %d", in, out))
	}
	w := &Weights{in: in, out: out, first: make([]int, out), start: make([]int, out+1)}
	r := len(kernel) / 2
	sum := make([]float64, min(in, 2*len(kernel)+2)) // taps of one output, from lo on
	w.taps = make([]float32, 0, out*min(in, len(kernel)+1))
	seen := 0 // inputs that the outputs so far cover from the first on
	w.covers = true
	for i := range out {
		p, fraction := at(i)
		last := p
		if fraction > 0 {
			last++
		}
		// the samples that the windows of p and its neighbour touch
		lo, hi := in-1, 0
		for _, edge := range [...]int{max(p-r, 0), min(last+r, in-1), b.Index(p-r, in), b.Index(last+r, in)} {
			lo, hi = min(lo, edge), max(hi, edge)
		}
		if last+r-(p-r) >= in { // it may be folded several times
			lo, hi = 0, in-1
		}
		clear(sum[:hi-lo+1])
		for j, k := range kernel {
			sum[b.Index(p+j-r, in)-lo] += float64((1 - fraction) * k)
		}
		if fraction > 0 {
			for j, k := range kernel {
				sum[b.Index(p+1+j-r, in)-lo] += float64(fraction * k)
			}
		}
		w.first[i] = lo
		for _, v := range sum[:hi-lo+1] {
			w.taps = append(w.taps, float32(v))
		}
		w.start[i+1] = len(w.taps)
		w.covers = w.covers && lo <= seen
		seen = max(seen, hi+1)
	}
	w.covers = w.covers && seen == in
	return w
}

// WeightsBytes returns the memory that weights of out samples from in take at most, while they are made with a Gaussian
// of sigma and afterwards. It allocates nothing: sizes that come from metadata are compared with a budget before the
// weights are made. Sizes that cannot be counted give math.MaxInt64 / 16.
func WeightsBytes(in, out int, sigma float64) int64 {
	kernel := 1 + 2*math.Floor(max(0, truncate*sigma+0.5))
	n, m := float64(in), float64(out)
	bytes := 16*m + 8 + 4*m*min(n, kernel+1) + 8*kernel + 8*min(n, 2*kernel+2)
	return int64(min(bytes, math.MaxInt64/16))
}

// In returns the number of input samples.
func (w *Weights) In() int { return w.in }

// Out returns the number of output samples.
func (w *Weights) Out() int { return w.out }

// Taps returns the weights of output sample i and the input sample of the first one. The slice belongs to w.
func (w *Weights) Taps(i int) (first int, taps []float32) {
	return w.first[i], w.taps[w.start[i]:w.start[i+1]]
}

// Inputs returns the input samples that outputs o0 up to o1 need, half open. Both ends grow with the output:
// an axis can be streamed.
func (w *Weights) Inputs(o0, o1 int) (first, end int) {
	return w.first[o0], w.first[o1-1] + w.start[o1] - w.start[o1-1]
}

// Covers reports whether every input sample contributes to some output.
func (w *Weights) Covers() bool { return w.covers }

// Identity reports whether the weights leave the input unchanged.
func (w *Weights) Identity() bool {
	if w.in != w.out || len(w.taps) != w.out {
		return false
	}
	for i, t := range w.taps {
		if t != 1 || w.first[i] != i {
			return false
		}
	}
	return true
}

// Apply filters along the middle axis: src has shape (outer, In, inner), dst (outer, Out, inner), both in C
// order and not overlapping. It suits large inner lengths; [Weights.ApplyRows] is for the last axis.
func (w *Weights) Apply(dst, src []float32, outer, inner int) {
	for o := range outer {
		s, d := src[o*w.in*inner:][:w.in*inner], dst[o*w.out*inner:][:w.out*inner]
		for i := range w.out {
			first, taps := w.Taps(i)
			Combine(d[i*inner:][:inner], s[first*inner:], inner, taps)
		}
	}
}

// Add adds the input samples at…at+n−1 to sums of outputs begun with the samples before: src has shape (n,
// inner), dst has shape (Out, inner). After all samples, in order, dst equals the result of [Weights.Apply]
// bit by bit.
func (w *Weights) Add(dst, src []float32, at, inner int) {
	n := len(src) / inner
	for i := range w.out {
		first, taps := w.Taps(i)
		lo, hi := max(first, at), min(first+len(taps), at+n)
		if lo >= hi {
			if first >= at+n {
				break
			}
			continue
		}
		d, s, t := dst[i*inner:][:inner], src[(lo-at)*inner:], taps[lo-first:hi-first]
		if lo == first {
			Combine(d, s, inner, t)
		} else {
			AddCombine(d, s, inner, t)
		}
	}
}

// rowsAtOnce is the number of rows that ApplyRows transposes at a time.
const rowsAtOnce = 32

// RowScratch returns the number of elements that ApplyRows needs as scratch.
func (w *Weights) RowScratch() int { return (w.in + w.out) * rowsAtOnce }

// ApplyRows filters along the last axis: src has shape (rows, In), dst (rows, Out), both in C order. They do not
// overlap, or are the same where Out is In. It transposes groups of rows and back; scratch has at least
// [Weights.RowScratch] elements.
func (w *Weights) ApplyRows(dst, src []float32, rows int, scratch []float32) {
	columns, results := scratch[:w.in*rowsAtOnce], scratch[w.in*rowsAtOnce:][:w.out*rowsAtOnce]
	for r := 0; r < rows; r += rowsAtOnce {
		m := min(rowsAtOnce, rows-r)
		Transpose(columns, src[r*w.in:], m, w.in, rowsAtOnce, w.in)
		for i := range w.out {
			first, taps := w.Taps(i)
			Combine(results[i*rowsAtOnce:][:m], columns[first*rowsAtOnce:], rowsAtOnce, taps)
		}
		Transpose(dst[r*w.out:], results, w.out, m, w.out, rowsAtOnce)
	}
}
