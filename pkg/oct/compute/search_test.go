package compute

import (
	"fmt"
	"slices"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
)

// Segments tile the axis, and say truly what their windows need.
func TestSegments(t *testing.T) {
	for n := 1; n < 40; n++ {
		for tile := 1; tile <= n; tile += 1 + tile/3 {
			for _, sigma := range []float64{0, 2, 3, 4, 5, 9, 50} {
				s := &filter.InterfaceSearch{SigmaXY: sigma, SigmaZ: 1}
				at := 0
				for _, g := range Segments(s, n, tile) {
					name := fmt.Sprintf("n %d, tile %d, sigma %v: %+v", n, tile, sigma, g)
					w := s.Windows(g.From, g.To, n)
					if g.From != at || g.To <= g.From || g.In0 != slices.Min(w) || g.In1 != slices.Max(w)+1 {
						t.Fatalf("%s: windows cover %v", name, w)
					}
					for i := g.From; i < g.To; i++ {
						if w := s.Windows(i, i+1, n); slices.Min(w)/tile != g.First || slices.Max(w)/tile != g.Last {
							t.Fatalf("%s: output %d needs %v", name, i, w)
						}
					}
					at = g.To
				}
				if at != n {
					t.Fatalf("n %d, tile %d, sigma %v: end at %d", n, tile, sigma, at)
				}
			}
		}
	}
}

// Once the seams are done, workers have their memory: none of it stays idle in the pool.
func TestSeamsDone(t *testing.T) {
	res := machines["host"](t)
	s, err := sourceOf(t, res).NewSearch(filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 1}, res.Mem, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, least := mem.InUse(), s.Plan(6).onHost()
	_, release, err := s.Seam(oct.Rect(16, 48, 0, 96))
	if err != nil || release == nil {
		t.Fatal(err)
	}
	release()
	s.SeamsDone()
	if n := mem.InUse() - before; n != 0 {
		t.Errorf("%d bytes lie idle", n)
	}
	plan := s.Plan(6)
	if each := plan.onHost(); each <= least || each*int64(plan.Most) > res.Mem {
		t.Errorf("%d workers take %d bytes each of %d, %d before", plan.Most, each, res.Mem, least)
	}
}
