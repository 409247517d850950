package consensus

import "math"

// Model is how a stage moves: a matrix that acts on the places where tiles are expected, and what it adds to all tiles
// of a row or of a column.
type Model struct {
	Matrix    [2][2]float64 // acts on (y, x)
	Backlash  [2]float64    // added to even rows and subtracted from odd ones, (y, x) in px
	Deviation float64       // standard deviation of tiles from the model, px along an axis
}

// Placed is a tile whose place was found.
type Placed struct {
	Group    int        // of tiles that links connect: only within it are distances known
	Row      int        // of the grid
	Expected [2]float64 // place (y, x) in px
	Place    [2]float64 // as found
}

const (
	// alike and square are the standard deviations of the difference of the axes' scales and directions.
	alike, square = 0.02, 2 * math.Pi / 180
	// usual is the standard deviation of scale and direction.
	usual = 0.1
	// leastDeviation is the least standard deviation of tiles from the model, px.
	leastDeviation = 0.3
	// startDeviation is what the deviation is thought to be, in px, until more than a few tiles say more.
	startDeviation, few = 2, 4
	// terms is the number of unknowns: the matrix by rows, and the backlash.
	terms = 6
)

// FitModel fits a model to the tiles that were found, robustly (Huber's estimator). It assumes that both axes are
// alike within 2 % and square within 2°, to which the tiles give the more weight the more there are and the farther
// apart. serpentine also fits a backlash: rows that the stage scans from left to right against those from right to
// left.
func FitModel(tiles []Placed, serpentine bool) Model {
	m := Model{Matrix: [2][2]float64{{1, 0}, {0, 1}}, Deviation: startDeviation}
	centred := centredOf(tiles)
	weight := make([]float64, len(tiles))
	for i := range weight {
		weight[i] = 1
	}
	for range 8 {
		m = fitWeighted(centred, weight, m.Deviation, serpentine)
		var far []float64
		for i := range centred {
			far = append(far, centred[i].misfit(&m))
		}
		n := float64(len(far))
		m.Deviation = max(leastDeviation, math.Sqrt((few*startDeviation*startDeviation+n*variance(far))/(few+n)))
		for i, d := range far {
			weight[i] = min(1, 2.5*m.Deviation/math.Max(d, 1e-9))
		}
	}
	return m
}

// centredTile is a tile relative to the means of its group.
type centredTile struct {
	expected, place [2]float64
	side            float64 // 1 in even rows and −1 in odd ones, less its mean
}

func centredOf(tiles []Placed) []centredTile {
	sums, count := map[int]centredTile{}, map[int]float64{}
	side := func(t *Placed) float64 { return 1 - 2*float64(t.Row%2) }
	for i := range tiles {
		t := &tiles[i]
		s := sums[t.Group]
		for k := range 2 {
			s.expected[k] += t.Expected[k]
			s.place[k] += t.Place[k]
		}
		s.side += side(t)
		sums[t.Group] = s
		count[t.Group]++
	}
	out := make([]centredTile, len(tiles))
	for i := range tiles {
		t := &tiles[i]
		s, n := sums[t.Group], count[t.Group]
		out[i].side = side(t) - s.side/n
		for k := range 2 {
			out[i].expected[k] = t.Expected[k] - s.expected[k]/n
			out[i].place[k] = t.Place[k] - s.place[k]/n
		}
	}
	return out
}

func (t *centredTile) misfit(m *Model) float64 {
	var d [2]float64
	for k := range 2 {
		d[k] = t.place[k] - m.Matrix[k][0]*t.expected[0] - m.Matrix[k][1]*t.expected[1] - m.Backlash[k]*t.side
	}
	return math.Hypot(d[0], d[1])
}

// fitWeighted solves the normal equations of tiles and assumptions.
func fitWeighted(tiles []centredTile, weight []float64, deviation float64, serpentine bool) (m Model) {
	var a [terms][terms]float64
	var b [terms]float64
	add := func(row [terms]float64, value, w float64) {
		for i, u := range row {
			for k, v := range row {
				a[i][k] += w * u * v
			}
			b[i] += w * u * value
		}
	}
	for i := range tiles {
		t := &tiles[i]
		w := weight[i] / (deviation * deviation)
		s := t.side
		if !serpentine {
			s = 0
		}
		add([terms]float64{t.expected[0], t.expected[1], 0, 0, s, 0}, t.place[0], w)
		add([terms]float64{0, 0, t.expected[0], t.expected[1], 0, s}, t.place[1], w)
	}
	add([terms]float64{1, 0, 0, -1}, 0, 1/(alike*alike))
	add([terms]float64{0, 1, 1, 0}, 0, 1/(square*square))
	add([terms]float64{1, 0, 0, 0}, 1, 1/(usual*usual))
	add([terms]float64{0, 0, 0, 1}, 1, 1/(usual*usual))
	add([terms]float64{0, 1, 0, 0}, 0, 1/(usual*usual))
	add([terms]float64{0, 0, 1, 0}, 0, 1/(usual*usual))
	for k := 4; k < terms; k++ {
		a[k][k] += 0.1 / (deviation * deviation) // a tenth of a tile says that there is none
	}
	x := eliminate(a, b)
	m.Matrix = [2][2]float64{{x[0], x[1]}, {x[2], x[3]}}
	m.Backlash = [2]float64{x[4], x[5]}
	return m
}

// eliminate solves a system with a positive definite matrix.
func eliminate(a [terms][terms]float64, b [terms]float64) [terms]float64 {
	for c := range terms {
		for r := c + 1; r < terms; r++ {
			f := a[r][c] / a[c][c]
			for k := c; k < terms; k++ {
				a[r][k] -= f * a[c][k]
			}
			b[r] -= f * b[c]
		}
	}
	for c := terms - 1; c >= 0; c-- {
		for k := c + 1; k < terms; k++ {
			b[c] -= a[c][k] * b[k]
		}
		b[c] /= a[c][c]
	}
	return b
}

// Lines returns what all tiles of a line of the grid (a row or a column) have in common: the means of their deviations
// r, the less the more they differ within a line and the fewer there are. line is the line of each tile, or −1 for a
// tile that does not count.
func Lines(r [][2]float64, line []int, lines int) [][2]float64 {
	out, count := make([][2]float64, lines), make([]float64, lines)
	for t, l := range line {
		if l >= 0 {
			out[l] = [2]float64{out[l][0] + r[t][0], out[l][1] + r[t][1]}
			count[l]++
		}
	}
	for k := range 2 {
		within, n, between, used := 0.0, 0.0, 0.0, 0.0
		for l := range out {
			if count[l] > 0 {
				out[l][k] /= count[l]
			}
		}
		for t, l := range line {
			if l >= 0 && count[l] > 1 {
				d := r[t][k] - out[l][k]
				within += d * d
				n += 1 - 1/count[l]
			}
		}
		if n > 0 {
			within /= n
		}
		for l := range out {
			if count[l] > 0 {
				between += out[l][k]*out[l][k] - within/count[l]
				used++
			}
		}
		between = max(between/max(used, 1), 0)
		for l := range out {
			if v := between + within/max(count[l], 1); count[l] > 1 && v > 0 {
				out[l][k] *= between / v
			} else {
				out[l][k] = 0
			}
		}
	}
	return out
}
