package consensus

import (
	"math"
	"slices"
)

// Grid describes where tiles are expected: tile t at row Row[t] and column Column[t] of one of several mosaics.
type Grid struct {
	Places      [][2]float64 // by tile: where it is expected, (y, x) in px; nil: at its row and column times Expected
	Row, Column []int        // by tile
	Mosaic      []int        // by tile
	Expected    Steps        // displacements (y, x) in px of neighbouring tiles
	Shape       [2]int       // rows and columns of the largest mosaic
}

// Measured is a displacement (y, x) in px of tile B from tile A with its precision in 1/px².
type Measured struct {
	A, B int
	D    [2]float64
	P    Sym
	Sure bool // says enough to be believed alone
	Weak bool // says too little to hold a tile alone along a direction
}

// Arrangement is where the tiles of mosaics lie.
type Arrangement struct {
	*Fit
	Model    Model
	Expected [][2]float64 // by tile: where the model of the stage puts it, (y, x) in px
}

// Place returns the place (y, x) in px of a tile.
func (a *Arrangement) Place(t int) [2]float64 {
	return [2]float64{a.Expected[t][0] + a.R[t][0], a.Expected[t][1] + a.R[t][1]}
}

// unheld returns the place of a tile by the links alone.
func (a *Arrangement) unheld(t int) [2]float64 {
	return [2]float64{a.Expected[t][0] + a.free[t][0], a.Expected[t][1] + a.free[t][1]}
}

// Displacement returns the displacement of tile b from tile a.
func (a *Arrangement) Displacement(s, t int) [2]float64 {
	p, q := a.Place(s), a.Place(t)
	return [2]float64{q[0] - p[0], q[1] - p[1]}
}

// Arrange places all tiles at once. Links place the tiles that they connect; a model of the microscope's stage, fitted
// to those tiles, places all others. most is the maximum standard deviation of a tile from the model in px. Each held
// pair of tiles keeps the displacement that the model gives it.
func Arrange(g *Grid, all []Measured, held [][2]int, most float64) *Arrangement {
	n := len(g.Row)
	lattice := g.places()
	var bound []Link
	for _, h := range held {
		bound = append(bound, Link{A: h[0], B: h[1]})
	}
	a := &Arrangement{Model: Model{Matrix: [2][2]float64{{1, 0}, {0, 1}}}, Expected: lattice}
	for pass := range passes {
		a.Fit = Robust(n, a.links(all), bound, most)
		if pass > 1 {
			a.free = a.R
		}
		before := a.Expected
		a.fitModel(g, lattice)
		if g.Places != nil && a.differ(all) > worthwhile*differOf(before, a, all) {
			a.Expected = before
			break
		}
	}
	a.Fit = Robust(n, a.links(all), bound, most)
	return a
}

// Add adds the tiles of a mosaic, row by row.
func (g *Grid) Add(rows, columns int) {
	mosaic := 0
	if n := len(g.Mosaic); n > 0 {
		mosaic = g.Mosaic[n-1] + 1
	}
	for t := range rows * columns {
		g.Row, g.Column, g.Mosaic = append(g.Row, t/columns), append(g.Column, t%columns), append(g.Mosaic, mosaic)
	}
	g.Shape = [2]int{max(g.Shape[0], rows), max(g.Shape[1], columns)}
}

// places returns where the tiles are expected.
func (g *Grid) places() [][2]float64 {
	if g.Places != nil {
		return g.Places
	}
	out := make([][2]float64, len(g.Row))
	for t := range out {
		for k := range 2 {
			out[t][k] = float64(g.Row[t])*g.Expected[0][k] + float64(g.Column[t])*g.Expected[1][k]
		}
	}
	return out
}

// Residuals returns by how far in px the tiles lie from where they were expected, up to a shift of all.
func (a *Arrangement) Residuals(g *Grid) [][2]float64 {
	out := slices.Clone(g.places())
	var mean [2]float64
	for t, e := range out {
		p := a.Place(t)
		out[t] = [2]float64{p[0] - e[0], p[1] - e[1]}
		for k := range 2 {
			mean[k] += out[t][k] / float64(len(out))
		}
	}
	for t := range out {
		for k := range 2 {
			out[t][k] -= mean[k]
		}
	}
	return out
}

// worthwhile is the part of their differences from given places that a model must leave of links to correct these.
const worthwhile = 0.9

// differ returns the variance in px² of the differences between the good links and the expected displacements.
func (a *Arrangement) differ(all []Measured) float64 { return differOf(a.Expected, a, all) }

func differOf(expected [][2]float64, a *Arrangement, all []Measured) float64 {
	var far []float64
	for i, m := range all {
		if e, f := expected[m.A], expected[m.B]; !a.Bad[i] {
			far = append(far, math.Hypot(m.D[0]-f[0]+e[0], m.D[1]-f[1]+e[1]))
		}
	}
	return variance(far)
}

// leastPlaced is the number of tiles from which on they correct places that were given.
const leastPlaced = 8

// passes is the number of times that the model is fitted: tiles deviate the less from it the better it is.
const passes = 5

// links returns the measured displacements relative to the expected ones.
func (a *Arrangement) links(all []Measured) []Link {
	out := make([]Link, len(all))
	for i, m := range all {
		e, f := a.Expected[m.A], a.Expected[m.B]
		out[i] = Link{A: m.A, B: m.B, P: m.P, Sure: m.Sure, Weak: m.Weak, D: [2]float64{m.D[0] - f[0] + e[0], m.D[1] - f[1] + e[1]}}
	}
	return out
}

// fitModel fits the model to the tiles that links connect, and updates the expected positions of all tiles.
func (a *Arrangement) fitModel(g *Grid, lattice [][2]float64) {
	var tiles []Placed
	row, column := make([]int, len(lattice)), make([]int, len(lattice))
	for t := range lattice {
		row[t], column[t] = -1, -1
		if a.Connected(t) > 1 {
			tiles = append(tiles, Placed{Group: a.group[t], Row: g.Row[t], Expected: lattice[t], Place: a.unheld(t)})
		}
	}
	if len(tiles) == 0 || g.Places != nil && len(tiles) < leastPlaced {
		return
	}
	a.Model = FitModel(tiles, g.Shape[0] > 3 && g.Places == nil)
	places := make([][2]float64, len(lattice))
	for t := range places {
		places[t] = a.unheld(t)
	}
	expected := make([][2]float64, len(lattice))
	for t := range expected {
		side := 1 - 2*float64(g.Row[t]%2)
		for k := range 2 {
			expected[t][k] = a.Model.Matrix[k][0]*lattice[t][0] + a.Model.Matrix[k][1]*lattice[t][1] + a.Model.Backlash[k]*side
		}
	}
	a.Expected = expected
	if g.Places != nil {
		return // rows and columns lie where they were said to
	}
	r := make([][2]float64, len(lattice))
	for t := range r {
		if a.Connected(t) > 1 {
			row[t], column[t] = g.Mosaic[t]*g.Shape[0]+g.Row[t], g.Mosaic[t]*g.Shape[1]+g.Column[t]
		}
		for k := range 2 {
			r[t][k] = places[t][k] - expected[t][k]
		}
	}
	centre(r, a.group)
	mosaics := 1 + max(g.Mosaic[len(g.Mosaic)-1], 0)
	rows := Lines(r, row, mosaics*g.Shape[0])
	for t := range r {
		l := g.Mosaic[t]*g.Shape[0] + g.Row[t]
		for k := range 2 {
			expected[t][k] += rows[l][k]
			r[t][k] -= rows[l][k]
		}
	}
	columns := Lines(r, column, mosaics*g.Shape[1])
	for t := range r {
		l := g.Mosaic[t]*g.Shape[1] + g.Column[t]
		for k := range 2 {
			expected[t][k] += columns[l][k]
		}
	}
}

// Scatter returns the standard deviation along an axis, in px, of the good links from the model of the stage.
func (a *Arrangement) Scatter(all []Measured) float64 {
	sum, n := 0.0, 0.0
	for i, l := range a.links(all) {
		if !a.Bad[i] {
			sum += l.D[0]*l.D[0] + l.D[1]*l.D[1]
			n += 2
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / n)
}
