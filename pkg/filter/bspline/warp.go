package bspline

import (
	"math"

	"strata/pkg/filter"
)

// Warp displaces the points of a plane smoothly: a point p = (x, y), in pixels, goes to p + d(p). Both components of d
// are cubic splines over one grid of control points; beyond the domain, which ends one spacing inside the grid, d is
// that of the nearest point of it.
type Warp struct {
	Control         [2]int     // control points (y, x), at least 4 along each axis
	Origin, Spacing [2]float64 // place of the first control point and distance between neighbours (y, x), in pixels
	DY, DX          []float64  // displacements of the control points in pixels, in C order
}

// NewWarp returns a warp of zeros over a plane of ny × nx pixels, whose control points are about spacing pixels apart.
func NewWarp(ny, nx int, spacing float64) *Warp {
	w := &Warp{}
	for d, n := range [2]int{ny, nx} {
		last := float64(max(n-1, 1))
		w.Control[d] = 3 + max(1, int(math.Round(min(last/spacing, 1<<20))))
		w.Spacing[d] = last / float64(w.Control[d]-3)
		w.Origin[d] = -w.Spacing[d]
	}
	n := w.Control[0] * w.Control[1]
	w.DY, w.DX = make([]float64, n), make([]float64, n)
	return w
}

// tap returns the weights at position v of axis d.
func (w *Warp) tap(d int, v float64) Tap {
	n := w.Control[d]
	return tap(min(max((v-w.Origin[d])/w.Spacing[d]-1, 0), float64(n-3)), n)
}

// Taps returns the weights of n positions along axis d (y, x), position i at first + step·i pixels.
func (w *Warp) Taps(d, n int, first, step float64) []Tap {
	taps := make([]Tap, n)
	for i := range taps {
		taps[i] = w.tap(d, first+float64(step*float64(i)))
	}
	return taps
}

// At returns the displacement of the point (x, y).
func (w *Warp) At(x, y float64) (dx, dy float64) {
	ty, tx := w.tap(0, y), w.tap(1, x)
	for i, wy := range ty.Weight {
		k := (ty.First+i)*w.Control[1] + tx.First
		dx += float64(wy * At(w.DX[k:], &Tap{Weight: tx.Weight}))
		dy += float64(wy * At(w.DY[k:], &Tap{Weight: tx.Weight}))
	}
	return dx, dy
}

// Enlarged returns the warp in pixels of which k make one of w's along each axis (y, x), pixel i of w covering pixels
// k·i … k·(i+1)−1.
func (w *Warp) Enlarged(k [2]float64) *Warp {
	out := &Warp{Control: w.Control}
	for d := range 2 {
		out.Origin[d], out.Spacing[d] = float64(w.Origin[d]*k[d])+(k[d]-1)/2, w.Spacing[d]*k[d]
	}
	for i := range w.DX {
		out.DX, out.DY = append(out.DX, w.DX[i]*k[1]), append(out.DY, w.DY[i]*k[0])
	}
	return out
}

// Reduced is the inverse of [Warp.Enlarged].
func (w *Warp) Reduced(k [2]float64) *Warp { return w.Enlarged([2]float64{1 / k[0], 1 / k[1]}) }

// Like returns a warp on the same control points that has about the displacements of f: those of the cubic spline that
// reproduces cubic polynomials (de Boor and Fix's quasi-interpolant).
func (w *Warp) Like(f func(x, y float64) (dx, dy float64)) *Warp {
	out := &Warp{Control: w.Control, Origin: w.Origin, Spacing: w.Spacing}
	ny, nx := w.Control[0]+2, w.Control[1]+2 // with one place more on each side
	dx, dy := make([]float64, ny*nx), make([]float64, ny*nx)
	for i := range ny {
		for j := range nx {
			dx[i*nx+j], dy[i*nx+j] = f(w.Origin[1]+float64(float64(j-1)*w.Spacing[1]), w.Origin[0]+float64(float64(i-1)*w.Spacing[0]))
		}
	}
	out.DX, out.DY = quasi(dx, ny, nx), quasi(dy, ny, nx)
	return out
}

// quasi filters a plane by (−1, 8, −1)/6 along both axes and drops its border.
func quasi(v []float64, ny, nx int) (out []float64) {
	three := func(a, b, c float64) float64 { return (float64(8*b) - a - c) / 6 }
	for y := 1; y < ny-1; y++ {
		row := func(i int) func(x int) float64 {
			r := v[i*nx:][:nx]
			return func(x int) float64 { return three(r[x-1], r[x], r[x+1]) }
		}
		up, here, down := row(y-1), row(y), row(y+1)
		for x := 1; x < nx-1; x++ {
			out = append(out, three(up(x), here(x), down(x)))
		}
	}
	return out
}

// Extent returns the length of the largest displacement, and the least determinant of the map's Jacobian: at 0 or
// below, the map folds. Both are those of points an eighth of the spacing apart.
func (w *Warp) Extent() (largest, determinant float64) {
	const parts = 8
	determinant = math.Inf(1)
	ny, nx := parts*(w.Control[0]-3)+1, parts*(w.Control[1]-3)+1
	sy, sx := w.Spacing[0]/parts, w.Spacing[1]/parts
	var above, row [][2]float64
	for i := range ny {
		above, row = row, nil
		for j := range nx {
			dx, dy := w.At(w.Origin[1]+w.Spacing[1]+float64(sx*float64(j)), w.Origin[0]+w.Spacing[0]+float64(sy*float64(i)))
			row = append(row, [2]float64{dx, dy})
			largest = max(largest, math.Sqrt(float64(dx*dx)+float64(dy*dy)))
			if i == 0 || j == 0 {
				continue
			}
			left, up := row[j-1], above[j]
			xx, yx := 1+(dx-left[0])/sx, (dy-left[1])/sx
			xy, yy := (dx-up[0])/sy, 1+(dy-up[1])/sy
			determinant = min(determinant, float64(xx*yy)-float64(xy*yx))
		}
	}
	return largest, determinant
}

// Bound returns a length in pixels that no displacement exceeds: that of the control points' largest.
func (w *Warp) Bound() (largest float64) {
	for i, dx := range w.DX {
		largest = max(largest, math.Hypot(dx, w.DY[i]))
	}
	return largest
}

// Places returns where pixels x0 … of row y sample a plane that is displaced by w and then moved by t: at t(p) +
// d(t(p)).
func (w *Warp) Places(xs, ys []float64, t filter.Rigid, y, x0 int) {
	s, c := math.Sincos(t.Angle)
	v := float64(y) - t.CY
	for i := range xs {
		u := float64(x0+i) - t.CX
		px, py := float64(c*u)-float64(s*v)+t.CX+t.TX, float64(s*u)+float64(c*v)+t.CY+t.TY
		dx, dy := w.At(px, py)
		xs[i], ys[i] = px+dx, py+dy
	}
}

// Resample writes a plane of ny × nx pixels that is displaced by w and then moved by t, as [filter.Rigid.Resample]
// does. The first pixel of the plane is pixel (y0, x0) of that for which w and t are given.
func (w *Warp) Resample(dst, src []float32, ny, nx int, t filter.Rigid, y0, x0 int, fill float32) {
	xs, ys := make([]float64, nx), make([]float64, nx)
	for y := range ny {
		w.Places(xs, ys, t, y0+y, x0)
		for x := range xs {
			dst[y*nx+x] = filter.Linear(src, ny, nx, xs[x]-float64(x0), ys[x]-float64(y0), fill)
		}
	}
}
