package view

import (
	"math"
	"testing"

	"strata/pkg/registration"
	"strata/tests/race"
)

// An overlay lies where a registration puts it, keys move and turn it, and what is saved is the transform of where it
// lies.
func TestPagePlaces(t *testing.T) {
	race.Leave(t)
	const nz, n = 24, 201
	first := func(z, y, x int) int { return (7*z + y + 2*x) % 251 }
	image := func(value func(z, y, x int) int) func(i int) uint8 {
		return func(i int) uint8 { return uint8(value(i/n/n, i/n%n, i%n)) }
	}
	s := spec{axes: "zyx", shape: []int{nz, n, n}, chunks: []int{16, 64, 64}, codec: "zstd:1", scale: []float64{4, 1, 1}}
	for _, c := range []struct {
		name   string
		second func(z, y, x int) int
		placed registration.Placed
	}{
		{"shifted", func(z, y, x int) int { return first(z+2, y+5, x+247) }, registration.Placed{TX: 4, TY: -5, CX: 100, CY: 100, FixedZ: 5, MovingZ: 3}},
		{"turned", func(z, y, x int) int { return first(z+2, 200-x, y) }, registration.Placed{Angle: math.Pi / 2, CX: 100, CY: 100, FixedZ: 5, MovingZ: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := viewer(t, 64<<20, create(t, s, image(first)), create(t, s, image(c.second)))
			v.o.Overlay, v.o.Place = 1, c.placed
			b, _ := browse(t, v, "#at=48,100,100&centre=48,100,100&scale=0.25&window0=0,255&cross=off&mode=flicker")
			b.do("clearInterval(viewer.flicker), viewer.flick = true, viewer.redraw()")
			grey := func(v int) [3]int { // in the overlay's own window, 0 to 250
				g := int(float64(v)*255/250 + 0.5)
				return [3]int{g, g, g}
			}
			for _, d := range []int{-30, -7, 0, 12} {
				at := [3]float64{48, 100 + float64(d), 100 - float64(d)}
				if got, want := b.pixel("xy", at), grey(first(12, 100+d, 100-d)); got != want {
					t.Errorf("xy at %v: %v, want %v", at, got, want)
				}
				if c.placed.Angle == 0 {
					at := [3]float64{48 + 4*float64(d/8), 100, 100 + float64(d)}
					if got, want := b.pixel("xz", at), grey(first(12+d/8, 100, 100+d)); got != want {
						t.Errorf("xz at %v: %v, want %v", at, got, want)
					}
				}
			}
			type transform struct {
				Angle, TX, TY, CX, CY float64
				FixedZ                int `json:"fixed_z"`
				MovingZ               int `json:"moving_z"`
			}
			near := func(what string, want transform) {
				t.Helper()
				got := value[transform](b, "viewer.placement().transform")
				for _, d := range []float64{got.Angle - want.Angle, got.TX - want.TX, got.TY - want.TY, got.CX - want.CX, got.CY - want.CY} {
					if math.Abs(d) > 1e-6 || got.FixedZ != want.FixedZ || got.MovingZ != want.MovingZ {
						t.Errorf("%s: saved as %+v, want %+v", what, got, want)
						return
					}
				}
			}
			p := transform(c.placed)
			near("at first", p)
			b.press("g")
			p.FixedZ++
			near("a plane down", p)
			if c.placed.Angle == 0 {
				b.press("d")
				b.press("w")
				p.TX, p.TY = p.TX-1, p.TY+1
				near("a pixel right and up", p)
				if got, want := b.pixel("xy", [3]float64{48, 99, 101}), grey(first(11, 100, 100)); got != want {
					t.Errorf("moved: %v, want %v", got, want)
				}
			}
			if text := value[string](b, "document.getElementById('placed').textContent"); text == "" {
				t.Error("the page does not say where the overlay lies")
			}
			b.press("u")
			near("put back", transform(c.placed))
			b.shot("place-" + c.name)
		})
	}
}
