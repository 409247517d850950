package stack

import (
	"context"
	"math"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
	"strata/pkg/work"
)

// surveyor examines parts of slices before any is placed: the adjoining ends of neighbours. It averages pixels to
// a size in micrometres at which tissue is still visible but speckle is not, so that its results do not depend on
// the slices' pixel size. It always works on the CPU, so that the numbers, and thereby the volume, are the same on
// every machine.
type surveyor struct {
	plan *stackPlan
	mem  volume.Memory
	res  *oct.Resources
	box  []byte // planes being read
}

func newSurveyor(ctx context.Context, p *stackPlan, res *oct.Resources) *surveyor {
	var sources []*volume.Source
	for _, s := range p.slices {
		sources = append(sources, s.source)
	}
	return &surveyor{plan: p, mem: volume.OpenHost(ctx, sources, res), res: res}
}

func (s *surveyor) close() error {
	mem.Free(s.box)
	return s.mem.Close()
}

// micrometres converts a length to pixels of the given size, from 1 to more than any slice has.
func micrometres(um, pixel float64) int { return max(1, int(math.Round(min(um/pixel, 1<<30)))) }

// planes reads a box of a slice, as many planes at a time as fit into memory, and calls look with each plane and
// its index in the box. Several workers call look concurrently, in no order.
func (s *surveyor) planes(ctx context.Context, of *stackSlice, start, shape [3]int, look func(z int, v []float32) error) error {
	area := shape[1] * shape[2]
	n := int(min(int64(shape[0]), max(1, s.res.Spare()/4/int64(4*area))))
	if need := int64(4*area) + of.source.ReaderBytes(); need > s.res.Mem {
		return s.res.TooLittle(need, "looking at %d × %d pixels of a slice in chunks of %v", shape[1], shape[2], of.chunk)
	}
	for z := 0; z < shape[0]; z += n {
		n = min(n, shape[0]-z)
		v, err := s.room(area * n)
		if err != nil {
			return err
		}
		s.mem.Load(&volume.Box{
			Source: of.source, Start: [3]int{start[0] + z, start[1], start[2]}, Shape: [3]int{n, shape[1], shape[2]}, Gain: 1,
			To: volume.Planes(v, n, shape[1], shape[2]),
		})
		if err := s.mem.Err(); err != nil {
			return err
		}
		err = work.Each(ctx, s.res.Workers, n, func(_, i int) error {
			begin := time.Now()
			defer func() { s.res.Meter.Since(meter.Compute, begin) }()
			return look(z+i, v[i*area:][:area])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// room returns memory for n pixels, valid until the next call.
func (s *surveyor) room(n int) (v []float32, err error) {
	if len(s.box) < 4*n {
		mem.Free(s.box)
		if s.box, err = mem.Alloc(4 * n); err != nil {
			return nil, err
		}
	}
	return dtype.Slice[float32](s.box[:4*n]), nil
}
