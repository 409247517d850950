package filter

import "math"

// Rigid is a rigid transform of a plane with the convention of ITK's Euler2DTransform: output pixel p = (x,
// y) shows the input at R(angle)·(p − c) + c + t in pixels, so that a positive translation moves the content
// left and up.
type Rigid struct {
	Angle  float64 // radians
	TX, TY float64 // translation
	CX, CY float64 // centre of rotation
}

// Apply returns the point that a point (x, y) is mapped to.
func (t Rigid) Apply(x, y float64) (float64, float64) {
	s, c := math.Sincos(t.Angle)
	x, y = x-t.CX, y-t.CY
	return float64(c*x) - float64(s*y) + t.CX + t.TX, float64(s*x) + float64(c*y) + t.CY + t.TY
}

// Followed returns the transform that maps a point by t and then by next. Its centre is that of next.
func (t Rigid) Followed(next Rigid) Rigid {
	x, y := next.Apply(t.Apply(next.CX, next.CY))
	return Rigid{Angle: t.Angle + next.Angle, TX: x - next.CX, TY: y - next.CY, CX: next.CX, CY: next.CY}
}

// Resample writes rows y0 … y1−1 of the transformed plane src (ny rows of nx pixels) to dst, which holds only
// those rows. Sampling is linear in float64, rounded once. Inside is [−½, n−½] along both axes, with the edge
// pixel repeated in the outer half; outside the result is fill (stages specification, stack).
func (t Rigid) Resample(dst, src []float32, ny, nx, y0, y1 int, fill float32) {
	s, c := math.Sincos(t.Angle)
	for y := y0; y < y1; y++ {
		v := float64(y) - t.CY
		r := rigidRow{
			ny: ny, nx: nx, fill: fill, dx: c, dy: s,
			x: t.CX + t.TX - float64(c*t.CX) - float64(s*v),
			y: t.CY + t.TY - float64(s*t.CX) + float64(c*v),
		}
		row := dst[(y-y0)*nx : (y-y0+1)*nx]
		r.scalar(row, src, rigidVector(row, src, &r))
	}
}

// rigidRow is the line along which an output row samples the input: pixel i at
// (x + dx·(first + i), y + dy·(first + i)).
type rigidRow struct {
	x, y, dx, dy float64
	ny, nx       int
	fill         float32
	first        float64
}

// scalar makes the pixels of a row from i on.
func (r *rigidRow) scalar(row, src []float32, i int) {
	for ; i < len(row); i++ {
		at := r.first + float64(i)
		row[i] = Linear(src, r.ny, r.nx, r.x+float64(r.dx*at), r.y+float64(r.dy*at), r.fill)
	}
}

// Linear samples a plane of ny × nx pixels at (x, y) as [Rigid.Resample] does.
func Linear(src []float32, ny, nx int, x, y float64, fill float32) float32 {
	mx, my := float64(nx-1), float64(ny-1)
	if !(x >= -0.5 && x <= mx+0.5 && y >= -0.5 && y <= my+0.5) {
		return fill
	}
	x, y = min(max(x, 0), mx), min(max(y, 0), my)
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, nx-1), min(y0+1, ny-1)
	u, v := x-float64(x0), y-float64(y0)
	a, b := float64(src[y0*nx+x0]), float64(src[y0*nx+x1])
	c, d := float64(src[y1*nx+x0]), float64(src[y1*nx+x1])
	top := a + float64((b-a)*u)
	bottom := c + float64((d-c)*u)
	return float32(top + float64((bottom-top)*v))
}

// Inverse returns the transform that undoes t, about the same centre.
func (t Rigid) Inverse() Rigid {
	s, c := math.Sincos(t.Angle)
	return Rigid{Angle: -t.Angle, TX: -float64(c*t.TX) - float64(s*t.TY), TY: float64(s*t.TX) - float64(c*t.TY), CX: t.CX, CY: t.CY}
}

// Then returns the transform that samples the input where t samples it for the pixel that a rotation by angle about the
// centre and a translation by (x, y) lead to.
func (t Rigid) Then(angle, x, y float64) Rigid {
	s, c := math.Sincos(t.Angle)
	t.Angle += angle
	t.TX += float64(c*x) - float64(s*y)
	t.TY += float64(s*x) + float64(c*y)
	return t
}
