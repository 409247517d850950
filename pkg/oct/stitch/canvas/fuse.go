package canvas

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
	"strata/pkg/units"
	"strata/pkg/work"
)

// An Assembly places the tiles of a mosaic on the canvas and writes it.
type Assembly struct {
	*schedule
	Canvas
	near   [][]int // of each tile, those that overlap it
	blank  []int   // of each tile: number of first planes known to be zero; negative: not examined
	shown  []int   // planes of each tile reported as progress
	fusion *fusion.Plan
	crew   *oct.Crew
	coming *oct.Coming // a device that may join the host; nil: none
}

// New prepares an assembly whose output is written in units of the given shape, within avail bytes of memory.
func New(c Canvas, unit [3]int, avail int64) *Assembly {
	columns, across := makeColumns(c.Size, unit, c.Places, c.Seams != nil)
	return newAssembly(c, &schedule{unit: unit, columns: columns, across: across}, Overlapping(c.Places), avail)
}

// newAssembly returns an assembly with the fields that host and device share.
func newAssembly(c Canvas, s *schedule, near [][]int, avail int64) *Assembly {
	n, unit := len(c.Places), s.unit
	f := &Assembly{schedule: s, Canvas: c, near: near, blank: make([]int, n), shown: make([]int, n), coming: c.Res.Coming}
	for t := range f.blank {
		f.blank[t] = -1
	}
	f.fusion = &fusion.Plan{
		What:   fmt.Sprintf("stitching tiles of this size into chunks of %v", unit),
		Mosaic: c.Mosaic, Res: &f.Res, Columns: f.columns, Tiles: n, Unit: unit, Size: c.Size,
		Mem: avail, Encoding: c.encoding(unit), Weighs: c.Blending != BlendAverage, Choose: c.Blending == BlendNone,
	}
	if c.Blending == BlendDiffusion {
		f.fusion.Weighing = diffusing * int64(c.Mosaic.Chunk[1]) * int64(c.Mosaic.Chunk[2])
	}
	return f
}

// diffusing is the memory in bytes per pixel for the grids of the diffusion's equation.
const diffusing = 13

// encoding returns the memory in which a worker encodes a unit of the output.
func (c *Canvas) encoding(unit [3]int) int64 {
	if !c.Coded {
		return 0
	}
	n := int64(min(unit[0], c.Mosaic.Shape[0])) * int64(min(unit[1], c.Size[0])) * int64(min(unit[2], c.Size[1])) * int64(c.Mosaic.DType.Size())
	return n + n/16
}

// IsEmpty reports whether a tile is known to contain only zeros.
func (f *Assembly) IsEmpty(t int) bool { return f.blank[t] == f.Mosaic.Shape[0] }

// Check returns an error if memory is too small. On a device, it cannot tell before the output exists, and returns nil.
func (f *Assembly) Check() error {
	if f.fusion.NeedsOutput() {
		return nil
	}
	return f.makePlan()
}

// Coming returns the device that may join the next assembly of the same slice; nil: none.
func (f *Assembly) Coming() *oct.Coming { return f.coming }

// makePlan makes the plan on its first call.
func (f *Assembly) makePlan() error {
	if f.workers > 0 {
		return nil
	}
	memory, err := f.fusion.Memory()
	if err != nil {
		return err
	}
	depth := f.Mosaic.Shape[0]
	most := memory.Limit
	if !f.fusion.NeedsOutput() { // more is not worth while if this keeps all busy
		memory.Limit = min(most, f.Res.Spare())
	}
	least, ok := f.plan(depth, memory)
	if memory.Limit < most && (!ok || f.workers < memory.Workers) {
		memory.Limit = most
		least, ok = f.plan(depth, memory)
	}
	for !ok {
		smaller, some, err := f.fusion.Less()
		switch {
		case err != nil:
			return err
		case !some:
			return f.fusion.Short(least)
		}
		least, ok = f.plan(depth, smaller)
	}
	f.crew = f.Res.OnDevice(f.workers)
	if !f.fusion.NeedsOutput() {
		f.crew = f.team(depth, memory)
	}
	return nil
}

// team plans the workers on the host.
func (f *Assembly) team(depth int, m fusion.Memory) *oct.Crew {
	all := m.Limit
	if f.workers < m.Workers {
		all = f.limitFor(depth, m)
	}
	each := m.Worker + int64(min(f.slab*f.unit[0], depth))*m.Plane
	what := fmt.Sprintf("%s, %s for columns", f.fusion.What, units.FormatSize(f.bytes))
	return f.Res.Crew(oct.Team{What: what, Workers: f.workers, Pieces: f.fusion.Tiles, Each: each, All: f.Res.ForAll(all, f.fusion.Mem)})
}

// Write reads the tiles and writes the slice to w. The caller closes w.
func (f *Assembly) Write(ctx context.Context, w *ngff.Writer) error {
	f.fusion.Output = w
	if err := f.makePlan(); err != nil {
		return err
	}
	if f.coming != nil {
		return newSharing(f).run(ctx)
	}
	return f.run(ctx, []share{f.whole()})
}

// A share is a part of the work.
type share struct {
	passBox
	written map[*fusion.Column]bool // columns of it that are left out, and so are those without tiles; nil: none
}

// whole returns all of the work.
func (f *Assembly) whole() share { return share{passBox: passBox{0, f.across, 0, f.Mosaic.Shape[0]}} }

// run works on shares one after the other, each in passes over its blocks of columns and their slabs of planes.
func (f *Assembly) run(ctx context.Context, shares []share) error {
	if len(shares) == 0 {
		return nil
	}
	if err := f.fusion.Open(f.workers, f.bytes); err != nil {
		return err
	}
	defer f.fusion.Close()
	for _, s := range shares {
		for _, box := range f.cut(s.passBox) {
			written := map[*fusion.Column]bool{}
			maps.Copy(written, s.written)
			err := f.fill(ctx, box, s.written == nil, func(ctx context.Context) error { return f.pass(ctx, box, f.workers, written) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// cut divides a box into the boxes of single passes.
func (f *Assembly) cut(box passBox) (boxes []passBox) {
	for x := box.x0; x < box.x1; x += f.blocks[1] {
		for z := box.z0; z < box.z1; z += f.slab * f.unit[0] {
			boxes = append(boxes, passBox{x, min(x+f.blocks[1], box.x1), z, min(z+f.slab*f.unit[0], box.z1)})
		}
	}
	return boxes
}

// fill runs a pass over a box, and writes the columns without tiles if holes is set.
func (f *Assembly) fill(ctx context.Context, box passBox, holes bool, pass func(ctx context.Context) error) error {
	g, ctx := work.WithContext(ctx)
	g.Go(func() error { return pass(ctx) })
	if holes {
		g.Go(func() error { return f.writeHoles(ctx, box) })
	}
	return g.Wait()
}

// passBox is the extent of a pass: columns x0 … x1−1 along x, planes z0 … z1−1.
type passBox struct{ x0, x1, z0, z1 int }

// pass makes the columns of a box that are not yet written. If the device has less memory than planned, it uses
// smaller passes.
func (f *Assembly) pass(ctx context.Context, box passBox, workers int, written map[*fusion.Column]bool) error {
	err := newPass(f, box, written).run(ctx, workers)
	var short fusion.ShortOfMemory
	if !errors.As(err, &short) {
		return err
	}
	left, right := box, box
	switch {
	case box.x1-box.x0 > 1:
		left.x1 = (box.x0 + box.x1) / 2
		right.x0 = left.x1
	case box.z1-box.z0 > f.unit[0]:
		left.z1 = box.z0 + shrink((box.z1-box.z0+f.unit[0]-1)/f.unit[0])*f.unit[0]
		right.z0 = left.z1
	case workers > 1:
		return f.pass(ctx, box, 1, written)
	default:
		return err
	}
	before := maps.Clone(written) // a column that is cut along z is to be written in both
	if err := f.pass(ctx, left, workers, written); err != nil {
		return err
	}
	return f.pass(ctx, right, workers, before)
}

// writeHoles writes the columns without tiles.
func (f *Assembly) writeHoles(ctx context.Context, box passBox) (err error) {
	size := f.Mosaic.DType.Size()
	var zeros []byte
	f.each(box.x0, box.x1, func(c *fusion.Column) {
		if len(c.Tiles) > 0 || err != nil {
			return
		}
		if zeros == nil {
			zeros = make([]byte, f.unit[0]*f.unit[1]*f.unit[2]*size)
		}
		for z := box.z0; z < box.z1 && err == nil; z += f.unit[0] {
			n := min(f.unit[0], box.z1-z)
			err = f.fusion.Output.WriteTile(ctx, f.Mosaic.Index(z, c.Box.Y0, c.Box.X0), f.Mosaic.BoxShape(n, c.Box.Height(), c.Box.Width()), zeros[:n*c.Box.Area()*size])
		}
	})
	return err
}

// visit describes how a tile contributes to a column.
type visit struct {
	*liveColumn
	self  int // index of the tile in the column's tiles
	cells []visitedCell
}

// visitedCell is a region of the column that the tile covers.
type visitedCell struct {
	fusion.Cell
	who []int // tiles that cover it
	at  int   // index of the tile there
}

// add adds the k-th tile of a pass to the columns that it covers, and writes those that it completes. It returns
// false if the work has failed or should stop, here or elsewhere.
func (p *pass) add(w fusion.Fuser, k int) bool {
	t := p.tiles[k]
	p.blank[t] = w.Load(fusion.Tile{From: p.extent(t), To: p.Places[t].Rectangle, Behind: p.Places[t].Frac}, p.blank[t])
	if c := p.situation(t); c != nil && !p.IsEmpty(t) {
		w.Weigh(c.key(), c.fill)
	}
	visits := p.enter(w, k)
	if len(visits) == 0 {
		return !w.Failed() // a device has taken its columns over
	}
	added := false
	w.Planes(func(z, n int) bool {
		for i := range visits {
			visits[i].alone(w)
		}
		for i := range visits {
			if !p.shared(w, &visits[i], z+n) {
				return false
			}
			w.Then(func() { p.advance(&visits[i], z+n) })
		}
		p.progress(w, t, z+n)
		added = z+n == p.z1
		return true
	})
	if added && !w.Failed() {
		w.Write(p.complete(visits), p.gone)
	}
	return added && !w.Failed()
}

// enter returns the pass's columns that its k-th tile covers, and begins new ones.
func (p *pass) enter(w fusion.Fuser, k int) (visits []visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tiles[k]
	r := p.Places[t]
	for y := r.Y0 / p.unit[1]; y*p.unit[1] < r.Y1; y++ {
		for x := max(r.X0/p.unit[2], p.x0); x < p.x1 && x*p.unit[2] < r.X1; x++ {
			c := &p.columns[y*p.across+x]
			if p.written[c] {
				continue
			}
			m := p.live[c]
			if m == nil && p.handed {
				continue
			}
			if m == nil {
				if m = p.begin(w, c); m == nil {
					return nil
				}
				p.live[c] = m
			}
			visits = append(visits, newVisit(m, t, p.IsEmpty(t)))
		}
	}
	p.own[k] = len(visits) > 0
	return visits
}

// newVisit lists the regions of a column that a tile covers.
func newVisit(m *liveColumn, t int, empty bool) visit {
	v := visit{liveColumn: m}
	for v.Tiles[v.self] != t {
		v.self++
	}
	for i, r := range v.Regions {
		for k, o := range r.Who {
			if o == t {
				v.cells = append(v.cells, visitedCell{fusion.Cell{Region: i, Last: k == len(r.Who)-1, Empty: empty}, r.Who, k})
			}
		}
	}
	return v
}

// alone adds the tile's planes to regions that it covers alone.
func (v *visit) alone(w fusion.Fuser) {
	for i := range v.cells {
		if c := &v.cells[i]; len(c.who) == 1 {
			w.Fuse(v.ColumnMemory, &c.Cell)
		}
	}
}

// shared adds the tile's planes, which end at z, to regions shared with others, after the tiles that precede it:
// tiles that are not empty are averaged, and where all are empty the slice is empty. It returns false if the work
// has ended elsewhere.
func (p *pass) shared(w fusion.Fuser, v *visit, z int) bool {
	for i := range v.cells {
		c := &v.cells[i]
		if len(c.who) == 1 {
			continue
		}
		if c.at > 0 && !p.await(w, v, c.who[c.at-1], z) {
			return false
		}
		c.Before = 0
		for _, o := range c.who[:c.at] {
			if !p.IsEmpty(o) {
				c.Before++
			}
		}
		c.Seam = p.Seams != nil && len(c.who) == 2 && c.Before == 1 && !c.Empty
		w.Fuse(v.ColumnMemory, &c.Cell)
	}
	return true
}

// progress reports the planes at hand of a tile, which end at z, as done, and counts their NaN and infinite voxels,
// each only once.
func (p *pass) progress(w fusion.Fuser, t, z int) {
	if more := z - p.shown[t]; more > 0 {
		p.shown[t] = z
		w.CountNonFinite()
		p.Res.Done(int64(more) * int64(p.extent(t).Area()) * int64(p.Mosaic.DType.Size()))
	}
}
