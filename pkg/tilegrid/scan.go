// Package tilegrid writes the tiles of a scan, with the positions that the stage recorded, as a mosaic grid,
// which is the input of stitch.
//
// A [Scan] describes the common properties of the tiles and reads their pixels. [Scan.Write] gives each tile
// a place in the grid ([NewGrid]), writes an image whose chunk grid along Y and X is the grid of tiles, and
// returns the positions for stitch --positions:
//
//	positions, err := scan.Write(ctx, store, storage)
//	err = positions.Write(file)
package tilegrid

import (
	"context"
	"fmt"
	"math"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/registration"
	"strata/pkg/units"
	"strata/pkg/work"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Scan describes the tiles of a scan, which share one size and type.
type Scan struct {
	Name  string
	Tile  [2]int     // pixels (y, x)
	Voxel [3]float64 // µm (z, y, x); z counts only where there are planes
	// Times, Channels and Planes are the lengths of the axes t, c and z; 0 means that the image has no such
	// axis.
	Times, Channels, Planes int
	DType                   dtype.Type
	Omero                   *ngff.Omero // display settings of the channels; may be nil

	Positions [][2]float64 // µm (y, x), of the first pixel of each tile
	// Together is the number of channels per call of Read; it divides Channels. 0 means 1.
	Together int
	// Read reads one plane of a tile: channels c … c+Together−1 one after the other, each in C order and
	// native byte order. It is called concurrently.
	Read func(ctx context.Context, tile, t, c, z int, dst []byte) error
}

// Storage sets how a mosaic is stored, and the resources for writing it.
type Storage struct {
	Format   int         // Zarr format 2 or 3
	Codecs   codec.Chain // nil: uncompressed chunks
	Levels   int         // pyramid levels below level 0
	Workers  int
	Mem      int64 // ceiling for buffers, bytes
	Meter    *meter.Meter
	Progress func(bytes int64) // may be nil
}

// Write writes the mosaic as an OME-Zarr image at the root of a store, with one chunk per plane of a tile,
// and returns the positions of the tiles in its grid. Places without a tile are not stored and have the fill
// value 0. It needs memory for two planes of a tile per worker, and for the pyramid.
func (s *Scan) Write(ctx context.Context, out store.Writer, st Storage) (*registration.TilePositions, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	g, err := NewGrid(s.Positions, [2]float64{float64(s.Tile[0]) * s.Voxel[1], float64(s.Tile[1]) * s.Voxel[2]})
	if err != nil {
		return nil, err
	}
	spec, err := s.spec(g, st)
	if err != nil {
		return nil, err
	}
	plane := s.Tile[0] * s.Tile[1] * s.DType.Size() * s.together()
	workers := int(min(int64(max(st.Workers, 1)), (st.Mem-spec.Budget)/int64(2*plane)))
	if workers < 1 {
		return nil, fmt.Errorf("tiles of %d × %d pixels need %d MiB of buffers, --mem grants %d MiB", s.Tile[0], s.Tile[1], int64(2*plane)*4/3>>20+1, st.Mem>>20)
	}
	w, err := ngff.Create(ctx, out, "", *spec)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if err := s.write(ctx, w, g, plane, workers, st); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	p := &registration.TilePositions{Grid: g.Places}
	for k, at := range g.Tiles {
		p.Tiles = append(p.Tiles, registration.TilePosition{Tile: at, Position: s.Positions[k]})
	}
	return p, nil
}

// Bytes returns the size of all tiles in all their planes.
func (s *Scan) Bytes() int64 {
	return int64(len(s.Positions)) * int64(mem.Product(max(s.Times, 1), max(s.Channels, 1), max(s.Planes, 1), s.Tile[0], s.Tile[1], s.DType.Size()))
}

func (s *Scan) together() int { return max(s.Together, 1) }

// mostPixels is the longest side of a tile: a longer one is a mistake.
const mostPixels = 1 << 20

// check reports what no scan has.
func (s *Scan) check() error {
	if min(s.Tile[0], s.Tile[1]) < 1 || max(s.Tile[0], s.Tile[1]) > mostPixels || min(s.Times, s.Channels, s.Planes) < 0 || max(s.Channels, 1)%s.together() != 0 {
		return fmt.Errorf("tiles of %v pixels with %d times, %d channels (%d at a time) and %d planes", s.Tile, s.Times, s.Channels, s.together(), s.Planes)
	}
	for d, v := range s.Voxel {
		if d == 0 && s.Planes == 0 {
			continue
		}
		if err := units.CheckVoxel(v); err != nil {
			return fmt.Errorf("axis %c: %w", "zyx"[d], err)
		}
	}
	return nil
}

// spec describes the image.
func (s *Scan) spec(g *Grid, st Storage) (*ngff.ImageSpec, error) {
	spec := &ngff.ImageSpec{
		Format: st.Format, Name: s.Name, DType: s.DType, Codecs: st.Codecs, OmitFill: true, Omero: s.Omero,
		Levels: st.Levels, Workers: 1, Budget: st.Mem / 4, Meter: st.Meter,
	}
	axis := func(a ngff.Axis, n, chunk int, scale float64) {
		spec.Axes, spec.Shape, spec.Chunks, spec.Scale = append(spec.Axes, a), append(spec.Shape, n), append(spec.Chunks, chunk), append(spec.Scale, scale)
	}
	if s.Times > 0 {
		axis(ngff.Axis{Name: "t", Type: ngff.TypeTime}, s.Times, 1, 1)
	}
	if s.Channels > 0 {
		axis(ngff.Axis{Name: "c", Type: ngff.TypeChannel}, s.Channels, 1, 1)
	}
	space := ngff.SpaceAxes("zyx", "micrometer")
	if s.Planes > 0 {
		axis(space[0], s.Planes, 1, s.Voxel[0])
	}
	for d := range 2 {
		if float64(g.Places[d])*float64(s.Tile[d]) > math.MaxInt32 {
			return nil, fmt.Errorf("a mosaic grid of %d × %d tiles of %v pixels is too large", g.Places[0], g.Places[1], s.Tile)
		}
		axis(space[1+d], g.Places[d]*s.Tile[d], s.Tile[d], s.Voxel[1+d])
	}
	return spec, nil
}

// write reads the tiles and writes them, place by place.
func (s *Scan) write(ctx context.Context, w *ngff.Writer, g *Grid, plane, workers int, st Storage) error {
	at := make([]int, g.Places[0]*g.Places[1]) // tiles by place; −1: none
	for i := range at {
		at[i] = -1
	}
	for k, p := range g.Tiles {
		at[p[0]*g.Places[1]+p[1]] = k
	}
	times, groups, planes := max(s.Times, 1), max(s.Channels, 1)/s.together(), max(s.Planes, 1)
	zeros := sync.OnceValue(func() []byte { return make([]byte, plane) })
	bufs := make([][]byte, workers)
	defer func() {
		for _, b := range bufs {
			mem.Free(b)
		}
	}()
	return work.Each(ctx, workers, len(at)*times*groups*planes, func(worker, n int) (err error) {
		z := n % planes
		c := n / planes % groups * s.together()
		t := n / planes / groups % times
		i := n / planes / groups / times
		if bufs[worker] == nil {
			if bufs[worker], err = mem.Alloc(plane); err != nil {
				return err
			}
		}
		data := bufs[worker]
		if at[i] < 0 {
			data = zeros()
		} else if err := s.Read(ctx, at[i], t, c, z, data); err != nil {
			return err
		}
		start, shape := s.box(t, c, z, i/g.Places[1], i%g.Places[1])
		if err := w.WriteTile(ctx, start, shape, data); err != nil {
			return err
		}
		if st.Progress != nil && at[i] >= 0 {
			st.Progress(int64(plane))
		}
		return nil
	})
}

// box returns where a plane of the tile at place (i, j) lies in the image.
func (s *Scan) box(t, c, z, i, j int) (start, shape []int) {
	axis := func(at, n int) { start, shape = append(start, at), append(shape, n) }
	if s.Times > 0 {
		axis(t, 1)
	}
	if s.Channels > 0 {
		axis(c, s.together())
	}
	if s.Planes > 0 {
		axis(z, 1)
	}
	axis(i*s.Tile[0], s.Tile[0])
	axis(j*s.Tile[1], s.Tile[1])
	return start, shape
}
