package webpage

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Marks stand where the axes say.
func TestChart(t *testing.T) {
	c := &Chart{Title: `a "title" <x>`, XLabel: "<x>", YLabel: "y", Whole: true, Series: []Series{{Name: "n", Joined: true, Points: []Point{{X: 0, Y: -50, Tip: "t<i>p"}, {X: 10, Y: 150}, {X: 4, Y: 37, Bad: true}, {X: 5, Y: math.NaN()}}}}}
	svg := string(c.SVG())
	type tick struct{ at, value float64 }
	read := func(pattern string) (out []tick) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(svg, -1) {
			at, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			v, err := strconv.ParseFloat(strings.Replace(m[2], "−", "-", 1), 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tick{at, v})
		}
		return out
	}
	xs := read(`x="([\d.]+)" y="[\d.]+" text-anchor="middle">([−\d.]+)<`)
	ys := read(`x="51" y="([\d.]+)" text-anchor="end">([−\d.]+)<`)
	if len(xs) < 4 || len(ys) < 3 {
		t.Fatalf("ticks %v, %v in %s", xs, ys, svg)
	}
	scale := func(ticks []tick, v float64) float64 {
		a, b := ticks[0], ticks[len(ticks)-1]
		return a.at + (v-a.value)/(b.value-a.value)*(b.at-a.at)
	}
	circles := regexp.MustCompile(`<circle cx="([\d.]+)" cy="([\d.]+)" r="3.6"`).FindAllStringSubmatch(svg, -1)
	if len(circles) != 3 || strings.Count(svg, `class="ring"`) != 1 {
		t.Fatalf("%d marks in %s", len(circles), svg)
	}
	for i, p := range []Point{{X: 0, Y: -50}, {X: 10, Y: 150}, {X: 4, Y: 37}} {
		x, _ := strconv.ParseFloat(circles[i][1], 64)
		y, _ := strconv.ParseFloat(circles[i][2], 64)
		if math.Abs(x-scale(xs, p.X)) > 0.05 || math.Abs(y+4-scale(ys, p.Y)) > 0.05 {
			t.Errorf("mark of (%v, %v) at (%v, %v), the ticks say (%v, %v)", p.X, p.Y, x, y, scale(xs, p.X), scale(ys, p.Y)-4)
		}
	}
	if strings.Contains(svg, "<x>") || strings.Contains(svg, "<i>") || strings.Contains(svg, "NaN") {
		t.Errorf("%s", svg)
	}
	if (&Chart{Series: []Series{{Points: []Point{{X: math.NaN()}}}}}).SVG() != "" {
		t.Error("a chart of nothing")
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		a, b  float64
		n     int
		whole bool
		want  []float64
	}{
		{0, 1, 5, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{-30, 21, 5, false, []float64{-20, 0, 20}},
		{0.5, 4.2, 10, true, []float64{1, 2, 3, 4}},
		{3, 3, 5, false, nil},
		{0, math.Inf(1), 5, false, nil},
	} {
		if got := Ticks(c.a, c.b, c.n, c.whole); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a := rng.NormFloat64() * math.Exp(rng.NormFloat64()*10)
		b := a + math.Abs(rng.NormFloat64())*math.Exp(rng.NormFloat64()*10)
		n := Ticks(a, b, 5, false)
		if b-a > math.Abs(a)*1e-9 && (len(n) < 2 || len(n) > 7) {
			t.Errorf("%v to %v: %v", a, b, n)
		}
	}
	for _, c := range [][5]float64{{3, 3, 0, 2.5, 3.5}, {0, 0, 1, 0, 1}, {5, 5, 1, 0, 5.5}, {-5, -5, 1, -5.5, 0}, {0, 10, 1, 0, 11}, {0, 10, 0, -1, 11}} {
		if a, b := padded(c[0], c[1], 0.1, c[2] == 1); a != c[3] || b != c[4] {
			t.Errorf("padded %v: %v to %v", c, a, b)
		}
	}
}
