package volumes

import (
	"fmt"
	"math"
	"strings"
)

// Affine maps voxel indices (x, y, z) to places in mm along right, anterior and superior (RAS): three rows of a 4 × 4
// matrix whose last row is 0, 0, 0, 1. The index of a voxel is that of its centre.
type Affine [3][4]float64

// Sizes returns the lengths in mm of a voxel along x, y and z.
func (a *Affine) Sizes() (size [3]float64) {
	for d := range size {
		size[d] = math.Sqrt(float64(a[0][d]*a[0][d]) + float64(a[1][d]*a[1][d]) + float64(a[2][d]*a[2][d]))
	}
	return size
}

// Apply returns the place of a voxel.
func (a *Affine) Apply(i [3]float64) (p [3]float64) {
	for r := range p {
		p[r] = a[r][3]
		for c, x := range i {
			p[r] += float64(a[r][c] * x)
		}
	}
	return p
}

// Of returns the affine of a grid whose voxel i lies at place scale·i + shift of a's grid, along x, y and z.
func (a *Affine) Of(scale, shift [3]float64) (b Affine) {
	for r := range b {
		b[r][3] = a[r][3]
		for c := range scale {
			b[r][c] = float64(a[r][c] * scale[c])
			b[r][3] += float64(a[r][c] * shift[c])
		}
	}
	return b
}

// Check returns an error for an affine of no grid: with numbers that are not finite, or voxels without a length or a
// volume.
func (a *Affine) Check() error {
	for _, row := range a {
		for _, v := range row {
			if v-v != 0 {
				return fmt.Errorf("the affine has %v (must be finite numbers)", v)
			}
		}
	}
	size := a.Sizes()
	for d, s := range size {
		if s == 0 {
			return fmt.Errorf("voxels have no length along %c", "xyz"[d])
		}
	}
	if det := a.determinant(); math.Abs(det) < 1e-6*size[0]*size[1]*size[2] {
		return fmt.Errorf("the axes x, y and z lie in a plane")
	}
	return nil
}

func (a *Affine) determinant() float64 {
	minor := func(i, j int) float64 { return float64(a[1][i]*a[2][j]) - float64(a[1][j]*a[2][i]) }
	return float64(a[0][0]*minor(1, 2)) - float64(a[0][1]*minor(0, 2)) + float64(a[0][2]*minor(0, 1))
}

// letters name the directions of the axes of space, towards more and towards less.
const letters = "RLAPSI"

// Orientation returns the letters of the directions that x, y and z run to, or are closest to: "RAS".
func (a *Affine) Orientation() string {
	size := a.Sizes()
	var code [3]byte
	used := [3]bool{}
	for range code { // the clearest axis first
		best, row, column := -1.0, 0, 0
		for c := range 3 {
			for r := range 3 {
				if v := math.Abs(a[r][c]) / size[c]; code[c] == 0 && !used[r] && v > best {
					best, row, column = v, r, c
				}
			}
		}
		used[row] = true
		code[column] = letters[2*row]
		if a[row][column] < 0 {
			code[column] = letters[2*row+1]
		}
	}
	return string(code[:])
}

// Oriented returns the affine of a grid whose axes x, y and z run to the directions that the letters of an orientation
// name, with voxels of the given sizes, and the first one at origin along each axis, in mm.
func Oriented(orientation string, size, origin [3]float64) (a Affine, err error) {
	used := [3]bool{}
	for c, letter := range strings.ToUpper(orientation) {
		at := strings.IndexRune(letters, letter)
		if c > 2 || at < 0 || used[at/2] {
			return a, fmt.Errorf("orientation %q: must be three letters for where x, y and z run to: R or L, A or P, S or I, each once, such as RAS", orientation)
		}
		used[at/2] = true
		sign := 1 - 2*float64(at%2)
		a[at/2][c] = sign * size[c]
		a[at/2][3] = sign * origin[c]
	}
	if len(orientation) != 3 {
		return a, fmt.Errorf("orientation %q: must be three letters for where x, y and z run to, such as RAS", orientation)
	}
	return a, nil
}
