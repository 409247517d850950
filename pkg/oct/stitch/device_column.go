package stitch

import (
	"errors"
	"slices"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
)

// deviceOutColumn is a column in device memory.
type deviceOutColumn struct {
	*outColumn
	left   int // tiles to come
	buffer *gpu.Buffer
	voxels gpu.Span    // all planes of the slab
	means  gpu.Span    // of shared cells, cell by cell (z, y, x); empty where they are kept in voxels
	sums   [2]gpu.Span // of weights, of shared cells, (y, x): before a tile and with it, in turn
	states gpu.Span    // sums of the seams
	keys   []seamKey   // the seams
	cells  []deviceCell
}

// deviceCell is a region of a column in device memory.
type deviceCell struct {
	region
	at   int // its first pixel among those of shared cells
	key  int // its seam; −1: none
	seen int // tiles that have been added and are not empty
}

// seamKeys are the seams in a column: pairs of tiles that share a region with nobody
// else.
func seamKeys(c *outColumn) (keys []seamKey) {
	for _, r := range c.regions {
		if len(r.who) == 2 {
			if k := (seamKey{r.who[0], r.who[1], c}); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// columnParts is where the parts of a column's memory begin, and its end: voxels, means,
// two of sums, states.
func (f *deviceFusion) columnParts(c *outColumn, planes int) (at [6]int64) {
	area := int64(c.box.Y1-c.box.Y0) * int64(c.box.X1-c.box.X0)
	kind := f.mosaic.DType
	bytes := [5]int64{area * int64(planes*kind.Size()), 0, int64(4 * c.shared), int64(4 * c.shared), 0}
	if kernels.FuseType(kind) != kind {
		bytes[1] = int64(c.shared) * int64(planes*kernels.FuseType(kind).Size())
	}
	if f.seams != nil {
		bytes[4] = int64(len(seamKeys(c)) * kernels.SeamState)
	}
	for i, n := range bytes {
		at[i+1] = at[i] + (n+255)/256*256
	}
	return at
}

// columnMemory is what a column of some planes takes of the device's memory.
func (f *deviceFusion) columnMemory(c *outColumn, planes int) int64 {
	return mem.Pooled(f.columnParts(c, planes)[5])
}

// newDeviceColumn takes memory for a column.
func (p *devicePass) newDeviceColumn(c *outColumn) (*deviceOutColumn, error) {
	at := p.columnParts(c, p.z1-p.z0)
	b, err := p.res.Device.Memory().Get(at[5])
	if errors.Is(err, gpu.ErrMemory) && p.weights.trim() {
		b, err = p.res.Device.Memory().Get(at[5])
	}
	if err != nil {
		return nil, err
	}
	part := func(i int) gpu.Span { return b.From(at[i], at[i+1]-at[i]) }
	m := &deviceOutColumn{outColumn: c, left: len(c.tiles), buffer: b, voxels: part(0), means: part(1), sums: [2]gpu.Span{part(2), part(3)}, states: part(4)}
	if p.seams != nil {
		m.keys = seamKeys(c)
	}
	shared := 0
	for _, r := range c.regions {
		l := deviceCell{region: r, at: shared, key: -1}
		if len(r.who) > 1 {
			shared += (r.Y1 - r.Y0) * (r.X1 - r.X0)
		}
		if len(r.who) == 2 && p.seams != nil {
			l.key = slices.Index(m.keys, seamKey{r.who[0], r.who[1], c})
		}
		m.cells = append(m.cells, l)
	}
	return m, nil
}

// hasHoles reports that there are pixels that no tile covers.
func (m *deviceOutColumn) hasHoles() bool {
	return slices.ContainsFunc(m.cells, func(l deviceCell) bool { return len(l.who) == 0 })
}

// cellOf is what a tile, the at-th of a cell, does to it; ok is false where that is
// nothing.
func (p *devicePass) cellOf(m *deviceOutColumn, l *deviceCell, t, at int) (c kernels.Cell, ok bool) {
	kind := p.mosaic.DType
	ny, nx := m.box.Y1-m.box.Y0, m.box.X1-m.box.X0
	place := &p.places[t]
	first := int64((l.Y0-m.box.Y0)*nx+l.X0-m.box.X0) * int64(kind.Size())
	c = kernels.Cell{
		Voxels: m.voxels.From(first, m.voxels.Bytes()-first), Pitch: nx, Stride: int64(ny) * int64(nx),
		Y: l.Y0 - place.Y0, X: l.X0 - place.X0, NY: l.Y1 - l.Y0, NX: l.X1 - l.X0,
	}
	empty, last := p.isEmpty(t), at == len(l.who)-1
	if len(l.who) == 1 {
		switch {
		case empty:
			c.Do = kernels.CellStore
		case place.frac == [2]float32{}:
			c.Do = kernels.CellCopy
		default:
			c.Do = kernels.CellSample | kernels.CellStore
		}
		return c, true
	}
	inPlace := m.means.Bytes() == 0
	if inPlace {
		c.Mean, c.MeanPitch, c.MeanStride = c.Voxels, c.Pitch, c.Stride
	} else {
		size, pixels := int64(kernels.FuseType(kind).Size()), int64(c.NY)*int64(c.NX)
		planes := int64(p.z1 - p.z0)
		c.Mean, c.MeanPitch, c.MeanStride = m.means.From(int64(l.at)*planes*size, pixels*planes*size), c.NX, pixels
	}
	if l.seen > 0 {
		c.Do |= kernels.CellBlend
	}
	if last {
		c.Do |= kernels.CellStore
	}
	if !empty {
		c.Do |= kernels.CellSample
		n := int64(4 * c.NY * c.NX)
		c.Before, c.After = m.sums[l.seen%2].From(int64(4*l.at), n), m.sums[1-l.seen%2].From(int64(4*l.at), n)
		return c, true
	}
	return c, last && !(inPlace && l.seen > 0)
}
