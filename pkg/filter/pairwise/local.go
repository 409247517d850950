package pairwise

import "math"

// localMean subtracts local means from planes. It serves one caller at a time.
type localMean struct {
	ny, nx  int
	bands   bands
	planes  [ofMeans][]float32 // sums of both planes and of the pixels that count
	sums    []float64          // of all columns
	counted bool               // planes[2] belongs to the pixels that counted last
}

// boxes is the number of box filters in a row that make a local mean, and reach how far each extends on either side:
// together their deviation is [shading].
const boxes = 2

var reach = int(math.Round((math.Sqrt(12*shading*shading/boxes+1) - 1) / 2))

// ofMeans is the number of planes that a localMean needs memory for.
const ofMeans = 3

func newLocalMean(ny, nx int, b bands, memory []float32) localMean {
	m := localMean{ny: ny, nx: nx, bands: b, sums: make([]float64, nx)}
	for i := range m.planes {
		m.planes[i] = memory[i*ny*nx:][:ny*nx]
	}
	return m
}

// take subtracts from f and w their means over the pixels around that count, which both tells by 1 and 0; same tells
// that these are as they were. Pixels that do not count are 0 before and NaN after. scratch has the size of a plane.
func (m *localMean) take(f, w, both, scratch []float32, same bool) error {
	for i, v := range [][]float32{f, w, both} {
		if i == 2 && same && m.counted {
			continue
		}
		for range boxes {
			if err := m.bands.share(m.ny, func(y0, y1 int) { m.rows(scratch, v, y0, y1) }); err != nil {
				return err
			}
			v = m.planes[i]
			if err := m.bands.share(m.nx, func(x0, x1 int) { m.columns(v, scratch, x0, x1) }); err != nil {
				return err
			}
		}
	}
	m.counted = true
	return m.bands.share(m.ny, func(y0, y1 int) {
		from, to := y0*m.nx, y1*m.nx
		a, b, n := m.planes[0][from:to], m.planes[1][from:to], m.planes[2][from:to]
		subtractMeans(f[from:to], a, n, both[from:to])
		subtractMeans(w[from:to], b, n, both[from:to])
	})
}

// subtractMeans takes sum/count from each pixel of v that is known (1), and makes NaN of the others (0).
func subtractMeans(v, sum, count, known []float32) {
	for i := subtractVector(v, sum, count, known); i < len(v); i++ {
		if known[i] == 0 {
			v[i] = nan
		} else {
			v[i] -= sum[i] / count[i]
		}
	}
}

// rows sets each pixel of dst in rows y0 to y1−1 to the sum of those around it in its row of src.
func (m *localMean) rows(dst, src []float32, y0, y1 int) {
	n := m.nx
	y := y0
	for ; y+4 <= y1; y += 4 { // four sums that do not wait for each other
		sumRows(dst[y*n:][:4*n], src[y*n:][:4*n], n)
	}
	for ; y < y1; y++ {
		sumRow(dst[y*n:][:n], src[y*n:][:n])
	}
}

// sumRow sums the pixels around each one of a row.
func sumRow(dst, src []float32) {
	sum := 0.0
	for x := range min(reach, len(src)) {
		sum += float64(src[x])
	}
	for x := range src {
		if x+reach < len(src) {
			sum += float64(src[x+reach])
		}
		if x > reach {
			sum -= float64(src[x-reach-1])
		}
		dst[x] = float32(sum)
	}
}

// sumRows does four rows of n pixels as sumRow does one.
func sumRows(dst, src []float32, n int) {
	if n < 2*reach+2 {
		for i := range 4 {
			sumRow(dst[i*n:][:n], src[i*n:][:n])
		}
		return
	}
	a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
	e, f, g, h := dst[:n], dst[n:][:n], dst[2*n:][:n], dst[3*n:][:n]
	var p, q, r, s float64
	add := func(x int) {
		p, q, r, s = p+float64(a[x]), q+float64(b[x]), r+float64(c[x]), s+float64(d[x])
	}
	for x := range reach {
		add(x)
	}
	for x := range reach + 1 {
		add(x + reach)
		e[x], f[x], g[x], h[x] = float32(p), float32(q), float32(r), float32(s)
	}
	in, out := 2*reach+1, 0
	for x := reach + 1; in < n; x++ {
		p = p + float64(a[in]) - float64(a[out])
		q = q + float64(b[in]) - float64(b[out])
		r = r + float64(c[in]) - float64(c[out])
		s = s + float64(d[in]) - float64(d[out])
		e[x], f[x], g[x], h[x] = float32(p), float32(q), float32(r), float32(s)
		in++
		out++
	}
	for x := n - reach; x < n; x++ {
		p, q, r, s = p-float64(a[out]), q-float64(b[out]), r-float64(c[out]), s-float64(d[out])
		e[x], f[x], g[x], h[x] = float32(p), float32(q), float32(r), float32(s)
		out++
	}
}

// columns sets each pixel of dst in columns x0 to x1−1 to the sum of those around it in its column of src.
func (m *localMean) columns(dst, src []float32, x0, x1 int) {
	sums := m.sums[x0:x1]
	clear(sums)
	row := func(y int) []float32 { return src[y*m.nx+x0:][:len(sums)] }
	for y := range min(reach, m.ny) {
		for x, f := range row(y) {
			sums[x] += float64(f)
		}
	}
	for y := range m.ny {
		out := dst[y*m.nx+x0:][:len(sums)]
		switch in, old := y+reach < m.ny, y > reach; {
		case in && old:
			slide(out, sums, row(y+reach), row(y-reach-1))
		case in:
			f := row(y + reach)
			for x, s := range sums {
				s += float64(f[x])
				sums[x], out[x] = s, float32(s)
			}
		case old:
			g := row(y - reach - 1)
			for x, s := range sums {
				s -= float64(g[x])
				sums[x], out[x] = s, float32(s)
			}
		default:
			for x, s := range sums {
				out[x] = float32(s)
			}
		}
	}
}

// slide adds to sums what comes in and takes away what goes out, in this order, and sets dst to them.
func slide(dst []float32, sums []float64, in, out []float32) {
	for x := slideVector(dst, sums, in, out); x < len(sums); x++ {
		s := sums[x] + float64(in[x]) - float64(out[x])
		sums[x], dst[x] = s, float32(s)
	}
}
