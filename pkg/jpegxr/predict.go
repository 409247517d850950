package jpegxr

// weight is the factor by which the difference in one direction must exceed that in the other direction before the
// other is used for prediction.
const weight = 4

func abs(v int32) int32 {
	if v < 0 {
		return -v
	}
	return v
}

// choose compares the differences along rows and columns.
func choose(row, column int32) direction {
	switch {
	case row*weight < column:
		return fromAbove
	case column*weight < row:
		return fromLeft
	}
	return fromBoth
}

// directionDC returns the direction from which DC is predicted.
func (d *Decoder) directionDC(m *macroblock) direction {
	switch {
	case !m.left && !m.above:
		return fromNone
	case !m.left:
		return fromAbove
	case !m.above:
		return fromLeft
	}
	var row, column int32
	for p := range d.planes {
		t := &d.parts[p]
		left, above, corner := t.now[m.x-1].dc, t.before[m.x].dc, t.before[m.x-1].dc
		scale := int32(1)
		if p == 0 && d.color != grey {
			scale = [4]int32{0, 8, 4, 2}[d.color]
		}
		row += abs(corner-left) * scale
		column += abs(corner-above) * scale
	}
	return choose(row, column)
}

// directionHP returns the direction from which HP is predicted in the macroblock; neither left nor above
// means no prediction.
func (d *Decoder) directionHP(m *macroblock) direction {
	y := &m.lp[0]
	row, column := abs(y[1])+abs(y[2])+abs(y[3]), abs(y[4])+abs(y[8])+abs(y[12])
	for p := 1; p < d.planes; p++ {
		c := &m.lp[p]
		row += abs(c[1])
		switch d.color {
		case color420:
			column += abs(c[2])
		case color422:
			row += abs(c[5])
			column += abs(c[2]) + abs(c[6])
		default:
			column += abs(c[4])
		}
	}
	return choose(row, column)
}

// predictLP undoes the prediction of DC and LP, and keeps the coefficients from which the next macroblocks are
// predicted.
func (d *Decoder) predictLP(m *macroblock) {
	dc := d.directionDC(m)
	lp := fromNone
	for p := range d.planes {
		t := &d.parts[p]
		var left, above known
		if m.left {
			left = t.now[m.x-1]
		}
		if m.above {
			above = t.before[m.x]
		}
		if p == 0 && (dc == fromAbove && above.indexLP == m.indexLP || dc == fromLeft && left.indexLP == m.indexLP) {
			lp = dc
		}
		c := &m.lp[p]
		switch dc {
		case fromAbove:
			c[0] += above.dc
		case fromLeft:
			c[0] += left.dc
		case fromBoth:
			c[0] += (left.dc + above.dc + t.round) >> 1
		}
		now := &t.now[m.x]
		now.dc, now.indexLP = c[0], m.indexLP
		switch t.wide * t.high {
		case 16:
			predict16(c, lp, &left, &above, now)
		case 8:
			predict8(c, lp, dc, &left, &above, now)
		default:
			predict4(c, lp, &left, &above, now)
		}
	}
}

func predict16(c *[16]int32, from direction, left, above, now *known) {
	for i := range 3 {
		if from == fromAbove {
			c[4*i+4] += above.column[i]
		} else if from == fromLeft {
			c[i+1] += left.row[i]
		}
	}
	now.row, now.column = [3]int32{c[1], c[2], c[3]}, [3]int32{c[4], c[8], c[12]}
}

func predict4(c *[16]int32, from direction, left, above, now *known) {
	if from == fromAbove {
		c[2] += above.column[0]
	} else if from == fromLeft {
		c[1] += left.row[0]
	}
	now.row[0], now.column[0] = c[1], c[2]
}

func predict8(c *[16]int32, from, dc direction, left, above, now *known) {
	switch {
	case from == fromAbove:
		c[4] += above.column[2]
		c[2] += above.column[1]
		c[6] += c[2]
	case from == fromLeft:
		c[4] += left.column[2]
		c[1] += left.row[0]
		c[5] += left.row[1]
	case dc == fromAbove:
		c[6] += c[2]
	}
	now.row, now.column = [3]int32{c[1], c[5]}, [3]int32{c[2], c[6], c[4]}
}

// predictPatterns undoes the prediction of coded block patterns.
func (d *Decoder) predictPatterns(c *coder, m *macroblock, patterns *[3]uint32) {
	for p := range d.planes {
		t := &d.parts[p]
		var left, above *uint32
		if m.left {
			left = &t.now[m.x-1].pattern
		}
		if m.above {
			above = &t.before[m.x].pattern
		}
		patterns[p] = c.patterns[min(p, 1)].predict(patterns[p], t.wide*t.high, left, above)
		t.now[m.x].pattern = patterns[p]
	}
}

// predictHP undoes the prediction of the HP coefficients of a plane.
func (m *macroblock) predictHP(t *part, p int) {
	switch m.from {
	case fromAbove:
		for k := 4; k <= 12; k += 4 {
			v := m.hp[p][k<<t.shift:][:t.wide*t.high]
			for i := t.wide; i < len(v); i++ {
				v[i] += v[i-t.wide]
			}
		}
	case fromLeft:
		for k := 1; k <= 3; k++ {
			v := m.hp[p][k<<t.shift:][:t.wide*t.high]
			for i := range v {
				if i%t.wide != 0 {
					v[i] += v[i-1]
				}
			}
		}
	}
}
