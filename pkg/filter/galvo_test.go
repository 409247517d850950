package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// band returns a projection of random tissue (frame, A-line) whose last extra A-lines are darker, rolled towards its
// beginning by shift.
func band(seed uint64, frames, lines, extra, shift int, dark float64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	aip := make([]float32, frames*lines)
	for f := range frames {
		for l := range lines {
			v := 100 + 10*r.Float64() + 20*math.Sin(float64(l)/9)
			if l >= lines-extra {
				v *= dark
			}
			aip[f*lines+(l+lines-shift)%lines] = float32(v)
		}
	}
	return aip
}

// The shift that was put in is found, exactly, and is certain where the band is dark.
func TestGalvoShift(t *testing.T) {
	for _, c := range []struct {
		lines, extra, shift int
		dark                float64
		least               float64
	}{
		{52, 12, 17, 0.15, 1}, {52, 12, 2, 0.15, 1}, {52, 12, 38, 0.15, 1}, {440, 40, 123, 0.5, 1}, {440, 40, 396, 0.1, 1}, {110, 10, 55, 0.75, 0.9},
	} {
		shift, confidence := GalvoShift(band(7, 30, c.lines, c.extra, c.shift, c.dark), c.lines, c.extra)
		if shift != c.shift || confidence < c.least {
			t.Errorf("%+v: shift %d, confidence %v", c, shift, confidence)
		}
	}
	// without a band nothing is certain, and a band that is brighter than what lies beside it is none
	for _, dark := range []float64{1, 1.5} {
		if _, confidence := GalvoShift(band(7, 30, 440, 40, 123, dark), 440, 40); confidence >= 0.6 {
			t.Errorf("confidence %v of a band of %v", confidence, dark)
		}
	}
	// frames that are dark say nothing; a band of a few A-lines cannot be judged, one at the end has no far side
	if _, confidence := GalvoShift(make([]float32, 30*52), 52, 12); confidence != 0 {
		t.Errorf("confidence %v of dark frames", confidence)
	}
	for _, extra := range []int{0, 4, 51, 52, 60} {
		if _, confidence := GalvoShift(band(7, 30, 52, min(extra, 51), 17, 0.15), 52, extra); confidence != 0 {
			t.Errorf("%d extra A-lines: confidence %v", extra, confidence)
		}
	}
	if shift, confidence := GalvoShift(nil, 52, 12); shift != 0 || confidence != 0 {
		t.Errorf("no frames: %d, %v", shift, confidence)
	}
}
