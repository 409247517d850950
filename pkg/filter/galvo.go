package filter

import (
	"math"
	"slices"
)

const (
	galvoFrames   = 20  // of a tile that are judged
	galvoDark     = 10  // mean of the A-lines beside the band below which a frame says nothing
	galvoDrop     = 0.1 // relative drop of the band that counts
	galvoFullDrop = 0.3 // mean drop from which on a larger one adds nothing
	galvoMargin   = 10  // A-lines: half of those beside the band, where it is not wider
	galvoLeast    = 5   // A-lines of a band that can be judged
)

// GalvoShift finds the A-lines that a scanning mirror recorded while it flew back, in the average intensity of a tile
// along z, of shape (frame, A-line). They are a band of extra darker A-lines, which belongs at the end of a frame.
// shift is the number of A-lines by which frames have to be rolled towards their end so that the band arrives there,
// and confidence, 0 to 1, says how far the band differs from both its sides (workflow specification,
// create_mosaic_grid_3d).
//
// The band is where the mean profile changes most at both of two places that are extra A-lines apart. The change lies
// between two A-lines; the band begins behind it. linumpy takes the A-line before it, and rolls by one too many.
func GalvoShift(aip []float32, lines, extra int) (shift int, confidence float64) {
	frames := len(aip) / max(lines, 1)
	if extra < 1 || lines < extra+2 || frames < 1 {
		return 0, 0
	}
	steps := galvoProfile(aip, lines, frames)
	before, most := 0, -1.0
	for i := range len(steps) - extra {
		if v := float64(steps[i] * steps[i+extra]); v > most {
			before, most = i, v
		}
	}
	return lines - extra - before - 1, galvoConfidence(aip, lines, frames, before, extra)
}

// galvoProfile returns the absolute differences of neighbours in the profile along the A-lines: the mean over all
// frames, without outliers.
func galvoProfile(aip []float32, lines, frames int) []float64 {
	mean := make([]float64, lines)
	for f := range frames {
		for l, v := range aip[f*lines:][:lines] {
			mean[l] += float64(v)
		}
	}
	steps := make([]float64, lines-1)
	last, window := 0.0, make([]float64, 5)
	for l := range mean {
		for k := range window {
			window[k] = mean[Reflect.Index(l+k-2, lines)] / float64(frames)
		}
		slices.Sort(window)
		if l > 0 {
			steps[l-1] = math.Abs(window[2] - last)
		}
		last = window[2]
	}
	return steps
}

// galvoConfidence returns the confidence, 0…1, that the A-lines first … first+extra−1 are a band of the mirror's
// return, by comparing it with the A-lines on both sides.
func galvoConfidence(aip []float32, lines, frames, first, extra int) float64 {
	margin := 2 * max(galvoMargin, extra/2)
	lo, hi := max(0, first-margin), min(lines, first+extra+margin)
	if extra < galvoLeast || lo == first || hi == first+extra {
		return 0
	}
	var judged, darker, dropped, drops float64
	n := min(galvoFrames, frames)
	for k := range n {
		f := 0
		if n > 1 {
			f = k * (frames - 1) / (n - 1)
		}
		row := aip[f*lines:][:lines]
		sides := (meanOf(row[lo:first]) + meanOf(row[first+extra:hi])) / 2
		if !(sides >= galvoDark) {
			continue
		}
		judged++
		drop := 1 - meanOf(row[first:first+extra])/sides
		if drop > 0 {
			darker++
			drops += drop
		}
		if drop > galvoDrop {
			dropped++
		}
	}
	if judged == 0 {
		return 0
	}
	share := darker / judged
	if share < 0.5 {
		return 0.3 * share
	}
	score := float64(0.4*share) + float64(0.35*(dropped/judged)) + float64(0.25*min(drops/darker/galvoFullDrop, 1))
	return min(max(score, 0), 1)
}

func meanOf(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x)
	}
	return sum / float64(len(v))
}
