package volume

import (
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
)

// loader loads voxels into planes, with the same bits on every machine.
type loader interface {
	// Load reads a box of a source into planes, as float32. It waits for queued work on them.
	Load(b *Box)
}

// A Box is a part of a source, with its destination in planes.
type Box struct {
	Source       *Source
	Start, Shape [3]int // (z, y, x)
	To           []Plane
	Y, X         int     // position of its first pixel in the planes
	Gain         float32 // factor of the voxels
	// Anew means that the box is loaded for the first time: its bytes count as progress, and its non-finite voxels are
	// counted.
	Anew bool
}

func (h *host) Load(b *Box) {
	h.try(func() error {
		if err := h.read(b); err != nil {
			return err
		}
		if b.Anew {
			b.Source.progress(h.res, int64(b.Shape[0]*b.Shape[1]*b.Shape[2])*int64(b.Source.dtype.Size()))
		}
		return nil
	})
}

// read reads a box, chunk column by chunk column.
func (h *host) read(b *Box) error {
	s, start, shape := b.Source, b.Start, b.Shape
	cy, cx := s.chunk[1], s.chunk[2]
	y0, x0 := start[1]/cy, start[2]/cx
	y1, x1 := start[1]+shape[1], start[2]+shape[2]
	ny, nx := (y1+cy-1)/cy-y0, (x1+cx-1)/cx-x0
	return h.each(ny*nx, h.readers, func(scratch *growing, i int) error {
		lo := [3]int{start[0], max(start[1], (y0+i/nx)*cy), max(start[2], (x0+i%nx)*cx)}
		n := [3]int{shape[0], min(y1, (y0+i/nx+1)*cy) - lo[1], min(x1, (x0+i%nx+1)*cx) - lo[2]}
		return s.readPlanes(h.ctx, lo, n, scratch, func(first int, planes []byte) error {
			begin := time.Now()
			b.place(first, lo[1]-start[1], lo[2]-start[2], n[1], n[2], planes)
			if b.Anew {
				h.res.Meter.AddNonFinite(filter.NonFiniteStored(s.dtype, planes))
			}
			h.res.Meter.Since(meter.Compute, begin)
			return nil
		})
	})
}

// place converts planes of ny × nx voxels and stores them at their destination. The first voxel is voxel (z, y,
// x) of the box.
func (b *Box) place(z, y, x, ny, nx int, planes []byte) {
	kind := b.Source.dtype
	row := nx * kind.Size()
	for ; len(planes) > 0; z++ {
		for r := range ny {
			v := b.To[z].row(b.Y+y+r, b.X+x, b.X+x+nx)
			if kind == dtype.Float32 {
				copy(dtype.Bytes(v), planes)
			} else {
				dtype.ConvertSlice(v, planes[:row], kind)
			}
			if b.Gain != 1 {
				filter.Combine(v, v, 0, []float32{b.Gain})
			}
			planes = planes[row:]
		}
	}
}
