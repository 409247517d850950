package filter

// Median replaces each voxel of the mask by the median of the window³ voxels around it, with the mask reflected at its
// edges (scipy.ndimage.median_filter with its default mode). window must be odd. scratch has as many bytes as the mask
// has voxels.
func (m *Mask) Median(window int, scratch []uint8) {
	r := window / 2
	if r == 0 {
		return
	}
	nz, ny, nx := m.Shape[0], m.Shape[1], m.Shape[2]
	copy(scratch, m.Voxels)
	columns, row := make([]int32, ny*nx), make([]int32, nx) // sums over z; sums over z and y
	add := func(z int, sign int32) {
		plane := scratch[Reflect.Index(z, nz)*ny*nx:][:ny*nx]
		for i, v := range plane {
			columns[i] += sign * int32(v)
		}
	}
	for z := -r; z < r; z++ {
		add(z, 1)
	}
	half := int32(window * window * window / 2)
	for z := range nz {
		add(z+r, 1)
		clear(row)
		sum := func(y int, sign int32) {
			line := columns[Reflect.Index(y, ny)*nx:][:nx]
			for x, v := range line {
				row[x] += sign * v
			}
		}
		for y := -r; y < r; y++ {
			sum(y, 1)
		}
		for y := range ny {
			sum(y+r, 1)
			out, total := m.Voxels[(z*ny+y)*nx:][:nx], int32(0)
			for x := -r; x < r; x++ {
				total += row[Reflect.Index(x, nx)]
			}
			for x := range out {
				total += row[Reflect.Index(x+r, nx)]
				out[x] = 0
				if total > half {
					out[x] = 1
				}
				total -= row[Reflect.Index(x-r, nx)]
			}
			sum(y-r, -1)
		}
		add(z-r, -1)
	}
}
