package interpolate

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
)

// morphed makes planes between the two ends of a gap. Each is moved part of the way to the other, and both are mixed.
type morphed struct {
	p    *Plan
	fill [2]float32 // beyond the edges of the two planes
	full bool       // both planes are above 0 everywhere: distances do not count
	taps []float32
}

// distanceSigma is the standard deviation of the Gaussian that smooths distances, in pixels.
const distanceSigma = 2

func (p *Plan) morphed() *morphed {
	m := &morphed{p: p, full: true}
	for i, v := range p.ends {
		inside := positive(v)
		m.full = m.full && len(inside) == len(v)
		if len(inside) > 0 {
			m.fill[i] = float32(filter.Percentiles(inside, 1)[0])
		}
	}
	for _, k := range filter.GaussianKernel(distanceSigma, 0) {
		m.taps = append(m.taps, float32(k))
	}
	return m
}

// weighted reports whether distances from the edges count.
func (m *morphed) weighted() bool { return m.p.Blend == Gaussian && !m.full }

// Scratch returns the size of a box of one moved plane, or of two whole planes, their weights and distances.
func (m *morphed) Scratch(shape [3]int) int {
	if !m.weighted() {
		return mem.Product(4, shape[1], shape[2])
	}
	return mem.Product(4, 5, m.p.Shape[1], m.p.Shape[2])
}

// warp writes rows y0 … y1−1 of columns x0 … x1−1 of an end of the gap as it is at alpha.
func (m *morphed) warp(dst []float32, end int, alpha float64, y0, y1, x0, x1 int) {
	if end == 1 {
		alpha--
	}
	a, _ := m.p.Found.Map.Power(alpha)
	if alpha == 0 { // exactly, whatever the map
		a = filter.Identity(a.C)
	}
	a.Resample(dst, m.p.ends[end], m.p.Shape[1], m.p.Shape[2], y0, y1, x0, x1, m.fill[end])
}

// Read makes a box of the volume.
func (m *morphed) Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	ny, nx, area := m.p.Shape[1], m.p.Shape[2], shape[1]*shape[2]
	floats := dtype.Slice[float32](scratch)
	for z := range shape[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, box := alpha(start[0]+z, m.p.Shape[0]), dst[z*area:][:area]
		if !m.weighted() {
			a := floats[:area]
			m.warp(box, 0, t, start[1], start[1]+shape[1], start[2], start[2]+shape[2])
			m.warp(a, 1, t, start[1], start[1]+shape[1], start[2], start[2]+shape[2])
			for i, v := range box {
				box[i] = float32(float64((1-t)*float64(v)) + float64(t*float64(a[i])))
			}
			continue
		}
		b, a := floats[:ny*nx], floats[ny*nx:2*ny*nx]
		m.warp(b, 0, t, 0, ny, 0, nx)
		m.warp(a, 1, t, 0, ny, 0, nx)
		m.mix(b, a, t, floats[2*ny*nx:])
		for y := range shape[1] {
			copy(box[y*shape[2]:][:shape[2]], b[(start[1]+y)*nx+start[2]:])
		}
	}
	return nil
}

// mix mixes two whole planes into the first. A pixel above 0 in both is weighted by its smoothed distance from the
// pixels that are not; above 0 in one only, it counts with that plane's part, so that the rim fades.
func (m *morphed) mix(b, a []float32, t float64, spare []float32) {
	ny, nx := m.p.Shape[1], m.p.Shape[2]
	n := ny * nx
	wb, wa, distances := spare[:n], spare[n:2*n], spare[2*n:3*n]
	inB, inA := m.distances(wb, b, distances), m.distances(wa, a, distances)
	if !inB || !inA { // distances of a plane that is above 0 everywhere are those of the other on average
		switch {
		case inB:
			constant(wa, wb)
		case inA:
			constant(wb, wa)
		default:
			constant(wb, nil)
			constant(wa, nil)
		}
	}
	for i := range n {
		u, v := float64(b[i]), float64(a[i])
		switch {
		case u > 0 && v > 0:
			p, q := (1-t)*float64(wb[i]), t*float64(wa[i])
			b[i] = float32((float64(p*u) + float64(q*v)) / (p + q + 1e-10))
		case u > 0:
			b[i] = float32((1 - t) * u)
		case v > 0:
			b[i] = float32(t * v)
		case u != u || v != v:
			b[i] = float32(u + v)
		default:
			b[i] = 0
		}
	}
}

// distances writes smoothed distances of a plane; false if it is above 0 everywhere.
func (m *morphed) distances(dst, v, spare []float32) bool {
	if !filter.Distance(spare, v, m.p.Shape[1], m.p.Shape[2]) {
		return false
	}
	filter.Separable(dst, spare, m.p.Shape[1], m.p.Shape[2], m.taps)
	return true
}

// constant sets all weights in dst to the mean of the positive values of others, or to 1 if there are none.
func constant(dst, others []float32) {
	sum, n := 0.0, 0
	for _, w := range others {
		if w > 0 {
			sum, n = sum+float64(w), n+1
		}
	}
	value := float32(1)
	if n > 0 {
		value = float32(sum / float64(n))
	}
	for i := range dst {
		dst[i] = value
	}
}
