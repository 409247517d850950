package phantom

import (
	"math"
	"testing"

	"strata/pkg/dtype"
)

// A slice with anatomy has layers in the cortex, white matter below it, tracts in the grey matter under that, and
// vessels; the agarose around it is as it was.
func TestAnatomy(t *testing.T) {
	c := small().Ideal()
	c.Slices, c.Relief, c.Texture, c.Attenuation, c.Agarose, c.Water = 1, 0, 0, 0, 0.2, 0
	c.Tile, c.Tiles = [3]int{24, 160, 160}, [2]int{3, 3}
	c.Anatomy = 1
	s := mustNew(t, c)
	_, size := s.Canvas(0)
	v := make([]float32, c.Tile[0]*size[0]*size[1])
	if err := s.RenderTruth(dtype.Bytes(v), 0, [2]float64{}, size[0], size[1]); err != nil {
		t.Fatal(err)
	}
	// by the distance from the centre, in hundredths of the radius
	var sum, n [100]float64
	vessels, tracts, grey := 0, 0, 0
	for i, f := range v {
		y, x := i/size[1]%size[0], i%size[1]
		r := math.Hypot((float64(y)-s.centre[0])/s.radius[0], (float64(x)-s.centre[1])/s.radius[1])
		switch {
		case r > 1.3 && math.Abs(float64(f)-200) > 1:
			t.Fatalf("agarose at (%d, %d): %v, want 200", y, x, f)
		case r >= 1:
			continue
		case r < 0.3 && f > 1300:
			tracts++
		case r < 0.3 && f > 500:
			grey++
		}
		if f < 400 && r < 0.9 {
			vessels++
		}
		sum[int(100*r)] += float64(f)
		n[int(100*r)]++
	}
	mean := func(r int) float64 { return sum[r] / n[r] }
	if one, four, five, white := mean(94), mean(80), mean(73), mean(57); one > 0.85*four || five > 0.95*four || white < 1.3*four {
		t.Errorf("layer I %.0f, IV %.0f, V %.0f, white matter %.0f: want them told apart", one, four, five, white)
	}
	if part := float64(vessels) / float64(len(v)); part < 0.002 || part > 0.08 {
		t.Errorf("%.2f %% of the voxels are vessels, want some", 100*part)
	}
	if part := float64(tracts) / float64(tracts+grey); part < 0.05 || part > 0.6 {
		t.Errorf("%.0f %% of the deep grey matter are tracts, want some", 100*part)
	}
}
