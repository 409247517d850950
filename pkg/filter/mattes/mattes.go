// Package mattes registers volumes of different contrast by a rigid transform that maximises their mutual information,
// as Mattes et al. estimate it ("PET-CT image registration in the chest using free-form deformations", IEEE
// Transactions on Medical Imaging 22, 2003). [Register] does all of it.
package mattes

import (
	"fmt"
	"math"
	"slices"
)

// bins is the number of bins of each image's histogram; the outermost two on either side are room for the splines.
const bins = 50

// block is the number of samples that are summed up together.
const block = 1 << 14

// metric estimates mutual information at samples of the fixed image.
type metric struct {
	moving    *Volume
	points    []Vec
	fixed     []uint8 // bin of each sample
	low, step float64 // of the moving image's bins
	each      func(n int, f func(i int) error) error

	parts  []part
	values []found // what was found at each sample
}

// found is the moving image at a sample.
type found struct {
	bin      float32 // place among the bins; negative: outside the moving image
	gradient [3]float32
}

// part holds the contribution of a block of samples.
type part struct {
	joint [bins][bins]float64
	n     int
	force Vec // Σ of the gradient
	turn  Mat // Σ of the gradient times the place
}

// newMetric takes samples of the fixed image, at most most of them in a regular grid over the box that holds its voxels
// above 0.
func newMetric(fixed, moving *Volume, most int, each func(n int, f func(i int) error) error) (*metric, error) {
	low, high := fixed.box()
	step := 1
	for box(low, high, step) > most {
		step++
	}
	m := &metric{moving: moving, each: each}
	var values []float32
	for z := low[0]; z < high[0]; z += step {
		for y := low[1]; y < high[1]; y += step {
			x := low[2] + (z/step+y/step)%step // rows are offset against each other
			for ; x < high[2]; x += step {
				v := fixed.Voxels[(z*fixed.Shape[1]+y)*fixed.Shape[2]+x]
				if v-v == 0 {
					m.points, values = append(m.points, fixed.at(z, y, x)), append(values, v)
				}
			}
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("the template has no voxel above 0")
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	a, b := limits(sorted, 0.001, 0.999)
	if !(b > a) {
		return nil, fmt.Errorf("the template has the same value nearly everywhere")
	}
	for _, v := range values {
		m.fixed = append(m.fixed, uint8(min(max(int(2+(float64(v)-a)/(b-a)*(bins-4)), 2), bins-3)))
	}
	sorted = sorted[:0]
	for i := 0; i < len(moving.Voxels); i += 1 + len(moving.Voxels)/most {
		if v := moving.Voxels[i]; v-v == 0 {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	if len(sorted) > 0 {
		m.low, b = limits(sorted, 0.001, 0.999)
	}
	if m.step = (b - m.low) / (bins - 5); len(sorted) == 0 || !(m.step > 0) {
		return nil, fmt.Errorf("the volume has the same value nearly everywhere")
	}
	m.parts = make([]part, (len(m.points)+block-1)/block)
	m.values = make([]found, len(m.points))
	return m, nil
}

func box(low, high [3]int, step int) int {
	n := 1
	for d := range low {
		n *= (high[d]-low[d]+step-1)/step + 1
	}
	return n
}

// box returns the box of the voxels above 0, with a border of an eighth.
func (v *Volume) box() (low, high [3]int) {
	low, high = v.Shape, [3]int{}
	i := 0
	for z := range v.Shape[0] {
		for y := range v.Shape[1] {
			for x := range v.Shape[2] {
				if v.Voxels[i] > 0 {
					for d, k := range [3]int{z, y, x} {
						low[d], high[d] = min(low[d], k), max(high[d], k+1)
					}
				}
				i++
			}
		}
	}
	for d := range low {
		border := (high[d] - low[d]) / 8
		low[d], high[d] = max(0, low[d]-border), min(v.Shape[d], high[d]+border)
	}
	return low, high
}

// spline returns the cubic B-spline at the four bins around u, and its derivatives.
func spline(u float64) (first int, w, slope [4]float64) {
	k := int(u)
	t := u - float64(k)
	s := 1 - t
	w = [4]float64{s * s * s / 6, (4 - float64(6*t*t) + float64(3*t*t*t)) / 6, (4 - float64(6*s*s) + float64(3*s*s*s)) / 6, t * t * t / 6}
	slope = [4]float64{-s * s / 2, (float64(9*t*t) - 12*t) / 6, (12*s - float64(9*s*s)) / 6, t * t / 2}
	return k - 1, w, slope
}

// each block of samples, with its part.
func (m *metric) blocks(f func(p *part, from, to int)) error {
	return m.each(len(m.parts), func(i int) error {
		f(&m.parts[i], i*block, min((i+1)*block, len(m.points)))
		return nil
	})
}

// evaluate returns the mutual information under a transform and its derivatives by the angles and the translation, and
// the share of the samples that lie in the moving image.
func (m *metric) evaluate(e *Euler) (value float64, byAngle, byTranslation Vec, share float64, err error) {
	var joint [bins][bins]float64
	n, err := m.count(e, &joint)
	if err != nil {
		return 0, byAngle, byTranslation, 0, err
	}
	share = float64(n) / float64(len(m.points))
	value = m.information(&joint, float64(n))
	turn, byTranslation, err := m.slope(e, &joint)
	_, by := e.derivatives()
	scale := 1 / (m.step * float64(max(n, 1)))
	for k := range 3 {
		for a := range 3 {
			for b := range 3 {
				byAngle[k] += float64(by[k][a][b] * turn[a][b])
			}
		}
		byAngle[k] *= scale
		byTranslation[k] *= scale
	}
	return value, byAngle, byTranslation, share, err
}

// count samples the moving image under a transform, fills the joint histogram, and returns how many samples lie in the
// image.
func (m *metric) count(e *Euler, joint *[bins][bins]float64) (n int, err error) {
	matrix, offset := e.Affine()
	err = m.blocks(func(p *part, from, to int) {
		*p = part{}
		for s := from; s < to; s++ {
			q := matrix.Apply(m.points[s])
			for d := range q {
				q[d] += offset[d]
			}
			v, g, ok := m.moving.sample(q)
			if !ok || v-v != 0 {
				m.values[s].bin = -1
				continue
			}
			u := min(max(2+(v-m.low)/m.step, 2), bins-3)
			if u == 2 || u == bins-3 { // clipped: it does not change with the place
				g = Vec{}
			}
			first, w, _ := spline(u)
			row := &p.joint[m.fixed[s]]
			for k, w := range w {
				row[first+k] += w
			}
			m.values[s] = found{float32(u), [3]float32{float32(g[0]), float32(g[1]), float32(g[2])}}
			p.n++
		}
	})
	for i := range m.parts {
		n += m.parts[i].n
		for a := range joint {
			for b := range joint[a] {
				joint[a][b] += m.parts[i].joint[a][b]
			}
		}
	}
	return n, err
}

// slope sums up how the samples that count found change the mutual information: the gradient times the place, and the
// gradient. logs is the joint histogram as [metric.information] leaves it.
func (m *metric) slope(e *Euler, logs *[bins][bins]float64) (turn Mat, force Vec, err error) {
	err = m.blocks(func(p *part, from, to int) {
		for s := from; s < to; s++ {
			f := &m.values[s]
			if f.bin < 0 {
				continue
			}
			first, _, slope := spline(float64(f.bin))
			row := &logs[m.fixed[s]]
			c := 0.0
			for k, w := range slope {
				c += float64(w * row[first+k])
			}
			for a := range 3 {
				g := float64(c * float64(f.gradient[a]))
				p.force[a] += g
				for b := range 3 {
					p.turn[a][b] += float64(g * (m.points[s][b] - e.Centre[b]))
				}
			}
		}
	})
	for i := range m.parts {
		for a := range 3 {
			force[a] += m.parts[i].force[a]
			for b := range 3 {
				turn[a][b] += m.parts[i].turn[a][b]
			}
		}
	}
	return turn, force, err
}

// information returns the mutual information of a joint histogram, whose elements it replaces by ln(p / p of the moving
// image).
func (m *metric) information(joint *[bins][bins]float64, n float64) (value float64) {
	var fixed, moving [bins]float64
	for a := range joint {
		for b, c := range joint[a] {
			fixed[a] += c
			moving[b] += c
		}
	}
	for a := range joint {
		for b, c := range joint[a] {
			joint[a][b] = 0
			if c > 1e-12 {
				value += c / n * math.Log(c*n/(fixed[a]*moving[b]))
				joint[a][b] = math.Log(c / moving[b])
			}
		}
	}
	return value
}
