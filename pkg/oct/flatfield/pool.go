package flatfield

import (
	"context"
	"fmt"
	"iter"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/units"
)

// mosaic is a volume with its grid of tiles.
type mosaic struct {
	*blocks.Volume
	height, width int // of a tile
	skip          int // first rows of a tile that take no part in the estimate
	ny, nx        int // whole tiles
}

func newMosaic(v *blocks.Volume, c Options) (*mosaic, error) {
	m := &mosaic{Volume: v, height: v.Chunk[1], width: v.Chunk[2], skip: c.ExtraRows}
	if c.TileUM > 0 {
		n := c.TileUM / v.Voxel[1]
		if n <= 0.5 || n >= 1<<30 {
			return nil, oct.BadInput("%s: a tile of %g µm has %.3g voxels of %g µm", v.Where, c.TileUM, n, v.Voxel[1])
		}
		m.height = int(math.RoundToEven(n))
		m.width = m.height
	}
	m.ny, m.nx = v.Shape[1]/m.height, v.Shape[2]/m.width
	if m.tiles() == 0 {
		return nil, oct.BadInput("%s: planes of %d × %d voxels hold no whole tile of %d × %d", v.Where, v.Shape[1], v.Shape[2], m.height, m.width)
	}
	if m.skip >= m.height {
		return nil, oct.BadInput("%s: tiles have %d rows, all of which are extra rows", v.Where, m.height)
	}
	return m, nil
}

func (m *mosaic) tiles() int { return m.ny * m.nx }

// choose returns the planes from which fields are estimated, evenly spread over the volume: as many as give at most
// samples tiles, but at least one plane.
func (m *mosaic) choose(samples int) []int {
	n := max(1, samples/m.tiles())
	depth := m.Shape[0]
	if n >= depth {
		n = depth
	}
	planes := make([]int, n)
	for i := range planes {
		if planes[i] = i; n < depth && n > 1 {
			planes[i] = int(float64(i) * (float64(depth-1) / float64(n-1)))
		}
	}
	if n > 1 {
		planes[n-1] = depth - 1
	}
	return planes
}

// A run is consecutive places in a list of planes, whose planes lie in the same chunks: they are read together.
type run struct{ first, end int }

// runs divides planes into runs that span at most limit planes each.
func (m *mosaic) runs(planes []int, limit int) (all []run) {
	for i := 0; i < len(planes); {
		j := i + 1
		for j < len(planes) && planes[j]/m.Chunk[0] == planes[i]/m.Chunk[0] && planes[j]-planes[i] < limit {
			j++
		}
		all = append(all, run{i, j})
		i = j
	}
	return all
}

// A visit holds the voxels of one tile in some planes.
type visit struct {
	tile   int   // in the grid of whole tiles, row by row
	planes []int // places in the list of planes
	voxels func(i int) []float32
}

// reading is a plan to read rows of all whole tiles in some planes.
type reading struct {
	*mosaic
	planes      []int
	first, rows int // rows of each tile
	runs        []run
	workers     int
	all         int64 // Mem for as many workers as could work
	span        int   // planes that a worker reads at a time
	each        int64
}

// read plans a reading of rows of each tile in the given memory, of which perPlane bytes are for something else for
// each plane that is read at a time.
func (m *mosaic) read(planes []int, first, rows int, memory int64, perPlane int64, res *oct.Resources) (*reading, error) {
	r := &reading{mosaic: m, planes: planes, first: first, rows: rows}
	voxel := int64(4)
	if m.DType != dtype.Float32 {
		voxel += int64(m.DType.Size())
	}
	plane := int64(mem.Product(rows, m.width, int(voxel)))
	scratch := m.Array.ScratchBytes(false)
	need := plane + scratch + perPlane
	if need > memory {
		return nil, res.TooLittle(need+res.Mem-memory, "%s: reading tiles of %d × %d pixels", m.Where, m.height, m.width)
	}
	r.workers = int(min(int64(res.Workers), int64(m.tiles()*len(planes)), (memory-perPlane)/(plane+scratch)))
	pieces := int(min(int64(m.tiles()*len(planes)), 1<<30))
	r.all = res.ForAll(int64(max(1, res.Busy(pieces)))*(plane+scratch)+perPlane, memory)
	r.span = 1
	if len(m.Array.Codecs()) > 0 { // chunks are decoded whole: what they have is taken at once
		r.span = int(max(1, min(int64(m.Chunk[0]), (memory-int64(r.workers)*scratch)/(int64(r.workers)*plane+perPlane))))
	}
	r.runs = m.runs(planes, r.span)
	r.each = plane
	return r, nil
}

// visit calls f for all tiles and planes, from several goroutines: tiles row by row, for one run after another.
func (r *reading) visit(ctx context.Context, res *oct.Resources, f func(ctx context.Context, v *visit) error) error {
	pool := mem.NewPool(res.Mem)
	defer pool.Close()
	area := r.rows * r.width
	n := len(r.runs) * r.tiles()
	crew := res.Crew(oct.Team{What: fmt.Sprintf("reading tiles of %d × %d pixels, up to %s", r.rows, r.width, units.Count(r.span, "plane")), Workers: r.workers, Pieces: n, Each: r.each*int64(r.span) + r.Array.ScratchBytes(false), All: r.all})
	return crew.Share(ctx, n, func(ctx context.Context, _ int, pieces iter.Seq[int]) error {
		buffer, err := pool.Get(ctx, int(r.each)*r.span)
		if err != nil {
			return err
		}
		defer buffer.Release()
		voxels := dtype.Slice[float32](buffer.B[:4*area*r.span])
		raw := buffer.B[4*area*r.span:]
		for k := range pieces {
			some, t := r.runs[k/r.tiles()], k%r.tiles()
			v := &visit{tile: t}
			from := r.planes[some.first]
			depth := r.planes[some.end-1] - from + 1
			start := [3]int{from, t/r.nx*r.height + r.first, t % r.nx * r.width}
			if err := r.Read(ctx, voxels[:depth*area], raw, start, [3]int{depth, r.rows, r.width}); err != nil {
				return err
			}
			if r.DType.IsFloat() {
				zeroNonFinite(voxels[:depth*area])
			}
			for i := some.first; i < some.end; i++ {
				v.planes = append(v.planes, i)
			}
			v.voxels = func(i int) []float32 { return voxels[(r.planes[i]-from)*area:][:area] }
			if err := f(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// zeroNonFinite replaces NaN and infinite values by 0.
func zeroNonFinite(v []float32) {
	if filter.CountNonFinite(v) == 0 {
		return
	}
	for i, p := range v {
		if p-p != 0 {
			v[i] = 0
		}
	}
}
