package machine

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// Fuser is one of the workers that put the tiles of a mosaic together, on the host or on a device. A [Worker]'s pieces of work are
// independent, and its memory is its own; tiles meet in columns of the output, whose memory stays until the last of them has been added.
// The stage says in which order tiles are added; it waits for a tile until [Fuser.Then] reported it.
//
// On the host all is done at once, piece by piece of a tile's planes. On a device a tile's planes are there at once, and what is
// queued of a tile runs behind all that any worker queued before.
//
// Errors stick: after one, nothing is done any more, and [FusionPass.Work] returns it.
type Fuser interface {
	Failed() bool
	tileLoader
	columnKeeper
	weigher
	blender
}

// FusedTile is a tile and where it goes.
type FusedTile struct {
	From   oct.Rectangle // its voxels in the mosaic
	To     oct.Rectangle // and on the canvas
	Behind [2]float32    // by how much, within ±0.5 px along y and x, it lies behind where its voxels are put
}

// Region is a box of pixels of the canvas with the tiles that cover all of it.
type Region struct {
	oct.Rectangle
	Who  []int // numbers of tiles, increasing, which is the order in which they are added; nobody: a hole
	Seam int   // of the two tiles, in the column's list; −1: it is not asked for
}

// Column is what lies above each other along z in a box of the canvas: units of the output, in which tiles meet.
type Column struct {
	Box     oct.Rectangle
	Tiles   []int // that lie on it, increasing
	Regions []Region
	Shared  int      // pixels that several tiles cover
	Seams   [][2]int // tiles that share regions with nobody else, where their differences are asked for
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

// Fusion says what workers put together, and what that takes. [Fusion.Memory] is what the stage plans with, [Fusion.Open] takes
// what all workers share, and each [FusionPass] makes some columns.
type Fusion struct {
	What     string // the work, for messages
	Mosaic   *oct.Mosaic
	Res      *oct.Resources
	Columns  []Column
	Tiles    int    // that there are
	Unit     [3]int // shape of what is written at a time
	Size     [2]int // of the canvas
	Mem      int64  // bytes of the host's memory that it may take, of those that the resources grant
	Encoding int64  // bytes of it in which a worker encodes a unit
	Weighing int64  // and in which it makes the weights of a tile, besides these
	Weighs   bool   // tiles have weights
	Choose   bool   // the tile of the largest weight is taken, the first of several; else all are averaged
	Output   *ngff.Writer

	shared fusing
}

// FusionMemory is what a fusion takes of the memory that bounds how many columns are under way, in bytes.
type FusionMemory struct {
	Limit   int64                             // that there are
	Fixed   int64                             // for all workers together
	Worker  int64                             // each worker
	Plane   int64                             // and besides, for each plane of a slab
	Column  func(c *Column, planes int) int64 // a column of so many planes
	Workers int                               // at most
	Piece   int                               // planes of a tile that come at a time
}

// fusing is what workers share, on one of the machines.
type fusing interface {
	memory() (FusionMemory, error)
	short(least int64) error
	open(workers int, columns int64) error
	begin(ctx context.Context, p *FusionPass) (fusingWorker, error) // nil: there is no memory for another
	close()
}

// fusingWorker is a worker as Work sees it.
type fusingWorker interface {
	Fuser
	failure() error
	end() error // gives all back, once nothing runs any more
}

// fusionsOnHost make the host's part by the mosaic's elements. They are blended in float32 where that holds all of them, else in float64.
var fusionsOnHost = map[dtype.Type]func(f *Fusion) (fusing, error){
	dtype.Uint8: hostFusionOf[uint8, float32], dtype.Int8: hostFusionOf[int8, float32],
	dtype.Uint16: hostFusionOf[uint16, float32], dtype.Int16: hostFusionOf[int16, float32],
	dtype.Uint32: hostFusionOf[uint32, float64], dtype.Int32: hostFusionOf[int32, float64],
	dtype.Uint64: hostFusionOf[uint64, float64], dtype.Int64: hostFusionOf[int64, float64],
	dtype.Float32: hostFusionOf[float32, float32], dtype.Float64: hostFusionOf[float64, float64],
}

// Memory plans the reading of the mosaic, and returns what the fusion takes.
func (f *Fusion) Memory() (m FusionMemory, err error) {
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

// Short returns the error of a memory that does not hold the least that the stage can do with.
func (f *Fusion) Short(least int64) error { return f.shared.short(least) }

// Open takes what all workers share, and lets columns take so many bytes. Close gives it back.
func (f *Fusion) Open(workers int, columns int64) error { return f.shared.open(workers, columns) }

// Close gives back what Open took, when no worker works.
func (f *Fusion) Close() { f.shared.close() }

// shortOnHost is the error of a host's memory that is less than the bytes that are needed.
func (f *Fusion) shortOnHost(bytes int64) error {
	return fmt.Errorf("%s: %s needs %d MiB of buffers, --mem leaves %d MiB for them: grant more, or ask for smaller --chunks", f.Mosaic.Where, f.What, bytes>>20+1, f.Mem>>20)
}

// ShortOfMemory is the error of a device that has less memory than it said, at a place where fewer columns, planes or workers help.
type ShortOfMemory struct{ error }

// Unwrap returns what the device said.
func (e ShortOfMemory) Unwrap() error { return e.error }

// FusionPass makes planes Z0 … Z1−1 of some columns.
type FusionPass struct {
	*Fusion
	Z0, Z1 int

	team  DeviceTeam
	order deviceOrder
}

// Work begins a worker and lets it do its work. One that the device has no memory for leaves it to those that there are.
func (p *FusionPass) Work(ctx context.Context, do func(w Fuser)) (err error) {
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

// Close ends the pass, when no worker works.
func (p *FusionPass) Close() error { return p.order.close() }
