package filter

// AppendRuns appends the pixels, counted in C order, at which the image changes: where a run of 1 begins, and behind
// its end. Runs may reach over ends of rows. The image has at most 2³² − 1 pixels.
func (p *BitPlane) AppendRuns(runs []uint32) []uint32 {
	for y := range p.Height {
		first := uint32(y * p.Width)
		for x := p.next(y, 0, true); x < p.Width; {
			end := p.next(y, x, false)
			if n := len(runs); n > 0 && runs[n-1] == first+uint32(x) {
				runs[n-1] = first + uint32(end)
			} else {
				runs = append(runs, first+uint32(x), first+uint32(end))
			}
			x = p.next(y, end, true)
		}
	}
	return runs
}

// Above sets each pixel to 1 if its value, in C order, is above t, and otherwise to 0.
func (p *BitPlane) Above(values []float32, t float32) {
	clear(p.Words)
	for y := range p.Height {
		row := p.row(y)
		for x, v := range values[y*p.Width:][:p.Width] {
			if v > t {
				row[x>>6] |= 1 << (x & 63)
			}
		}
	}
}
