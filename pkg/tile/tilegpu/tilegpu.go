// Package tilegpu makes tiles with a halo, as package tile does, in the memory of a GPU:
// tiles of a Zarr array, its chunks, are kept there while there is room for them, and views are put
// together from them on the device.
//
//	l, err := tilegpu.New(reader, tilegpu.Options{Radius: []int{0, 8, 8}, Border: tile.Mirror, Budget: 1 << 30})
//	defer l.Close()
//	err = l.View(ctx, stream, []int{0, 2, 3}, dst)
package tilegpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/tile"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// Options say what views are and what they may take.
type Options struct {
	Radius []int           // of the halo, per axis; nil: none
	Border tile.BorderMode // what views show outside the image
	Fill   []byte          // the element that the border mode Zero shows; nil: zero
	Budget int64           // bytes of device memory for tiles, of which those of one view are there always
	Loads  int             // tiles that are loaded at a time, at least 1
}

// Loader makes views of an array. It is safe for concurrent use, each goroutine with a
// stream of its own.
type Loader struct {
	reader  *zarrgpu.Reader
	options Options
	shape   []int
	tile    []int
	radius  []int
	grid    []int
	bytes   int64 // of a tile
	memory  *gpu.Buffer
	lanes   chan *lane
	turn    chan struct{} // of the one who claims tiles

	mu      sync.Mutex
	tiles   map[int]*cached // by their number in C order
	free    []int64         // places in memory
	clock   uint64
	waiting []chan struct{} // for tiles that nobody holds
}

// lane is what loading a tile takes.
type lane struct {
	slot   *zarrgpu.Slot
	stream *gpu.Stream
}

// cached is a tile in device memory, or one that is on its way there.
type cached struct {
	number int
	region zarr.Region
	at     int64
	pins   int
	used   uint64
	ready  chan struct{} // closed when it is there, or err is set
	err    error
}

// New makes a loader of an array that a reader reads. Where there is not memory for the
// tiles of one view it is an error of [gpu.ErrMemory]. Close gives the memory back.
func New(r *zarrgpu.Reader, o Options) (*Loader, error) {
	a := r.Array()
	l := &Loader{reader: r, options: o, shape: a.Shape(), tile: a.Chunks(), radius: o.Radius, tiles: map[int]*cached{}, turn: make(chan struct{}, 1)}
	if l.radius == nil {
		l.radius = make([]int, len(l.shape))
	}
	if o.Fill == nil {
		l.options.Fill = make([]byte, a.DType().Size())
	}
	if len(l.radius) != len(l.shape) || slices.Min(append([]int{0}, l.radius...)) < 0 || len(l.options.Fill) != a.DType().Size() {
		return nil, fmt.Errorf("%s: a halo of %v and a border of %d bytes, for %d axes of %v", a.Location(), l.radius, len(l.options.Fill), len(l.shape), a.DType())
	}
	all := int64(1)
	for d, n := range l.shape {
		if n == 0 {
			return nil, fmt.Errorf("%s: shape %v has no tiles", a.Location(), l.shape)
		}
		l.tile[d] = min(l.tile[d], n)
		l.grid = append(l.grid, (n+l.tile[d]-1)/l.tile[d])
		all *= int64(l.grid[d])
	}
	l.bytes = (r.Bytes(l.tile) + 255) / 256 * 256
	n := min(all, max(l.mostTiles(), o.Budget/l.bytes))
	var err error
	if l.memory, err = r.Device().Memory().Get(n * l.bytes); err != nil {
		return nil, fmt.Errorf("%s: %d tiles of %v: %w", a.Location(), n, l.tile, err)
	}
	for i := range n {
		l.free = append(l.free, (n-1-i)*l.bytes)
	}
	if err := l.openLanes(max(o.Loads, 1)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// openLanes makes lanes, as many as there is memory for, at least one.
func (l *Loader) openLanes(n int) error {
	l.lanes = make(chan *lane, n)
	for range n {
		slot, err := l.reader.Slot(l.tile)
		var stream *gpu.Stream
		if err == nil {
			if stream, err = l.reader.Device().Stream(); err != nil {
				slot.Release()
			}
		}
		if err != nil {
			if len(l.lanes) > 0 && errors.Is(err, gpu.ErrMemory) {
				return nil
			}
			return err
		}
		l.lanes <- &lane{slot, stream}
	}
	return nil
}

// mostTiles is how many tiles a view is made of at most, those that its border shows
// included.
func (l *Loader) mostTiles() int64 {
	n := int64(1)
	for d := range l.shape {
		most := 0
		for i := range l.grid[d] {
			seen := map[int]bool{}
			for _, r := range l.runs(d, i) {
				if r.step != none {
					seen[r.tile] = true
				}
			}
			most = max(most, len(seen))
		}
		n *= int64(most)
	}
	return n
}

// Close gives all memory back. No view is being made, and what was queued for views has
// been waited for.
func (l *Loader) Close() error {
	var err error
	if l.lanes != nil {
		close(l.lanes)
		for x := range l.lanes {
			x.slot.Release()
			err = errors.Join(err, x.stream.Close())
		}
	}
	l.memory.Release()
	return err
}

// Grid is the number of tiles along each axis.
func (l *Loader) Grid() []int { return slices.Clone(l.grid) }

// ViewShape is the size of all views: a tile and its halo.
func (l *Loader) ViewShape() []int {
	s := slices.Clone(l.tile)
	for d, r := range l.radius {
		s[d] += 2 * r
	}
	return s
}

// Geometry is where a view lies.
func (l *Loader) Geometry(index []int) (tile.Geometry, error) {
	return tile.NewGeometry(l.shape, l.tile, l.radius, index)
}

// View queues what makes the view around a tile in dst, in C order. Tiles that are not in
// memory are loaded first; those of the view stay there until the stream has been waited for. Where
// there is no room for them beside those of other views, View waits for the stream and for those.
func (l *Loader) View(ctx context.Context, s *gpu.Stream, index []int, dst gpu.Span) error {
	if _, err := l.Geometry(index); err != nil {
		return fmt.Errorf("%s: %w", l.reader.Array().Location(), err)
	}
	shape := l.ViewShape()
	if n := l.reader.Bytes(shape); n > dst.Bytes() {
		return fmt.Errorf("%s: a view of %d bytes for %d of the device", l.reader.Array().Location(), n, dst.Bytes())
	}
	axes := make([][]run, len(shape))
	for d, i := range index {
		axes[d] = l.runs(d, i)
	}
	held, err := l.hold(ctx, s, l.tilesOf(axes))
	if err != nil {
		return err
	}
	plain, turned := l.parts(axes, held, shape)
	if err = l.scatter(s, dst, plain); err == nil {
		err = l.scatter(s, dst, turned)
	}
	s.After(func() { l.drop(held) })
	return err
}

// scatter queues the copy of parts of tiles to a view.
func (l *Loader) scatter(s *gpu.Stream, dst gpu.Span, parts []kernels.Part) error {
	if len(parts) == 0 {
		return nil
	}
	n := kernels.ScatterTable(len(parts))
	table, err := s.Device().Host(int(n))
	if err != nil {
		return err
	}
	s.After(table.Release)
	onDevice, err := s.Device().Memory().Get(n)
	if err != nil {
		return err
	}
	s.Release(onDevice)
	return kernels.Scatter(s, dst, l.memory.Span, parts, l.options.Fill, table.B, onDevice.Span)
}
