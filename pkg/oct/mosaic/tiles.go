package mosaic

import (
	"context"
	"fmt"
	"iter"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/rawtiles"
)

// writing is the writing of one mosaic.
type writing struct {
	*Mosaic
	res     oct.Resources
	out     *ngff.Writer       // nil: the mosaic is not kept
	shift   int                // A-lines by which frames are rolled towards their end
	weights [3]*filter.Weights // along frames, A-lines and samples; nil: voxels stay as they are
	chunks  []int
	pyramid int64

	contents []oct.Content // of the tiles
	feeds    []*compute.Feed

	workers int
	each    int64 // bytes of a worker that makes as few planes at a time as possible
	crew    *oct.Crew
	batch   int // frames that are read at a time, those that repeat a place counted once
	group   int // planes that a worker makes at a time
}

const (
	// largeTile is the size in bytes above which a tile is stored as several chunks along z.
	largeTile = 64 << 20
	// blockBytes is about how much of a tile is read at a time.
	blockBytes = 2 << 20
)

// resized reports whether voxels change.
func (w *writing) resized() bool { return w.before != w.after }

// plan chooses chunks, begins the products, and chooses pieces of work that fit into memory. It returns the image to
// write. keep tells whether the mosaic itself is written; with trial nothing is stored.
func (w *writing) plan(ctx context.Context, layout oct.Layout, keep bool, products []Product, trial bool) (spec ngff.ImageSpec, _ oct.Layout, err error) {
	plane := int64(mem.Product(4, w.Tile[1], w.Tile[2]))
	parts := 1
	if !w.resized() && !w.how.Whole {
		parts = int(min(plane*int64(w.Tile[0])/largeTile+1, int64(w.Tile[0])))
	}
	w.chunks = []int{(w.Tile[0] + parts - 1) / parts, w.Tile[1], w.Tile[2]}
	unit := w.chunks[0]
	if len(layout.Chunks) == len(w.chunks) {
		unit = min(max(1, layout.Chunks[0]), w.Tile[0])
	}
	if len(layout.Shard) == len(w.chunks) {
		unit = min(max(1, layout.Shard[0]), w.Tile[0])
	}
	if keep && (layout.Levels > 0 || layout.Shard != nil || w.how.Sharding > 1) {
		w.pyramid = w.res.Mem / 4
	}
	spec, layout = w.spec(layout)
	if err := w.begin(ctx, spec, layout, products, trial); err != nil {
		return spec, layout, err
	}
	return spec, layout, w.fit(plane, w.fixed(), unit)
}

// fixed chooses the frames that are read at a time, and returns the memory of a worker besides its planes.
func (w *writing) fixed() int64 {
	frame := int64(mem.Product(4, w.Infos[0].Lines(), w.Infos[0].Depth))
	repeat := int64(w.Infos[0].Repeat)
	w.batch = batch(w.before[0], frame*repeat)
	fixed := int64(w.batch)*frame*repeat + frame // what is read, and a frame in another order
	if w.resized() {
		w.group = w.Tile[0]
		if w.batch > 1 {
			fixed += int64(w.batch) * frame
		}
		fixed += filter.ResizerBytes(w.before, w.after, w.batch)
		for d := range w.before {
			fixed += filter.WeightsBytes(w.before[d], w.after[d], filter.AntiAliasSigma(w.before[d], w.after[d]))
		}
	}
	return fixed
}

// batch returns how many of n frames are read at a time: whole cache lines of the result where frames are small, or at
// least whole registers of a transpose.
func batch(n int, frame int64) int {
	for _, multiple := range []int64{16, 8} {
		if k := blockBytes / frame / multiple * multiple; k > 0 {
			return int(min(int64(n), k))
		}
	}
	return int(min(int64(n), max(1, min(8, 4*blockBytes/frame))))
}

// fit chooses as many workers as memory allows, each with whole tiles or, if these are too large, a part of the planes
// of one, a multiple of unit. A worker holds fixed bytes, its planes, and a chunk of them encoded. What is made of the
// tiles takes its own.
func (w *writing) fit(plane, fixed int64, unit int) error {
	pyramids := w.pyramid
	for _, f := range w.feeds {
		pyramids += f.Pyramid()
		fixed += f.WorkerBytes(w.Tile[1], w.Tile[2])
	}
	budget := w.res.Mem - pyramids
	depth := w.Tile[0]
	least := unit
	if w.resized() {
		least = depth
	}
	need := func(planes int) int64 {
		return int64(mem.Sum(int(fixed), mem.Product(int(plane), planes), mem.Product(int(plane), min(unit, planes))))
	}
	if need(least) > budget {
		return w.res.TooLittle(need(least)+pyramids, "slice %02d: making tiles of %v voxels, %d planes at a time,", w.Slice.ID, w.Tile, least)
	}
	tiles := len(w.Grid.Tiles)
	w.each = need(least)
	w.workers = int(min(int64(w.res.Workers), budget/w.each))
	// Whole tiles are read once: take fewer planes only where there would be idle workers. With products one read comes
	// first.
	if whole := int(min(int64(w.workers), budget/need(depth))); whole >= w.workers || whole > 0 && w.feeds != nil {
		least, w.workers = depth, whole
	}
	if w.feeds != nil {
		w.each = need(least)
	}
	w.group = least
	for n := least + unit; n < depth && need(n) <= budget/int64(w.workers); n += unit {
		w.group = n
	}
	groups := (depth + w.group - 1) / w.group
	w.group = min(w.group, ((depth+groups-1)/groups+unit-1)/unit*unit) // all about as large
	pieces := tiles * groups
	if w.feeds != nil {
		pieces = tiles
	} else {
		tiles *= (depth + w.group - 1) / w.group
	}
	w.workers = max(1, min(w.workers, tiles))
	all := w.res.ForAll(w.each*int64(max(1, w.res.Busy(pieces))), budget)
	w.crew = w.res.Crew(oct.Team{What: fmt.Sprintf("slice %02d, %d of %d planes of a tile and %d frames", w.Slice.ID, w.group, depth, w.batch), Workers: w.workers,
		Pieces: tiles, Each: need(w.group), All: all})
	return nil
}

// run writes all tiles.
func (w *writing) run(ctx context.Context) error {
	if w.resized() {
		for d, n := range w.before {
			out := w.after[d]
			if w.how.Corner {
				w.weights[d] = filter.CornerAligned(n, out, filter.AntiAliasSigma(n, out), filter.Reflect)
			} else {
				w.weights[d] = filter.CentreAligned(n, out, filter.AntiAliasSigma(n, out), filter.Reflect)
			}
		}
	}
	depth := w.group // planes that are a piece of work
	if w.feeds != nil {
		depth = w.Tile[0] // one worker after the other would have to take up what is made of a tile
	}
	var starts [][]int
	for at := range ngff.TileOrder(w.Shape[:], []int{depth, w.Tile[1], w.Tile[2]}, ngff.SpaceAxes("zyx", "millimeter")) {
		starts = append(starts, at)
	}
	pool := mem.NewPool(w.res.Mem)
	defer pool.Close()
	return w.crew.Share(ctx, len(starts), func(ctx context.Context, _ int, pieces iter.Seq[int]) error {
		x, err := newMaker(ctx, w, pool)
		if err != nil {
			return err
		}
		defer x.close()
		for k := range pieces {
			if err := x.pieces(ctx, starts[k], depth); err != nil {
				return err
			}
		}
		return nil
	})
}

// maker is a worker.
type maker struct {
	*writing
	held    []*mem.Buffer
	frames  []float32 // as read, and averaged
	ordered []float32 // a frame, or the block if voxels change, as A-lines of the image
	result  []float32
	lines   []int // of the frames on disk, for each A-line of the image
	resizer *filter.Resizer
	fed     []*compute.Fed
}

func newMaker(ctx context.Context, w *writing, pool *mem.Pool) (*maker, error) {
	x := &maker{writing: w, lines: make([]int, w.before[1])}
	i := &w.Infos[0]
	ordered := 1
	if w.resized() {
		x.resizer = &filter.Resizer{}
		ordered = w.batch
	}
	for _, b := range []struct {
		to *[]float32
		n  int
	}{
		{&x.frames, w.batch * i.Repeat * i.Lines() * i.Depth}, {&x.ordered, ordered * max(w.before[1]*i.Depth, w.after[1]*w.after[2])},
		{&x.result, w.group * w.Tile[1] * w.Tile[2]},
	} {
		held, err := pool.Get(ctx, 4*b.n)
		if err != nil {
			x.close()
			return nil, err
		}
		x.held = append(x.held, held)
		*b.to = dtype.Slice[float32](held.B)[:b.n]
	}
	for _, f := range w.feeds {
		to, err := f.Worker(ctx, w.Tile[1], w.Tile[2])
		if x.fed = append(x.fed, to); err != nil {
			x.close()
			return nil, err
		}
	}
	return x, nil
}

func (x *maker) close() {
	for _, f := range x.fed {
		f.Close()
	}
	for _, b := range x.held {
		b.Release()
	}
}

// pieces makes a number of planes of a tile that begin at start in the mosaic grid: as many at a time as it has memory
// for.
func (x *maker) pieces(ctx context.Context, start []int, planes int) error {
	tile := oct.Rect(start[1], start[1]+x.Tile[1], start[2], start[2]+x.Tile[2])
	for _, f := range x.fed {
		if err := f.Begin(tile); err != nil {
			return err
		}
	}
	for end := min(start[0]+planes, x.Tile[0]); start[0] < end; start[0] += x.group {
		result, err := x.piece(ctx, start, min(x.group, end-start[0]))
		if err != nil {
			return err
		}
		for _, f := range x.fed {
			if err := f.Add(result); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece makes the planes of a tile that begin at start in the mosaic grid, and writes them.
func (x *maker) piece(ctx context.Context, start []int, planes int) ([]float32, error) {
	result := x.result[:planes*x.Tile[1]*x.Tile[2]]
	row, column := start[1]/x.Tile[1], start[2]/x.Tile[2]
	if x.how.Legacy {
		row, column = column, row
	}
	if k := x.Grid.At(row, column); k < 0 {
		clear(result)
	} else {
		if err := x.tile(ctx, k, start[0], planes, result); err != nil {
			return nil, inputFault(err)
		}
		x.res.Done(x.tileBytes() * int64(planes) / int64(x.Tile[0]))
	}
	if x.out == nil {
		return result, nil
	}
	return result, x.out.WriteTile(ctx, start, []int{planes, x.Tile[1], x.Tile[2]}, dtype.Bytes(result))
}

// tile reads tile k and makes the given planes of it.
func (x *maker) tile(ctx context.Context, k, first, planes int, result []float32) error {
	f, err := x.Slice.Tiles[k].Open(ctx, x.Infos[k], x.res.Meter)
	if err != nil {
		return err
	}
	defer f.Close()
	camera := 0
	if x.how.Camera {
		aip, err := f.Project(x.res.Mem / int64(x.workers))
		if err != nil {
			return err
		}
		camera = rawtiles.CameraShift(aip, f.Info.Lines())
	}
	if x.resizer != nil {
		x.resizer.Reset(x.weights[0], x.weights[1], x.weights[2])
	}
	depth, lines, repeat := f.Info.Depth, f.Info.Lines(), f.Info.Repeat
	for at := 0; at < x.before[0]; at += x.batch {
		n := min(x.batch, x.before[0]-at)
		frames := x.frames[:n*repeat*f.FrameLen()]
		if err := f.Read(frames, at*repeat); err != nil {
			return err
		}
		since := time.Now()
		if first == 0 {
			x.res.Meter.AddNonFinite(filter.CountNonFinite(frames))
			x.contents[k].Add(frames)
		}
		average(frames, n, repeat)
		if x.how.Camera && at == 0 { // the frame in which the camera began: its first A-line is its neighbour
			rolled := camera % lines
			copy(frames[rolled*depth:][:depth], frames[(rolled+1)%lines*depth:][:depth])
		}
		x.order(camera, lines)
		if x.resizer == nil {
			x.place(result, block{frames, n, lines, depth, at}, first, planes)
		} else {
			x.resizer.Add(x.inOrder(frames, n, depth, lines))
		}
		x.res.Meter.Since(meter.Compute, since)
	}
	if x.resizer != nil {
		defer x.res.Meter.Since(meter.Compute, time.Now())
		x.lines = x.lines[:0]
		for l := range x.after[1] {
			x.lines = append(x.lines, l)
		}
		x.place(result, block{x.resizer.Volume(), x.after[0], x.after[1], x.after[2], 0}, 0, planes)
	}
	return nil
}

// average replaces the frames that repeat a place by their mean: n groups become n frames.
func average(frames []float32, n, repeat int) {
	if repeat < 2 {
		return
	}
	size := len(frames) / (n * repeat)
	for k := range n {
		sum := frames[k*size:][:size]
		copy(sum, frames[k*repeat*size:][:size])
		for r := 1; r < repeat; r++ {
			for i, v := range frames[(k*repeat+r)*size:][:size] {
				sum[i] += v
			}
		}
		for i := range sum {
			sum[i] /= float32(repeat)
		}
	}
}

// order notes for each A-line of the image which one of the frame on disk it is, after the camera's shift and the
// mirror's are undone.
func (x *maker) order(camera, lines int) {
	x.lines = x.lines[:0]
	for l := range x.before[1] {
		x.lines = append(x.lines, (l+lines-x.shift%lines+camera)%lines)
	}
}

// inOrder returns n frames as A-lines of the image.
func (x *maker) inOrder(frames []float32, n, depth, lines int) []float32 {
	if x.before[1] == lines && x.lines[0] == 0 {
		return frames[:n*lines*depth]
	}
	ordered := x.ordered[:n*x.before[1]*depth]
	for k := range n {
		for l, from := range x.lines {
			copy(ordered[(k*x.before[1]+l)*depth:][:depth], frames[(k*lines+from)*depth:])
		}
	}
	return ordered
}

// block is frames in the order of the files.
type block struct {
	v            []float32
	frames       int
	lines, depth int // of a frame
	at           int // place of the first frame in the tile
}

// place puts the given planes of frames where they belong in the tile: its axes are those of the files in reverse, or
// samples, frames and A-lines, the latter two backwards, of legacy data.
func (x *maker) place(result []float32, b block, first, planes int) {
	depth, plane := b.depth, x.Tile[1]*x.Tile[2]
	if !x.how.Legacy {
		for l, from := range x.lines {
			filter.Transpose(result[l*x.Tile[2]+b.at:], b.v[from*depth+first:], b.frames, planes, plane, b.lines*depth)
		}
		return
	}
	for k := range b.frames {
		reversed := x.ordered[:len(x.lines)*planes]
		for l, from := range x.lines {
			copy(reversed[(len(x.lines)-1-l)*planes:][:planes], b.v[(k*b.lines+from)*depth+first:])
		}
		filter.Transpose(result[(x.after[0]-1-b.at-k)*x.Tile[2]:], reversed, len(x.lines), planes, plane, planes)
	}
}
