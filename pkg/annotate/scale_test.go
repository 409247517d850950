package annotate

import (
	"image"
	"math"
	"testing"
)

// A bar stands for the largest round length that fits, and is as long as it says.
func TestScaleBar(t *testing.T) {
	for most, want := range map[float64]float64{1: 1, 1.99: 1, 2: 2, 4.9: 2, 5: 5, 9.99: 5, 1000: 1000, 999: 500, 0.3: 0.2} {
		if got := BarLength(most); math.Abs(got-want) > 1e-12*want {
			t.Errorf("bar for at most %v: %v, want %v", most, got, want)
		}
	}
	for _, none := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if bar, ok := NewScaleBar(image.Pt(0, 0), 100, 3, none); ok {
			t.Errorf("pixels of %v µm: %+v", none, bar)
		}
	}
	bar, ok := NewScaleBar(image.Pt(5, 7), 120, 3, 2)
	for length, want := range map[float64]string{0.5: "0.5 µm", 500: "500 µm", 1000: "1 mm", 20000: "20 mm"} {
		if got := (ScaleBar{Length: length}).Label(); got != want {
			t.Errorf("a bar of %v µm: %q, want %q", length, got, want)
		}
	}
	if want := image.Rect(5, 7, 105, 10); !ok || bar.Box != want || bar.Label() != "200 µm" {
		t.Errorf("%+v, %q", bar, bar.Label())
	}
}
