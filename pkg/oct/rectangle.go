package oct

// Rectangle is a part of a mosaic's plane: Y0 ≤ y < Y1, X0 ≤ x < X1.
type Rectangle struct{ Y0, Y1, X0, X1 int }

// Rect returns the rectangle y0 ≤ y < y1, x0 ≤ x < x1.
func Rect(y0, y1, x0, x1 int) Rectangle { return Rectangle{y0, y1, x0, x1} }

// Height returns the number of rows; it is negative if Y1 < Y0.
func (r Rectangle) Height() int { return r.Y1 - r.Y0 }

// Width returns the number of columns; it is negative if X1 < X0.
func (r Rectangle) Width() int { return r.X1 - r.X0 }

// Area returns the product of height and width.
func (r Rectangle) Area() int { return r.Height() * r.Width() }

// And returns the intersection of two rectangles, which may be Empty.
func (r Rectangle) And(s Rectangle) Rectangle {
	return Rectangle{max(r.Y0, s.Y0), min(r.Y1, s.Y1), max(r.X0, s.X0), min(r.X1, s.X1)}
}

// Empty reports whether the rectangle has no pixels.
func (r Rectangle) Empty() bool { return r.Y0 >= r.Y1 || r.X0 >= r.X1 }

// Moved returns the rectangle displaced by (dy, dx).
func (r Rectangle) Moved(dy, dx int) Rectangle {
	return Rectangle{r.Y0 + dy, r.Y1 + dy, r.X0 + dx, r.X1 + dx}
}
