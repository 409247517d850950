package basic

import "math"

// evenness carries a round through its first steps, in which μ is so small that R stays 0: Y is then a sum of multiples
// of I and of S·B with B as it began, Y = α·I − β·B, so that no step needs the images.
type evenness struct {
	level    []float64  // Ī = ΣI/ΣB, pixels
	distance []float64  // the largest |I − Ī·B| of each pixel
	lean     []float64  // ΣB·(I − Ī·B)
	square   float64    // ‖I − Ī·B‖²
	bright   float64    // the largest B
	all      [2]float64 // ΣB, ΣB²

	alpha float64
	beta  []float64
	over  bool
}

// newEvenness surveys the images. B must be as rounds begin.
func (f *fit) newEvenness() *evenness {
	e := &evenness{level: make([]float64, pixels), distance: make([]float64, pixels), lean: make([]float64, pixels), beta: make([]float64, pixels)}
	for _, b := range f.brightness {
		v := float64(b)
		e.bright = max(e.bright, v)
		e.all[0] += v
		e.all[1] += float64(v * v)
	}
	if e.all[0] > 0 {
		for i, v := range f.imageSum {
			e.level[i] = v / e.all[0]
		}
	}
	f.each(func(first int) {
		level, distance, lean := e.level[first:][:band:band], e.distance[first:][:band:band], e.lean[first:][:band:band]
		for i, b := range f.brightness {
			b, square := float64(b), 0.0
			for x, v := range f.of(i, first) {
				d := float64(v) - float64(level[x]*b)
				distance[x] = max(distance[x], d, -d)
				lean[x] += float64(b * d)
				square += float64(d * d)
			}
			f.partial[i*bands+first/band] = square
		}
	})
	for i := range f.t {
		e.square += total(f.partial, i)
	}
	return e
}

// restart begins a round.
func (e *evenness) restart() {
	e.alpha, e.over = 0, false
	clear(e.beta)
}

// holds reports whether R is still 0.
func (e *evenness) holds() bool { return e != nil && !e.over }

// step does a step if R stays 0 for certain, and reports whether. When it no longer does, it leaves the state of
// the step before.
func (e *evenness) step(f *fit, mu float64) bool {
	if e.over {
		return false
	}
	alpha := e.alpha + mu
	for x, level := range e.level {
		beta := e.beta[x] + float64(mu*float64(f.narrow[x]))
		most := float64(alpha*e.distance[x]) + float64(e.bright*math.Abs(float64(alpha*level)-beta))
		if !(most < 0.999*f.least[x]) {
			e.end(f)
			return false
		}
	}
	e.alpha = alpha
	for x := range e.beta {
		e.beta[x] += float64(mu * float64(f.narrow[x]))
	}
	return true
}

// end leaves the state of the last step.
func (e *evenness) end(f *fit) {
	e.over = true
	if e.alpha == 0 {
		clear(f.state)
		return
	}
	f.each(func(first int) {
		beta := make([]float32, band)
		for x := range beta {
			beta[x] = float32(e.beta[first+x])
		}
		alpha := float32(e.alpha)
		for i, b := range f.brightness {
			state := f.piece(f.state, i, first)
			for x, v := range f.of(i, first) {
				state[x] = float32(alpha*v) - float32(beta[x]*b)
			}
		}
	})
}

// residual returns ‖I − S·B‖.
func (e *evenness) residual(f *fit) float64 {
	square := e.square
	for x, level := range e.level {
		d := level - float64(f.narrow[x])
		square += float64(2*d*e.lean[x]) + float64(d*d*e.all[1])
	}
	return math.Sqrt(max(0, square))
}
