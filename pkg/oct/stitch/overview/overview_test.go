package overview

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
)

// cut returns tiles of a random picture, with what the detector adds to every tile alike.
func cut(rng *rand.Rand, side int, at [][2]int, columns float64) [][]float32 {
	const n = 400
	picture := make([]float32, n*n)
	for i := range picture {
		picture[i] = 10 * rng.Float32()
	}
	picture = BoxMean(picture, [2]int{n, n}, [2]int{2, 2})
	gain := make([]float32, side)
	for x := range gain {
		gain[x] = float32(1 + columns*rng.NormFloat64())
	}
	var out [][]float32
	for _, p := range at {
		t := filter.Crop(picture, n, p, side, side)
		for i := range t {
			t[i] *= gain[i%side]
		}
		out = append(out, t)
	}
	return out
}

// A neighbour is found wherever it overlaps, whatever was expected, and columns that all tiles share do not vote.
func TestLook(t *testing.T) {
	const side = 96
	for _, columns := range []float64{0, 0.1} {
		for _, step := range []int{60, 76, 90} {
			rng := rand.New(rand.NewPCG(uint64(step), 2))
			var at [][2]int
			for i := range 4 {
				for j := range 4 {
					at = append(at, [2]int{i*step + rng.IntN(5), j*step + rng.IntN(5)})
				}
			}
			o := New([2]int{side, side}, len(at), len(at))
			for k, tile := range cut(rng, side, at, columns) {
				o.Tile[k] = o.Reduce(tile, side)
			}
			if err := Prepare(context.Background(), []*Overview{o}, 2); err != nil {
				t.Fatal(err)
			}
			c := filter.NewCorrelator(o.Size[0], o.Size[1])
			for _, p := range [][2]int{{5, 9}, {5, 6}} {
				expected := [2]float64{76, 0}
				if p[1] == 6 {
					expected = [2]float64{0, 76}
				}
				got, unit := o.Look(c, c.Spectrum(nil, o.Tile[p[0]]), c.Spectrum(nil, o.Tile[p[1]]), o.Region(expected))
				want := [2]float64{float64(at[p[1]][0] - at[p[0]][0]), float64(at[p[1]][1] - at[p[0]][1])}
				if len(got) == 0 || math.Hypot(got[0].D[0]-want[0], got[0].D[1]-want[1]) > 1.5 || o.EvidenceAt(p[0], p[1], want) < 3*unit {
					t.Errorf("columns of %g, step %d, tiles %v: %v, want %v", columns, step, p, got, want)
				}
			}
		}
	}
}

// What is smooth agrees with itself a little way off, as neighbours do there, but does not repeat itself; far away
// neighbours do not agree.
func TestSmoothIsNoAlias(t *testing.T) {
	const side, step, off = 96, 70, 7
	rng := rand.New(rand.NewPCG(6, 6))
	picture := make([]float32, 400*400)
	for i := range picture {
		picture[i] = 10 * rng.Float32()
	}
	for range 3 {
		picture = BoxMean(picture, [2]int{400, 400}, [2]int{7, 7})
	}
	o := New([2]int{side, side}, 16, 16)
	var below [][2]int
	for k := range o.Tile {
		o.Tile[k] = o.Reduce(filter.Crop(picture, 400, [2]int{k / 4 * step, k % 4 * step}, side, side), side)
		if k >= 4 {
			below = append(below, [2]int{k - 4, k})
		}
	}
	if err := Prepare(context.Background(), []*Overview{o}, 2); err != nil {
		t.Fatal(err)
	}
	all, pairs, found := []*Overview{o}, [][][2]int{below}, [2]float64{step + off, 0}
	var themselves [][2]int
	for k := range o.Tile {
		themselves = append(themselves, [2]int{k, k})
	}
	if alone, together := agreement(all, [][][2]int{themselves}, [2]float64{off, 0}, 1), agreement(all, pairs, found, 1); alone < aliasShare*together {
		t.Fatalf("tiles agree with themselves by %.2f and with neighbours by %.2f: nothing to tell apart", alone, together)
	}
	if Alias(all, pairs, found, [2]float64{step, 0}, 1) {
		t.Error("a smooth picture is taken for one that repeats itself")
	}
	const other = 45 // a displacement that shows something else
	if step := [2]float64{step, 0}; !Better(all, pairs, [2]float64{other, 0}, step, 1) || Better(all, pairs, step, [2]float64{other, 0}, 1) {
		t.Error("neighbours agree where they are, and clearly better than far away")
	}
}

// What all tiles show alike is divided out, as far as halves of the tiles agree; texture of their own stays.
func TestPattern(t *testing.T) {
	const side = 64
	rng := rand.New(rand.NewPCG(5, 5))
	o := New([2]int{side, side}, 1, 1)
	for _, columns := range []float64{0.05, 0} {
		p := NewPattern([2]int{side, side})
		var at [][2]int
		for range 24 {
			at = append(at, [2]int{rng.IntN(300), rng.IntN(300)})
		}
		tiles := cut(rng, side, at, columns)
		for _, tile := range tiles {
			p.Add(tile, o.Reduce(tile, side), o.Size)
		}
		inverse := p.Inverse()
		// the spread of the columns' means, before and after
		spread := func(corrected bool) float64 {
			var means []float64
			for x := range side {
				m := 0.0
				for _, tile := range tiles {
					for y := range side {
						f := float64(tile[y*side+x])
						if corrected && inverse != nil {
							f *= float64(inverse[y*side+x])
						}
						m += f / side / float64(len(tiles))
					}
				}
				means = append(means, m)
			}
			s := 0.0
			for x := 1; x < side; x++ {
				s += (means[x] - means[x-1]) * (means[x] - means[x-1])
			}
			return math.Sqrt(s / side)
		}
		before, after := spread(false), spread(true)
		if columns > 0 && after > 0.4*before || columns == 0 && after > 1.1*before {
			t.Errorf("columns of %g: means differ by %.4f, then by %.4f", columns, before, after)
		}
	}
}
