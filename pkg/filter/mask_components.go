package filter

import "bytes"

// A Mask is a binary volume of Shape (z, y, x) in C order: a byte of 0 or 1 for each voxel. A mask with an axis of one
// voxel is a plane, whose voxels have 4 neighbours instead of 6.
type Mask struct {
	Voxels []uint8
	Shape  [3]int
}

// Count returns the number of voxels that are 1.
func (m *Mask) Count() (n int64) { return int64(bytes.Count(m.Voxels, []byte{1})) }

// RunBytes is the memory of a run of equal voxels in [Mask.KeepLargest] and [Mask.FillHoles].
const RunBytes = 12 + 8

// Runs returns the number of runs of voxels of a value in the rows of the mask.
func (m *Mask) Runs(value uint8) (n int64) {
	for row := range m.rows {
		for x := next(row, 0, value); x < len(row); x = next(row, x, value) {
			x = next(row, x, 1-value)
			n++
		}
	}
	return n
}

// rows visits the rows of the mask.
func (m *Mask) rows(yield func([]uint8) bool) {
	nx := m.Shape[2]
	for at := 0; at < len(m.Voxels); at += nx {
		if !yield(m.Voxels[at : at+nx]) {
			return
		}
	}
}

// next returns the first place from x on that holds a value, or the length of the row.
func next(row []uint8, x int, value uint8) int {
	if i := bytes.IndexByte(row[x:], value); i >= 0 {
		return x + i
	}
	return len(row)
}

// KeepLargest clears all but the largest component, a set of voxels of 1 that steps to neighbours connect. Of equally
// large ones it keeps the first in C order. It returns the number of components before.
func (m *Mask) KeepLargest() (components int) {
	c := m.components(1)
	size := make([]int64, len(c.runs))
	for i, r := range c.runs {
		size[c.root(int32(i))] += int64(r.to - r.from)
	}
	best := int32(0)
	for i, n := range size {
		if n > 0 {
			components++
		}
		if n > size[best] {
			best = int32(i)
		}
	}
	c.paint(m, 0, func(root int32) bool { return root != best })
	return components
}

// FillHoles sets the voxels of 0 that cannot be reached from the border of the volume by steps between neighbouring
// voxels of 0.
func (m *Mask) FillHoles() {
	c := m.components(0)
	outside := make([]bool, len(c.runs))
	ny, nx := m.Shape[1], int32(m.Shape[2])
	edge := func(at, n int) bool { return n > 1 && (at == 0 || at == n-1) }
	for row := range len(c.starts) - 1 {
		border := edge(row/ny, m.Shape[0]) || edge(row%ny, ny)
		for i := c.starts[row]; i < c.starts[row+1]; i++ {
			if r := &c.runs[i]; border || nx > 1 && (r.from == 0 || r.to == nx) {
				outside[c.root(i)] = true
			}
		}
	}
	c.paint(m, 1, func(root int32) bool { return !outside[root] })
}

// maskRun is a run of voxels in a row, and a run before it, or itself, of the same component.
type maskRun struct{ from, to, parent int32 }

// maskRuns are the runs of a value in a mask, joined to components. Rows begin at starts.
type maskRuns struct {
	runs   []maskRun
	starts []int32
}

// components finds the components of voxels of a value. The root of each is its first run.
func (m *Mask) components(value uint8) *maskRuns {
	rows := m.Shape[0] * m.Shape[1]
	c := &maskRuns{runs: make([]maskRun, 0, m.Runs(value)), starts: make([]int32, 1, rows+1)}
	at := 0
	for row := range m.rows {
		for x := next(row, 0, value); x < len(row); {
			end := next(row, x, 1-value)
			c.runs = append(c.runs, maskRun{int32(x), int32(end), int32(len(c.runs))})
			x = next(row, end, value)
		}
		c.starts = append(c.starts, int32(len(c.runs)))
		if at%m.Shape[1] > 0 {
			c.join(at, at-1)
		}
		if at >= m.Shape[1] {
			c.join(at, at-m.Shape[1])
		}
		at++
	}
	return c
}

// root returns the first run of the component of a run.
func (c *maskRuns) root(i int32) int32 {
	for c.runs[i].parent != i {
		c.runs[i].parent = c.runs[c.runs[i].parent].parent
		i = c.runs[i].parent
	}
	return i
}

// join joins the runs of two rows that share places along x.
func (c *maskRuns) join(row, other int) {
	i, k := c.starts[row], c.starts[other]
	for i < c.starts[row+1] && k < c.starts[other+1] {
		a, b := &c.runs[i], &c.runs[k]
		if a.from < b.to && b.from < a.to {
			p, q := c.root(i), c.root(k)
			c.runs[max(p, q)].parent = min(p, q)
		}
		if a.to < b.to {
			i++
		} else {
			k++
		}
	}
}

// paint gives the voxels of the components that are chosen by their root another value.
func (c *maskRuns) paint(m *Mask, value uint8, chosen func(root int32) bool) {
	nx := m.Shape[2]
	for row := range len(c.starts) - 1 {
		for i := c.starts[row]; i < c.starts[row+1]; i++ {
			if !chosen(c.root(i)) {
				continue
			}
			part := m.Voxels[row*nx:][c.runs[i].from:c.runs[i].to]
			for x := range part {
				part[x] = value
			}
		}
	}
}
