package filter

import "math"

// Rims fills the minima of volumes to their rims: the level of a voxel becomes the lowest height over which a path by
// faces of voxels leads from it to the border. (This is the reconstruction by erosion of morphology; the algorithm, two
// scans and a queue, is that of L. Vincent, IEEE Transactions on Image Processing 2, 1993.) The result consists of
// values of the input and does not depend on the order of the work. A volume can be cut into parts: a part is filled
// with what is known of the levels of its neighbours, again whenever these fall. It owns scratch memory and serves one
// goroutine.
type Rims struct {
	queue, next []int32
	queued      []bool
}

// RimsBytes is the scratch memory in bytes that each voxel of a part needs.
const RimsBytes = 9

// Beside holds the levels of the voxels beside a part, nil where the volume ends: before the first row and behind the
// last, of planes × columns, before the first column and behind the last, of planes × rows.
type Beside [4][]float32

// Fill writes the levels of src, a part of shape (z, y, x) with all planes of the volume, to dst. The first and the
// last plane are borders of the volume, and so is a side whose Beside is nil. No value is NaN. They do not overlap.
func (m *Rims) Fill(dst, src []float32, shape [3]int, beside Beside) {
	n := shape[0] * shape[1] * shape[2]
	dst, src = dst[:n], src[:n]
	m.queued = room(m.queued, n)
	clear(m.queued)
	start(dst, src, shape, beside)
	m.queue = m.queue[:0]
	scanDown(dst, src, shape)
	m.scanUp(dst, src, shape)
	m.spread(dst, src, shape)
}

// start sets the initial levels: the height of voxels at the volume's border, the higher of height and known level of
// voxels next to a known level, and +Inf elsewhere.
func start(dst, src []float32, shape [3]int, beside Beside) {
	nz, ny, nx := shape[0], shape[1], shape[2]
	area := ny * nx
	for i := range dst {
		dst[i] = float32(math.Inf(1))
	}
	copy(dst, src[:area])
	copy(dst[(nz-1)*area:], src[(nz-1)*area:])
	for z := 1; z < nz-1; z++ {
		for side, at := range [4]int{z * area, z*area + (ny-1)*nx, z * area, z*area + nx - 1} {
			n, step := nx, 1
			if side >= 2 {
				n, step = ny, nx
			}
			for k := range n {
				level := src[at]
				if b := beside[side]; b != nil && b[z*n+k] > level {
					level = b[z*n+k]
				}
				if level < dst[at] {
					dst[at] = level
				}
				at += step
			}
		}
	}
}

// scanDown lowers each level to the lowest level of its preceding neighbours, in C order, but not below the voxel's
// height.
func scanDown(dst, src []float32, shape [3]int) {
	nx, area := shape[2], shape[1]*shape[2]
	for z := 1; z < shape[0]-1; z++ {
		for y := range shape[1] {
			at := z*area + y*nx
			row, height, back := dst[at:at+nx], src[at:at+nx], dst[at-area:at-area+nx]
			up := back // a row that is there
			if y > 0 {
				up = dst[at-nx : at]
			}
			left := float32(math.Inf(1))
			for x, v := range row {
				left = max(min(v, back[x], up[x], left), height[x])
				row[x] = left
			}
		}
	}
}

// scanUp lowers levels like scanDown, from following neighbours in reverse order. It queues voxels whose neighbours can
// be lowered further.
func (m *Rims) scanUp(dst, src []float32, shape [3]int) {
	nx, area := shape[2], shape[1]*shape[2]
	for z := shape[0] - 2; z > 0; z-- {
		for y := shape[1] - 1; y >= 0; y-- {
			at := z*area + y*nx
			row, height, front := dst[at:at+nx], src[at:at+nx], dst[at+area:at+area+nx]
			down := front
			if y < shape[1]-1 {
				down = dst[at+nx : at+2*nx]
			}
			right := float32(math.Inf(1))
			for x := nx - 1; x >= 0; x-- {
				v := max(min(row[x], front[x], down[x], right), height[x])
				row[x] = v
				if front[x] > v && z < shape[0]-2 && front[x] > src[at+area+x] || y < shape[1]-1 && down[x] > v && down[x] > src[at+nx+x] ||
					x < nx-1 && right > v && right > height[x+1] {
					m.put(at + x)
				}
				right = v
			}
		}
	}
}

// put queues a voxel unless it is queued.
func (m *Rims) put(i int) {
	if !m.queued[i] {
		m.queued[i] = true
		m.queue = append(m.queue, int32(i))
	}
}

// spread lets levels fall from the voxels in the queue on until nothing changes.
func (m *Rims) spread(dst, src []float32, shape [3]int) {
	nx, area := shape[2], shape[1]*shape[2]
	end := (shape[0] - 1) * area
	fall := func(i int, level float32) {
		if dst[i] > level && dst[i] > src[i] {
			dst[i] = max(level, src[i])
			m.put(i)
		}
	}
	for len(m.queue) > 0 {
		m.queue, m.next = m.next[:0], m.queue
		for _, k := range m.next {
			i := int(k)
			m.queued[i] = false
			level := dst[i]
			y, x := i%area/nx, i%nx
			if i-area >= area {
				fall(i-area, level)
			}
			if i+area < end {
				fall(i+area, level)
			}
			if y > 0 {
				fall(i-nx, level)
			}
			if y < shape[1]-1 {
				fall(i+nx, level)
			}
			if x > 0 {
				fall(i-1, level)
			}
			if x < nx-1 {
				fall(i+1, level)
			}
		}
	}
}
