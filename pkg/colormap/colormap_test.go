package colormap

import (
	"image/color"
	"math"
	"testing"
)

// The ends and the middle as published.
func TestColours(t *testing.T) {
	for name, want := range map[string][3][3]uint8{
		"gray":    {{0, 0, 0}, {128, 128, 128}, {255, 255, 255}},
		"viridis": {{68, 1, 84}, {33, 145, 140}, {253, 231, 37}},
		"magma":   {{0, 0, 4}, {183, 55, 121}, {252, 253, 191}},
		"inferno": {{0, 0, 4}, {188, 55, 84}, {252, 255, 164}},
		"plasma":  {{13, 8, 135}, {204, 71, 120}, {240, 249, 33}},
		"turbo":   {{48, 18, 59}, {164, 252, 60}, {122, 4, 3}},
	} {
		m, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range []float64{0, 0.5, 1} {
			if got, w := m.At(v), (color.RGBA{want[i][0], want[i][1], want[i][2], 255}); got != w {
				t.Errorf("%s at %v: %v, want %v", name, v, got, w)
			}
		}
		if m.At(-3) != m[0] || m.At(math.NaN()) != m[0] || m.At(math.Inf(1)) != m[255] || m.At(math.Inf(-1)) != m[0] {
			t.Errorf("%s outside 0…1", name)
		}
	}
}

// All but turbo grow lighter from end to end, which is what makes them legible
// in print and to the colour-blind.
func TestLightness(t *testing.T) {
	for _, name := range Names() {
		m, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		last := -1.0
		for i, c := range m {
			l := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
			if name != "turbo" && l < last-1e-3 {
				t.Errorf("%s: colour %d is darker than the one before", name, i)
			}
			if i > 0 {
				p := m[i-1]
				if max(diff(c.R, p.R), diff(c.G, p.G), diff(c.B, p.B)) > 16 {
					t.Errorf("%s: a step between colours %d and %d", name, i-1, i)
				}
			}
			last = l
		}
	}
	if _, err := ByName("jet"); err == nil {
		t.Error("a colormap that is not there")
	}
	if len(tables)+1 != len(names) {
		t.Error("names and tables differ")
	}
}

func linear(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }

func diff(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
