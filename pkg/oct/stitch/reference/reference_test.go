package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/oct/stitch/consensus"
)

func TestEmpty(t *testing.T) {
	plane := make([]float32, 100)
	for i := range 10 {
		plane[i] = 1
	}
	if Empty(plane) {
		t.Error("a plane with a tenth of content is empty")
	}
	plane[9] = float32(math.NaN())
	if !Empty(plane) || !Empty(nil) {
		t.Error("a plane with less, or without pixels, is not empty")
	}
}

func TestShift(t *testing.T) {
	const ny, nx, dy, dx = 20, 60, -3, 11
	rng := rand.New(rand.NewPCG(1, 2))
	picture := make([]float32, (ny+3)*(nx+11))
	for i := range picture {
		picture[i] = rng.Float32()
	}
	a, b := filter.Crop(picture, nx+dx, [2]int{3, 0}, ny, nx), filter.Crop(picture, nx+dx, [2]int{0, 11}, ny, nx)
	d, c, ok := Shift(filter.NewPhase(), a, b, ny, nx)
	if !ok || math.Hypot(d[0]-dy, d[1]-dx) > 0.1 || c < 0.999999 {
		t.Errorf("%v, correlation %v, %v", d, c, ok)
	}
	if _, _, ok := Shift(filter.NewPhase(), make([]float32, ny*nx), b, ny, nx); ok {
		t.Error("a constant plane has a displacement")
	}
}

// A wrong pair counts like the others.
func TestPool(t *testing.T) {
	mean, count, spread := Pool([]Pair{{0, [2]float64{100, 1}}, {0, [2]float64{104, 3}}, {1, [2]float64{-2, 90}}, {1, [2]float64{-2, 90}}, {1, [2]float64{1, 120}}})
	if want := (consensus.Steps{{102, 2}, {-1, 100}}); mean != want || count != [2]int{2, 3} {
		t.Errorf("%v of %v pairs, want %v", mean, count, want)
	}
	// 2·(2² + 1²) + 2·(1² + 10²) + (2² + 20²), over two axes of five pairs
	if want := math.Sqrt(616.0 / 10); math.Abs(spread-want) > 1e-12 {
		t.Errorf("spread %v, want %v", spread, want)
	}
	if _, count, spread := Pool(nil); count != [2]int{} || spread != 0 {
		t.Errorf("%v, %v of nothing", count, spread)
	}
}
