package compute

import (
	"context"

	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// A Plan describes the input, the work, the memory and the output of a stage's workers.
type Plan struct {
	What     string   // description of the work for messages
	Source   *Source  // what is read
	Operator Operator // what workers do besides summing planes; nil: nothing
	Pieces   int      // of work; 0: as many as the mosaic has tiles
	Most     int      // maximum number of useful workers; 0: no limit
	Memory   Memory
	Output   Output
	Ahead    ReadAhead

	// NonFinite is called with numbers of non-finite voxels; nil: the meter counts them.
	NonFinite func(n int64)

	ahead chan struct{} // closed when reading ahead pays
	turns chan struct{} // a token for each worker that computes; nil: no limit
	crew  *oct.Crew

	start  func(ctx context.Context, number int) (running, error) // as returned by begin, set once
	starts int
}

// Memory is the memory of a plan's workers.
type Memory struct {
	Host    int64   // bytes of the resources' host memory that the workers may use
	Shared  int64   // bytes of device memory that workers use as well, which others made with [Shared]
	Blocks  []int64 // bytes of each block of a worker
	Brought int64   // bytes that Bring hands over in a piece of work
}

// Output describes what the workers of a plan write.
type Output struct {
	To   *ngff.Writer      // nil: nothing is written
	Tile []int             // shape written at a time
	Look func(tile []byte) // inspects written tiles on the host; nil: not called
}

// ReadAhead allows more pieces of work in flight on the host than there are workers, once workers wait for storage.
type ReadAhead struct {
	Pieces int         // in flight, at least as many as there are workers, and limited by memory; 0: no more than these
	Slow   func() bool // reports that pieces wait
}

// An Operator is the computation of a plan's workers if they do more than stream and sum planes: a [Percentile],
// [Resizing], [Rolling], [Search] or [Changing]. It says how voxels reach a worker, and how much memory the voxels and
// the computation need.
type Operator interface {
	// prepare allocates what all workers share. It is called once, before the first worker begins.
	prepare()
	// streams reports whether planes are streamed to a worker on the host.
	streams() bool
	// loads returns the bytes that a worker on the host loads at a time, if planes are not streamed.
	loads(p *Plan) int64
	// onHost returns the bytes of host memory that a worker on the host needs in addition to voxels and blocks.
	onHost(p *Plan) int64
	// forAll returns the memory of all workers together with the memory that they share, given the workers' own.
	forAll(workers int64) int64
	// planOnDevice returns the number of workers on a device and the writer that encodes their tiles there. The writer
	// is nil if tiles reach the host unencoded.
	planOnDevice(p *Plan) (output *ngffgpu.Writer, workers int, err error)
	// needs adds the operator's memory to that of a worker on a device.
	needs(p *Plan, n *transfer.Needs)
	// beginOnDevice allocates the memory in which a worker on a device receives and computes.
	beginOnDevice(w *onDevice) error
}

// summing is the operator of a plan without one: it only sums planes. Other operators embed it and override what
// differs.
type summing struct{}

func (summing) prepare()                        {}
func (summing) streams() bool                   { return true }
func (summing) loads(*Plan) int64               { return 0 }
func (summing) onHost(*Plan) int64              { return 0 }
func (summing) forAll(workers int64) int64      { return workers }
func (summing) needs(*Plan, *transfer.Needs)    {}
func (summing) beginOnDevice(w *onDevice) error { return w.stage() }
func (summing) planOnDevice(p *Plan) (*ngffgpu.Writer, int, error) {
	return p.planOnDevice()
}

// operator returns the plan's operator.
func (p *Plan) operator() Operator {
	if p.Operator == nil {
		return summing{}
	}
	return p.Operator
}

// operatorOf returns the operator of a worker's plan as a T. It panics if the operator is of another type.
func operatorOf[T Operator](p *Plan) T { return p.Operator.(T) }

// nonFinite reports non-finite voxels.
func (p *Plan) nonFinite(n int64) {
	if p.NonFinite != nil {
		p.NonFinite(n)
		return
	}
	p.Source.res.Meter.AddNonFinite(n)
}

// Check returns an error if there is not enough memory for the plan. On the host it also returns the part of the memory
// that the workers leave.
func (p *Plan) Check() (left int64, err error) {
	_, workers, err := p.begin()
	if err != nil || p.Source.res.Device != nil {
		return 0, err
	}
	return p.Memory.Host - int64(workers)*p.onHost(), nil
}

// workers returns how many workers fit into host memory at the given number of bytes each.
func (p *Plan) workers(each int64) (int, error) {
	res, mem := p.Source.res, p.Memory.Host
	if each > mem {
		return 0, res.TooLittle(max(each+res.Mem-mem, int64(float64(each)*float64(res.Mem)/float64(mem))), "%s: %s", p.Source.mosaic.Where, p.What)
	}
	return int(min(int64(max(p.Ahead.Pieces, res.Workers)), mem/each)), nil
}

// atMost limits a number of workers to those that are useful.
func (p *Plan) atMost(workers int) int {
	if p.Most > 0 {
		return min(workers, p.Most)
	}
	return workers
}

// onHost returns the bytes of host memory that a worker takes.
func (p *Plan) onHost() int64 {
	op := p.operator()
	each := op.onHost(p) + op.loads(p)
	if op.streams() {
		each += p.Source.readBytes()
	}
	for _, n := range p.Memory.Blocks {
		each += n
	}
	return each
}

// planOnDevice returns the number of workers that fit on the device and the writer that encodes their tiles there. The
// writer is nil if tiles reach the host unencoded.
func (p *Plan) planOnDevice() (output *ngffgpu.Writer, workers int, err error) {
	if p.Output.To != nil && p.Output.Look == nil {
		output = p.Source.res.Output(p.Output.To)
	}
	workers, err = p.Source.columns.Workers(p.needsOnDevice(output))
	return output, workers, err
}
