package filter

import "math/bits"

// A BitPlane is a binary image of Height × Width pixels, a bit each: rows of Stride words, the lowest bit first. The
// bits of a row beyond its width are 0.
type BitPlane struct {
	Height, Width, Stride int
	Words                 []uint64
}

// NewBitPlane returns an image of pixels that are 0.
func NewBitPlane(height, width int) *BitPlane {
	stride := (width + 63) / 64
	return &BitPlane{height, width, stride, make([]uint64, height*stride)}
}

// BitPlaneBytes returns the memory in bytes of a [BitPlane], and the scratch memory that [BitPlane.FillHoles] and
// [BitPlane.Close] need in the worst case.
func BitPlaneBytes(height, width int) (plane, scratch int64) {
	plane = int64(height) * int64((width+63)/64) * 8
	return plane, 2*plane + int64(height)*int64((width+3)/2)*12
}

// row returns the words of row y.
func (p *BitPlane) row(y int) []uint64 { return p.Words[y*p.Stride:][:p.Stride] }

// Count returns the number of pixels that are 1.
func (p *BitPlane) Count() (n int64) {
	for _, w := range p.Words {
		n += int64(bits.OnesCount64(w))
	}
	return n
}

// CopyRow replaces n pixels of row y, from x on, by the first n bits of src.
func (p *BitPlane) CopyRow(y, x int, src []uint64, n int) {
	for i := 0; i < n; i += 64 {
		k := min(64, n-i)
		v := src[i>>6] & (^uint64(0) >> (64 - k))
		at, shift := y*p.Stride+(x+i)>>6, uint(x+i)&63
		mask := ^uint64(0) >> (64 - k)
		p.Words[at] = p.Words[at]&^(mask<<shift) | v<<shift
		if int(shift)+k > 64 {
			p.Words[at+1] = p.Words[at+1]&^(mask>>(64-shift)) | v>>(64-shift)
		}
	}
}

// ReadRow copies n pixels of row y, from x on, to the first n bits of dst, and clears the bits of dst behind them.
func (p *BitPlane) ReadRow(dst []uint64, y, x, n int) {
	for i := 0; i < n; i += 64 {
		k := min(64, n-i)
		at, shift := y*p.Stride+(x+i)>>6, uint(x+i)&63
		v := p.Words[at] >> shift
		if int(shift)+k > 64 {
			v |= p.Words[at+1] << (64 - shift)
		}
		dst[i>>6] = v & (^uint64(0) >> (64 - k))
	}
}

// gap is a maximal run of pixels that are 0 in a row.
type gap struct{ from, to, parent int32 }

// FillHoles sets the pixels of 0 that cannot be reached from the image's border by steps between neighbouring pixels of
// 0, of which each has 4.
func (p *BitPlane) FillHoles() {
	gaps := []gap{{}} // the first stands for what lies outside
	find := func(i int32) int32 {
		for gaps[i].parent != i {
			gaps[i].parent = gaps[gaps[i].parent].parent
			i = gaps[i].parent
		}
		return i
	}
	join := func(a, b int32) { // the earlier one is the root, so that the border is one
		a, b = find(a), find(b)
		gaps[max(a, b)].parent = min(a, b)
	}
	starts := make([]int32, p.Height+1)
	above := int32(1)
	for y := range p.Height {
		starts[y] = int32(len(gaps))
		prior := above
		for x := p.next(y, 0, false); x < p.Width; {
			end := p.next(y, x, true)
			id := int32(len(gaps))
			gaps = append(gaps, gap{int32(x), int32(end), id})
			if y == 0 || y == p.Height-1 || x == 0 || end == p.Width {
				join(id, 0)
			}
			for prior < starts[y] && gaps[prior].to <= int32(x) {
				prior++
			}
			for k := prior; k < starts[y] && gaps[k].from < int32(end); k++ {
				join(id, k)
			}
			x = p.next(y, end, false)
		}
		above = starts[y]
	}
	starts[p.Height] = int32(len(gaps))
	for y := range p.Height {
		for i := starts[y]; i < starts[y+1]; i++ {
			if find(i) != 0 {
				p.fill(y, int(gaps[i].from), int(gaps[i].to))
			}
		}
	}
}

// next returns the first pixel of row y from x on that is 1 or 0, or the width.
func (p *BitPlane) next(y, x int, one bool) int {
	row := p.row(y)
	for x < p.Width {
		w := row[x>>6]
		if !one {
			w = ^w
		}
		if w >>= x & 63; w != 0 {
			return min(p.Width, x+bits.TrailingZeros64(w))
		}
		x = (x | 63) + 1
	}
	return p.Width
}

// fill makes the pixels from…to−1 of a row 1.
func (p *BitPlane) fill(y, from, to int) {
	row := p.row(y)
	for from < to {
		end := min(to, (from|63)+1)
		row[from>>6] |= ^uint64(0) >> (64 - (end - from)) << (from & 63)
		from = end
	}
}

// diskRows lists the rows of a disk of radius 3, which has 29 pixels, by their half width.
var diskRows = []struct {
	reach int
	rows  []int
}{{3, []int{0}}, {2, []int{-2, -1, 1, 2}}, {0, []int{-3, 3}}}

// Close dilates the image by a disk of radius 3 and erodes it by the same disk. Pixels outside the image count as 0 in
// both steps, so that a region that touches the border loses 3 pixels there.
func (p *BitPlane) Close() {
	wide := p.disk(false)
	p.Words = wide.disk(true).Words
}

// disk returns the image dilated by the disk, or eroded.
func (p *BitPlane) disk(erode bool) *BitPlane {
	out := NewBitPlane(p.Height, p.Width)
	if erode {
		for i := range out.Words {
			out.Words[i] = ^uint64(0)
		}
	}
	reached := make([]uint64, p.Stride)
	for y := range p.Height {
		for _, part := range diskRows {
			p.along(reached, y, part.reach, erode)
			for _, dy := range part.rows {
				if uint(y+dy) >= uint(p.Height) {
					continue
				}
				row := out.row(y + dy)
				for i, w := range reached {
					if erode {
						row[i] &= w
					} else {
						row[i] |= w
					}
				}
			}
		}
	}
	if erode { // the disks of the outermost rows reach beyond the image
		for y := range p.Height {
			if y < 3 || y >= p.Height-3 {
				clear(out.row(y))
			}
		}
	}
	if tail := p.Width & 63; tail != 0 {
		for y := range p.Height {
			out.row(y)[p.Stride-1] &= 1<<tail - 1
		}
	}
	return out
}

// along combines each pixel of row y with its neighbours at a distance of up to reach pixels: by AND if erode is set,
// otherwise by OR. Pixels outside the row are 0.
func (p *BitPlane) along(dst []uint64, y, reach int, erode bool) {
	row := p.row(y)
	for i, w := range row {
		var before, behind uint64
		if i > 0 {
			before = row[i-1]
		}
		if i+1 < len(row) {
			behind = row[i+1]
		}
		v := w
		for k := 1; k <= reach; k++ {
			left, right := w<<k|before>>(64-k), w>>k|behind<<(64-k)
			if erode {
				v &= left & right
			} else {
				v |= left | right
			}
		}
		dst[i] = v
	}
}

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
