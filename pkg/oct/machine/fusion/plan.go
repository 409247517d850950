// Package fusion puts tiles that overlap together: it keeps the columns of the output in which they meet in memory of the host or of a
// device, until the last tile has been added.
package fusion

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/machine/transfer"
	"strata/pkg/units"
)

// Fuser adds tiles of a mosaic to columns of the output, on the host or on a device, as one of several workers. A [machine.Worker]'s pieces of
// work do not depend on each other, and its memory is its own. Tiles meet in columns, whose memory outlives a tile, and are added to
// them in one order: the stage lets a tile wait until [Fuser.Then] has reported the one before it.
//
// On the host everything is done at once, some planes of a tile at a time. A device gets all planes of a tile before they are added, and what
// a worker queues there runs after all that was queued before by any of them.
//
// Errors stick: after one, the methods do nothing, and [Pass.Work] returns it.
type Fuser interface {
	// Failed reports whether there was an error.
	Failed() bool
	tileLoader
	columnKeeper
	weigher
	blender
}

// Tile says where a tile's voxels come from and where they go.
type Tile struct {
	From   oct.Rectangle // its voxels in the mosaic
	To     oct.Rectangle // and on the canvas
	Behind [2]float32    // by how much, within ±0.5 px along y and x, it lies behind where its voxels are put
}

// Region is a box of pixels of the canvas that the same tiles cover throughout.
type Region struct {
	oct.Rectangle
	Who  []int // the tiles, in the order in which they are added: increasing; none: a hole
	Seam int   // index of the two tiles in the column's Seams; −1: they are not compared
}

// Column is a stack of units of the output along z: the box of the canvas that they fill, and the tiles that meet there.
type Column struct {
	Box     oct.Rectangle
	Tiles   []int // that cover some of it, increasing
	Regions []Region
	Shared  int      // number of pixels that several tiles cover
	Seams   [][2]int // pairs of tiles to compare: those that share regions with no third
}

// HasHoles reports whether there are pixels that no tile covers.
func (c *Column) HasHoles() bool {
	for _, r := range c.Regions {
		if len(r.Who) == 0 {
			return true
		}
	}
	return false
}

// Plan describes what workers put together. [Plan.Memory] returns the figures that the stage plans with, [Plan.Open] takes
// the memory that all workers share, and each [Pass] makes some columns.
type Plan struct {
	What     string // the work, for messages
	Mosaic   *oct.Mosaic
	Res      *oct.Resources
	Columns  []Column
	Tiles    int    // number of tiles
	Unit     [3]int // shape of what is written at a time
	Size     [2]int // (y, x) of the canvas
	Mem      int64  // bytes of host memory for the fusion, out of those of the resources
	Encoding int64  // bytes of it that a worker needs to encode a unit
	Weighing int64  // bytes of it that a worker needs to make a tile's weights, without the weights
	Weighs   bool   // Weigh will be called
	Choose   bool   // the tile of the largest weight wins, the first of equals; otherwise tiles are averaged
	Output   *ngff.Writer

	shared fusing
}

// Memory says what a fusion takes, in bytes, of the memory that holds its columns: the host's or the device's.
type Memory struct {
	Limit   int64                             // available
	Fixed   int64                             // shared by all workers
	Worker  int64                             // of each worker
	Plane   int64                             // of each worker, per plane of a pass
	Column  func(c *Column, planes int) int64 // of a column of so many planes
	Workers int                               // maximum number of workers
	Piece   int                               // planes of a tile that are read at a time
}

// fusing is the part of a fusion that its workers share, on one of the machines.
type fusing interface {
	memory() (Memory, error)
	short(least int64) error
	open(workers int, columns int64) error
	begin(ctx context.Context, p *Pass) (fusingWorker, error) // nil: there is no memory for another one
	close()
}

// fusingWorker is a worker as Work sees it.
type fusingWorker interface {
	Fuser
	failure() error
	end() error // gives all back, once nothing runs any more
}

// fusionsOnHost makes the host's part by element type. Elements are blended in float32 where that holds all their values, otherwise in float64.
var fusionsOnHost = map[dtype.Type]func(f *Plan) (fusing, error){
	dtype.Uint8: hostFusionOf[uint8, float32], dtype.Int8: hostFusionOf[int8, float32],
	dtype.Uint16: hostFusionOf[uint16, float32], dtype.Int16: hostFusionOf[int16, float32],
	dtype.Uint32: hostFusionOf[uint32, float64], dtype.Int32: hostFusionOf[int32, float64],
	dtype.Uint64: hostFusionOf[uint64, float64], dtype.Int64: hostFusionOf[int64, float64],
	dtype.Float32: hostFusionOf[float32, float32], dtype.Float64: hostFusionOf[float64, float64],
}

// NeedsOutput reports whether Memory depends on the output, as that of a device does, from which tiles leave as they are stored.
func (f *Plan) NeedsOutput() bool { return f.Res.Device != nil }

// Memory plans how the mosaic is read, and returns what the fusion takes.
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

// Short returns the error for a memory that is smaller than the stage's smallest plan.
func (f *Plan) Short(least int64) error { return f.shared.short(least) }

// Open prepares the work of so many workers on columns of at most so many bytes together. Close gives all memory back.
func (f *Plan) Open(workers int, columns int64) error {
	f.Res.Decided("%s: %s, %s for columns", f.What, units.Count(workers, "worker"), units.FormatSize(columns))
	return f.shared.open(workers, columns)
}

// Close gives back what Open took. No worker may be at work.
func (f *Plan) Close() { f.shared.close() }

// shortOnHost returns the error for host memory that is less than so many bytes.
func (f *Plan) shortOnHost(bytes int64) error {
	return fmt.Errorf("%s: %s needs %d MiB of buffers, --mem leaves %d MiB for them: grant more, or ask for smaller --chunks", f.Mosaic.Where, f.What, bytes>>20+1, f.Mem>>20)
}

// ShortOfMemory reports that a device has less memory than was planned with, where fewer columns, planes or workers may help.
type ShortOfMemory struct{ error }

// Unwrap returns the device's error.
func (e ShortOfMemory) Unwrap() error { return e.error }

// Pass makes planes Z0 … Z1−1 of some of the columns.
type Pass struct {
	*Plan
	Z0, Z1 int

	team  transfer.DeviceTeam
	order deviceOrder
}

// Work lets one worker do the work, in the caller's goroutine. One that the device has no memory for leaves it to the others.
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

// Close ends the pass. No worker may be at work.
func (p *Pass) Close() error { return p.order.close() }
