package tilescan

import (
	"archive/zip"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// pictures makes a wheel with a picture of noise.
func pictures(t *testing.T) *Pictures {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("skimage/data/noise.png")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	im := image.NewGray(image.Rect(0, 0, 90, 120))
	for i := range im.Pix {
		im.Pix[i] = uint8(rng.IntN(256))
	}
	im.Set(0, 0, color.White)
	if err := png.Encode(w, im); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Tiles show the picture where the truth says they lie, and every rendering of a scan is the same.
func TestTilesShowWhatTheTruthSays(t *testing.T) {
	all := pictures(t)
	s := Scan{Picture: "noise.png", Tiles: 3, Side: 40, Overlap: 0.25, Jitter: 3, Rotation: 2, Backlash: 4, Seed: 5}
	r, err := s.Render(all)
	if err != nil {
		t.Fatal(err)
	}
	p, err := all.Get("noise.png", 180)
	if err != nil {
		t.Fatal(err)
	}
	if p.H < 180 || p.W < 180 {
		t.Fatalf("a picture of %d × %d", p.H, p.W)
	}
	for tile, at := range r.Places {
		for _, k := range [][2]int{{0, 0}, {17, 33}} {
			got := r.Pixels[(tile/3*40+k[0])*120+tile%3*40+k[1]]
			want := max(floor+p.At(at[0]+float64(k[0]), at[1]+float64(k[1])), 0.001)
			if math.Abs(float64(got-want)) > 1e-5 || !r.Tissue[tile] {
				t.Errorf("tile %d, pixel %v: %v, want %v", tile, k, got, want)
			}
		}
	}
	again, err := s.Render(all)
	if err != nil || !slices.Equal(again.Pixels, r.Pixels) {
		t.Error("the second rendering differs", err)
	}
	if v := p.At(2*2, 2*3); v != p.V[4*p.W+6] {
		t.Errorf("at a pixel %v, not %v", v, p.V[4*p.W+6])
	}
}

// The stage does what it is told.
func TestPlaces(t *testing.T) {
	all := pictures(t)
	for _, c := range []struct {
		scan Scan
		want [2]float64 // of tile (1, 0) from tile (0, 0)
	}{
		{Scan{}, [2]float64{30, 0}},
		{Scan{Backlash: 6}, [2]float64{30, -6}},
		{Scan{Scale: 1.1}, [2]float64{33, 0}},
		{Scan{Rotation: 90}, [2]float64{0, 30}},
	} {
		c.scan.Picture, c.scan.Tiles, c.scan.Side, c.scan.Overlap = "noise.png", 2, 40, 0.25
		r, err := c.scan.Render(all)
		if err != nil {
			t.Fatal(err)
		}
		y, x := r.Places[2][0]-r.Places[0][0], r.Places[2][1]-r.Places[0][1]
		if math.Hypot(y-c.want[0], x-c.want[1]) > 1e-9 {
			t.Errorf("%+v: %g, %g", c.scan, y, x)
		}
	}
	end := Scan{Picture: "noise.png", Tiles: 4, Side: 40, Overlap: 0.25, End: 1}
	r, err := end.Render(all)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, is := range r.Tissue {
		if is {
			n++
		}
	}
	if n < 1 || n > 4 {
		t.Errorf("%d tiles of tissue at the end of a specimen", n)
	}
}

// The common shift does not count, nor do tiles without tissue; one wrong tile does not blame the others.
func TestMisplaced(t *testing.T) {
	scan := &Rendered{Places: [][2]float64{{0, 0}, {0, 90}, {90, 0}, {90, 90}, {180, 0}}, Tissue: []bool{true, true, true, true, false}}
	found := [][2]float64{{7, -3}, {7, 87}, {97, -3}, {100, 91}, {500, 500}}
	rms, wrong, tiles := scan.Misplaced(func(t int) [2]float64 { return found[t] })
	if math.Abs(rms-2.5) > 1e-9 || wrong != 1 || tiles != 4 {
		t.Errorf("%v px, %d of %d tiles wrong; want 2.5 px, 1 of 4", rms, wrong, tiles)
	}
}
