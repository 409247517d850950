package jpegxr

import "slices"

// transform transforms as much as possible of a plane when row y of macroblocks has arrived: all of row y-1,
// and for the last row everything.
func (d *Decoder) transform(t *part, y int) {
	last := y == d.rows-1
	cut := y == 0 || d.hard && slices.Contains(d.tileY, y)
	t.secondLevel(y, d.columns)
	from, to := y*t.high, (y+1)*t.high // rows of blocks whose DCs are now ready
	if d.overlap == 2 {
		d.overlapDCs(t, y, cut, last)
		if y > 0 {
			from -= t.high / 2
		}
		if !last {
			to -= t.high / 2
		}
	}
	for b := from; b < to; b++ {
		row := t.blocks.row(b)
		dcs := t.dcs.row(b / t.high)
		for c := range t.wide {
			v := dcs[t.at[b%t.high*t.wide+c]:][:d.columns]
			for x := range v {
				row[x*t.wide+c] = v[x]
			}
		}
		inverse(row, t.blocks.stride, t.blocks.n)
		if d.overlap > 0 {
			d.overlapRow(&t.blocks, b, t.wide, b == y*t.high && cut)
		}
	}
	if last && d.overlap > 0 {
		d.edge(&t.blocks, t.blocks.row(to-1), t.wide, 2)
	}
}

// segments returns where the filters stop in a row, in macroblocks.
func (d *Decoder) segments() []int {
	if d.hard {
		return d.tileX
	}
	return []int{0, d.columns}
}

// secondLevel makes DCs of blocks of the DC and LP coefficients of row y of macroblocks.
func (t *part) secondLevel(y, columns int) {
	row, stride := t.dcs.row(y), t.dcs.stride
	switch t.wide * t.high {
	case 16:
		inverse(row, stride, columns)
	case 8:
		for x := range columns {
			a, b := &row[x], &row[4*stride+x]
			*a -= (*b + 1) >> 1
			*b += *a
			butterflies(row[x:], stride)
			butterflies(row[4*stride+x:], stride)
		}
	default:
		for x := range columns {
			butterflies(row[x:], stride)
		}
	}
	if t.double {
		for k := range t.wide * t.high {
			v := row[k*stride:][:columns]
			for x := range v {
				v[x] *= 2
			}
		}
	}
}

// overlapRow filters over the upper edge of row b of blocks, of which there are wide in a macroblock; cut: it is an
// edge of the image or of tiles.
func (d *Decoder) overlapRow(g *grid, b, wide int, cut bool) {
	row := g.row(b)
	if cut {
		if b > 0 {
			d.edge(g, g.row(b-1), wide, 2)
		}
		d.edge(g, row, wide, 0)
		return
	}
	above := g.row(b - 1)
	s := d.segments()
	for i, end := range s[1:] {
		x0, x1 := s[i]*wide, end*wide-1
		for c := range 2 {
			g.quad(g.spot(above, x0, 2, c), g.spot(above, x0, 3, c), g.spot(row, x0, 0, c), g.spot(row, x0, 1, c))
			g.quad(g.spot(above, x1, 2, 2+c), g.spot(above, x1, 3, 2+c), g.spot(row, x1, 0, 2+c), g.spot(row, x1, 1, 2+c))
		}
		n := x1 - x0
		q := 4 * g.stride
		if g.across {
			overlap(above[3*q+x0:], row[2*q+x0:], above[q+x0+1:], row[x0+1:], g.stride, n)
		} else {
			overlap(above[3*q+x0:], above[2*q+x0+1:], row[q+x0:], row[x0+1:], g.stride, n)
		}
	}
}

// spot returns the value of row r, column c of block x.
func (g *grid) spot(row []int32, x, r, c int) *int32 {
	if g.across {
		r, c = c, r
	}
	return &row[int(lifting[4*r+c])*g.stride+x]
}

func (g *grid) quad(a, b, c, d *int32) { *a, *b, *c, *d = overlap4(*a, *b, *c, *d) }

// edge filters along an edge of the image or of tiles: rows r and r+1 of the values of a row of blocks.
func (d *Decoder) edge(g *grid, row []int32, wide, r int) {
	s := d.segments()
	for i, end := range s[1:] {
		x0, x1 := s[i]*wide, end*wide-1
		g.quad(g.spot(row, x0, r, 0), g.spot(row, x0, r, 1), g.spot(row, x0, r+1, 0), g.spot(row, x0, r+1, 1))
		g.quad(g.spot(row, x1, r, 2), g.spot(row, x1, r, 3), g.spot(row, x1, r+1, 2), g.spot(row, x1, r+1, 3))
		for x := x0; x < x1; x++ {
			for k := r; k < r+2; k++ {
				g.quad(g.spot(row, x, k, 2), g.spot(row, x, k, 3), g.spot(row, x+1, k, 0), g.spot(row, x+1, k, 1))
			}
		}
	}
}

// overlapDCs filters DCs over the upper edge of row y of macroblocks, and over the lower one of the last row.
func (d *Decoder) overlapDCs(t *part, y int, cut, last bool) {
	g := &t.dcs
	if t.wide*t.high == 16 {
		d.overlapRow(g, y, 1, cut)
		if last {
			d.edge(g, g.row(y), 1, 2)
		}
		return
	}
	row := g.row(y)
	switch {
	case !cut:
		d.overlapChroma(t, g.row(y - 1)[(t.high-1)*2*g.stride:], row)
	default:
		if y > 0 {
			d.edgeChroma(t, g.row(y - 1)[(t.high-1)*2*g.stride:])
		}
		d.edgeChroma(t, row)
	}
	if t.high == 4 {
		d.overlapChroma(t, row[2*g.stride:], row[4*g.stride:])
	}
	if last {
		d.edgeChroma(t, row[(t.high-1)*2*g.stride:])
	}
}

// overlapChroma filters DCs of subsampled chroma over the border of two rows of them, each given by its left and, a
// stride behind, right column.
func (d *Decoder) overlapChroma(t *part, above, row []int32) {
	s := d.segments()
	k := t.dcs.stride
	for i, end := range s[1:] {
		x0, x1 := s[i], end-1
		above[x0], row[x0] = overlap2(above[x0], row[x0])
		above[k+x1], row[k+x1] = overlap2(above[k+x1], row[k+x1])
		for x := x0; x < x1; x++ {
			overlap2x2(&above[k+x], &above[x+1], &row[k+x], &row[x+1])
		}
	}
}

// edgeChroma filters DCs of subsampled chroma along an edge. Those in corners move with their neighbours.
func (d *Decoder) edgeChroma(t *part, row []int32) {
	s := d.segments()
	k := t.dcs.stride
	for i, end := range s[1:] {
		x0, x1 := s[i], end-1
		beside := row[x1]
		row[x0] -= row[k+x0]
		row[k+x1] -= beside
		for x := x0; x < x1; x++ {
			row[k+x], row[x+1] = overlap2(row[k+x], row[x+1])
		}
		if x1 > x0 {
			beside = row[x1]
		}
		row[x0] += row[k+x0]
		row[k+x1] += beside
	}
}
