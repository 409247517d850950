// Package fusion merges overlapping tiles. It keeps the columns of the output in which tiles meet in host or
// device memory until the last tile has been added. A stage describes the work in a [Plan] and runs a [Fuser] per
// worker in each [Pass].
package fusion

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// A Fuser is one of several workers that add tiles of a mosaic to columns of the output, on the host or on a device.
// The pieces of work of a [compute.Worker] are independent and use memory of their own. Tiles, by contrast, meet in
// columns, whose memory outlives a tile, and must be added in a fixed order: the stage delays a tile until [Fuser.Then]
// has reported the preceding one.
//
// The host works immediately, on a few planes of a tile at a time. A device receives all planes of a tile before they
// are added; work that one worker queues runs after everything that any worker has queued before.
//
// Errors are sticky: after one, the methods do nothing, and [Pass.Work] returns it.
type Fuser interface {
	// Failed reports whether an error has occurred.
	Failed() bool
	tileLoader
	columnKeeper
	weigher
	blender
}

// Tile describes the source of a tile's voxels and their place on the canvas.
type Tile struct {
	From   oct.Rectangle // its voxels in the mosaic
	To     oct.Rectangle // and on the canvas
	Behind [2]float32    // offset of the tile behind To along y and x, within ±0.5 px
}

// Region is a rectangle of canvas pixels that are all covered by the same tiles.
type Region struct {
	oct.Rectangle
	Who  []int // tiles in increasing order, the order in which they are added; empty: a hole
	Seam int   // index of the two tiles in the column's Seams; −1: not compared
}

// Column is a stack of output units along z: their rectangle on the canvas, and the tiles that meet there.
type Column struct {
	Box     oct.Rectangle
	Tiles   []int // tiles that cover part of it, increasing
	Regions []Region
	Shared  int      // number of pixels that several tiles cover
	Seams   [][2]int // pairs of tiles to compare: those that share regions with no third
}

// HasHoles reports whether no tile covers some of the pixels.
func (c *Column) HasHoles() bool {
	for _, r := range c.Regions {
		if len(r.Who) == 0 {
			return true
		}
	}
	return false
}

// A Plan describes a fusion. [Plan.Memory] returns the figures for planning, [Plan.Open] allocates the memory that
// all workers share, and each [Pass] computes some columns.
type Plan struct {
	What     string // description of the work for messages
	Mosaic   *oct.Mosaic
	Res      *oct.Resources
	Columns  []Column
	Tiles    int    // number of tiles
	Unit     [3]int // shape written at a time
	Size     [2]int // (y, x) of the canvas
	Mem      int64  // bytes of the resources' host memory that the fusion may use
	Encoding int64  // bytes of it that a worker needs to encode a unit
	Weighing int64  // bytes of it that a worker needs to make a tile's weights, without the weights
	Weighs   bool   // Weigh will be called
	Choose   bool   // the tile of the largest weight wins, the first of equals; otherwise tiles are averaged
	Output   *ngff.Writer

	shared fusing
}

// Memory holds the memory requirements of a fusion in bytes. It counts the memory in which columns are kept: host
// memory, or device memory if the fusion runs on a device.
type Memory struct {
	Limit   int64                             // available
	Fixed   int64                             // shared by all workers
	Worker  int64                             // of each worker
	Plane   int64                             // of each worker, per plane of a pass
	Column  func(c *Column, planes int) int64 // of the given number of planes of a column
	Workers int                               // maximum number of workers
	Piece   int                               // planes of a tile read at a time
}

// fusing is the part of a fusion that its workers share, on the host or on a device.
type fusing interface {
	memory() (Memory, error)
	less() bool
	short(least int64) error
	open(workers int, columns int64) error
	begin(ctx context.Context, p *Pass) (fusingWorker, error) // nil: there is no memory for another one
	close()
}

// fusingWorker is a worker as seen by Work.
type fusingWorker interface {
	Fuser
	failure() error
	end() error // gives all back, once nothing runs any more
}

// fusionsOnHost maps an element type to the constructor of its fusion on the host. Elements are blended in float32
// if that represents all their values, otherwise in float64.
var fusionsOnHost = map[dtype.Type]func(f *Plan) (fusing, error){
	dtype.Uint8: hostFusionOf[uint8, float32], dtype.Int8: hostFusionOf[int8, float32],
	dtype.Uint16: hostFusionOf[uint16, float32], dtype.Int16: hostFusionOf[int16, float32],
	dtype.Uint32: hostFusionOf[uint32, float64], dtype.Int32: hostFusionOf[int32, float64],
	dtype.Uint64: hostFusionOf[uint64, float64], dtype.Int64: hostFusionOf[int64, float64],
	dtype.Float32: hostFusionOf[float32, float32], dtype.Float64: hostFusionOf[float64, float64],
}

// NeedsOutput reports whether Memory needs the Output field. It does on a device, which encodes the tiles that
// leave it.
func (f *Plan) NeedsOutput() bool { return f.Res.Device != nil }

// Memory plans how the mosaic is read and returns the fusion's memory requirements.
func (f *Plan) Memory() (m Memory, err error) {
	if f.Res.Device != nil {
		f.shared, err = newDeviceFusion(f)
	} else {
		f.shared, err = fusionsOnHost[f.Mosaic.DType](f)
	}
	if err != nil {
		return m, err
	}
	return f.shared.memory()
}

// Less replaces the plan by one that needs less device memory, and reports whether that was possible. It returns the
// new requirements.
func (f *Plan) Less() (Memory, bool, error) {
	if !f.shared.less() {
		return Memory{}, false, nil
	}
	m, err := f.shared.memory()
	return m, true, err
}

// Short returns the error for a memory smaller than least bytes, the stage's smallest plan.
func (f *Plan) Short(least int64) error { return f.shared.short(least) }

// Open prepares for the given number of workers and for columns that hold at most the given number of bytes at a
// time. Close releases the memory.
func (f *Plan) Open(workers int, columns int64) error {
	return f.shared.open(workers, columns)
}

// Close releases the memory that Open allocated. No worker may be running.
func (f *Plan) Close() { f.shared.close() }

// shortOnHost returns the error for host memory of less than the given number of bytes.
func (f *Plan) shortOnHost(bytes int64) error {
	return fmt.Errorf("%s: %s needs %d MiB of buffers, --mem leaves %d MiB for them: grant more, or ask for smaller --chunks", f.Mosaic.Where, f.What, bytes>>20+1, f.Mem>>20)
}

// ShortOfMemory reports that a device has less memory than planned; fewer columns, planes or workers may help.
type ShortOfMemory struct{ error }

// Unwrap returns the device's error.
func (e ShortOfMemory) Unwrap() error { return e.error }

// A Pass computes planes Z0 … Z1−1 of some of the columns.
type Pass struct {
	*Plan
	Z0, Z1 int

	team  transfer.DeviceTeam
	order deviceOrder
}

// Work runs do with one worker in the caller's goroutine, and returns the worker's error. If the device has no
// memory for another worker, Work returns nil without calling do: the other workers do the work.
func (p *Pass) Work(ctx context.Context, do func(w Fuser)) (err error) {
	w, err := p.shared.begin(ctx, p)
	if w == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }() // after a panic, too
	do(w)
	if err := w.failure(); err != nil {
		return err
	}
	return ctx.Err()
}

// Close ends the pass. No worker may be running.
func (p *Pass) Close() error { return p.order.close() }
