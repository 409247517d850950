package comparison

import "math"

// sums is what is added up over the region.
type sums struct {
	compared                           int64
	absolute, squares, signed, largest float64 // of the differences
	values, gradients                  moments
	sharp                              [2]sharpness
	small                              *small
}

func newSums(p *pair) *sums { return &sums{small: newSmall(p.size)} }

// sharpness sums up gradients of one image: across the seams of tiles beside each other, down those of tiles below each
// other, and their length in all seams and in the rest.
type sharpness struct {
	across, down, seam, rest     float64
	acrossN, downN, seamN, restN int64
}

// moments are those of all pixels, of those in seams, and of the rest.
type moments struct{ all, seams, rest moment }

// moment sums up pairs of numbers, less the first pair, which keeps the sums small.
type moment struct {
	n       int64
	zero    [2]float64
	s, ss   [2]float64
	product float64
}

func (m *moment) add(v [2]float64) {
	if m.n == 0 {
		m.zero = v
	}
	m.n++
	a, b := v[0]-m.zero[0], v[1]-m.zero[1]
	m.s[0], m.s[1] = m.s[0]+a, m.s[1]+b
	m.ss[0], m.ss[1] = m.ss[0]+float64(a*a), m.ss[1]+float64(b*b)
	m.product += float64(a * b)
}

func (m *moment) mean(k int) float64 { return m.zero[k] + m.s[k]/float64(m.n) }

// std returns the standard deviation of all n numbers.
func (m *moment) std(k int) float64 {
	mean := m.s[k] / float64(m.n)
	return math.Sqrt(max(0, m.ss[k]/float64(m.n)-float64(mean*mean)))
}

// correlation returns Pearson's correlation; nil if a side is constant.
func (m *moment) correlation() *float64 {
	if m.n == 0 {
		return nil
	}
	n := float64(m.n)
	cov := m.product/n - float64(m.s[0]/n*(m.s[1]/n))
	if s := m.std(0) * m.std(1); s > 0 {
		return finite(max(-1, min(1, cov/s)))
	}
	return nil
}

func (m *moments) add(v [2]float64, seam bool) {
	m.all.add(v)
	if seam {
		m.seams.add(v)
	} else {
		m.rest.add(v)
	}
}

func (m *moments) agreement() Agreement {
	return Agreement{m.all.correlation(), m.seams.correlation(), m.rest.correlation()}
}

// add adds a band.
func (s *sums) add(b *band) {
	for y := b.from; y < b.to; y++ {
		row := (y - b.first) * b.width
		marks := [2][]uint8{b.marks[0][(y-b.from)*b.width:], b.marks[1][(y-b.from)*b.width:]}
		for x := range b.width {
			v := [2]float64{float64(b.v[0][row+x]), float64(b.v[1][row+x])}
			if !shows(v[0]) || !shows(v[1]) {
				s.small.add(y, x, v, 0, false)
				continue
			}
			d := v[1] - v[0]
			s.compared++
			s.absolute, s.squares, s.signed, s.largest = s.absolute+math.Abs(d), s.squares+float64(d*d), s.signed+d, max(s.largest, math.Abs(d))
			s.small.add(y, x, v, math.Abs(d), true)
			seam := marks[0][x]|marks[1][x] != 0
			s.values.add(v, seam)
			var size [2]float64
			inside := true
			for k := range 2 {
				dy, dx, ok := b.gradient(k, y, x)
				if inside = inside && ok; ok {
					size[k] = math.Hypot(dy, dx)
					s.sharp[k].add(dy, dx, size[k], marks[k][x])
				}
			}
			if inside {
				s.gradients.add(size, seam)
			}
		}
	}
}

// add adds a pixel's gradient.
func (s *sharpness) add(dy, dx, size float64, marks uint8) {
	if marks&beside != 0 {
		s.across, s.acrossN = s.across+math.Abs(dx), s.acrossN+1
	}
	if marks&below != 0 {
		s.down, s.downN = s.down+math.Abs(dy), s.downN+1
	}
	if marks != 0 {
		s.seam, s.seamN = s.seam+size, s.seamN+1
	} else {
		s.rest, s.restN = s.rest+size, s.restN+1
	}
}

// shows reports whether a pixel has a value.
func shows(v float64) bool { return v != 0 && v-v == 0 }

// gradient returns Sobel's derivatives of image k at a pixel; ok is false where a pixel around it is missing.
func (b *band) gradient(k, y, x int) (dy, dx float64, ok bool) {
	if y <= b.first || y+1 >= b.last || x == 0 || x+1 == b.width {
		return 0, 0, false
	}
	var w [3][3]float64
	for i := range w {
		row := b.v[k][(y-b.first+i-1)*b.width+x-1:][:3]
		for j, f := range row {
			v := float64(f)
			if !shows(v) {
				return 0, 0, false
			}
			w[i][j] = v
		}
	}
	dx = w[0][2] - w[0][0] + 2*(w[1][2]-w[1][0]) + w[2][2] - w[2][0]
	dy = w[2][0] - w[0][0] + 2*(w[2][1]-w[0][1]) + w[2][2] - w[0][2]
	return dy, dx, true
}

// mostPanel is the maximum length of a side of the small pictures, px.
const mostPanel = 640

// small is the region in pixels of several, as large as a panel of the picture.
type small struct {
	by     int // pixels of the region along a side
	ny, nx int
	v      [3][]float32 // sums, later means: of the images, and of the absolute differences
	n      [3][]int32
}

func newSmall(size [2]int) *small {
	s := &small{by: (max(size[0], size[1])-1)/mostPanel + 1}
	s.ny, s.nx = (size[0]-1)/s.by+1, (size[1]-1)/s.by+1
	for k := range s.v {
		s.v[k], s.n[k] = make([]float32, s.ny*s.nx), make([]int32, s.ny*s.nx)
	}
	return s
}

// add adds a pixel; both says that both images show something there.
func (s *small) add(y, x int, v [2]float64, difference float64, both bool) {
	i := y/s.by*s.nx + x/s.by
	for k := range v {
		if v[k]-v[k] == 0 {
			s.v[k][i] += float32(v[k])
			s.n[k][i]++
		}
	}
	if both {
		s.v[2][i] += float32(difference)
		s.n[2][i]++
	}
}

// finish makes means of the sums.
func (s *small) finish() {
	for k := range s.v {
		for i, n := range s.n[k] {
			if n > 0 {
				s.v[k][i] /= float32(n)
			}
		}
	}
}
