package mattes

import "math"

// Vec is a point or a vector (x, y, z).
type Vec [3]float64

// Mat is a 3 × 3 matrix of rows.
type Mat [3][3]float64

// Euler is a rigid transform with the convention of ITK's Euler3DTransform: it maps a point p of the fixed image to
// R·(p − c) + c + t of the moving one, with R = Rz·Rx·Ry.
type Euler struct {
	Angles      Vec // about x, y and z, in radians
	Translation Vec
	Centre      Vec
}

// mul returns a·b.
func mul(a, b Mat) (m Mat) {
	for i := range 3 {
		for j := range 3 {
			m[i][j] = float64(a[i][0]*b[0][j]) + float64(a[i][1]*b[1][j]) + float64(a[i][2]*b[2][j])
		}
	}
	return m
}

// Apply returns m·v.
func (m *Mat) Apply(v Vec) (out Vec) {
	for i := range out {
		out[i] = float64(m[i][0]*v[0]) + float64(m[i][1]*v[1]) + float64(m[i][2]*v[2])
	}
	return out
}

// Transpose returns the transpose of m, which is the inverse of a rotation.
func (m *Mat) Transpose() (t Mat) {
	for i := range 3 {
		for j := range 3 {
			t[i][j] = m[j][i]
		}
	}
	return t
}

// about returns the rotation about an axis by an angle, and its derivative.
func about(axis int, angle float64) (r, d Mat) {
	s, c := math.Sincos(angle)
	i, j := (axis+1)%3, (axis+2)%3
	r[axis][axis] = 1
	r[i][i], r[i][j], r[j][i], r[j][j] = c, -s, s, c
	d[i][i], d[i][j], d[j][i], d[j][j] = -s, -c, c, -s
	return r, d
}

// Matrix returns R.
func (e *Euler) Matrix() Mat {
	m, _ := e.derivatives()
	return m
}

// derivatives returns R and its derivatives by the angles.
func (e *Euler) derivatives() (m Mat, by [3]Mat) {
	x, dx := about(0, e.Angles[0])
	y, dy := about(1, e.Angles[1])
	z, dz := about(2, e.Angles[2])
	return mul(z, mul(x, y)), [3]Mat{mul(z, mul(dx, y)), mul(z, mul(x, dy)), mul(dz, mul(x, y))}
}

// Affine returns the transform as a matrix and an offset: p ↦ m·p + offset.
func (e *Euler) Affine() (m Mat, offset Vec) {
	m = e.Matrix()
	turned := m.Apply(e.Centre)
	for d := range offset {
		offset[d] = e.Centre[d] + e.Translation[d] - turned[d]
	}
	return m, offset
}
