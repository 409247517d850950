package consensus

import "math"

// Sym is a symmetric 2×2 matrix, such as the precision of a displacement (y, x).
type Sym struct{ YY, YX, XX float64 }

// Diagonal returns v times the identity.
func Diagonal(v float64) Sym { return Sym{v, 0, v} }

// Add returns the sum of two matrices.
func (s Sym) Add(o Sym) Sym { return Sym{s.YY + o.YY, s.YX + o.YX, s.XX + o.XX} }

// Scaled returns f times the matrix.
func (s Sym) Scaled(f float64) Sym { return Sym{s.YY * f, s.YX * f, s.XX * f} }

// Det returns the determinant.
func (s Sym) Det() float64 { return s.YY*s.XX - s.YX*s.YX }

// Inverse returns the inverse of a positive definite matrix.
func (s Sym) Inverse() Sym {
	det := s.Det()
	return Sym{s.XX / det, -s.YX / det, s.YY / det}
}

// square returns vᵀ s v.
func (s Sym) square(v [2]float64) float64 { return s.YY*v[0]*v[0] + 2*s.YX*v[0]*v[1] + s.XX*v[1]*v[1] }

func (s Sym) times(v [2]float64) [2]float64 {
	return [2]float64{s.YY*v[0] + s.YX*v[1], s.YX*v[0] + s.XX*v[1]}
}

// least returns the smaller eigenvalue.
func (s Sym) least() float64 { return (s.YY+s.XX)/2 - math.Hypot((s.YY-s.XX)/2, s.YX) }
