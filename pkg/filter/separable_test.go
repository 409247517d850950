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

// Rows are filtered in bands: each pixel has the bits of the sums over its window, in images of several bands, too, and
// in such that are smaller than the window.
func TestSeparableBands(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ ny, nx, n int }{{700, 900, 17}, {300, 2500, 4}, {5, 7, 33}, {1, 400, 9}, {400, 1, 8}} {
		src, got := make([]float32, c.ny*c.nx), make([]float32, c.ny*c.nx)
		for i := range src {
			src[i] = rng.Float32()
		}
		taps := windowTaps(c.n)
		Separable(got, src, c.ny, c.nx, taps)
		if band := separableBand(c.ny, c.nx, c.n); c.ny >= 300 && c.nx > 1 && band >= c.ny {
			t.Errorf("%d × %d pixels are one band", c.ny, c.nx)
		}
		for range 2000 {
			y, x, want := rng.IntN(c.ny), rng.IntN(c.nx), float32(0)
			for j := range c.n {
				column := float32(0)
				for i := range c.n {
					column += float32(taps[i] * src[Reflect.Index(y-c.n/2+i, c.ny)*c.nx+Reflect.Index(x-c.n/2+j, c.nx)])
				}
				want += float32(taps[j] * column)
			}
			if i := y*c.nx + x; got[i] != want {
				t.Fatalf("%d × %d, %d taps: pixel (%d, %d) is %v, want %v", c.ny, c.nx, c.n, y, x, got[i], want)
			}
		}
	}
}

func TestSeparableBytes(t *testing.T) {
	const ny, nx, n = 1000, 800, 17
	src, dst, taps := make([]float32, ny*nx), make([]float32, ny*nx), windowTaps(n)
	got := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			Separable(dst, src, ny, nx, taps)
		}
	}).AllocedBytesPerOp()
	if want := SeparableBytes(ny, nx, n); got > want+want/8+1<<16 || got < want/2 {
		t.Errorf("%d bytes, %d were said", got, want)
	}
}
