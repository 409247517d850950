package filter

import (
	"math"
	"testing"
)

// pattern returns a plane of a fixed pseudo-random texture of period 31 × 37 pixels, which begins at (oy, ox).
func pattern(height, width, oy, ox int) []float32 {
	v := make([]float32, height*width)
	for i := range v {
		y, x := uint32(i/width+oy)%31, uint32(i%width+ox)%37
		h := (y*2654435761 + x*40503 + 12345) * 2246822519
		v[i] = float32((h>>13)%1000)/100 + float32(y%7)
	}
	return v
}

// Displacements are those of skimage.registration.phase_cross_correlation 0.26 with upsample_factor=10 on the same
// planes.
func TestRegister(t *testing.T) {
	p := NewPhase()
	for _, c := range []struct {
		height, width, y, x int
		dy, dx              float64
	}{
		{31, 37, 4, -3, 4.1, -2.8},
		{40, 50, 2, 1, 2.1, 1.2},
		{33, 48, -3, -5, -2.9, -4.9},
		{64, 50, -6, 9, -5.9, 9.2},
		{1, 37, 0, 4, 0, 4.1},
	} {
		fixed, moving := pattern(c.height, c.width, 3, 5), pattern(c.height, c.width, 3+c.y, 5+c.x)
		between := make([]float32, len(moving)) // up to a third of a pixel further along both axes
		for i, v := range moving {
			between[i] = v + moving[i/c.width*c.width+(i%c.width+1)%c.width]/2 + moving[(i+c.width)%len(moving)]/4
		}
		dy, dx, ok := p.Register(fixed, between, c.height, c.width, 10)
		if !ok || math.Abs(dy-c.dy) > 1e-9 || math.Abs(dx-c.dx) > 1e-9 {
			t.Errorf("%+v: moves by %v, %v (%v)", c, dy, dx, ok)
		}
		dy, dx, ok = p.Register(fixed, moving, c.height, c.width, 1)
		if !ok || dy != float64(c.y) || dx != float64(c.x) {
			t.Errorf("%+v: moves by %v, %v whole pixels (%v)", c, dy, dx, ok)
		}
	}
	flat := make([]float32, 12)
	if _, _, ok := p.Register(flat, pattern(3, 4, 0, 0), 3, 4, 10); ok {
		t.Error("a plane without structure has a displacement")
	}
	flat[3] = float32(math.NaN())
	if _, _, ok := p.Register(flat, flat, 3, 4, 10); ok {
		t.Error("a plane of NaN has a displacement")
	}
	if _, _, ok := p.Register(nil, nil, 0, 4, 10); ok {
		t.Error("an empty plane has a displacement")
	}
}
