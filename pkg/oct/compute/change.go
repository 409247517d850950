package compute

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/compute/transfer"
)

// Changer is a worker that changes the voxels of boxes, each on its own, with the same bits on every machine. The boxes
// are those of the plan's [Changing].
type Changer interface {
	Worker
	// Take reads a box of voxels (z, y, x) as float32. They are valid until the next Take.
	Take(start, shape [3]int) Part
	// Put writes a part as a tile of the output, in the output's type.
	Put(p Part)
	// DividePlanes divides the voxels of each plane by the float64 that by holds for it, of all planes of the volume.
	DividePlanes(p Part, by Block)
	// ScalePlanes clips the voxels of each plane, subtracts its lower limit and divides by divisor. limits holds two
	// float32 for each plane of the volume, the lower one first.
	ScalePlanes(p Part, limits Block, divisor float32)
	// DivideField divides a part by a field and passes statistics of the voxels before division to tell. It may be
	// called once for each plane of a piece of work.
	DivideField(p Part, f *FlatField, tell func(c filter.Census))
}

// Changing is the operator of a [Changer].
type Changing struct {
	summing
	Volume *blocks.Volume // on the host it may be held in memory
	Type   dtype.Type     // of the output
	Box    [3]int         // the largest
}

// A Part is a box of voxels as float32, in host or device memory.
type Part struct {
	Start, Shape [3]int // (z, y, x)
	voxels       Block
}

// Planes returns planes z0 … z1−1 of a part.
func (p Part) Planes(z0, z1 int) Part {
	plane := 4 * int64(p.area())
	p.voxels = p.voxels.From(int64(z0)*plane, int64(z1-z0)*plane)
	p.Start[0], p.Shape[0] = p.Start[0]+z0, z1-z0
	return p
}

// part returns a part in the worker's blocks.
func part(b []Block, start, shape [3]int) Part {
	p := Part{Start: start, Shape: shape}
	p.voxels = b[changed].From(0, 4*int64(p.count()))
	return p
}

func (p Part) area() int  { return p.Shape[1] * p.Shape[2] }
func (p Part) count() int { return p.Shape[0] * p.area() }

// A FlatField is a field with its numbers in blocks made by [Shared].
type FlatField struct {
	filter.FlatField
	OfGain, OfDark Block // the latter is empty if there is no dark-field
}

// Blocks of a worker that changes voxels.
const (
	changed = iota // voxels
	spare          // in the types of the input or the output
	census
)

const censusBytes = 24

// Change prepares a plan for Take and Put, and returns an error if the machine has too little memory for it.
func (p *Plan) Change(c *Changing) error {
	n := int64(mem.Product(c.Box[0], c.Box[1], c.Box[2]))
	blocks := []int64{changed: 4 * n, spare: 0, census: censusBytes}
	p.Operator, p.Output.Tile = c, c.Box[:]
	p.Memory.Blocks, p.Memory.Brought = blocks, censusBytes*int64(c.Box[0])
	if c.Type != dtype.Float32 {
		blocks[spare] = n * int64(c.Type.Size())
	}
	if p.Source.res.Device != nil {
		_, err := p.Source.columns.Workers(p.needsOnDevice(nil))
		return err
	}
	blocks[spare] = max(blocks[spare], int64(c.Volume.Scratch(c.Box)))
	_, err := p.workers(p.onHost())
	return err
}

func (*Changing) streams() bool { return false }

// onHost returns the memory for the chunks that a worker decodes.
func (c *Changing) onHost(*Plan) int64 { return c.Volume.Array.ScratchBytes(false) }

// needs adds the memory in which tiles leave the device, as long as the plan has no output.
func (c *Changing) needs(p *Plan, n *transfer.Needs) {
	if p.Output.To == nil {
		n.Elements = mem.Pooled(p.tileBytes(c.Type))
		n.Leaves = n.Elements
	}
}

// beginOnDevice allocates the buffer for voxels that need conversion. Voxels stored as float32 need none: they go
// straight to their block.
func (*Changing) beginOnDevice(w *onDevice) error {
	if w.plan.Source.mosaic.DType == dtype.Float32 {
		return nil
	}
	return w.stage()
}

func (w *host) Take(start, shape [3]int) Part {
	p := part(w.blocks, start, shape)
	if w.err == nil {
		w.err = operatorOf[*Changing](w.plan).Volume.Read(w.ctx, p.host(), w.blocks[spare].host, start, shape)
	}
	return p
}

// host returns the voxels of a part on the host.
func (p Part) host() []float32 { return dtype.Slice[float32](p.voxels.host) }

func (w *host) Put(p Part) {
	out := p.voxels
	if t := operatorOf[*Changing](w.plan).Type; t != dtype.Float32 {
		out = w.blocks[spare].From(0, int64(p.count()*t.Size()))
		filter.ToStored(t, out.host, p.host())
	}
	w.Write(p.Start[:], p.Shape[:], out)
	if s := w.plan.Source; w.err == nil {
		s.res.Done(int64(p.count() * s.mosaic.DType.Size()))
	}
}

func (w *host) DividePlanes(p Part, by Block) {
	w.compute(func() {
		for z, by := range dtype.Slice[float64](by.host)[p.Start[0]:][:p.Shape[0]] {
			filter.DividePlane(p.host()[z*p.area():][:p.area()], by)
		}
	})
}

func (w *host) ScalePlanes(p Part, limits Block, divisor float32) {
	w.compute(func() {
		of := dtype.Slice[float32](limits.host)[2*p.Start[0]:]
		for z := range p.Shape[0] {
			filter.ScalePlane(p.host()[z*p.area():][:p.area()], of[2*z], of[2*z+1], divisor)
		}
	})
}

func (w *host) DivideField(p Part, f *FlatField, tell func(filter.Census)) {
	w.compute(func() { tell(f.Divide(p.host(), p.Shape[1], p.Shape[2], p.Start[1], p.Start[2])) })
}

func (w *onDevice) Take(start, shape [3]int) Part {
	s, p := w.plan.Source, part(w.blocks, start, shape)
	kind := s.mosaic.DType
	at := func(z, n int) gpu.Span { return p.Planes(z-start[0], z-start[0]+n).voxels.device }
	to := func(int, int) gpu.Span { return w.staging }
	if kind == dtype.Float32 {
		to = at
	}
	w.fetch(s.columns.PlanesOf(start[0], start[0]+shape[0], start[1], shape[1], start[2], shape[2]), to, func(z, n int, planes Block) {
		w.try(func() error {
			if kind == dtype.Float32 {
				return nil
			}
			rows := kernels.Planes{At: at(z, n), Pitch: shape[2], Stride: int64(p.area())}
			return kernels.Place(w.dev.Stream, rows, planes.device, kind, n, shape[1], shape[2], 1, gpu.Span{})
		})
	})
	return p
}

func (w *onDevice) Put(p Part) {
	out := p.voxels
	if t := operatorOf[*Changing](w.plan).Type; t != dtype.Float32 {
		out = w.blocks[spare]
		w.try(func() error {
			return kernels.FromFloat32(w.dev.Stream, out.device, p.voxels.device, t, int64(p.count()))
		})
	}
	w.Write(p.Start[:], p.Shape[:], out)
}

func (w *onDevice) DividePlanes(p Part, by Block) {
	w.try(func() error {
		return kernels.DividePlanes(w.dev.Stream, p.voxels.device, by.From(8*int64(p.Start[0]), 8*int64(p.Shape[0])).device, p.Shape[0], int64(p.area()))
	})
}

func (w *onDevice) ScalePlanes(p Part, limits Block, divisor float32) {
	w.try(func() error {
		return kernels.ScalePlanes(w.dev.Stream, p.voxels.device, limits.From(8*int64(p.Start[0]), 8*int64(p.Shape[0])).device, divisor, p.Shape[0], int64(p.area()))
	})
}

func (w *onDevice) DivideField(p Part, f *FlatField, tell func(filter.Census)) {
	counts := w.blocks[census]
	w.try(func() error {
		w.dev.Stream.Zero(counts.device)
		by := kernels.FlatField{Gain: f.OfGain.device, Dark: f.OfDark.device, Height: f.Height, Width: f.Width, Epsilon: f.Epsilon, Keep: f.Keep}
		return kernels.DivideField(w.dev.Stream, p.voxels.device, counts.device, by, p.Shape[0], p.Shape[1], p.Shape[2], p.Start[1]%f.Height, p.Start[2]%f.Width)
	})
	w.Bring(counts, func(b []byte) {
		n := dtype.Slice[int64](b)
		tell(filter.Census{Some: n[0], Above: n[1], NonFinite: n[2]})
	})
}
