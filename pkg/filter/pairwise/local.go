package pairwise

import "math"

// localMean subtracts local means from planes. It owns memory and serves one goroutine.
type localMean struct {
	ny, nx int
	planes [3][]float32
	sums   []float64 // of a row or of all columns
	past   []float32 // the rows of a column's window
}

// boxes is the number of box filters in a row that make a local mean, and reach how far each extends on either side: together their
// deviation is [shading].
const boxes = 2

var reach = int(math.Round((math.Sqrt(12*shading*shading/boxes+1) - 1) / 2))

func newLocalMean(ny, nx int) localMean {
	m := localMean{ny: ny, nx: nx, sums: make([]float64, nx)}
	all := make([]float32, 3*ny*nx)
	for i := range m.planes {
		m.planes[i] = all[i*ny*nx:][:ny*nx]
	}
	m.past = make([]float32, (reach+1)*max(nx, 1))
	return m
}

// take subtracts from f and w their means over the pixels around that count, which both tells by 1 and 0. Pixels that do not count
// are 0 before and NaN after.
func (m *localMean) take(f, w, both []float32) {
	for i, v := range [][]float32{f, w, both} {
		copy(m.planes[i], v)
		for range boxes {
			m.rows(m.planes[i])
			m.columns(m.planes[i])
		}
	}
	a, b, n := m.planes[0], m.planes[1], m.planes[2]
	for i, k := range both {
		if k == 0 {
			f[i], w[i] = nan, nan
			continue
		}
		f[i] -= a[i] / n[i]
		w[i] -= b[i] / n[i]
	}
}

// rows replaces each pixel by the sum of those around it in its row.
func (m *localMean) rows(v []float32) {
	line := m.past[:0]
	for y := range m.ny {
		row := v[y*m.nx:][:m.nx]
		line = append(line[:0], row...)
		sum := 0.0
		for x := range min(reach, m.nx) {
			sum += float64(line[x])
		}
		for x := range row {
			if x+reach < m.nx {
				sum += float64(line[x+reach])
			}
			if x > reach {
				sum -= float64(line[x-reach-1])
			}
			row[x] = float32(sum)
		}
	}
}

// columns replaces each pixel by the sum of those around it in its column.
func (m *localMean) columns(v []float32) {
	clear(m.sums)
	add := func(row []float32, sign float64) {
		for x, f := range row {
			m.sums[x] += float64(sign * float64(f))
		}
	}
	for y := range min(reach, m.ny) {
		add(v[y*m.nx:][:m.nx], 1)
	}
	for y := range m.ny {
		row := v[y*m.nx:][:m.nx]
		if y+reach < m.ny {
			add(v[(y+reach)*m.nx:][:m.nx], 1)
		}
		old := m.past[y%(reach+1)*m.nx:][:m.nx] // row y−reach−1, as it was
		if y > reach {
			add(old, -1)
		}
		copy(old, row)
		for x, s := range m.sums {
			row[x] = float32(s)
		}
	}
}
