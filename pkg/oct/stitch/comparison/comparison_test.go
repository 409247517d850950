package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/tests/octtest"
)

var ctx = context.Background()

// picked makes an image of two planes of a size, at a translation in voxels of 2 µm, of what a function says.
func picked(t *testing.T, label string, size, at [2]int, value func(z, y, x int) float32) Image {
	t.Helper()
	shape := []int{2, size[0], size[1]}
	v := make([]float32, 2*size[0]*size[1])
	for i := range v {
		v[i] = value(i/(size[0]*size[1]), i/size[1]%size[0]+at[0], i%size[1]+at[1])
	}
	im := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, DType: dtype.Float32, Shape: shape, Chunks: []int{1, 32, 32}, Axes: ngff.SpaceAxes("zyx", "micrometer"),
		Scale: []float64{3, 2, 2}, Translation: []float64{0, float64(2 * at[0]), float64(2 * at[1])}}, v)
	return Image{Label: label, Path: label, Image: im}
}

func resources(mem int64) oct.Resources { return oct.Resources{Workers: 2, Mem: mem} }

// noise is the same for the same voxel.
func noise(z, y, x int) float32 {
	r := rand.New(rand.NewPCG(uint64(z), uint64((y+1000)*10000+x+1000)))
	return float32(100 + 50*r.NormFloat64())
}

// tiles returns the file of places of a grid of tiles, by a function of the nominal place.
func tiles(t *testing.T, grid, tile, origin [2]int, place func(y, x float64) [2]float64) *Places {
	t.Helper()
	type entry struct {
		Tile     [2]int     `json:"tile"`
		Position [2]float64 `json:"position_px"`
		Empty    bool       `json:"empty"`
	}
	var all []entry
	for i := range grid[0] {
		for j := range grid[1] {
			all = append(all, entry{[2]int{i, j}, place(float64(i*tile[0])*0.75, float64(j*tile[1])*0.75), false})
		}
	}
	all[len(all)-1].Empty = true
	b, err := json.Marshal(map[string]any{"voxel_um": [2]float64{2, 2}, "tile_px": tile, "tiles": grid, "origin_px": origin, "positions": all})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPlaces(bytes.NewReader(b), "places.json")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got *float64, want, by float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > by {
		t.Errorf("%s: %v, want %v", what, show(got), want)
	}
}

func show(v *float64) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprint(*v)
}

// The same voxels at another translation are the same, whatever the memory.
func TestSamePlace(t *testing.T) {
	a, b := picked(t, "a", [2]int{70, 90}, [2]int{0, 0}, noise), picked(t, "b", [2]int{60, 80}, [2]int{-3, 20}, noise)
	for _, mem := range []int64{1 << 26, 20 << 10} {
		r, err := Run(ctx, a, b, Defaults(), resources(mem))
		if err != nil {
			t.Fatal(err)
		}
		if r.Plane != 1 || r.Region != (Region{[2]int{0, 20}, [2]int{-3, 20}, [2]int{57, 70}}) || r.Compared != 57*70 {
			t.Errorf("plane %d, %+v, %d pixels", r.Plane, r.Region, r.Compared)
		}
		if r.Difference != (Difference{}) {
			t.Errorf("differs: %+v", r.Difference)
		}
		near(t, "correlation", r.Correlation.All, 1, 0)
		near(t, "structure", r.Structure.All, 1, 0)
		if r.First.Mean != r.Second.Mean || math.Abs(r.First.Mean-100) > 3 || math.Abs(r.First.Std-50) > 3 {
			t.Errorf("%+v %+v", r.First, r.Second)
		}
	}
}

// What is added up by bands of any height is what a straightforward sum over the plane says.
func TestSums(t *testing.T) {
	other := func(z, y, x int) float32 {
		if y > 40 && x > 50 {
			return 0
		}
		return 0.5*noise(z, y, x) + float32(x%7)
	}
	size := [2]int{66, 75}
	a, b := picked(t, "a", size, [2]int{}, noise), picked(t, "b", size, [2]int{}, other)
	opt := Options{Plane: 0, TileStep: 30}
	var n, sa, sb, saa, sbb, sab, abs, most, sobel, columns float64
	for y := range size[0] {
		for x := range size[1] {
			p, q := float64(noise(0, y, x)), float64(other(0, y, x))
			if q == 0 {
				continue
			}
			n, sa, sb, saa, sbb, sab, abs, most = n+1, sa+p, sb+q, saa+p*p, sbb+q*q, sab+p*q, abs+math.Abs(q-p), max(most, math.Abs(q-p))
			if y > 0 && y < size[0]-1 && x > 4 && x < 55 { // the line at 30, 25 to both sides
				v := func(dy, dx int) float64 { return float64(noise(0, y+dy, x+dx)) }
				sobel, columns = sobel+math.Abs(v(-1, 1)+2*v(0, 1)+v(1, 1)-v(-1, -1)-2*v(0, -1)-v(1, -1)), columns+1
			}
		}
	}
	for _, mem := range []int64{1 << 26, 12 << 10} {
		r, err := Run(ctx, a, b, opt, resources(mem))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "correlation", r.Correlation.All, (sab-sa*sb/n)/math.Sqrt((saa-sa*sa/n)*(sbb-sb*sb/n)), 1e-5)
		near(t, "mean", &r.Difference.Mean, abs/n, 1e-3)
		near(t, "max", &r.Difference.Max, most, 1e-3)
		near(t, "bias", &r.Difference.Bias, (sb-sa)/n, 1e-3)
		near(t, "sharpness", r.First.Vertical, sobel/columns, 0.01*sobel/columns) // but for the pixels beside what is 0
		if r.Compared != int64(n) || r.Seams.From != "step" || r.Seams.Step != 30 {
			t.Errorf("%d of %v pixels, %+v", r.Compared, n, r.Seams)
		}
	}
}

// A map of the tiles' places is found again, and seams lie where tiles overlap.
func TestDisplacement(t *testing.T) {
	const scale, turn = 1.02, 0.01
	grid, tile := [2]int{3, 4}, [2]int{40, 40}
	first := tiles(t, grid, tile, [2]int{}, func(y, x float64) [2]float64 { return [2]float64{y, x} })
	second := tiles(t, grid, tile, [2]int{-2, 5}, func(y, x float64) [2]float64 {
		return [2]float64{7 + scale*math.Cos(turn)*y + math.Sin(turn)*x, -4 - scale*math.Sin(turn)*y + math.Cos(turn)*x}
	})
	d, err := displacement(first, second)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "scale y", &d.Fit.ScaleY, scale, 1e-4)
	near(t, "scale x", &d.Fit.ScaleX, 1, 1e-4)
	near(t, "rotation", &d.Fit.Rotation, turn*180/math.Pi, 1e-3)
	near(t, "shear", &d.Fit.Shear, 0, 1e-3)
	near(t, "residual", &d.Fit.Residual, 0, 1e-3)
	if d.Tiles != 11 || d.Max <= d.RMS || d.RMS <= d.Mean || math.Abs(*d.MaxUM-2*d.Max) > 1e-3 {
		t.Errorf("%+v", d)
	}
	same, err := displacement(first, tiles(t, grid, tile, [2]int{}, func(y, x float64) [2]float64 { return [2]float64{y + 3, x - 8} }))
	if err != nil || same.Max > 1e-9 || same.Common != [2]float64{3, -8} {
		t.Errorf("moved as a whole: %+v %v", same, err)
	}
	if _, err := displacement(first, tiles(t, [2]int{3, 3}, tile, [2]int{}, func(y, x float64) [2]float64 { return [2]float64{y, x} })); err == nil || !strings.Contains(err.Error(), "want two stitchings of one mosaic") {
		t.Errorf("another grid: %v", err)
	}
	if s := first.seams(); len(s) != 2*4+3*3-2 || s[0].Rectangle != oct.Rect(30, 40, 0, 40) || s[0].vertical || s[1].Rectangle != oct.Rect(0, 40, 30, 40) {
		t.Errorf("%d seams: %+v", len(s), s)
	}
}

// Overlaps that are blurred are less sharp than the rest, and only there do images differ; the picture frames them.
func TestBlurredSeams(t *testing.T) {
	size := [2]int{100, 100}
	inSeam := func(y, x int) bool {
		return y >= 30 && y < 40 || x >= 30 && x < 40 || y >= 60 && y < 70 || x >= 60 && x < 70
	}
	blurred := func(z, y, x int) float32 {
		if !inSeam(y, x) {
			return noise(z, y, x)
		}
		var sum float32
		for i := range 9 {
			sum += noise(z, y+i/3-1, x+i%3-1)
		}
		return sum / 9
	}
	a, b := picked(t, "sharp", size, [2]int{}, noise), picked(t, "blurred", size, [2]int{}, blurred)
	at := tiles(t, [2]int{3, 3}, [2]int{40, 40}, [2]int{}, func(y, x float64) [2]float64 { return [2]float64{y, x} })
	at.At[[2]int{2, 2}] = [2]float64{60, 60}
	a.Places, b.Places = at, at
	r, err := Run(ctx, a, b, Defaults(), resources(1<<26))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "sharp", r.First.Relative, 1, 0.02)
	if *r.Second.Relative > 0.8 || *r.Correlation.Rest < 1 || *r.Correlation.Seams > 0.7 {
		t.Errorf("blurred: %v, correlation %v in the rest, %v at seams", *r.Second.Relative, *r.Correlation.Rest, *r.Correlation.Seams)
	}
	if want := 1 - 0.64; math.Abs(r.Seams.Share-want) > 1e-9 {
		t.Errorf("seams are %v of the plane, want %v", r.Seams.Share, want)
	}
	var b1 bytes.Buffer
	if err := r.WritePicture(&b1); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b1)
	if err != nil || img.Bounds().Dx() < 3*cell {
		t.Errorf("picture %v: %v", img.Bounds(), err)
	}
}

func TestErrors(t *testing.T) {
	size := [2]int{40, 40}
	a := picked(t, "a", size, [2]int{}, noise)
	for want, b := range map[string]Image{
		"covers nothing of a": picked(t, "b", size, [2]int{40, 0}, noise),
		"shows nothing where": picked(t, "b", size, [2]int{0, 0}, func(_, _, _ int) float32 { return 0 }),
	} {
		if _, err := Run(ctx, a, b, Defaults(), resources(1<<26)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := Run(ctx, a, a, Options{Plane: 2}, resources(1<<26)); err == nil || !strings.Contains(err.Error(), "planes 0 to 1") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{`:  "places.json:1",
		`{}`: "want a file of stitch --save_positions",
		`{"tile_px": [4, 4], "tiles": [1, 1], "positions": [{"tile": [0, 1], "position_px": [0, 0]}]}`:     "want a place in a grid",
		`{"tile_px": [4, 4], "tiles": [1, 1], "positions": [{"tile": [0, 0], "position_px": [0, 1e300]}]}`: "want a place in a grid",
	} {
		if _, err := ReadPlaces(strings.NewReader(text), "places.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
