package consensus

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Backlash is no shear, a row that slipped no rotation: the matrix of the stage comes back, and tiles that no pair
// shows lie where their row and the matrix put them.
func TestArrangeFindsTheStage(t *testing.T) {
	const n = 6
	for _, c := range []struct {
		name           string
		backlash, slip float64
		limit          float64 // px
	}{{"a good stage", 0, 0, 1}, {"backlash", 6, 0, 1}, {"a row that slipped", 0, 15, 2.5}} {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 9))
			matrix := [2][2]float64{{1.01, -0.012}, {0.012, 1.01}}
			g := &Grid{Expected: Steps{{200, 0}, {0, 200}}}
			g.Add(n, n)
			truth := scattered(rng, n*n, 0.3)
			for t := range truth {
				y, x := 200*float64(g.Row[t]), 200*float64(g.Column[t])
				truth[t][0] += matrix[0][0]*y + matrix[0][1]*x
				truth[t][1] += matrix[1][0]*y + matrix[1][1]*x + c.backlash/2*(1-2*float64(g.Row[t]%2))
				if g.Row[t] == 3 {
					truth[t][1] += c.slip
				}
			}
			silent := 20 // in the row that slipped
			var all []Measured
			neighbours(n, n, func(a, b, _ int) {
				if a != silent && b != silent {
					all = append(all, Measured{A: a, B: b, P: Diagonal(400), D: [2]float64{truth[b][0] - truth[a][0] + 0.05*rng.NormFloat64(), truth[b][1] - truth[a][1] + 0.05*rng.NormFloat64()}})
				}
			})
			a := Arrange(g, all, nil, 10)
			places := make([][2]float64, n*n)
			for t := range places {
				places[t] = a.Place(t)
			}
			if e := worst(places, truth); e > c.limit {
				t.Errorf("%s, seed %d: off by %.2f px", c.name, seed, e)
			}
			for i := range matrix {
				for k := range matrix[i] {
					if d := a.Model.Matrix[i][k] - matrix[i][k]; math.Abs(d) > 0.003+c.slip*0.0005 {
						t.Errorf("%s, seed %d: matrix %.4f, want %.4f", c.name, seed, a.Model.Matrix, matrix)
					}
				}
			}
			if d := a.Model.Backlash[1] - c.backlash/2; c.slip == 0 && math.Abs(d) > 0.3 {
				t.Errorf("%s, seed %d: backlash %.2f px", c.name, seed, a.Model.Backlash)
			}
		}
	}
}

// Pairs that contradict each other by pixels do not correct places that were given.
func TestArrangeKeepsGivenPlaces(t *testing.T) {
	const n = 8
	rng := rand.New(rand.NewPCG(4, 4))
	g := &Grid{Expected: Steps{{90, 0}, {0, 90}}}
	g.Add(n, n)
	g.Places = g.places()
	var all []Measured
	neighbours(n, n, func(a, b, _ int) {
		p, q := g.Places[a], g.Places[b]
		all = append(all, Measured{A: a, B: b, P: Diagonal(400), D: [2]float64{q[0] - p[0] + 5*rng.NormFloat64(), q[1] - p[1] + 5*rng.NormFloat64()}})
	})
	a := Arrange(g, all, nil, 20)
	if e := worst(a.Residuals(g), make([][2]float64, n*n)); e > 2.5 || a.Noise < 50 {
		t.Errorf("moved by up to %.2f px, noise %.1f times what is stated", e, a.Noise)
	}
}
