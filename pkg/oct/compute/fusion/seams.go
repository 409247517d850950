package fusion

import (
	"encoding/binary"
	"math"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
)

// SeamStep is the distance between the planes in which two tiles are compared.
const SeamStep = 4

// SeamSum accumulates the differences between two tiles over the voxels that both cover, in the same order on
// every machine.
type SeamSum struct {
	N                int64
	Abs              float64 // of |a−b|
	A, B, AA, BB, AB float64 // of a and b relative to Offset, their squares and product
	Offset           float64
}

// addRow adds a row of values of the first tile and of the second to m.
func addRow[F float32 | float64](m *SeamSum, va, vb []F) {
	for i, v := range va {
		p, q := float64(v), float64(vb[i])
		d := p - q
		if d-d != 0 {
			continue
		}
		if m.N == 0 {
			m.Offset = p
		}
		p, q = p-m.Offset, q-m.Offset
		m.N++
		m.Abs += math.Abs(d)
		m.A, m.B = m.A+p, m.B+q
		m.AA, m.BB, m.AB = m.AA+float64(p*p), m.BB+float64(q*q), m.AB+float64(p*q)
	}
}

// fields returns pointers to the sums in the kernels' order, without N.
func (m *SeamSum) fields() [7]*float64 {
	return [7]*float64{&m.Abs, &m.A, &m.B, &m.AA, &m.BB, &m.AB, &m.Offset}
}

// put encodes the sums in the kernels' format.
func (m *SeamSum) put(b []byte) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(float64(m.N)))
	for i, f := range m.fields() {
		binary.LittleEndian.PutUint64(b[8+8*i:], math.Float64bits(*f))
	}
}

// get decodes the sums from the kernels' format.
func (m *SeamSum) get(b []byte) {
	m.N = int64(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	for i, f := range m.fields() {
		*f = math.Float64frombits(binary.LittleEndian.Uint64(b[8+8*i:]))
	}
}

// takeSums stores the sums of a column's seams as read back from the device.
func (m *ColumnMemory) takeSums(states []byte) {
	for i, s := range m.sums {
		s.get(states[i*kernels.SeamState:])
	}
}

// putSums encodes the sums of a column's seams for the device.
func (m *ColumnMemory) putSums(states []byte) {
	for i, s := range m.sums {
		s.put(states[i*kernels.SeamState:])
	}
}

// deviceSeam is a seam of a column, with a cell in which the loaded tile is compared.
type deviceSeam struct {
	sums gpu.Span
	cell kernels.Cell
}

// queueSeams queues the comparison of the tile with the running means. The cells of each seam are consecutive in
// the table.
func (w *deviceFuser) queueSeams(t kernels.Tile) error {
	if len(w.seams) == 0 {
		return nil
	}
	type part struct {
		sums         gpu.Span
		first, count int
	}
	var parts []part
	rows, cells := w.row(len(w.seams) * kernels.CellBytes)
	n := 0
	for i := range w.seams {
		sums := w.seams[i].sums
		if sums.Bytes() == 0 {
			continue // its cell is in the table
		}
		p := part{sums, n, 0}
		for k := i; k < len(w.seams); k++ {
			if s := &w.seams[k]; s.sums == sums {
				kernels.PutCell(rows, n, &s.cell)
				s.sums = gpu.Span{}
				n++
				p.count++
			}
		}
		parts = append(parts, p)
	}
	list, seams := w.row(len(parts) * kernels.SeamBytes)
	for i, p := range parts {
		kernels.PutSeam(list, i, p.sums, p.first, p.count)
	}
	w.dev.Stream.Upload(cells, rows)
	w.dev.Stream.Upload(seams, list)
	return kernels.Seams(w.dev.Stream, t, cells, seams, len(parts), w.pass.Z0, w.pieces)
}
