package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What shades an image is gone, whatever it is multiplied by; what is no positive number
// is 0 and says nothing of its surroundings.
func TestLocalContrast(t *testing.T) {
	const ny, nx, n = 60, 80, 9
	rng := rand.New(rand.NewPCG(3, 4))
	plain, shaded := make([]float32, ny*nx), make([]float32, ny*nx)
	for y := range ny {
		for x := range nx {
			v := float32(1 + 0.3*rng.Float64())
			plain[y*nx+x], shaded[y*nx+x] = v, v*float32(700*math.Exp(-0.01*float64(x)))
		}
	}
	hole := 30*nx + 40
	shaded[hole], shaded[hole+1], shaded[hole+2] = 0, float32(math.NaN()), -5
	a, b := make([]float32, ny*nx), make([]float32, ny*nx)
	LocalContrast(a, plain, ny, nx, n)
	LocalContrast(b, shaded, ny, nx, n)
	for i := range a {
		y, x := i/nx, i%nx
		near := y >= 26 && y <= 34 && x >= 36 && x <= 46 // it has the hole in its window
		switch {
		case x < n/2 || x >= nx-n/2: // a mirrored slope is none
		case i >= hole && i < hole+3:
			if b[i] != 0 {
				t.Errorf("voxel %d of the hole is %v", i-hole, b[i])
			}
		case !(math.Abs(float64(a[i]-b[i])) < 0.01) && !near || !(math.Abs(float64(a[i]-b[i])) < 0.03):
			t.Fatalf("(%d, %d): %v, without shading %v", y, x, b[i], a[i])
		}
	}
	// the definition, where the window is whole
	sum := 0.0
	for y := 6; y <= 14; y++ {
		for x := 16; x <= 24; x++ {
			sum += float64(plain[y*nx+x])
		}
	}
	if want := float64(plain[10*nx+20])/(sum/81) - 1; math.Abs(float64(a[10*nx+20])-want) > 1e-5 {
		t.Errorf("%v, want %v", a[10*nx+20], want)
	}
}
